"""What the numbers say: functions from what was measured to findings, which the claims put together."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from algoscope.studies.claim import Finding, Numbers, Value
from algoscope.studies.data_structures.holdings import LOST
from algoscope.studies.data_structures.intervals import table
from algoscope.studies.data_structures.references import MODEL, UNTRAINED

Model = Mapping[str, Any]  # the numbers of one model
SORTED = 0.99  # of the points in place: more is not to be learned
Find = Callable[[Model], Value | None]


def each(find: Find, run: str, points: int | None = None, **bounds: float) -> Callable[[Numbers], Finding | None]:
    """Judges a value of every seed of a run; a number that was published for so many `points`, of these alone."""

    def judge(numbers: Numbers) -> Finding | None:
        models = [model for model in numbers.get(run, {}).values() if points in (None, model.get("points"))]
        values = [found for model in models if (found := find(model)) is not None]
        return Finding.judged(values, **bounds) if values else None

    return judge


def value_of(row: Mapping[str, Any]) -> Value:
    return Value(row["value"], row["low"], row["high"], row["n"])


def minus(a: Value, b: Value) -> Value:
    """A difference of two numbers that are not paired: its interval is as wide as both together."""
    return Value(a.value - b.value, a.low - b.high, a.high - b.low, min(a.n, b.n))


def sorted_share(what: str = MODEL) -> Find:
    def find(model: Model) -> Value | None:
        rows = table(model, "sorted", what=what)
        return value_of(rows[0]) if rows else None

    return find


def learned_to_sort(model: Model) -> Value | None:
    """How much more is in place than before training; where the fresh order is sorted there is nothing to learn."""
    after, before = sorted_share()(model), sorted_share(UNTRAINED)(model)
    return minus(after, before) if after and before and before.value < SORTED else None


def found_at_last(model: Model) -> Value | None:
    rows = table(model, "found", what=MODEL)
    return value_of(rows[-1]) if rows else None


def found_halfway(model: Model) -> Value | None:
    rows = table(model, "found", what=MODEL)
    return value_of(rows[math.ceil(len(rows) / 2) - 1]) if rows else None


def ahead_at_last(other: str) -> Find:
    """How much more has been found than by another search, after the last look-up."""

    def find(model: Model) -> Value | None:
        rows = table(model, "ahead", over=other)
        return value_of(rows[-1]) if rows else None

    return find


def ahead_early(other: str) -> Find:
    """The same where it is least among the first half of the look-ups."""

    def find(model: Model) -> Value | None:
        rows = table(model, "ahead", over=other)
        early = rows[: math.ceil(len(rows) / 2)]
        return value_of(min(early, key=lambda row: row["low"])) if early else None

    return find


def ahead_least(other: str) -> Find:
    """The same where it is least among all look-ups."""

    def find(model: Model) -> Value | None:
        rows = table(model, "ahead", over=other)
        return value_of(min(rows, key=lambda row: row["low"])) if rows else None

    return find


def agrees(search: str) -> Find:
    """The share of look-ups, before the last, that read what a search reads."""

    def find(model: Model) -> Value | None:
        row = model.get("mean", {}).get(search)
        return value_of(row) if row else None

    return find


def closer(one: str, other: str) -> Find:
    """How much larger the agreement with one search is than with another."""

    def find(model: Model) -> Value | None:
        a, b = agrees(one)(model), agrees(other)(model)
        return minus(a, b) if a and b else None

    return find


def first_read(how: str) -> Find:
    def find(model: Model) -> Value | None:
        rows = table(model, "first", what=MODEL, **{"is": how})
        return value_of(rows[0]) if rows else None

    return find


def is_called(run: str, name: str) -> Callable[[Numbers], Finding | None]:
    """The agreement with a search; the claim needs that every seed is called by its name."""

    def judge(numbers: Numbers) -> Finding | None:
        models = list(numbers.get(run, {}).values())
        values = [found for model in models if (found := agrees(name)(model)) is not None]
        if not values:
            return None
        right = [model["called"] == name for model in models]
        return Finding(tuple(values), "holds" if all(right) else "undecided" if any(right) else "fails")

    return judge


def loses(run: str, without: str, told: Callable[[Model], bool] = lambda model: True) -> Callable[..., Finding | None]:
    """How much less is found after the last look-up where something is left out; of seeds that can tell."""

    def judge(numbers: Numbers) -> Finding | None:
        whole, part = numbers.get(run, {}), numbers.get(f"{run}, {without}", {})
        values = []
        for seed in (seed for seed in whole if seed in part and told(part[seed])):
            if (a := found_at_last(whole[seed])) and (b := found_at_last(part[seed])):
                values.append(minus(a, b))
        return Finding.judged(values, at_least=0.0) if values else None

    return judge


def if_learned(find: Callable[[Numbers], Finding | None], run: str) -> Callable[[Numbers], Finding | None]:
    """Undecided where a model of the run finds no more than before its training: that says nothing about what it is."""

    def judge(numbers: Numbers) -> Finding | None:
        found = find(numbers)
        for model in numbers.get(run, {}).values():
            after, before = found_at_last(model), table(model, "found", what=UNTRAINED)
            if found and after and before and after.value <= before[-1]["value"]:
                return found.undecided()
        return found

    return judge


def begins_unsorted(model: Model) -> bool:
    """Whether a frozen order is one that training would change."""
    before = sorted_share(UNTRAINED)(model)
    return before is None or before.value < SORTED


def alike(find: Callable[[Numbers], Finding | None], *runs: str) -> Callable[[Numbers], Finding | None]:
    """Undecided where the runs that are compared differ in their size, steps or rate as well."""

    def judge(numbers: Numbers) -> Finding | None:
        found, kinds = find(numbers), set()
        for config in (model.get("config") for run in runs for model in numbers.get(run, {}).values()):
            if config:
                sizes = [config["model"].get(part) for part in ("layers", "width", "hidden")]
                kinds.add((*sizes, config["settings"]["steps"], config["settings"]["batch"], config["learning_rate"]))
        return found.undecided() if found and len(kinds) > 1 else found

    return judge


def changes(after: str, before: str, at_most: float) -> Callable[[Numbers], Finding | None]:
    """How much more one run has found than another after the look-up at which they differ most, of every seed."""

    def judge(numbers: Numbers) -> Finding | None:
        values = []
        for seed in (seed for seed in numbers.get(after, {}) if seed in numbers.get(before, {})):
            one, other = (table(numbers[run][seed], "found", what=MODEL) for run in (after, before))
            apart = [minus(value_of(a), value_of(b)) for a, b in zip(one, other, strict=True)]
            values.append(max(apart, key=lambda value: abs(value.value)))
        return Finding.judged(values, at_least=-at_most, at_most=at_most) if values else None

    return judge


def gains(more: str, less: str, found: Find = found_at_last) -> Callable[[Numbers], Finding | None]:
    """How much more one run finds than another, by default after the last look-up."""

    def judge(numbers: Numbers) -> Finding | None:
        one, other = numbers.get(more, {}), numbers.get(less, {})
        both = [(found(one[seed]), found(other[seed])) for seed in one if seed in other]
        values = [minus(a, b) for a, b in both if a and b]
        return Finding.judged(values, at_least=0.0) if values else None

    return judge


def most_space(numbers: Numbers) -> Finding | None:
    """How much more is found with the most extra slots than with none."""
    sizes = sorted(int(name.split()[0]) for name in numbers if name.endswith("extra slots"))
    return gains(f"{sizes[-1]} extra slots", f"{sizes[0]} extra slots")(numbers) if len(sizes) > 1 else None


def holds(content: str) -> Find:
    """How much of what slots hold follows from what they may hold."""

    def find(model: Model) -> Value | None:
        rows = table(model, "held", what=MODEL, holds=content)
        return value_of(rows[0]) if rows else None

    return find


def lost_with(content: str) -> Find:
    """How much less is found where slots hold something else."""

    def find(model: Model) -> Value | None:
        rows = table(model, "swapped", **{"with": content, "is": LOST})
        return value_of(rows[0]) if rows else None

    return find


def pictures_in_order(model: Model) -> Value | None:
    """How often two pictures are stored as features in the order of their numbers."""
    found = model.get("pictures")
    return value_of(found["in order"]) if found else None


def two_directions(model: Model) -> Value | None:
    """How much of what decides a look-up lies along two directions."""
    rows = [row for row in model.get("probe", {}).get("subspaces", ()) if row["what"] == MODEL]
    return value_of(rows[0]) if rows else None


def error(what: str = MODEL) -> Find:
    """The mean absolute error of a sketch."""

    def find(model: Model) -> Value | None:
        rows = table(model, "errors", what=what)
        return value_of(rows[0]) if rows else None

    return find


def less_error_than(what: str) -> Find:
    """By how much the error of the model is below that of a sketch, on the same streams."""

    def find(model: Model) -> Value | None:
        rows = table(model, "errors", what=what)
        return Value(*(rows[0][f"ahead_{part}"] for part in ("value", "low", "high", "n"))) if rows else None

    return find


def controls_right(run: str, fresh: bool) -> Callable[[Numbers], Finding | None]:
    """The share of controls that are called what they are: of those that search, or of those that are untrained."""

    def judge(numbers: Numbers) -> Finding | None:
        values = []
        for model in numbers.get(run, {}).values():
            rows = [row for row in model["controls"] if (row["expected"] is None) == fresh]
            right = sum(row["called"] == row["expected"] for row in rows) / len(rows)
            values.append(Value(right, right, right, len(rows)))
        return Finding.judged(values, at_least=1.0) if values else None

    return judge

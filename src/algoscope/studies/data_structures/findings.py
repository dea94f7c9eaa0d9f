"""What follows from the numbers: functions from what was measured to findings, which the claims put together."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from algoscope.studies.claim import Finding, Numbers, Value
from algoscope.studies.data_structures.references import MODEL, UNTRAINED, Table, table

Model = Mapping[str, Any]  # the numbers of one model
SORTED = 0.99  # of the points in place: more is not to be learned
Find = Callable[[Model], Value | None]
Judge = Callable[[Numbers], Finding | None]


def each(find: Find, run: str, points: int | None = None, **bounds: float) -> Judge:
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


def last(rows: Table) -> Mapping[str, Any]:
    return rows[-1]


def least(rows: Table) -> Mapping[str, Any]:
    """Where the lower end of the interval is lowest."""
    return min(rows, key=lambda row: row["low"])


def row_of(name: str, where: Mapping[str, Any], choose: Callable[[Table], Mapping[str, Any]] = last) -> Find:
    """A value of a table: of the rows with given entries the one to choose."""

    def find(model: Model) -> Value | None:
        rows = table(model, name, **where)
        return value_of(choose(rows)) if rows else None

    return find


found_at_last = row_of("found", {"what": MODEL})


def sorted_share(what: str = MODEL) -> Find:
    return row_of("sorted", {"what": what})


def ahead_at_last(other: str) -> Find:
    """How much more has been found than by another search, after the last look-up."""
    return row_of("ahead", {"over": other})


def ahead_early(other: str) -> Find:
    """The same where it is least among the first half of the look-ups."""
    return row_of("ahead", {"over": other}, lambda rows: least(rows[: math.ceil(len(rows) / 2)]))


def ahead_least(other: str) -> Find:
    """The same where it is least among all look-ups."""
    return row_of("ahead", {"over": other}, least)


def first_read(how: str) -> Find:
    return row_of("first", {"what": MODEL, "is": how})


def error(what: str = MODEL) -> Find:
    """The mean absolute error of a sketch."""
    return row_of("errors", {"what": what})


def less_error_than(what: str) -> Find:
    """By how much the error of the model is below that of a sketch, on the same streams."""

    def find(model: Model) -> Value | None:
        rows = table(model, "errors", what=what)
        return Value(*(rows[0][f"ahead_{part}"] for part in ("value", "low", "high", "n"))) if rows else None

    return find


def pictures_in_order(model: Model) -> Value | None:
    """How often two pictures are stored as features in the order of their numbers."""
    found = model.get("pictures")
    return value_of(found["in order"]) if found else None


def begins_unsorted(model: Model) -> bool:
    """Whether a frozen order is one that training would change."""
    before = sorted_share(UNTRAINED)(model)
    return before is None or before.value < SORTED


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


def is_called(run: str, name: str) -> Judge:
    """The agreement with a search; the claim needs that every seed is called by its name."""

    def judge(numbers: Numbers) -> Finding | None:
        models = list(numbers.get(run, {}).values())
        values = [found for model in models if (found := agrees(name)(model)) is not None]
        if not values:
            return None
        right = [model["called"] == name for model in models]
        return Finding(tuple(values), "holds" if all(right) else "undecided" if any(right) else "fails")

    return judge


def gains(more: str, less: str, counts: Callable[[Model], bool] = lambda model: True) -> Judge:
    """How much more one run finds than another after the last look-up; of seeds that count."""

    def judge(numbers: Numbers) -> Finding | None:
        one, other = numbers.get(more, {}), numbers.get(less, {})
        both = [(found_at_last(one[seed]), found_at_last(other[seed])) for seed in one if seed in other
                and counts(other[seed])]  # fmt: skip
        values = [minus(a, b) for a, b in both if a and b]
        return Finding.judged(values, at_least=0.0) if values else None

    return judge


def loses(run: str, without: str, counts: Callable[[Model], bool] = lambda model: True) -> Judge:
    """How much less is found after the last look-up where something is left out; of seeds that count."""
    return gains(run, f"{run}, {without}", counts)


def most_space(numbers: Numbers) -> Finding | None:
    """How much more is found with the most extra slots than with none."""
    sizes = sorted(int(name.split()[0]) for name in numbers if name.endswith("extra slots"))
    return gains(f"{sizes[-1]} extra slots", f"{sizes[0]} extra slots")(numbers) if len(sizes) > 1 else None


def if_learned(find: Judge, run: str) -> Judge:
    """Undecided where a model of the run finds no more than before its training: then it has learned nothing."""

    def judge(numbers: Numbers) -> Finding | None:
        found = find(numbers)
        for model in numbers.get(run, {}).values():
            after, before = found_at_last(model), table(model, "found", what=UNTRAINED)
            if found and after and before and after.value <= before[-1]["value"]:
                return found.undecided()
        return found

    return judge


def controls_right(run: str, fresh: bool) -> Judge:
    """The share of controls that are called what they are: of those that search, or of those that are untrained."""

    def judge(numbers: Numbers) -> Finding | None:
        values = []
        for model in numbers.get(run, {}).values():
            rows = [row for row in model["controls"] if (row["expected"] is None) == fresh]
            right = sum(row["called"] == row["expected"] for row in rows) / len(rows)
            values.append(Value(right, right, right, len(rows)))
        return Finding.judged(values, at_least=1.0) if values else None

    return judge

"""What the numbers say: functions from what was measured to findings, which the claims put together."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from algoscope.studies.claim import Finding, Numbers, Value
from algoscope.studies.graph_connectivity.measures import PATHS, RANDOM, WITHIN, chains

Model = Mapping[str, Any]  # the numbers of one model
Find = Callable[[Model], Value | None]
LONG = chains(3)  # as long as a model of one layer can know
LEARNED = 0.95  # share of right answers within capacity, below which a model has not learned enough to be judged
STUDENT = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)  # 97.5% points, by seeds less one


def each(find: Find, run: str, **bounds: float) -> Callable[[Numbers], Finding | None]:
    """Judges a value of every seed of a run."""

    def judge(numbers: Numbers) -> Finding | None:
        values = [found for model in numbers.get(run, {}).values() if (found := find(model)) is not None]
        return Finding.judged(values, **bounds) if values else None

    return judge


def channel(part: str, stage: int = -1) -> Find:
    """A share of the weights, or their projection error. It is known exactly: no graphs are asked."""

    def find(model: Model) -> Value | None:
        if not model.get("channels"):
            return None
        value = model["channels"][stage][part]
        return Value(value, value, value, 0)

    return find


def worst_error(model: Model) -> Value | None:
    """The projection error of the layer that has most of it."""
    errors = [row["error"] for row in model.get("channels", ())]
    return Value(max(errors), max(errors), max(errors), 0) if errors else None


def row_of(rows: Sequence[Numbers], value: str, **where: object) -> Value | None:
    """A value of the row with given entries."""
    found = next((row for row in rows if where.items() <= row.items()), None)
    return Value(found[value], found["low"], found["high"], found["n"]) if found else None


def exact(graphs: str) -> Find:
    """The share of graphs about which all is right."""
    return lambda model: row_of(model["answers"], "exact", graphs=graphs)


def at_distance(graphs: str, beyond: int) -> Find:
    """The share of right answers about pairs so many hops beyond the capacity."""
    return lambda model: row_of(model["by_distance"], "accuracy", graphs=graphs, distance=model["capacity"] + beyond)


def reach(graphs: str = RANDOM, enough: float = 0.99) -> Callable[[Model], Value]:
    """The largest distance up to which enough answers are right, with what the intervals of these shares allow."""

    def find(model: Model) -> Value:
        rows = [row for row in model["by_distance"] if row["graphs"] == graphs and row["distance"] != "apart"]
        ends = [longest(rows, part, enough) for part in ("accuracy", "low", "high")]
        return Value(*map(float, ends), n=min(row["n"] for row in rows if row["distance"] <= max(ends[0], 0)))

    return find


def longest(rows: Sequence[Numbers], part: str, enough: float) -> int:
    known = -1
    for row in rows:  # in the order of their distances
        if row[part] < enough:
            break
        known = row["distance"]
    return known


def reaches(run: str) -> Callable[[Numbers], Finding | None]:
    """Whether the reach is the capacity. Training that was too short may be why it is less, but not why it is more."""

    def judge(numbers: Numbers) -> Finding | None:
        models = list(numbers.get(run, {}).values())
        if not models:
            return None
        wanted = float(models[0]["capacity"])
        judged = Finding.judged([reach(PATHS)(model) for model in models], at_least=wanted, at_most=wanted)
        short = judged.verdict == "fails" and any(value.low <= wanted for value in judged.values)
        return judged.undecided() if short else judged

    return judge


def given_time(judge: Callable[[Numbers], Finding | None]) -> Callable[[Numbers], Finding | None]:
    """What fails after a training that was too short may hold after a longer one."""

    def judged(numbers: Numbers) -> Finding | None:
        found = judge(numbers)
        return found.undecided() if found and found.verdict == "fails" else found

    return judged


def minus(a: Value, b: Value) -> Value:
    """A difference of two numbers that are not paired: its interval is as wide as both together."""
    return Value(a.value - b.value, a.low - b.high, a.high - b.low, min(a.n, b.n))


def lifts(find: Find, one: str, other: str, **bounds: float) -> Callable[[Numbers], Finding | None]:
    """By how much a value is higher in one run than in another, for each seed that both have."""

    def judge(numbers: Numbers) -> Finding | None:
        values = gains(numbers, find, one, other)
        return Finding.judged(values, **bounds) if values else None

    return judge


def gains(numbers: Numbers, find: Find, one: str, other: str, learned: bool = False) -> list[Value]:
    """The same for each seed; if asked only of those that have learned what they can know, in both runs."""
    first, second = numbers.get(one, {}), numbers.get(other, {})
    both = [(first[seed], second[seed]) for seed in first if seed in second]
    values = [(find(a), find(b)) for a, b in both if not learned or (knows(a) and knows(b))]
    return [minus(a, b) for a, b in values if a is not None and b is not None]


def knows(model: Model) -> bool:
    return any(row["accuracy"] >= LEARNED for row in model["answers"] if row["graphs"] == WITHIN)


def lifts_on_average(find: Find, one: str, other: str, at_least: float) -> Callable[[Numbers], Finding | None]:
    """The same for models whose seeds differ much: judged by the mean over seeds that have learned, and its interval by
    their spread.
    """

    def judge(numbers: Numbers) -> Finding | None:
        values = gains(numbers, find, one, other, learned=True)
        if len(values) < 3:
            every = gains(numbers, find, one, other)
            return Finding(tuple(every), "undecided", bounds=(at_least, math.inf)) if every else None
        found = [value.value for value in values]
        mean = statistics.mean(found)
        factor = STUDENT[min(len(found) - 1, len(STUDENT)) - 1]
        half = factor * statistics.stdev(found) / math.sqrt(len(found))
        whole = Value(mean, mean - half, mean + half, min(value.n for value in values))
        verdict = "holds" if whole.low >= at_least else "fails" if whole.high < at_least else "undecided"
        return Finding(tuple(values), verdict, whole, (at_least, math.inf))

    return judge


def first_step(algorithm: str) -> Find:
    """The share of answers about random graphs in which the first layer is at one with a step of an algorithm."""

    def find(model: Model) -> Value | None:
        trace = model["traces"][RANDOM]
        found = trace["maps"][algorithm]
        place = found["steps"].index(1)
        return Value(*(found[part][1][place] for part in ("similarity", "low", "high")), n=trace["n"])

    return find

"""What the numbers say: functions from what was measured to findings, which the claims put together."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import torch

from algoscope.matching.bootstrap import percentiles
from algoscope.randomness import stream
from algoscope.studies.claim import Finding, Numbers, Value
from algoscope.studies.graph_connectivity import published
from algoscope.studies.graph_connectivity.measures import ANSWERS, PATHS, RANDOM, WITHIN, chains

Model = Mapping[str, Any]  # the numbers of one model
Find = Callable[[Model], Value | None]
LONG = chains(3)  # as long as a model of one layer can know
LEARNED = 0.95  # share of right answers within capacity, below which a model has not learned enough to be judged
STUDENT = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)  # 97.5% points, by seeds less one
FEWEST = 5  # points that make a curve
RESAMPLES = 2000


def each(find: Find, run: str, **bounds: float) -> Callable[[Numbers], Finding | None]:
    """Judges a value of every seed of a run."""

    def judge(numbers: Numbers) -> Finding | None:
        values = [found for model in numbers.get(run, {}).values() if (found := find(model)) is not None]
        return Finding.judged(values, **bounds) if values else None

    return judge


def longest_trained(
    judged: Callable[[str], Callable[[Numbers], Finding | None]], layers: int
) -> Callable[[Numbers], Finding | None]:
    """Judges the disentangled transformer of so many layers that was trained longest, without a limit."""

    def judge(numbers: Numbers) -> Finding | None:
        steps = {name: _steps(next(iter(seeds.values())), layers) for name, seeds in numbers.items() if seeds}
        run = max(steps, key=steps.__getitem__, default="")
        return judged(run)(numbers) if steps.get(run) else None

    return judge


def _steps(model: Model, layers: int) -> int:
    asked = model["model"] == "disentangled" and model["layers"] == layers and model["largest"] is None
    return model["steps"] if asked else 0


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
    for row in rows:
        if all(row.get(name) == wanted for name, wanted in where.items()):
            return Value(row[value], row["low"], row["high"], row["n"])
    return None


def exact(graphs: str) -> Find:
    """The share of graphs about which all is right."""
    return lambda model: row_of(model["answers"], "exact", graphs=graphs)


def at_distance(graphs: str, beyond: int) -> Find:
    """The share of right answers about pairs so many hops beyond the capacity."""
    return lambda model: row_of(model["by_distance"], "accuracy", graphs=graphs, distance=model["capacity"] + beyond)


def reach(graphs: str = RANDOM, enough: float = 0.99) -> Find:
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


def reaches(run: str, graphs: str = PATHS) -> Callable[[Numbers], Finding | None]:
    """Whether the reach is the capacity. Training that was too short may be why it is less, but not why it is more."""

    def judge(numbers: Numbers) -> Finding | None:
        models = list(numbers.get(run, {}).values())
        values, wanted = [reach(graphs)(model) for model in models], float(models[0]["capacity"]) if models else 0.0
        found = [value for value in values if value]
        if not found:
            return None
        judged = Finding.judged(found, at_least=wanted, at_most=wanted)
        short = judged.verdict == "fails" and any(value.low <= wanted for value in found)
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


def gains(numbers: Numbers, find: Find, one: str, other: str) -> list[Value]:
    first, second = numbers.get(one, {}), numbers.get(other, {})
    both = [(find(first[seed]), find(second[seed])) for seed in first if seed in second]
    return [minus(a, b) for a, b in both if a is not None and b is not None]


def learned(numbers: Numbers, *names: str) -> dict[str, dict[str, Model]]:
    """Of some runs, the seeds that know what they can know in all of them; of others nothing is claimed."""
    runs = {name: numbers.get(name, {}) for name in names}
    known = [{seed for seed, model in seeds.items() if knows(model)} for seeds in runs.values()]
    both = set.intersection(*known)
    return {name: {seed: model for seed, model in seeds.items() if seed in both} for name, seeds in runs.items()}


def knows(model: Model) -> bool:
    return any(row["accuracy"] >= LEARNED for row in model["answers"] if row["graphs"] == WITHIN)


def lifts_on_average(find: Find, one: str, other: str, at_least: float) -> Callable[[Numbers], Finding | None]:
    """The same for models whose seeds differ much: judged by the mean over seeds that have learned, and its interval by
    their spread.
    """

    def judge(numbers: Numbers) -> Finding | None:
        values = gains(learned(numbers, one, other), find, one, other)
        if len(values) < 3:
            every = gains(numbers, find, one, other)
            return Finding(tuple(every), "undecided", bounds=(at_least, math.inf)) if every else None
        found = [value.value for value in values]
        mean = statistics.mean(found)
        factor = STUDENT[min(len(found) - 1, len(STUDENT)) - 1]
        half = factor * statistics.stdev(found) / math.sqrt(len(found))
        whole = Value(mean, mean - half, mean + half, min(value.n for value in values))
        return Finding(tuple(values), verdict(whole.low, whole.high, at_least), whole, (at_least, math.inf))

    return judge


def verdict(low: float, high: float, at_least: float) -> Literal["holds", "fails", "undecided"]:
    return "holds" if low >= at_least else "fails" if high < at_least else "undecided"


def limit_decides(find: Find, one: str, other: str, at_least: float) -> Callable[[Numbers], Finding | None]:
    """The share of the variance over all seeds of two runs that lies between the runs, by resampling seeds."""

    def judge(numbers: Numbers) -> Finding | None:
        groups = [[find(model) for model in seeds.values()] for seeds in learned(numbers, one, other).values()]
        known = [torch.tensor([value.value for value in group if value], dtype=torch.float64) for group in groups]
        if min(map(len, known)) < 3:
            return None
        if float(torch.cat(known).std()) == 0:
            return None
        generator = stream("resampled seeds", 0)
        drawn = [group[torch.randint(len(group), (RESAMPLES, len(group)), generator=generator)] for group in known]
        low, high = (float(end) for end in percentiles(between(*drawn), 0.95))
        value = float(between(*(group[None] for group in known)))
        n = min(value.n for group in groups for value in group if value)
        return Finding((Value(value, low, high, n),), verdict(low, high, at_least), bounds=(at_least, math.inf))

    return judge


def between(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """The share of variance between two groups, for each row."""
    whole = torch.cat([one, other], dim=1)
    middle = whole.mean(1, keepdim=True)
    parts = sum(group.shape[1] * (group.mean(1) - middle[:, 0]).square() for group in (one, other))
    total = (whole - middle).square().sum(1)
    return torch.where(total > 0, torch.as_tensor(parts) / total.clamp(min=1e-12), 0.0)


def agreement(algorithm: str, stage: int, step: int, graphs: str = RANDOM) -> Find:
    """The share of answers in which a stage, told by its place, is at one with a step of an algorithm."""

    def find(model: Model) -> Value | None:
        trace = model["traces"][graphs]
        found = trace["maps"][algorithm]
        place = found["steps"].index(min(step, max(found["steps"])))  # an algorithm that has ended stays there
        cells = (found[part][stage][place] for part in ("similarity", "low", "high"))
        return Value(*cells, n=trace["n"])

    return find


def named(model: Model, graphs: str) -> set[str]:
    """The algorithms of which every layer does one step: layer k cannot be told from step k of them."""
    kept = model["traces"][graphs]["kept"]
    layers = [stage for stage in kept if stage.startswith("layer ")]
    ways = [{one["name"] for one in kept[stage] if one["step"] == int(stage.rpartition(" ")[2])} for stage in layers]
    return set.intersection(*ways) if ways else set()


def one_step_a_layer(algorithm: str, run: str, graphs: str, at_least: float) -> Callable[[Numbers], Finding | None]:
    """How far the layer that is least like its step is like it; it holds only if no other algorithm fits as well."""

    def judge(numbers: Numbers) -> Finding | None:
        models, values = list(numbers.get(run, {}).values()), []
        for model in models:
            layers = [stage for stage in model["traces"][graphs]["stages"] if stage.startswith("layer ")]
            found = [agreement(algorithm, k + 1, k + 1, graphs)(model) for k in range(len(layers))]
            values += [min(known, key=lambda value: value.low) for known in [[v for v in found if v]] if known]
        if not values:
            return None
        finding = Finding.judged(values, at_least=at_least)
        alone = all(named(model, graphs) == {algorithm} for model in models)
        return finding if alone or finding.verdict != "holds" else finding.undecided()

    return judge


def hops(stage: str = ANSWERS, graphs: str = RANDOM) -> Find:
    """The number of hops that a stage is most like, and the range of numbers that fit as well; by default the answers.

    It is −1 where no number of hops is among what fits best.
    """

    def find(model: Model) -> Value | None:
        trace = model["traces"][graphs]
        place = stage if stage in trace["stages"] else trace["stages"][-1]
        steps = [float(one["step"]) for one in trace["kept"][place] if one["name"] == "Hops"]  # the closest first
        return Value(*((steps[0], min(steps), max(steps)) if steps else (-1.0, -1.0, -1.0)), trace["n"])

    return find


def off_the_mixtures(numbers: Numbers, column: str) -> dict[str, dict[float, tuple[float, float]]]:
    """For each seed, by the share beyond capacity: ours and theirs."""
    found: dict[str, dict[float, tuple[float, float]]] = {}
    for seeds in numbers.values():
        for seed, model in seeds.items():
            if model.get("model") != "disentangled" or model["layers"] != 1 or model["largest"] != 3:
                continue
            if model["chance"] != 0.2 or model["beyond"] not in published.mixtures(column):
                continue
            ours = channel("algorithm") if column == "algorithm_share" else exact(LONG)
            value = ours(model)
            if value is not None:
                theirs = published.mixtures(column)[model["beyond"]]
                found.setdefault(seed, {})[model["beyond"]] = (value.value, theirs)
    return found


def off_the_chances(numbers: Numbers, edges: int, limit: int | None) -> dict[str, dict[float, tuple[float, float]]]:
    """For each seed, by the chance of an edge: exact match on two chains, ours and theirs."""
    found: dict[str, dict[float, tuple[float, float]]] = {}
    theirs = published.chains(edges, limit)
    for seeds in numbers.values():
        for seed, model in seeds.items():
            one = model.get("model") == "disentangled" and model["layers"] == 1 and not model["beyond"]
            if one and model["largest"] == limit and model["chance"] in theirs:
                value = exact(chains(edges))(model)
                if value is not None:
                    found.setdefault(seed, {})[model["chance"]] = (value.value, theirs[model["chance"]])
    return found


def off_the_curve(
    points: Callable[[Numbers], Mapping[str, Mapping[float, tuple[float, float]]]], at_most: float
) -> Callable[[Numbers], Finding | None]:
    """The median distance from a published curve, for each seed with enough points of it."""

    def judge(numbers: Numbers) -> Finding | None:
        found = [list(curve.values()) for curve in points(numbers).values() if len(curve) >= FEWEST]
        medians = [statistics.median(abs(ours - theirs) for ours, theirs in curve) for curve in found]
        values = [Value(median, median, median, len(curve)) for median, curve in zip(medians, found, strict=True)]
        return Finding.judged(values, at_most=at_most) if values else None

    return judge

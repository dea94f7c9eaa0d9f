"""What the numbers say: functions from what was measured to findings, which the claims put together."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from algoscope.matching.bootstrap import interval, ratio_interval
from algoscope.studies.algoformer import names
from algoscope.studies.algoformer.errors import WORST, draws_of
from algoscope.studies.algoformer.loops import FEATURES, loop_number
from algoscope.studies.claim import Finding, Numbers, Value

Model = Mapping[str, Any]  # the numbers of one model
Find = Callable[[Numbers], Finding | None]
ONE_RATE = re.compile(r"GradientDescent(\(rate=[0-9.e-]+\))?")
UNLEARNED = 0.9  # a mean error above this is that of a model that has learned next to nothing


def each(find: Callable[[Model], Value | None], run: str, **bounds: float) -> Find:
    """Judges a value of every seed of a run; where a model has learned nothing, nothing is claimed."""

    def judge(numbers: Numbers) -> Finding | None:
        models = list(numbers.get(run, {}).values())
        values = [found for model in models if (found := find(model)) is not None]
        return sober(models, Finding.judged(values, **bounds)) if values else None

    return judge


def sober(models: list[Model], finding: Finding) -> Finding:
    empty = any(model["summary"]["mean"]["error"] > UNLEARNED for model in models if "summary" in model)
    return finding.undecided() if empty else finding


def error(model: Model, view: str = "last") -> Value:
    found = model["summary"][view]
    return Value(found["error"], found["low"], found["high"], found["n"])


def paired(a: Model, b: Model, view: str) -> Value:
    """The error of a over that of b, on the same prompts."""
    above, below = (torch.tensor(model["summary"][view]["parts"], dtype=torch.float64)[:, None] for model in (a, b))
    value, low, high = ratio_interval(above, below, draws_of(len(above)), 0.95)
    return Value(float(value), max(float(low), 0.0), min(float(high), WORST), a["summary"][view]["n"])


def ratio(one: str, other: str, view: str = "last", **bounds: float) -> Find:
    """The error of one run over that of another, seed by seed; a run of one seed is compared with the same seed."""

    def judge(numbers: Numbers) -> Finding | None:
        first, second = numbers.get(one, {}), numbers.get(other, {})
        both = [(first[seed], second[seed]) for seed in first if seed in second]
        values = [paired(a, b, view) for a, b in both]
        better = [min((a, b), key=lambda model: model["summary"]["mean"]["error"]) for a, b in both]
        return sober(better, Finding.judged(values, **bounds)) if values else None

    return judge


def over_least(numbers: Numbers, run: str, task: str) -> list[Value]:
    """The error of every seed over the least that is possible, on the same prompts, on average over all examples."""
    least = numbers.get(names.least(task), {}).get("0")
    return [paired(model, least, "mean") for model in numbers.get(run, {}).values()] if least else []


def near_least(run: str, task: str, **bounds: float) -> Find:
    """Whether errors are near to the least that is possible."""

    def judge(numbers: Numbers) -> Finding | None:
        values = over_least(numbers, run, task)
        return Finding.judged(values, **bounds) if values else None

    return judge


def absolute(model: Model) -> Value | None:
    """The error at the last number of examples as the paper's figure 5 has it, at its size: not divided by E[y²]."""
    unit = model["dim"]  # of linear regression without noise
    if unit != names.DIM:
        return None
    found = error(model)
    return Value(found.value * unit, found.low * unit, found.high * unit, found.n)


def ahead_of(method: str, view: str) -> Callable[[Model], Value | None]:
    """By how much a known method's error is above the model's."""

    def find(model: Model) -> Value | None:
        found = model["ahead"].get(method, {}).get(view)
        return Value(found["by"], found["low"], found["high"], found["n"]) if found else None

    return find


def known_error(run: str, method: str, **bounds: float) -> Find:
    """The error of a known method at the last number of examples."""

    def judge(numbers: Numbers) -> Finding | None:
        found = numbers.get(run, {}).get("0", {}).get("known", {}).get(method)
        if found is None:
            return None
        return Finding.judged([Value(found["error"][-1], found["low"][-1], found["high"][-1], found["n"])], **bounds)

    return judge


def beyond(end: str, view: str = "last") -> Callable[[Model], Value | None]:
    """The error after twice as many loops as in training, or after the most, over that after those of training."""

    def find(model: Model) -> Value | None:
        found = model.get("by_loop", {}).get("beyond", {}).get(end, {}).get(view)
        return Value(found["ratio"], found["low"], found["high"], found["n"]) if found else None

    return find


def steadier(few: str, many: str, view: str = "last", **bounds: float) -> Find:
    """How much more the error rises with twice the loops where few loops were scored than where many were."""

    def judge(numbers: Numbers) -> Finding | None:
        first, second = numbers.get(few, {}), numbers.get(many, {})
        both = [(first[seed], second[seed]) for seed in first if seed in second]
        rises = [[model["by_loop"]["beyond"][names.TWICE][view] for model in pair] for pair in both]
        values = [over(a, b) for a, b in rises]
        return sober([model for pair in both for model in pair], Finding.judged(values, **bounds)) if values else None

    return judge


def over(a: Mapping[str, Any], b: Mapping[str, Any]) -> Value:
    """A rise over another, on the same parts of the prompts; by the influence of each part on its logarithm."""
    parts = [torch.tensor(each[part], dtype=torch.float64).clamp(min=1e-300)
             for each in (a, b) for part in ("parts", "parts_trained")]  # fmt: skip
    signs = (1, -1, -1, 1)
    middle = sum(sign * float(part.mean().log()) for sign, part in zip(signs, parts, strict=True))
    pulls = torch.stack([sign * (part / part.mean() - 1) for sign, part in zip(signs, parts, strict=True)]).sum(0)
    low, high = interval(middle + pulls[:, None], draws_of(len(pulls)), 0.95)
    value, least, most = (min(math.exp(min(max(float(end), -50.0), 50.0)), WORST) for end in (middle, low, high))
    return Value(value, least, most, min(a["n"], b["n"]))


def best_of(ones: Sequence[str], others: Sequence[str], view: str = "last", **bounds: float) -> Find:
    """The error of the best of some runs over that of the best of others, seed 0; all of them have to be there."""

    def judge(numbers: Numbers) -> Finding | None:
        if not all("0" in numbers.get(name, {}) for name in (*ones, *others)):
            return None
        sides = ([numbers[name]["0"] for name in side] for side in (ones, others))
        a, b = (min(side, key=lambda model: model["summary"][view]["error"]) for side in sides)
        return sober([a, b], Finding.judged([paired(a, b, view)], **bounds))

    return judge


def cost(kind: str, what: str, **bounds: float) -> Find:
    """A count of the costs, at the paper's size; it has no spread."""

    def judge(numbers: Numbers) -> Finding | None:
        measured = numbers.get(names.COSTS, {}).get("0", {})
        rows = measured["costs"] if measured.get("dim") == names.DIM else ()
        found = next((row[what] for row in rows if row["model"] == kind and row.get(what) is not None), None)
        return None if found is None else Finding.judged([Value(float(found), float(found), float(found), 1)], **bounds)

    return judge


def on_features(model: Model) -> Value | None:
    """How much closer the last loop of training is to an algorithm on features than to any on x."""
    found = model["loops"]["where"]
    return Value(found["by"], found["low"], found["high"], found["n"]) if found else None


def certain(model: Model) -> Value:
    """The share of loops that hold one step of one algorithm, with Wilson's interval."""
    stages = [stage for stage in model["loops"]["stages"] if loop_number(stage["stage"])]
    share, n = sum(stage["certain"] for stage in stages) / len(stages), len(stages)
    middle, wide = (share + 1.92 / n) / (1 + 3.84 / n), 1.96 / (1 + 3.84 / n)
    half = wide * math.sqrt(share * (1 - share) / n + 0.96 / n**2)
    return Value(share, max(middle - half, 0.0), min(middle + half, 1.0), n)


def unless_denied(find: Find, control: str) -> Find:
    """Undecided where the instrument is not certain even of the control, which is nothing but the algorithm."""

    def judge(numbers: Numbers) -> Finding | None:
        finding, known = find(numbers), numbers.get(control, {}).get("0", {}).get("named", {})
        denied = bool(known) and known["denied"] == known["expected"]
        return finding.undecided() if finding and denied else finding

    return judge


def grows(algorithm: str, law: str, run: str, **bounds: float) -> Find:
    """How much the matching step of an algorithm grows a loop, and whether by that law.

    Its steps grow somehow along any other iteration, too: that of descent is matched by ever later steps of Newton. So
    it holds only where the algorithm itself is among what cannot be told apart from most of the loops that the law goes
    over. A number of another law is told, and decides nothing.
    """

    def judge(numbers: Numbers) -> Finding | None:
        models = [model for model in numbers.get(run, {}).values() if "loops" in model]
        values, laws, paths, denied = [], set(), set(), True
        for model in models:
            found = law_of(model, algorithm)
            laws.add(found["law"] if found else "none")
            denied &= found is not None and (found["denied"] == law or found["law"] not in (law, "undecided"))
            if found and (growth := growth_by(law, found)):
                values.append(Value(*growth, model["loops"]["n"]))
                paths.add(found["path"])
        if not models:
            return None
        finding = Finding.judged(values, **bounds)
        clear = laws == {law} and all(mostly_agreed(model, algorithm) for model in models)
        if denied:
            finding = replace(finding, verdict="fails")
        elif len(values) < len(models) or paths != {law} or (finding.verdict == "holds" and not clear):
            finding = finding.undecided()
        return sober(models, finding)

    return judge


def growth_by(law: str, found: Mapping[str, Any]) -> tuple[float, float, float] | None:
    """Of a path, with its interval, in the unit of a law: steps a loop, or the factor of a loop.

    A path of equal factors has steps a loop too: told are those of its first loop, and every later one makes more.
    A straight path has no factor.
    """
    growth = (found["growth"], found["low"], found["high"])
    if None in growth or (found["path"] == "linear" and law == "exponential"):
        return None
    if found["path"] == law:
        return growth
    value, low, high = (found["start"] * (factor - 1) for factor in growth)
    return value, low, high


def mostly_agreed(model: Model, algorithm: str) -> bool:
    """Whether an algorithm is among those that cannot be told apart, at more than half of the loops of its law."""
    law = law_of(model, algorithm)
    loops = [stage for stage in model["loops"]["stages"] if law and loop_number(stage["stage"]) in law["used"]]
    agreed = [any(is_called(name, algorithm) for name in stage["algorithms"]) for stage in loops]
    return 2 * sum(agreed) > len(agreed)


def law_of(model: Model, algorithm: str) -> Mapping[str, Any] | None:
    """Of an algorithm by its name, on features if there are any."""
    laws = model["loops"]["laws"]
    fitting = [name for name in laws if is_called(name, algorithm)]
    chosen = [name for name in fitting if name.endswith(FEATURES)] or fitting
    return laws[chosen[0]] if chosen else None


def is_called(name: str, algorithm: str) -> bool:
    """On whatever space; gradient descent has a rate in its name, and Newton's method may have a start."""
    plain = name.removesuffix(FEATURES)
    if algorithm == "GradientDescent":
        return ONE_RATE.fullmatch(plain) is not None
    return plain == algorithm or (algorithm == "Newton" and plain.startswith("Newton(start="))


def value_of(row: Mapping[str, Any], name: str) -> Value:
    value, low, high = row[name]
    return Value(value, low, high, row["n"])


def least_squares_nearest(model: Model) -> Value | None:
    """How much nearer the answers after the loops of training are to least squares than to the next closed form."""
    rows = [row for row in at_training(model) if row["nearest_other"]]
    if not rows:
        return None
    by, low, high = rows[0]["nearer_mean"]
    return Value(-by, -high, -low, rows[0]["n"])


def nearer(to: str, view: str) -> Callable[[Model], Value | None]:
    """How much nearer the answers after the loops of training are to a closed form than to least squares."""

    def find(model: Model) -> Value | None:
        rows = [row for row in at_training(model) if row["to"] == to]
        return value_of(rows[0], f"nearer_{view}") if rows else None

    return find


def at_training(model: Model) -> list[Mapping[str, Any]]:
    return [row for row in model.get("fixed_point", ()) if row["loop"] == model["trained"]]


def named(run: str) -> Find:
    """Of the stages that hold a step, the share at which the instrument keeps it; it must never be sure of another."""

    def judge(numbers: Numbers) -> Finding | None:
        found = numbers.get(run, {}).get("0", {}).get("named")
        if found is None:
            return None
        alarms = found["alarms"] + found["wrong"]
        share = found["kept"] / found["expected"] if found["expected"] else float(not alarms)
        right = share == 1.0 and not alarms
        return Finding((Value(share, share, share, max(found["expected"], 1)),), "holds" if right else "fails")

    return judge

"""What the numbers say: functions from what was measured to findings, which the claims put together."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from algoscope.matching.statistics import means, ratios, wilson
from algoscope.studies.algoformer import names
from algoscope.studies.algoformer.loops import loop_number
from algoscope.studies.algoformer.measures import WORST
from algoscope.studies.claim import Finding, Numbers, Value

Model = Mapping[str, Any]  # the numbers of one model
Find = Callable[[Numbers], Finding | None]
UNLEARNED = 0.9  # a mean error above this is that of a model that has learned next to nothing
LARGEST = 50.0  # logarithm of a ratio


def longest(find: Callable[[str], Find], lengths: tuple[str, ...]) -> Find:
    """Judged by the longest training on file, the shortest of `lengths` first."""

    def judge(numbers: Numbers) -> Finding | None:
        found = (find(more)(numbers) for more in reversed(lengths))
        return next((finding for finding in found if finding is not None), None)

    return judge


def each(find: Callable[[Model], Value | None], run: str, **bounds: float) -> Find:
    """Judges a value of every seed of a run."""

    def judge(numbers: Numbers) -> Finding | None:
        models = list(numbers.get(run, {}).values())
        values = [found for model in models if (found := find(model)) is not None]
        return undecided_if_untrained(models, Finding.judged(values, **bounds)) if values else None

    return judge


def undecided_if_untrained(models: list[Model], finding: Finding) -> Finding:
    """Where a model has learned nothing, nothing is claimed."""
    empty = any(model["summary"]["mean"]["error"] > UNLEARNED for model in models if "summary" in model)
    return finding.undecided() if empty else finding


def paired(a: Model, b: Model, view: str) -> Value:
    """The error of a over that of b, on the same prompts."""
    above, below = (torch.tensor(model["summary"][view]["parts"], dtype=torch.float64)[:, None] for model in (a, b))
    value, low, high, _ = ratios(above, below)[0]
    return Value(value, max(low, 0.0), min(high, WORST), a["summary"][view]["n"])


def ratio(one: str, other: str, view: str = "last", **bounds: float) -> Find:
    """The error of one run over that of another, seed by seed; a run of one seed is compared with the same seed."""

    def judge(numbers: Numbers) -> Finding | None:
        both = pairs_of(numbers, one, other)
        better = [min(pair, key=lambda model: model["summary"]["mean"]["error"]) for pair in both]
        judged = Finding.judged([paired(a, b, view) for a, b in both], **bounds)
        return undecided_if_untrained(better, judged) if both else None

    return judge


def pairs_of(numbers: Numbers, one: str, other: str) -> list[tuple[Model, Model]]:
    """The models of two runs that have the same seed."""
    first, second = numbers.get(one, {}), numbers.get(other, {})
    return [(first[seed], second[seed]) for seed in first if seed in second]


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


def value_of(found: Mapping[str, Any] | None, key: str, unit: float = 1.0) -> Value | None:
    return Value(found[key] * unit, found["low"] * unit, found["high"] * unit, found["n"]) if found else None


def absolute(model: Model) -> Value | None:
    """The error at the last number of examples as the paper's figure 5 has it, at its size: not divided by E[y²]."""
    unit = float(model["dim"])  # of linear regression without noise
    return value_of(model["summary"]["last"], "error", unit) if unit == names.DIM else None


def ahead_of(method: str, view: str) -> Callable[[Model], Value | None]:
    """By how much a known method's error is above the model's."""
    return lambda model: value_of(model["ahead"].get(method, {}).get(view), "by")


def beyond(end: str) -> Callable[[Model], Value | None]:
    """The error after twice as many loops as in training, or after the most, over that after those of training."""
    return lambda model: value_of(model.get("by_loop", {}).get("beyond", {}).get(end, {}).get("last"), "ratio")


def on_features(model: Model) -> Value | None:
    """How much closer the last loop of training is to an algorithm on features than to any on x."""
    return value_of(model["loops"]["where"], "by")


def known_error(run: str, method: str, **bounds: float) -> Find:
    """The error of a known method at the last number of examples."""

    def judge(numbers: Numbers) -> Finding | None:
        found = numbers.get(run, {}).get("0", {}).get("known", {}).get(method)
        if found is None:
            return None
        return Finding.judged([Value(found["error"][-1], found["low"][-1], found["high"][-1], found["n"])], **bounds)

    return judge


def steadier(few: str, many: str, **bounds: float) -> Find:
    """How much more the error rises with twice the loops where few loops were scored than where many were."""

    def judge(numbers: Numbers) -> Finding | None:
        both = pairs_of(numbers, few, many)
        rises = [[model["by_loop"]["beyond"][names.TWICE]["last"] for model in pair] for pair in both]
        judged = Finding.judged([over(a, b) for a, b in rises], **bounds)
        return undecided_if_untrained([model for pair in both for model in pair], judged) if both else None

    return judge


def over(a: Mapping[str, Any], b: Mapping[str, Any]) -> Value:
    """A rise over another, on the same parts of the prompts; by the influence of each part on its logarithm."""
    parts = [torch.tensor(each[part], dtype=torch.float64).clamp(min=1e-300)
             for each in (a, b) for part in ("parts", "parts_trained")]  # fmt: skip
    signs = (1, -1, -1, 1)
    middle = sum(sign * float(part.mean().log()) for sign, part in zip(signs, parts, strict=True))
    pulls: Tensor = torch.stack([sign * (part / part.mean() - 1) for sign, part in zip(signs, parts, strict=True)])
    _, low, high, _ = means(middle + pulls.sum(0)[:, None])[0]
    value, least, most = (min(math.exp(min(max(end, -LARGEST), LARGEST)), WORST) for end in (middle, low, high))
    return Value(value, least, most, min(a["n"], b["n"]))


def cost(kind: str, what: str, **bounds: float) -> Find:
    """A count of the costs, at the paper's size; it has no spread."""

    def judge(numbers: Numbers) -> Finding | None:
        measured = numbers.get(names.COSTS, {}).get("0", {})
        rows = measured["costs"] if measured.get("dim") == names.DIM else ()
        found = next((row[what] for row in rows if row["model"] == kind and row.get(what) is not None), None)
        return None if found is None else Finding.judged([Value(float(found), float(found), float(found), 1)], **bounds)

    return judge


def certain(model: Model) -> Value:
    """The share of loops that hold one step of one algorithm."""
    stages = [stage for stage in model["loops"]["stages"] if loop_number(stage["stage"])]
    share = sum(stage["certain"] for stage in stages) / len(stages)
    return Value(share, *wilson(share, len(stages)), len(stages))


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

"""Which algorithm does a loop run? The instrument over the loops of training, and the answers far beyond them.

Two readings. The instrument fits linear read-outs to the state after each loop, as for any model. Beyond training the
network's own answers are compared with the algorithms as they are, unscaled, and with the closed forms that iterations
end in.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from algoscope import algorithms as known
from algoscope.algorithms import Algorithm, OnFeatures
from algoscope.instrument import Instrument
from algoscope.matching import Match, compare, rate_law
from algoscope.matching.bootstrap import interval
from algoscope.models.algoformer import LoopingNetwork
from algoscope.studies.algoformer.errors import RESAMPLES, apart, draws_of
from algoscope.studies.algoformer.references import TUNED_ON, right_penalty
from algoscope.tasks import LinearRegression, RepresentationRegression, Task
from algoscope.trace import Prompts, Stage, Trace
from algoscope.verdict import StageVerdict, Verdict, plain_law, short

MANY = (*range(1, 9), 10, 12, 14, 16, 20, 24, 32, 48, 64, 96, 128, 256, 512, 1024)  # steps of slow methods
FEW = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128)
FEWER = (1, 2, 4, 8, 16, 32, 64)  # where a target has many coordinates
PENALTIES = tuple(10.0**k for k in range(-4, 3))  # of ridge regression, .0001 to 100
FEATURES = " on features"
LEAST_SQUARES, RIGHT = "least squares", "ridge, right λ"
LOOKED_AT = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30)  # loops, and the last of training
LAWS = ("GradientDescent", "Newton", "ConjugateGradients")
KEPT = 6  # steps told of those that cannot be told apart


def candidates(task: Task) -> list[Algorithm]:
    """The algorithms that a loop may run: on features where there are some, and a few on x itself."""
    if isinstance(task, LinearRegression):
        return _iterations(task, task.dim, MANY, FEW)
    one = task.outputs == 1
    found: list[Algorithm] = []
    for each in _iterations(task, task.inputs, MANY if one else FEWER, FEW if one else FEWER):
        found.append(OnFeatures(each, task))  # pyright: ignore[reportArgumentType]
    if isinstance(task, RepresentationRegression):
        found += [known.Newton([1, 2, 4, 6, 8]), known.GradientDescent(FEWER, rate="best"),
                  known.ConjugateGradients([1, 2, 3, 4, 6, 8]), known.OrdinaryLeastSquares()]  # fmt: skip
    return found


def _iterations(task: Task, dim: int, many: Sequence[int], few: Sequence[int]) -> list[Algorithm]:
    found: list[Algorithm] = [
        known.GradientDescent(many, rate=steady_rate(task)),
        known.GradientDescent(many, rate="best"),
        known.Newton([k for k in range(17) if k < 13 or task.outputs == 1]),
        known.ConjugateGradients([k for k in few if k < dim] + [dim]),
        known.Chebyshev(few),
        known.HeavyBall(few),
        known.GradientDescentPlusPlus([k for k in few if k <= 12]),
        known.OrdinaryLeastSquares(),
    ]
    return [*found, known.Ridge(right_penalty(task))] if task.noise else found


@functools.cache
def steady_rate(task: Task) -> float:
    """One rate for all prompts and prefixes that suits them all: 1 over the largest eigenvalue of many."""
    prompts = task.sample(TUNED_ON, seed=0, purpose="tuning")
    problems = [prompts] if isinstance(task, LinearRegression) else task.problems(prompts)  # pyright: ignore[reportAttributeAccessIssue]
    largest = max(float(torch.linalg.matrix_norm(problem.x[:, :-1], 2).max()) for problem in problems) ** 2
    return float(f"{1 / largest:.2g}")


@functools.lru_cache(maxsize=2)
def instrument_of(task: Task, prompts: int) -> Instrument:
    return Instrument(task, candidates(task), prompts, prompts, others=[])


def followed(network: LoopingNetwork, task: Task, prompts: int, paged: bool) -> dict[str, Any]:
    """What the instrument says about the state before the loops and after loops of training.

    With `paged` all that it says about every loop comes with it, for a page.
    """
    instrument = instrument_of(task, prompts)
    before = "pre" if "pre" in network.stages else "embedding"
    loops = [k + 1 for k in range(network.loops)]
    seen = [k for k in loops if k in LOOKED_AT or k == network.loops]
    verdict = instrument.identify(network, [before, *(f"loop {k}" for k in seen)], weights=False)
    if not paged:
        return {"loops": told(verdict)}
    record = instrument.identify(network, [before, *(f"loop {k}" for k in loops)], weights=False).record()
    record["matches"] = {kind: record["matches"][kind] for kind in ("errors", "decodability")}
    kept = {key: record[key] for key in record if key not in ("controls", "provenance")}
    return {"loops": told(verdict), "verdict": kept}


def told(verdict: Verdict) -> dict[str, Any]:
    """The verdict in few numbers: what each stage may be, the closest step of each algorithm, and laws of some."""
    errors = verdict.matches["errors"]
    return {
        "n": verdict.trace.prompts.batch,
        "stages": [stage_told(found) for found in verdict.stages],
        "null": short(next(iter(errors.values())).null),
        "closest": {name: closest(match) for name, match in errors.items()},
        "laws": {name: law for name, match in errors.items() if (law := law_by_loop(match)) is not None},
        "where": where(errors, len(verdict.stages) - 1),
    }


def law_by_loop(match: Match) -> dict[str, Any] | None:
    """How the closest step grows with the number of loops; of the algorithms whose laws tell something."""
    rows = [i for i, stage in enumerate(match.stages) if str(stage).startswith("loop ")]
    if not match.b.startswith(LAWS) or len(match.steps) < 3 or len(rows) < 3:
        return None
    by_loop = replace(
        match,
        stages=tuple(int(str(match.stages[i]).removeprefix("loop ")) for i in rows),
        **{part: getattr(match, part)[rows] for part in ("similarity", "low", "high", "null")},
        **{part: tuple(getattr(match, part)[i] for i in rows) for part in ("best", "ties", "none")},
        **{part: getattr(match, part)[:, rows] for part in ("per_sequence", "null_per_sequence")},
        resamples=RESAMPLES // 5,
    )
    return plain_law(rate_law(by_loop))


def stage_told(found: StageVerdict) -> dict[str, Any]:
    record = found.record()
    kept = {name: record[name] for name in ("stage", "error", "words", "null", "certain", "exact", "beyond")}
    return {**kept, "agreed": record["agreed"][:KEPT], "among": len(record["agreed"])}


def closest(match: Match) -> dict[str, Any]:
    """At each stage, the step that fits best by its errors, and how well it does."""
    values = match.similarity.nan_to_num(-1)
    at = values.argmax(1)
    rows = torch.arange(len(at))
    ends = {part: short(getattr(match, part)[rows, at]) for part in ("similarity", "low", "high")}
    best = [None if none else step for step, none in zip(match.best, match.none, strict=True)]
    return {"step": best, **ends}


def where(errors: Mapping[str, Match], stage: int) -> dict[str, Any] | None:
    """How much closer a stage is to the best algorithm on features than to the best on x, paired by prompt."""
    best = {}
    for name, match in errors.items():
        values = match.similarity[stage].nan_to_num(-1)
        step = int(values.argmax())
        kind = name.endswith(FEATURES)
        if kind not in best or float(values[step]) > best[kind][0]:
            best[kind] = (float(values[step]), name, match.per_sequence[:, stage, step])
    if len(best) < 2:
        return None
    by = (best[True][2] - best[False][2])[:, None]
    low, high = interval(by, draws_of(len(by)), 0.95)
    return {"by": float(by.mean()), "low": float(low), "high": float(high), "n": len(by),
            "features": best[True][1], "inputs": best[False][1]}  # fmt: skip


def answered(found: Tensor, prompts: Prompts, task: Task, kept: Sequence[int]) -> dict[str, Any]:
    """The network's own answers after each number of loops against the algorithms, each at its closest step."""
    trace = Trace("answers", found, tuple(kept), prompts)
    found_close = {}
    for method in candidates(task):
        match = compare(trace, method.trace(prompts), "errors", resamples=RESAMPLES // 5)
        found_close[method.name] = short(match.similarity.nan_to_num(-1).amax(1))
    return {"loop": list(kept), "similarity": found_close, "n": prompts.batch}


def fixed_point(found: Tensor, prompts: Prompts, task: Task, kept: Sequence[int], trained: int) -> list[dict[str, Any]]:
    """How far the answers after training's loops and after the most are from closed forms, and from which ridge least.

    Squared distances in units of E[y²]: on average from the first example on, and at the last.
    """
    forms: dict[str, Algorithm] = {LEAST_SQUARES: known.OrdinaryLeastSquares()}
    forms |= {f"ridge {penalty:.2g}": known.Ridge(penalty) for penalty in PENALTIES}
    if task.noise:
        forms[RIGHT] = known.Ridge(right_penalty(task))
    values = {name: _on(task, form).trace(prompts).values[0] for name, form in forms.items()}
    rows: list[dict[str, Any]] = []
    for loop in (trained, max(kept)):
        own = found[kept.index(loop)]
        off = {name: _views(own, value, prompts, task) for name, value in values.items()}
        nearest = min(
            (name for name in off if name.startswith("ridge ")), key=lambda name: float(off[name][:, 0].mean())
        )
        for name in dict.fromkeys((LEAST_SQUARES, RIGHT, nearest)):
            if name in off:
                rows.append(_row(loop, name, off[name], off[LEAST_SQUARES], name == nearest))
    return rows


def _on(task: Task, method: Algorithm) -> Algorithm:
    return method if isinstance(task, LinearRegression) else OnFeatures(method, task)  # pyright: ignore[reportArgumentType]


def _views(own: Tensor, other: Tensor, prompts: Prompts, task: Task) -> Tensor:
    """[prompts, 2]: the mean from the first example on, and at the last."""
    off = apart(own, other, prompts, task)
    return torch.stack([off[:, 1:].mean(1), off[:, -1]], dim=1)


def _row(loop: Stage, name: str, off: Tensor, from_least_squares: Tensor, nearest: bool) -> dict[str, Any]:
    draws = draws_of(len(off))
    low, high = interval(off, draws, 0.95)
    nearer = from_least_squares - off
    less, more = interval(nearer, draws, 0.95)
    row: dict[str, Any] = {"loop": loop, "to": name, "nearest": nearest, "n": len(off)}
    for k, view in enumerate(("mean", "last")):
        row[view] = short(torch.stack([off.mean(0)[k], low[k], high[k]]))
        row[f"nearer_{view}"] = short(torch.stack([nearer.mean(0)[k], less[k], more[k]]))
    return row

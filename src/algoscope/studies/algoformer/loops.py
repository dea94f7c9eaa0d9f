"""Which algorithm does a loop run? The instrument over the loops of training, and the answers far beyond them.

Two readings. The instrument fits linear read-outs to the state after each loop, as for any model. Beyond training the
network's own answers are compared with the algorithms as they are, unscaled, and with the closed forms that iterations
end in.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from algoscope.instrument import Instrument
from algoscope.matching import MEASURES, Match, rate_law
from algoscope.matching.bootstrap import interval
from algoscope.models.algoformer import LoopingNetwork
from algoscope.studies.algoformer.candidates import candidates, closed_forms, ridge
from algoscope.studies.algoformer.errors import RESAMPLES, apart, draws_of
from algoscope.studies.algoformer.references import LEAST_SQUARES, right_penalty
from algoscope.tasks import Task
from algoscope.trace import Prompts, Stage, Trace
from algoscope.verdict import StageVerdict, Verdict, plain_law, short

FEATURES = " on features"
RIGHT, ZERO = "ridge, right λ", "zero"
LOOKED_AT = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 30)  # loops, and the last of training
LAWS = re.compile(
    r"(GradientDescent(\(rate=([0-9.e-]+|safe)\))?|Newton(\(start=[0-9.e-]+\))?|ConjugateGradients)( on features)?"
)  # of which a law tells something
ANSWERED = 150  # prompts on which a network's own answers are compared, at most
KEPT = 6  # steps told of those that cannot be told apart


def loop_number(stage: Stage) -> int | None:
    """Of a stage that is a loop, or what comes after one; what is before the loops is 0."""
    found = re.fullmatch(r"(?:after )?loop (\d+)", str(stage))
    return int(found[1]) if found else 0 if stage in ("pre", "embedding") else None


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
    errors, holds = verdict.matches["errors"], [not stage.null for stage in verdict.stages]
    return {
        "n": verdict.trace.prompts.batch,
        "stages": [stage_told(found) for found in verdict.stages],
        "null": short(next(iter(errors.values())).null),
        "closest": {name: closest(match) for name, match in errors.items()},
        "laws": {name: law for name, match in errors.items() if (law := law_by_loop(match, holds)) is not None},
        "where": where(errors, len(verdict.stages) - 1),
    }


def law_by_loop(match: Match, holds: Sequence[bool]) -> dict[str, Any] | None:
    """How the closest step grows with the number of loops, until it grows no more; of some algorithms.

    `holds` says which stages hold anything; `loops` are how many the law rests on.
    """
    rows = moving(match, holds)
    if not LAWS.fullmatch(match.b) or len(match.steps) < 3 or len(rows) < 3:
        return None
    by_loop = replace(
        match,
        stages=tuple(loop_number(match.stages[i]) for i in rows),
        **{part: getattr(match, part)[rows] for part in ("similarity", "low", "high", "null")},
        **{part: tuple(getattr(match, part)[i] for i in rows) for part in ("best", "ties", "none")},
        **{part: getattr(match, part)[:, rows] for part in ("per_sequence", "null_per_sequence")},
        resamples=RESAMPLES // 5,
    )
    law = plain_law(rate_law(by_loop))
    return law | {"loops": len(law["used"])}


def moving(match: Match, holds: Sequence[bool]) -> list[int]:
    """The rows of loops up to the first whose best step is that of the last loop, or tied with it.

    A model that has arrived stays where it is, and a law that is fitted to that as well is one of its length. A loop
    that holds nothing is tied with all steps, and does not count.
    """
    loops = [i for i, stage in enumerate(match.stages) if loop_number(stage)]
    rows = [i for i in loops if holds[i]]
    if not rows or rows[-1] != loops[-1] or match.none[rows[-1]]:
        return rows
    end = match.best[rows[-1]]
    arrived = (k for k, i in enumerate(rows) if not match.none[i] and (match.best[i] == end or end in match.ties[i]))
    return rows[: next(arrived) + 1]


def stage_told(found: StageVerdict) -> dict[str, Any]:
    record = found.record()
    kept = {name: record[name] for name in ("stage", "error", "words", "null", "certain", "exact", "beyond")}
    algorithms = list(dict.fromkeys(name for name, _ in found.agreed))
    return {**kept, "agreed": record["agreed"][:KEPT], "among": len(record["agreed"]), "algorithms": algorithms}


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


def compared_answers(instrument: Instrument) -> Prompts:
    """The prompts on which the network's own answers are compared: the steps of all algorithms are known there."""
    sample = instrument.sample
    return replace(sample, x=sample.x[:ANSWERED], y=sample.y[:ANSWERED])


def answered(found: Tensor, prompts: Prompts, instrument: Instrument, kept: Sequence[int]) -> dict[str, Any]:
    """The network's own answers after each number of loops against the algorithms, each at its closest step.

    `null` is what predicting zero has; the mean of the targets is one of the algorithms.
    """
    measure, at = MEASURES["errors"], instrument.at
    trace = Trace("answers", found, tuple(kept), prompts)
    close = {}
    for name, other in _known(instrument, prompts).items():
        close[name] = short(measure.per_sequence(trace, other, at).mean(0).nan_to_num(-1).amax(1))
    null = measure.per_sequence(trace, measure.null(trace), at)[..., 0].mean(0)
    return {"loop": list(kept), "similarity": close, "null": short(null), "n": prompts.batch}


def _known(instrument: Instrument, prompts: Prompts) -> dict[str, Trace]:
    """What the algorithms make of the first prompts of the instrument."""
    traces = instrument.traces.items()
    return {name: Trace(name, trace.values[:, : prompts.batch], trace.stages, prompts) for name, trace in traces}


def fixed_point(
    found: Tensor, prompts: Prompts, instrument: Instrument, kept: Sequence[int], trained: int
) -> list[dict[str, Any]]:
    """How far the answers after training's loops and after the most are from closed forms: from least squares, ridge
    regression with the right λ, the nearest of all, and the nearest of all others than least squares.

    Squared distances in units of E[y²]: on average from the first example on, and at the last.
    """
    task, known = instrument.task, _known(instrument, prompts)
    values = {called: known[form.name].values[0] for called, form in closed_forms(task).items()}
    values[ZERO] = torch.zeros_like(found[0])  # where answers decay, which no regression is nearest to
    rows: list[dict[str, Any]] = []
    for loop in dict.fromkeys((trained, max(kept))):
        off = {name: _views(found[kept.index(loop)], value, prompts, task) for name, value in values.items()}
        others = sorted(off, key=lambda name: float(off[name][:, 0].mean()))
        nearest, other = others[0], next(name for name in others if name != LEAST_SQUARES)
        if task.noise:
            rows.append(_row(loop, RIGHT, off[ridge(right_penalty(task))], off[LEAST_SQUARES]))
        for name in dict.fromkeys((LEAST_SQUARES, nearest, other)):
            row = _row(loop, name, off[name], off[LEAST_SQUARES])
            rows.append(row | {"nearest": name == nearest, "nearest_other": name == other})
    return rows


def _views(own: Tensor, other: Tensor, prompts: Prompts, task: Task) -> Tensor:
    """[prompts, 2]: the mean from the first example on, and at the last."""
    off = apart(own, other, prompts, task)
    return torch.stack([off[:, 1:].mean(1), off[:, -1]], dim=1)


def _row(loop: Stage, name: str, off: Tensor, from_least_squares: Tensor) -> dict[str, Any]:
    draws = draws_of(len(off))
    low, high = interval(off, draws, 0.95)
    nearer = from_least_squares - off
    less, more = interval(nearer, draws, 0.95)
    row: dict[str, Any] = {"loop": loop, "to": name, "nearest": False, "nearest_other": False, "n": len(off)}
    for k, view in enumerate(("mean", "last")):
        row[view] = short(torch.stack([off.mean(0)[k], low[k], high[k]]))
        row[f"nearer_{view}"] = short(torch.stack([nearer.mean(0)[k], less[k], more[k]]))
    return row

"""What is measured of each model of the study. Every table is plain numbers with intervals."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from algoscope import algorithms as known
from algoscope.algorithms import Algorithm
from algoscope.instrument import Instrument
from algoscope.matching import Match, compare, rate_law
from algoscope.matching.statistics import means
from algoscope.models import Network
from algoscope.models.transformer import TransformerNetwork
from algoscope.randomness import stream
from algoscope.reading import fit, open_model, patch
from algoscope.reading.induced import induced_weights, outside_span
from algoscope.reading.probe import FittedProbe
from algoscope.studies.study import Training
from algoscope.tasks import Task
from algoscope.tasks.candidates import GRID
from algoscope.trace import Prompts, Trace
from algoscope.verdict import Verdict, matched, plain_law, short

Table = list[dict[str, Any]]
NEWTON, GRADIENT_DESCENT = "Newton, start 2/frobenius", "gradient descent"  # as published
OTHER_START, RANDOM = "Newton, start 1/frobenius", f"{GRADIENT_DESCENT}, random start"
TABLES = {"newton": f"{NEWTON}, t = 0 kept", "gd": f"{GRADIENT_DESCENT}, rate .002, t = 0 kept"}  # published in full
FORGETFUL = {"Newton, 5 steps": known.Newton([5]), "online gradient descent": known.OnlineGradientDescent(),
             "gradient descent, 50 steps": known.GradientDescent([50])}  # fmt: skip


@dataclass(frozen=True)
class Sizes:
    """How many prompts: to compare on and to fit on, and for questions that ask each prompt many times."""

    prompts: int
    few: int


SIZES = {"smoke": Sizes(40, 8), "laptop": Sizes(500, 40), "paper": Sizes(1000, 100)}


def measure(training: Training, network: Network, scale: str) -> dict[str, Any]:
    task, sizes = training.task, SIZES[scale]
    instrument = _instrument(task, sizes.prompts)
    verdict = instrument.identify(network)
    reading = fit(open_model(network, task), instrument.fitting)
    few = replace(instrument.sample, x=instrument.sample.x[: sizes.few], y=instrument.sample.y[: sizes.few])
    record = verdict.record()
    by_weights = verdict.matches["weights"]["Newton"]
    tables = {
        "progress": progress(verdict.trace),
        "laws_by_weights": {"Newton": {**plain_law(rate_law(by_weights)), "n": len(by_weights.per_sequence)}},
        "published": published(reading, instrument),
        "forgetting": forgetting(reading, few),
        **weights(reading, few, verdict),
    }
    if isinstance(network, TransformerNetwork):
        tables["patched"] = patched(network, task, sizes.few * 2)
    tables |= {"dim": few.dim, "examples": few.positions - 1}
    return {"verdict": {key: record[key] for key in record if key not in ("controls", "provenance")}, **tables}


@functools.lru_cache(maxsize=1)
def _instrument(task: Task, prompts: int) -> Instrument:
    return Instrument(task, prompts=prompts, fit_on=prompts)


def progress(trace: Trace) -> Table:
    """The error of each stage at the last position, and by how much it is below that of the stage before."""
    errors = trace.residuals()[:, :, -1].square().mean(-1).mT / trace.prompts.normalizer()
    better = torch.cat([torch.zeros_like(errors[:, :1]), errors[:, :-1] - errors[:, 1:]], dim=1)
    return _rows(trace.stages, error=errors, better=better)


def published(reading: FittedProbe, instrument: Instrument) -> dict[str, Any]:
    """Similarity of errors as the paper measures it, unscaled, once for each convention that differs."""
    task, sample = instrument.task, instrument.sample
    plain, newton = reading.trace(sample), known.Newton(24, start="2/frobenius").trace(sample)
    linear = {"published": (1, *range(50, 1301, 50)), "hard": (1, *range(100, 3001, 100))}  # the paper's grids
    others: dict[str, Algorithm] = {
        NEWTON: known.Newton(40, start="2/frobenius"),
        OTHER_START: known.Newton(24),
        GRADIENT_DESCENT: known.GradientDescent(GRID),
        f"{GRADIENT_DESCENT}, linear grid": known.GradientDescent(linear["published"]),
        RANDOM: known.GradientDescent(GRID, start="uniform/sqrt(dim)"),
        "conjugate gradients": known.ConjugateGradients(min(task.inputs, 40)),
        "online gradient descent": known.OnlineGradientDescent(),
        "least squares": known.OrdinaryLeastSquares(),
        "null": known.Zero(),
    }
    if task.noise:
        others["Newton on S + λI"] = known.Newton(24, "2/frobenius", ridge=task.noise**2)
    matches = {name: compare(plain, algorithm.trace(sample), "errors") for name, algorithm in others.items()}
    pairs = [(one, other) for one in (OTHER_START, NEWTON) for other in (GRADIENT_DESCENT, RANDOM)]
    ahead = torch.stack([_at_best(matches[one]) - _at_best(matches[other]) for one, other in pairs], dim=1)
    slow = known.GradientDescent(linear["hard"], rate=0.002).trace(sample)
    law = plain_law(rate_law(matches[NEWTON]))
    matches |= {
        TABLES["newton"]: compare(plain, newton, "errors", first=0),
        TABLES["gd"]: compare(plain, slow, "errors", first=0),
        "Newton, in 32 bits": compare(plain, newton_in_32_bits(sample, 24), "errors"),
    }
    return {
        "stages": [str(stage) for stage in plain.stages],
        "maps": {name: matched(match) for name, match in matches.items()},
        "laws": {NEWTON: law},
        "duels": _rows(tuple(f"{one} over {other}" for one, other in pairs), by=ahead),
    }


def newton_in_32_bits(prompts: Prompts, steps: int) -> Trace:
    """Newton from the start of the published figures, computed as in the released code: in products of 32 bits."""
    x, y = prompts.x[:, :-1].float(), prompts.y[:, :-1].float()
    squares, products = x[..., None] * x[..., None, :], x * y[..., None]
    s, xy = (torch.cat([torch.zeros_like(part[:, :1]), part.cumsum(1)], 1) for part in (squares, products))
    norm = (s @ s.mT).flatten(2).norm(dim=2).clamp(min=1e-30)[..., None, None]
    inverse, values = 2 / norm * s, []
    for _ in range(steps):
        inverse = 2 * inverse - inverse @ s @ inverse
        values.append((prompts.x * (inverse @ xy[..., None])[..., 0]).sum(-1))
    return Trace("Newton in 32 bits", torch.stack(values), tuple(range(1, steps + 1)), prompts)


def _at_best(match: Match) -> Tensor:
    """Similarity of the last stage to its best step, by sequence."""
    return match.per_sequence[:, -1, int(match.similarity[-1].nan_to_num(-1).argmax())]


def weights(reading: FittedProbe, few: Prompts, verdict: Verdict) -> dict[str, Table]:
    """What the weights that the stages induce are like, by number of examples: close to which method, and in the span
    of the examples.
    """
    last, dim = few.positions - 1, few.dim
    asked = tuple(sorted({t for t in (1, 2, dim // 2, dim - 1, dim, dim + 1, 3 * dim // 2, last) if 0 < t <= last}))
    induced = induced_weights(reading, few, asked)
    assert induced.trace.weights is not None
    stages, by_examples, span = induced.trace.stages, [], []
    closest = {name: _closest(verdict, name) for name in ("Newton", "GradientDescent")}
    full = {name: getattr(known, name)(sorted(set(steps.values())) or [1]) for name, steps in closest.items()}
    closest["OrdinaryLeastSquares"] = dict.fromkeys(map(str, stages), 0)
    full["OrdinaryLeastSquares"] = known.OrdinaryLeastSquares()
    traces = {name: algorithm.trace(few) for name, algorithm in full.items()}
    for t in asked:
        for name, trace in traces.items():
            match = compare(induced.trace, trace, "weights", positions=t)
            for i, stage in enumerate(map(str, stages)):
                if stage in closest[name]:
                    step = closest[name][stage]
                    j = trace.stages.index(step)
                    cell = {part: short(getattr(match, part)[i, j]) for part in ("similarity", "low", "high")}
                    row = {"stage": stage, "t": t, "algorithm": name, "step": step, "n": few.batch, **cell}
                    by_examples.append(row)
        if t < dim:
            shares = outside_span(induced.trace.weights[:, :, t], few, t)
            span += [row | {"t": t, "chance": 1 - t / dim} for row in _rows(stages, outside=shares)]
    return {"by_examples": by_examples, "span": span}


def _closest(verdict: Verdict, name: str) -> dict[str, Any]:
    """The step of an algorithm that is closest to each stage by its errors."""
    match = verdict.matches["errors"][name]
    return {str(s): step for s, step in zip(match.stages, match.best, strict=True) if step is not None}


def forgetting(reading: FittedProbe, few: Prompts) -> Table:
    """The error on an example that was seen a number of examples ago (Fu et al., A.4)."""
    now, last = few.positions // 2, str(reading.states.stages[-1])
    rows = []
    for gap in range(1, now + 1):
        x = few.x.clone()
        x[:, now] = few.x[:, now - gap]
        again = replace(few, x=x)
        wanted = few.y[:, now - gap]
        predictions = {"the model": reading.trace(again).select([last]).values[0, :, now]}
        predictions |= {name: algorithm.trace(again).values[0, :, now] for name, algorithm in FORGETFUL.items()}
        errors = torch.stack([(value - wanted).square() / few.normalizer() for value in predictions.values()], dim=1)
        rows += [row | {"gap": gap} for row in _rows(tuple(predictions), error=errors)]
    return rows


def patched(network: TransformerNetwork, task: Task, prompts: int) -> Table:
    """After a layer, the state of the query's token becomes what it would be had the examples come from other weights
    (same inputs, other targets). How much of the other answer survives to the output?

    0: the later layers compute the answer from the examples anyway; 1: it is settled, and they only carry it on.
    """
    sample = task.sample(prompts, seed=0, purpose="patched")
    other, rows = replace(sample, y=_other_targets(sample)), []
    for name in network.stages[1 : 1 + len(network.blocks)]:
        share = patch(network, task, sample, name, other, task.positions - 1).recovered()
        rows.append({"stage": name, "survives": share.value, "low": share.low, "high": share.high, "n": share.n})
    return rows


def _other_targets(sample: Prompts) -> Tensor:
    """Targets of the same inputs under other weights."""
    weights = torch.randn(sample.batch, sample.dim, 1, generator=stream("other targets", 0), dtype=sample.x.dtype)
    return (sample.x @ weights)[..., 0]


def _rows(stages: tuple[Any, ...], **columns: Tensor) -> Table:
    """Means over sequences [batch, stages] with intervals: the first column's own, the others' by their name."""
    rows: Table = [{"stage": str(stage), "n": len(next(iter(columns.values())))} for stage in stages]
    for k, (name, values) in enumerate(columns.items()):
        ends = ("low", "high") if k == 0 else (f"{name}_low", f"{name}_high")
        for row, found in zip(rows, means(values), strict=True):
            row |= dict(zip((name, *ends), map(short, found), strict=False))
    return rows


def table(numbers: Mapping[str, Any], name: str, **where: object) -> Table:
    """The rows of a table with given entries."""
    return [row for row in numbers[name] if all(row.get(key) == value for key, value in where.items())]

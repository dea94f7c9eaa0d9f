"""What is measured of each model of the study. Every table is plain numbers with intervals."""

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from algoscope import algorithms as known
from algoscope.algorithms import Algorithm
from algoscope.instrument import Instrument
from algoscope.matching import Match, compare, rate_law
from algoscope.matching.bootstrap import interval, ratio_interval, resampling
from algoscope.models import Network
from algoscope.models.transformer import TransformerNetwork, added
from algoscope.randomness import stream
from algoscope.reading import fit, open_model
from algoscope.reading.induced import induced_weights
from algoscope.reading.probe import Reading
from algoscope.spectrum import outside_span, spectral_filter
from algoscope.studies.study import Training
from algoscope.tasks import LinearRegression
from algoscope.tasks.candidates import GRID, SHORT
from algoscope.trace import Prompts, Trace
from algoscope.verdict import Verdict, matched, plain_law, short

Table = list[dict[str, Any]]
RESAMPLES = 1000
FAMILIES = ("Newton", "GradientDescent", "ConjugateGradients")
NEWTON, DESCENT = "Newton, start 2/frobenius", "gradient descent"  # as published
TABLES = {"newton": f"{NEWTON}, t = 0 kept", "gd": f"{DESCENT}, rate .002, t = 0 kept"}  # published in full
STEPS = {"Newton": (0, 1, 2, 3, 4, 6, 8, 10, 13, 16, 20), "GradientDescent": (1, 4, 16, 64, 256, 1024, 4096),
         "ConjugateGradients": (1, 2, 3, 4, 5, 7, 10, 15, 20), "GradientDescentPlusPlus": (1, 2, 3, 4, 6, 8, 12),
         "Chebyshev": (1, 2, 4, 8, 16, 32)}  # fmt: skip
OUTSIDE = "query outside the span"
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
    assert isinstance(task, LinearRegression)
    instrument = _instrument(task, sizes.prompts)
    verdict = instrument.identify(network)
    reading = fit(open_model(network, task), instrument.fitting)
    few = replace(instrument.sample, x=instrument.sample.x[: sizes.few], y=instrument.sample.y[: sizes.few])
    record = verdict.record()
    tables = {
        "progress": progress(verdict.trace),
        "laws_by_weights": {name: _law_by_weights(verdict, name) for name in FAMILIES},
        "known": known_against_known(instrument),
        "published": published(network, reading, instrument),
        "forgetting": forgetting(reading, few, task),
        "shifted": shifted(reading, task, verdict, sizes.few * 2),
        **weights(reading, few, verdict),
    }
    if isinstance(network, TransformerNetwork):
        tables["patched"] = patched(network, task, sizes.few * 2)
    return {"verdict": {key: record[key] for key in record if key not in ("controls", "provenance")}, **tables}


@functools.lru_cache(maxsize=1)
def _instrument(task: LinearRegression, prompts: int) -> Instrument:
    return Instrument(task, prompts=prompts, fit_on=prompts)


def progress(trace: Trace) -> Table:
    """The error of each stage at the last position, and by how much it is below that of the stage before."""
    errors = trace.residuals()[:, :, -1].square().mean(-1).mT / trace.prompts.normalizer()
    better = torch.cat([torch.zeros_like(errors[:, :1]), errors[:, :-1] - errors[:, 1:]], dim=1)
    return _rows(trace.stages, error=errors, better=better)


def _law_by_weights(verdict: Verdict, name: str) -> dict[str, Any]:
    match = verdict.matches["weights"][name]
    return {**plain_law(rate_law(match)), "n": len(match.per_sequence)}


@functools.lru_cache(maxsize=1)
def known_against_known(instrument: Instrument) -> Table:
    """The algorithms against each other on the same prompts: their matching steps, and the law of these."""
    rows = []
    for one, other in itertools.permutations(FAMILIES, 2):
        match = compare(instrument.traces[one], instrument.traces[other], "errors")
        law = plain_law(rate_law(match))
        steps = zip(match.stages, match.best, strict=True)
        rows += [{"of": one, "by": other, "step": a, "best": b, "law": law["law"]} for a, b in steps if b is not None]
    return rows


def published(network: Network, reading: Reading, instrument: Instrument) -> dict[str, Any]:
    """Similarity of errors as the paper measures it, unscaled, once for each convention that differs."""
    task, sample = instrument.task, instrument.sample
    plain, newton = reading.trace(sample), known.Newton(24, start="2/frobenius").trace(sample)
    linear = {"published": (1, *range(50, 1301, 50)), "hard": (1, *range(100, 3001, 100))}  # the paper's grids
    others: dict[str, Algorithm] = {
        NEWTON: known.Newton(40, start="2/frobenius"),
        "Newton, start 1/frobenius": known.Newton(24),
        DESCENT: known.GradientDescent(GRID),
        f"{DESCENT}, linear grid": known.GradientDescent(linear["published"]),
        f"{DESCENT}, random start": known.GradientDescent(GRID, start="uniform/sqrt(dim)"),
        f"{DESCENT}, best rate": known.GradientDescent(GRID, rate="best"),
        "conjugate gradients": known.ConjugateGradients(min(task.inputs, 40)),
        "Chebyshev": known.Chebyshev(SHORT),
        "heavy ball": known.HeavyBall(SHORT),
        "GD++": known.GradientDescentPlusPlus(12),
        "online gradient descent": known.OnlineGradientDescent(),
        "least squares": known.OrdinaryLeastSquares(),
        "null": known.Zero(),
    }
    if task.noise:
        others |= {"ridge": known.Ridge(), "Newton on S + λI": known.Newton(24, "2/frobenius", ridge=task.noise**2)}
    matches = {name: compare(plain, algorithm.trace(sample), "errors") for name, algorithm in others.items()}
    pairs = [(one, other) for one in ("Newton, start 1/frobenius", NEWTON) for other in matches if one != other]
    pairs += [(one, "least squares") for one in ("ridge", "Newton on S + λI") if one in matches]
    ahead = torch.stack([_at_best(matches[one]) - _at_best(matches[other]) for one, other in pairs], dim=1)
    laws = {name: plain_law(rate_law(matches[name])) for name in (NEWTON, DESCENT, "conjugate gradients")}
    slow = known.GradientDescent(linear["hard"], rate=0.002).trace(sample)
    matches |= {
        TABLES["newton"]: compare(plain, newton, "errors", first=0),
        TABLES["gd"]: compare(plain, slow, "errors", first=0),
        "Newton, in 32 bits": compare(plain, newton_in_32_bits(sample, 24), "errors"),
    }
    if isinstance(network, TransformerNetwork) and "norm" in network.stages:
        normed = fit(open_model(network, task, norm="last"), instrument.fitting).trace(sample)
        matches["Newton, last layer after its norm"] = compare(normed, newton, "errors")
    return {
        "stages": [str(stage) for stage in plain.stages],
        "maps": {name: matched(match) for name, match in matches.items()},
        "laws": laws,
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


def weights(reading: Reading, few: Prompts, verdict: Verdict) -> dict[str, Any]:
    """What the weights that the stages induce are like: by number of examples, in span, and as spectral filters."""
    last, dim = few.positions - 1, few.dim
    asked = tuple(sorted({t for t in (1, 2, dim // 2, dim - 1, dim, dim + 1, 3 * dim // 2, last) if 0 < t <= last}))
    induced = induced_weights(reading, few, asked)
    assert induced.trace.weights is not None
    stages, by_examples, span, filters = induced.trace.stages, [], [], []
    others = {name: _closest(verdict, name) for name in ("Newton", "GradientDescent")} | {"OrdinaryLeastSquares": {}}
    full = {name: known_trace(name, few, sorted(set(steps.values())) or [1]) for name, steps in others.items()}
    for t in asked:
        for name, trace in full.items():
            match = compare(induced.trace, trace, "weights", positions=t)
            for i, stage in enumerate(stages):
                step = 0 if name == "OrdinaryLeastSquares" else others[name].get(str(stage))
                if step is None:
                    continue
                j = trace.stages.index(step)
                cell = {part: short(getattr(match, part)[i, j]) for part in ("similarity", "low", "high")}
                by_examples.append(
                    {"stage": str(stage), "t": t, "algorithm": name, "step": step, "n": few.batch, **cell}
                )
        if t < dim:
            shares = outside_span(induced.trace.weights[:, :, t], few, t)
            span += [row | {"t": t, "chance": 1 - t / dim} for row in _rows(stages, outside=shares)]
    for t in (dim, last) if dim in asked and dim < last else (last,):
        filters += _filters("the model", stages, induced.trace.weights[:, :, t], few, t)
        for name, steps in STEPS.items():
            trace = known_trace(name, few, steps)
            assert trace.weights is not None
            filters += _filters(name, trace.stages, trace.weights[:, :, t], few, t)
    return {"by_examples": by_examples, "span": span, "filters": filters}


def _closest(verdict: Verdict, name: str) -> dict[str, Any]:
    """The step of an algorithm that is closest to each stage by its errors."""
    match = verdict.matches["errors"][name]
    return {str(s): step for s, step in zip(match.stages, match.best, strict=True) if step is not None}


def known_trace(name: str, prompts: Prompts, steps: Sequence[int]) -> Trace:
    """The trace of an algorithm, with its weights, at some steps."""
    if name == "OrdinaryLeastSquares":
        return known.OrdinaryLeastSquares().trace(prompts)
    most = prompts.dim if name == "ConjugateGradients" else max(steps)  # it has ended by then
    return getattr(known, name)([step for step in steps if step <= most]).trace(prompts)


def _filters(name: str, stages: tuple[Any, ...], found: Tensor, prompts: Prompts, t: int) -> Table:
    result = spectral_filter(stages, found, prompts, t, bins=min(8, 2 * prompts.dim))
    rows = []
    for i, stage in enumerate(stages):
        for k, eigenvalue in enumerate(result.eigenvalues.tolist()):
            numbers = {part: short(getattr(result, part)[i, k]) for part in ("solved", "low", "high")}
            rows.append({"what": name, "stage": str(stage), "t": t, "eigenvalue": eigenvalue, **numbers})
    return rows


def forgetting(reading: Reading, few: Prompts, task: LinearRegression) -> Table:
    """The error on an example that was seen a number of examples ago (Fu et al., A.4)."""
    now, last = few.positions // 2, str(reading.states.stages[-1])
    rows = []
    for gap in range(1, now + 1):
        x = few.x.clone()
        x[:, now] = few.x[:, now - gap]
        again = replace(few, x=x)
        wanted = few.y[:, now - gap]
        told = {"the model": reading.trace(again).select([last]).values[0, :, now]}
        told |= {name: algorithm.trace(again).values[0, :, now] for name, algorithm in FORGETFUL.items()}
        errors = torch.stack([(value - wanted).square() / task.power for value in told.values()], dim=1)
        rows += [row | {"gap": gap} for row in _rows(tuple(told), error=errors)]
    return rows


def shifted(reading: Reading, task: LinearRegression, verdict: Verdict, prompts: int) -> Table:
    """Prompts that the model was not trained on: does the algorithm that it is closest to still predict its errors?"""
    eye, decay = torch.eye(task.dim), 1 / torch.arange(1, task.dim + 1)
    half = torch.arange(task.dim) < max(task.dim // 2, 1)
    plain = replace(task, covariance="isotropic", noise=0.0)
    others = {
        "as trained": task,
        "inputs twice as large": replace(plain, covariance=(4 * eye).tolist()),
        "inputs half as large": replace(plain, covariance=(eye / 4).tolist()),
        "skewed covariance": replace(plain, covariance=torch.diag(task.dim * decay / decay.sum()).tolist()),
        "ill-conditioned": replace(plain, covariance="ill-conditioned", rescale=True),
        "noise": replace(plain, noise=0.5),
        "half of the space": replace(plain, covariance=torch.diag(2.0 * half).tolist()),
        OUTSIDE: replace(plain, covariance=torch.diag(2.0 * half).tolist()),
    }
    last, rows = str(reading.states.stages[-1]), []
    closest = {name: _closest(verdict, name).get(last) for name in ("Newton", "GradientDescent")}
    for name, other in others.items():
        sample, at = other.sample(prompts, seed=0, purpose="shifted"), "all"
        if name == OUTSIDE:
            sample, at = _asked_outside(sample), sample.positions - 1
        trace = reading.trace(sample).select([last])
        error = trace.residuals()[0, :, -1].square().mean(-1)[:, None] / other.power
        row = {"prompts": name, **_rows((last,), error=error)[0]}
        kinds: dict[str, Algorithm] = {"least squares": known.Ridge(), "null": known.Zero()}
        kinds |= {f"{kind} {step}": getattr(known, kind)([step]) for kind, step in closest.items() if step is not None}
        for label, algorithm in kinds.items():
            match = compare(trace, algorithm.trace(sample), "errors", at)
            numbers = {part: short(getattr(match, part)[0, 0]) for part in ("similarity", "low", "high")}
            rows.append({**row, "algorithm": label, **numbers})
    return rows


def _asked_outside(sample: Prompts) -> Prompts:
    """The last query moved to where no example has been: what was seen says nothing about it."""
    x, half = sample.x.clone(), (sample.dim + 1) // 2
    y = (
        torch.randn(sample.batch, generator=stream("answers outside", 0), dtype=sample.x.dtype)
        * sample.normalizer() ** 0.5
    )
    x[:, -1] = x[:, -1].roll(half, -1)
    return replace(sample, x=x, y=torch.cat([sample.y[:, :-1], y[:, None]], 1))


@torch.no_grad()
def patched(network: TransformerNetwork, task: LinearRegression, prompts: int) -> Table:
    """A causal test. After a layer, the state of the query's token is replaced by what it would be had the examples
    come from other weights (same inputs, other targets). How much of the other answer survives to the output?

    0: the later layers compute the answer from the examples anyway; 1: it is settled, and they only carry it on.
    """
    sample = task.sample(prompts, seed=0, purpose="patched")
    other = replace(sample, y=_other_targets(sample))
    token = task.answering[-1]
    parameter = next(network.parameters())
    tokens = [task.encode(part.x, part.y).to(parameter) for part in (sample, other)]
    names = network.stages[1 : 1 + len(network.blocks)]
    outputs, states = zip(*(network.run(part, names) for part in tokens), strict=True)
    own, foreign = (task.read(part)[:, -1].double().cpu().reshape(prompts, -1) for part in outputs)
    moved = []
    for name, block in zip(names, network.blocks, strict=True):

        def replace_query(_: object, __: object, output: tuple[Tensor, ...], to: Tensor = states[1][name]) -> tuple:
            state = added(*output).clone()
            state[:, token] = to[:, token]
            return (state,)

        handle = block.register_forward_hook(replace_query)
        try:
            result = task.read(network(tokens[0]))[:, -1].double().cpu().reshape(prompts, -1)
        finally:
            handle.remove()
        moved.append(((result - own) * (foreign - own)).sum(1))
    whole = (foreign - own).square().sum(1)[:, None]
    draws = resampling(prompts, RESAMPLES, 0)
    share, low, high = ratio_interval(torch.stack(moved, 1), whole.expand(-1, len(moved)), draws, 0.95)
    columns = zip(names, share.tolist(), low.tolist(), high.tolist(), strict=True)
    return [{"stage": name, "survives": s, "low": lo, "high": hi, "n": prompts} for name, s, lo, hi in columns]


def _other_targets(sample: Prompts) -> Tensor:
    """Targets of the same inputs under other weights."""
    weights = torch.randn(sample.batch, sample.dim, 1, generator=stream("other targets", 0), dtype=sample.x.dtype)
    return (sample.x @ weights)[..., 0]


def _rows(stages: tuple[Any, ...], **columns: Tensor) -> Table:
    """Means over sequences [batch, stages] with intervals: the first column's own, the others' by their name."""
    rows: Table = [{"stage": str(stage), "n": len(next(iter(columns.values())))} for stage in stages]
    for k, (name, values) in enumerate(columns.items()):
        low, high = interval(values, resampling(len(values), RESAMPLES, 0), 0.95)
        ends = ("low", "high") if k == 0 else (f"{name}_low", f"{name}_high")
        for row, *numbers in zip(rows, values.mean(0), low, high, strict=True):
            row |= dict(zip((name, *ends), map(short, numbers), strict=True))
    return rows


def table(numbers: Mapping[str, Any], name: str, **where: object) -> Table:
    """The rows of a table with given entries."""
    return [row for row in numbers[name] if all(row.get(key) == value for key, value in where.items())]

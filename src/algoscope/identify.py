"""A model and a task in, a verdict out: every applicable algorithm and the null against every stage.

Two kinds of evidence have to agree before a stage is said to be a step of an algorithm.

1. **Errors.** The best linear read-out of the stage makes errors; so does the algorithm. How alike are they? A read-out
   that is fitted to y stretches what it reads, and noise in a stage shrinks it again. So each step is first scaled to
   the read-out, by one number fitted on other prompts: an exact planted step then comes back as that step.
2. **Decodability.** How much of the step itself can be read linearly from the stage, on prompts that the reading never
   saw, above what can be read of another sequence's?

In both, all steps of all algorithms are judged together, and all that cannot be told from the closest are kept.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from algoscope import algorithms as known
from algoscope import arguments
from algoscope.algorithms import Algorithm
from algoscope.matching import MEASURES, Candidate, Match, RateLaw, candidates, judge, rate_law
from algoscope.matching.compare import positions_at
from algoscope.progress import Bar
from algoscope.reading.probe import Columns, fit
from algoscope.reading.states import Show, open_model
from algoscope.tasks import LinearRegression, Task
from algoscope.trace import Prompts, Stage, Trace

GRID = (0, *sorted({round(2 ** (k / 2)) for k in range(25)}))  # of slow methods: two steps an octave, to 4,096
SHORT = tuple(step for step in GRID if step <= 256)
FIRST = 1  # position from which on predictions are compared


def applicable(task: Task) -> list[Algorithm]:
    """The algorithms that a model of this task may have learned."""
    if not isinstance(task, LinearRegression):
        raise ValueError(f"algorithms must be given: none are known for the task {type(task).__name__}")
    found: list[Algorithm] = [
        known.Newton(steps=24),
        known.ConjugateGradients(steps=task.dim),
        known.GradientDescent(GRID),
        known.GradientDescent(GRID, rate="best"),
        known.HeavyBall(SHORT),
        known.Chebyshev(SHORT),
        known.GradientDescentPlusPlus(steps=12),
        known.OnlineGradientDescent(),
        known.OrdinaryLeastSquares(),
    ]
    if task.noise:
        ridge = task.noise**2
        found += [known.Ridge(), known.Newton(steps=24, ridge=ridge), known.ConjugateGradients(task.dim, ridge=ridge)]
    return found


@dataclass(frozen=True)
class StageVerdict:
    """What one stage may be.

    `errors` and `decodability` hold the steps that cannot be told from the closest by each kind of evidence, closest
    first; none where nothing beats the null. `agreed` are those that both keep, as (algorithm, step).
    """

    stage: Stage
    error: float  # normalized, at the last position
    errors: tuple[Candidate, ...]
    decodability: tuple[Candidate, ...]

    @property
    def agreed(self) -> tuple[tuple[str, Stage], ...]:
        other = {(found.name, found.step) for found in self.decodability}
        return tuple((found.name, found.step) for found in self.errors if (found.name, found.step) in other)

    @property
    def certain(self) -> bool:
        """One step of one algorithm, and no other."""
        return len(self.agreed) == 1

    @property
    def null(self) -> bool:
        return not self.errors or not self.decodability


@dataclass(frozen=True, eq=False)
class Verdict:
    """The evidence, and what it says.

    `trace` is what the stages predict and `traces` what the algorithms do, unscaled, on the same prompts. `matches` are
    by measure ("errors", "distance", "decodability") and by algorithm; `laws` by algorithm, from the errors.
    """

    stages: tuple[StageVerdict, ...]
    trace: Trace
    traces: Mapping[str, Trace]
    matches: Mapping[str, Mapping[str, Match]]
    laws: Mapping[str, RateLaw]
    confidence: float


def identify(
    model: nn.Module | Show,
    task: Task,
    algorithms: Sequence[Algorithm] | None = None,
    prompts: int = 1000,
    fit_on: int = 1000,
    seed: int = 0,
    stages: Sequence[str] | None = None,
    norm: Literal["none", "each", "last"] = "none",
    confidence: float = 0.95,
    progress: bool = False,
) -> Verdict:
    """Which algorithm each stage of a model follows.

    `model`, `stages` and `norm` are as in `ag.probe`. The read-outs are fitted on `fit_on` prompts, and the comparison
    is made on `prompts` others. `confidence` holds for all stages together.
    """
    arguments.integer("prompts", prompts, 2)
    states = open_model(model, task, stages, norm)
    chosen = list(algorithms) if algorithms is not None else applicable(task)
    names = [algorithm.name for algorithm in chosen]
    if not chosen or len(set(names)) < len(names):
        raise ValueError(f"algorithms must be at least one, and different from each other, got {names}")
    done = _progress(fit_on + prompts) if progress else (lambda count: None)
    reading = fit(states, fit_on, seed, _columns(chosen), done)
    sample = task.sample(prompts, seed)
    read = reading.read(sample, FIRST, done)
    trace, steps = read.trace, _steps(chosen, sample)
    own = read.columns.split([len(labels) for labels in steps.values()])
    traces = {name: Trace(name, values, steps[name], sample) for name, values in zip(steps, own, strict=True)}
    matches = {
        "errors": _scaled(trace, traces, reading.scales(), "errors", seed),
        "distance": _scaled(trace, traces, reading.scales(), "distance", seed),
        "decodability": _decoded(trace, traces, read.gains, seed),
    }
    each = 1 - (1 - confidence) / len(states.stages)
    error = trace.normalized_error()[:, -1].tolist()
    found = [
        StageVerdict(
            stage,
            error[i],
            tuple(candidates(matches["errors"], stage, each)),
            tuple(candidates(matches["decodability"], stage, each)),
        )
        for i, stage in enumerate(states.stages)
    ]
    laws = {name: rate_law(match) for name, match in matches["errors"].items() if len(match.steps) > 2}
    return Verdict(tuple(found), trace, traces, matches, laws, confidence)


def _steps(chosen: Sequence[Algorithm], prompts: Prompts) -> dict[str, tuple[Stage, ...]]:
    """The labels of the steps that each algorithm keeps."""
    one = replace(prompts, x=prompts.x[:1], y=prompts.y[:1])
    return {algorithm.name: algorithm.trace(one).stages for algorithm in chosen}


def _columns(chosen: Sequence[Algorithm]) -> Columns:
    def columns(prompts: Prompts) -> Float[Tensor, "batch points columns targets"]:
        values = torch.cat([algorithm.trace(prompts).values for algorithm in chosen])
        return values.reshape(-1, *prompts.target_columns.shape).movedim(0, 2)

    return columns


def _scaled(
    trace: Trace, traces: Mapping[str, Trace], scales: Float[Tensor, "stages columns"], measure: str, seed: int
) -> dict[str, Match]:
    """Each stage against the steps of each algorithm, which are scaled to it."""
    at, chosen = positions_at(trace.prompts, "all", FIRST), MEASURES[measure]
    own = scales.split([len(other) for other in traces.values()], dim=1)
    found = {}
    for (name, other), factors in zip(traces.items(), own, strict=True):
        values, null = [], []
        for i, stage in enumerate(trace.stages):
            shape = (-1, *[1] * (other.values.ndim - 1))
            scaled = replace(other, values=other.values * factors[i].reshape(shape))
            values.append(chosen.per_sequence(trace.select([stage]), scaled, at))
            null.append(chosen.per_sequence(trace.select([stage]), chosen.null(other), at)[..., 0])
        stages = (trace.stages, other.stages)
        found[name] = judge((trace.name, name), stages, measure, torch.cat(values, 1), torch.cat(null, 1), seed=seed)
    return found


def _decoded(
    trace: Trace, traces: Mapping[str, Trace], gains: Float[Tensor, "batch stages columns"], seed: int
) -> dict[str, Match]:
    """The gains are above the null's already."""
    null = torch.zeros(gains.shape[:2], dtype=torch.float64)
    own = gains.split([len(other) for other in traces.values()], dim=2)
    return {
        name: judge((trace.name, name), (trace.stages, other.stages), "decodability", part, null, seed=seed)
        for (name, other), part in zip(traces.items(), own, strict=True)
    }


def _progress(total: int) -> Callable[[int], None]:
    bar, seen = Bar(total, unit="prompts"), [0]

    def done(count: int) -> None:
        seen[0] += count
        bar.show(seen[0])

    return done

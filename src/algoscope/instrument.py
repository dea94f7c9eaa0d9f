"""A model and a task in, a verdict out: every applicable algorithm and the null against every stage.

Two kinds of evidence have to agree before a stage is said to be a step of an algorithm.

1. **Errors.** The best linear read-out of the stage makes errors; so does the algorithm. How alike are they? A read-out
   that is fitted to y stretches what it reads, and noise in a stage shrinks it again. So each step is first scaled to
   the read-out, by one number fitted on other prompts; where the target has several coordinates, which a read-out also
   mixes and shifts, by a linear map with a shift. An exact planted step then comes back as that step.
2. **Decodability.** How much of the step itself can be read linearly from the stage, on prompts that the reading never
   saw, above what can be read of another sequence's?

In both, all steps of all algorithms are judged together, and all that cannot be told from the closest are kept. The
closest is not yet the right one: the right one may not be among those compared. So a third question is asked: does a
mixture of all known steps predict more of the stage than the closest step alone? Where it does, the stage is something
else, and the step is only the closest.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from algoscope import algorithms as known
from algoscope import arguments
from algoscope.algorithms import Algorithm
from algoscope.matching import MEASURES, Match, candidates, judge
from algoscope.matching.bootstrap import ratio_interval, resampling
from algoscope.matching.compare import Positions, confidence_between_0_and_1, positions_at
from algoscope.progress import Bar
from algoscope.reading.induced import induced_weights, queries_for
from algoscope.reading.probe import Calibration, Columns, Read, Reading, chunks, fit, fitting_prompts, nobody
from algoscope.reading.states import Show, open_model
from algoscope.tasks import Task
from algoscope.trace import Prompts, Stage, Trace
from algoscope.verdict import StageVerdict, Verdict

CONVERGED = 1e-4  # normalized squared distance from a closed form at which a method counts as that: 1% of the targets
RESAMPLES, ENOUGH = 1000, 5  # at least, and so many in each tail of an interval
ROUNDING = 1e-12  # share of the square of a stage that a step may miss, and it is the same: six digits, as in float32
LARGEST = 1e6  # a step whose values are larger than this, in units of the targets', has diverged
QUERIES, FEWEST_WEIGHED = 2000, 12  # prompts with other queries to ask for weights, and prompts to weigh at least
FIRST = 1  # position from which on predictions are compared
OTHERWISE = {  # families of tasks whose models are read otherwise than by the states of their stages
    "search": "is known by what it looks up: see reading.lookups, and algoscope study data-structures",
    "streams": "is known by its cells: see algoscope study data-structures",
}


class Instrument:
    """Prompts of a task, and on them every step of the algorithms: what any number of models is compared with.

    Read-outs are fitted on `fit_on` prompts, and the comparison is made on `prompts` others, at the `positions` "all"
    (but t = 0, where nothing has been seen), "t<dim", "t>=dim", or one position t. `others` are not compared, but their
    steps are in the mixtures that tell whether the closest step is all: by default whatever else applies to the task.
    """

    def __init__(
        self,
        task: Task,
        algorithms: Sequence[Algorithm] | None = None,
        prompts: int = 1000,
        fit_on: int = 1000,
        seed: int = 0,
        positions: Positions = "all",
        progress: bool = False,
        others: Sequence[Algorithm] | None = None,
    ) -> None:
        arguments.integer("prompts", prompts, 2, 2**31)
        chosen = _checked(task.algorithms() if algorithms is None else algorithms, task)
        names = [algorithm.name for algorithm in chosen]
        if others is None:
            others = task.algorithms()
        mixed = [*chosen, *(other for other in others if other.name not in names)]
        self.task, self.seed, self.positions, self.algorithms = task, seed, positions, chosen
        self.fitting, self.sample = fitting_prompts(task, fit_on, seed), task.sample(prompts, seed)
        self.at = positions_at(self.sample, positions, FIRST)
        done = _bar(fit_on + prompts, "the algorithms") if progress else nobody
        columns = [_columns(mixed, part, done) for part in (self.fitting, self.sample)]
        one = replace(self.sample, x=self.sample.x[:1], y=self.sample.y[:1])
        labels = {algorithm.name: algorithm.trace(one) for algorithm in chosen}
        sizes = [len(each) for each in labels.values()]
        own = columns[1][:, :, : sum(sizes)].movedim(2, 0).reshape(-1, *self.sample.y.shape).split(sizes)
        pairs = zip(labels.items(), own, strict=True)
        self.traces = {name: Trace(name, part, each.stages, self.sample) for (name, each), part in pairs}
        self.weighable = self.sample.y.ndim == 2 and all(each.weights is not None for each in labels.values())
        self.solved = self._solved()
        usable = torch.stack([part.abs().amax((0, 1, 3)) for part in columns]).amax(0) <= LARGEST * task.power**0.5
        self.columns = [torch.where(usable[:, None], part, 0.0) for part in columns]  # steps that diverge are left out

    def identify(
        self,
        model: nn.Module | Show,
        stages: Sequence[str] | None = None,
        norm: Literal["none", "each", "last"] = "none",
        confidence: float = 0.95,
        weights: bool = True,
        progress: bool = False,
    ) -> Verdict:
        """Which algorithm each stage of a model follows. `confidence` holds for all its stages together.

        Without `weights` those that the stages induce are not asked for, which saves many passes of the model.
        """
        confidence_between_0_and_1(confidence)
        states = open_model(model, self.task, stages, norm)
        done = _bar(self.fitting.batch + self.sample.batch, "the model") if progress else nobody
        reading = fit(states, self.fitting, self.columns[0], self.at, done)
        read, fitted = reading.read(self.sample, self.columns[1], done), reading.calibrations()
        matches = self._calibrated(read.trace, fitted, confidence)
        matches["decodability"] = self._decoded(read, confidence)
        linearity = [math.nan] * len(states.stages)
        if weights and self.weighable:
            matches["weights"], linearity = self._weighed(reading, confidence)
        each = 1 - (1 - confidence) / len(states.stages)
        resamples = max(RESAMPLES, math.ceil(2 * ENOUGH / (1 - each)))
        error, mixed = read.trace.normalized_error(), reading.mixtures(self.columns[1], fitted)
        found = []
        for i, stage in enumerate(states.stages):
            kept = [tuple(candidates(matches[kind], stage, each, resamples)) for kind in ("errors", "decodability")]
            unsure = StageVerdict(
                stage, float(error[i, self.at][-1]), *kept, linearity=linearity[i], solved=self.solved
            )
            beyond = self._beyond(read.trace.values[i], mixed[i], unsure, fitted[i], each, resamples)
            found.append(replace(unsure, beyond=beyond))
        return Verdict(tuple(found), read.trace, self.traces, matches, confidence)

    def _weighed(self, reading: Reading, confidence: float) -> tuple[dict[str, Match], list[float]]:
        """Cosines of the weights that the stages induce and those of the algorithms, on a few prompts at two positions.

        And for each stage how linear its predictions are in the query (the median over the prompts).
        """
        seen = self.at.nonzero()[:, 0].tolist()
        asked = tuple(dict.fromkeys((self.sample.dim if self.sample.dim in seen else seen[len(seen) // 2], seen[-1])))
        count = max(FEWEST_WEIGHED, QUERIES // (len(asked) * queries_for(self.sample.dim)))
        few = replace(self.sample, x=self.sample.x[:count], y=self.sample.y[:count])
        induced = induced_weights(reading, few, asked, self.seed)
        found = {}
        for algorithm in self.algorithms:
            other = algorithm.trace(few)
            parts = [_cosines(induced.trace.weights, other.weights, position) for position in asked]
            values = torch.stack(parts).mean(0)
            null = torch.zeros_like(values[..., 0])
            found[other.name] = self._judge(induced.trace, other, "weights", values, null, confidence)
        return found, induced.linearity.flatten(1).nanmedian(1).values.tolist()

    def _beyond(
        self, read: Tensor, mixed: Tensor, unsure: StageVerdict, fitted: Calibration, confidence: float, resamples: int
    ) -> tuple[float, float, float]:
        """Of what the closest step misses of a stage, the share that a mixture of steps explains; with its interval."""
        if unsure.null:
            return math.nan, math.nan, math.nan
        names = [(name, step) for name, trace in self.traces.items() for step in trace.stages]
        place = names.index((*unsure.agreed, (unsure.errors[0].name, unsure.errors[0].step))[0])
        own = slice(place, place + 1)
        closest = fitted.of(own)(self.columns[1][:, :, own].movedim(2, 0))
        off = [(read - part.reshape(read.shape))[:, self.at].square().flatten(1).sum(1) for part in (closest, mixed)]
        if float(off[0].sum()) <= ROUNDING * float(read[:, self.at].square().sum()):
            return 0.0, 0.0, 0.0
        draws = resampling(len(read), resamples, self.seed)
        share, low, high = ratio_interval((off[0] - off[1])[:, None], off[0][:, None], draws, confidence)
        return float(share), float(low), float(high)

    def _calibrated(
        self, trace: Trace, fitted: Sequence[Calibration], confidence: float
    ) -> dict[str, dict[str, Match]]:
        """Each stage against the steps of each algorithm, which are calibrated to it, as is the null; by measure."""
        found: dict[str, dict[str, Match]] = {"errors": {}, "distance": {}}
        first = 0
        for name, other in self.traces.items():
            own, null = slice(first, first + len(other)), MEASURES["errors"].null(other)
            steps = [replace(other, values=calibrate.of(own)(other.values)) for calibrate in fitted]
            zeros = [replace(null, values=null.values + calibrate.nothing) for calibrate in fitted]
            stages = [trace.select([stage]) for stage in trace.stages]
            for kind, matches in found.items():
                values, nulls = (
                    [MEASURES[kind].per_sequence(a, b, self.at) for a, b in zip(stages, others, strict=True)]
                    for others in (steps, zeros)
                )
                cells = torch.cat(values, 1), torch.cat(nulls, 1)[..., 0]
                matches[name] = self._judge(trace, other, kind, *cells, confidence)
            first += len(other)
        return found

    def _decoded(self, read: Read, confidence: float) -> dict[str, Match]:
        """The gains are above the null's already."""
        own = self._by_algorithm(read.gains)
        null = torch.zeros(read.gains.shape[:2], dtype=torch.float64)
        pairs = zip(self.traces.values(), own, strict=True)
        return {o.name: self._judge(read.trace, o, "decodability", part, null, confidence) for o, part in pairs}

    def _by_algorithm(self, by_column: Tensor) -> Sequence[Tensor]:
        """The last axis in parts, one for each algorithm that is compared."""
        sizes = [len(trace) for trace in self.traces.values()]
        return by_column[..., : sum(sizes)].split(sizes, dim=-1)

    def _judge(
        self, trace: Trace, other: Trace, measure: str, values: Tensor, null: Tensor, confidence: float
    ) -> Match:
        stages = (trace.stages, other.stages)
        names = (trace.name, other.name)
        return judge(names, stages, measure, values, null, self.positions, FIRST, confidence, seed=self.seed)

    def _solved(self) -> dict[tuple[str, Stage], tuple[str, Stage]]:
        """The steps of iterations that have become a closed form, to 1% of the targets, and which: the nearest of those
        that all later steps are as well. A method that passes by a ridge regression has not become it.
        """
        found: dict[tuple[str, Stage], tuple[str, Stage]] = {}
        forms = {a.name for a in self.algorithms if isinstance(a, known.OrdinaryLeastSquares | known.Ridge)}
        closed = [self.traces[name] for name in self.traces if name in forms]
        for other in (trace for trace in self.traces.values() if trace.name not in forms and closed):
            off = [(other.values - form.values)[:, :, self.at].square().flatten(1).mean(1) for form in closed]
            near = torch.stack(off) <= CONVERGED * self.sample.normalizer()
            stays = near.flip(1).long().cumprod(1).flip(1).bool()
            nearest = torch.where(stays, torch.stack(off), torch.inf).argmin(0).tolist()
            for step, form, any_of_them in zip(other.stages, nearest, stays.any(0).tolist(), strict=True):
                if any_of_them:
                    found[other.name, step] = (closed[form].name, closed[form].stages[0])
        return found


def identify(
    model: nn.Module | Show,
    task: Task,
    algorithms: Sequence[Algorithm] | None = None,
    prompts: int = 1000,
    fit_on: int = 1000,
    seed: int = 0,
    stages: Sequence[str] | None = None,
    norm: Literal["none", "each", "last"] = "none",
    positions: Positions | None = None,
    confidence: float = 0.95,
    weights: bool = True,
    progress: bool = False,
) -> Verdict:
    """Which algorithm each stage of a model follows: an `Instrument` for the task, applied to one model.

    `model`, `stages` and `norm` are as in `ag.probe`; by default, `algorithms` are all that apply to the task, and
    `positions` are "all", or the last where a network makes sense of whole prompts alone. Without `weights` those that
    the stages induce are not asked for, which saves many passes of the model.
    """
    if isinstance(task, Task) and task.family in OTHERWISE:
        raise ValueError(f"identify reads states, and a model of {type(task).__name__} {OTHERWISE[task.family]}")
    if positions is None:
        positions = task.positions - 1 if getattr(model, "whole", False) else "all"
    arguments.boolean("weights", weights)
    arguments.boolean("progress", progress)
    open_model(model, task, stages, norm).of(task.sample(2, seed=0))  # a model that does not fit is told at once
    instrument = Instrument(task, algorithms, prompts, fit_on, seed, positions, progress)
    return instrument.identify(model, stages, norm, confidence, weights, progress)


def _checked(algorithms: Sequence[Algorithm], task: Task) -> list[Algorithm]:
    listed = isinstance(algorithms, Iterable) and not isinstance(algorithms, Algorithm)
    algorithms = list(algorithms) if listed else []
    if not listed or not all(isinstance(each, Algorithm) for each in algorithms):
        got = arguments.shown(algorithms)
        raise ValueError(f"algorithms must be a list of algorithms such as Newton(steps=24), got {got}")
    names = [algorithm.name for algorithm in algorithms]
    if not names and not task.algorithms():
        raise ValueError(f"algorithms must be given: {type(task).__name__} names none (Task.algorithms)")
    if not names or len(set(names)) < len(names):
        raise ValueError(f"algorithms must be at least one, and different from each other, got {names}")
    others = [algorithm.name for algorithm in algorithms if algorithm.family != task.family]
    if others:
        raise ValueError(f"algorithms must be of the family of the task, {task.family}; {', '.join(others)} are not")
    return list(algorithms)


def _cosines(a: Tensor | None, b: Tensor | None, position: int) -> Float[Tensor, "batch a b"]:
    """Of weight vectors [stage, batch, position, dim, ...] at one position; zero where one of them is zero."""
    if a is None or b is None:
        raise ValueError("algorithms must have weights, so that they can be compared with those that a model induces")
    units = [part[:, :, position].flatten(2).double() for part in (a, b)]
    units = [unit / unit.norm(dim=-1, keepdim=True).clamp(min=1e-150) for unit in units]
    return torch.einsum("ibd,jbd->bij", *units)


def _columns(chosen: Sequence[Algorithm], prompts: Prompts, done: Callable[[int], None]) -> Columns:
    """Every step of every algorithm, made in chunks: the weights behind all of them would fill the memory."""
    parts = []
    for chunk, _ in chunks(prompts):
        values = torch.cat([algorithm.trace(chunk).values for algorithm in chosen])
        parts.append(values.reshape(-1, *chunk.target_columns.shape).movedim(0, 2))
        done(chunk.batch)
    return torch.cat(parts)


def _bar(total: int, what: str) -> Callable[[int], None]:
    bar, seen = Bar(total, unit="prompts"), [0]

    def done(count: int) -> None:
        seen[0] += count
        bar.show(seen[0], what)

    return done

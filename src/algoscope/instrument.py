"""A model and a task in, a verdict out: every algorithm that applies, and the null, against every stage.

All steps of all algorithms are judged together, and all that are statistically tied with the closest are kept. The
closest is not yet the right one: the right one may not be among those compared. So a third question is asked: does a
mixture of all known steps explain more of the stage than the closest step alone? Where it does, the stage is something
else, and the step is only the closest.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Literal

from torch import Tensor, nn

from algoscope import arguments
from algoscope.contracts import Algorithm, Measure, Network, Reader, Show, Task
from algoscope.evidence import Evidence, ProbeEvidence, Setting, TraceEvidence
from algoscope.matching import Agreement, ErrorSimilarity, candidates, measure_of
from algoscope.matching.compare import Positions, confidence_between_0_and_1, positions_at
from algoscope.progress import Parts
from algoscope.reading.probe import check_prompts, fitting_prompts
from algoscope.reading.readers import LinearProbe, reader_of
from algoscope.reading.states import open_model
from algoscope.reading.wrapped import Wrapped
from algoscope.steps import Pair, Prompted, Steps
from algoscope.trace import Prompts, Trace
from algoscope.verdict import StageVerdict, Verdict

RESAMPLES, ENOUGH = 1000, 5  # at least, and so many in each tail of an interval
# Of tasks that name none, by the kind of their answers.
MEASURES: dict[str, Measure] = {"number": ErrorSimilarity(), "chance": Agreement(), "choice": Agreement()}
SHARES = {"algorithms": 0.4, "model": 0.4, "intervals": 0.2}  # of the time that each part takes, roughly


class Instrument:
    """Prompts of a task, and on them every step of the algorithms: what any number of models is compared with.

    The reader is fitted on `fit_on` prompts, and the comparison is made on `prompts` others, at the `positions` "all"
    (but t = 0, where nothing has been seen), "t<dim", "t>=dim", or one position t; instead of how many prompts, one may
    say which. `others` are not compared, but their steps are in the mixtures that tell whether the closest step is all:
    by default whatever else applies to the task. `reader` and `measure` are the task's own, unless others are given.
    """

    def __init__(
        self,
        task: Task,
        algorithms: Sequence[Algorithm] | None = None,
        prompts: int | Prompts = 1000,
        fit_on: int | Prompts = 1000,
        seed: int = 0,
        positions: Positions = "all",
        progress: bool = False,
        others: Sequence[Algorithm] | None = None,
        reader: Reader | None = None,
        measure: Measure | str | None = None,
    ) -> None:
        self.task, self.seed, self.algorithms = task, seed, _checked(task, algorithms)
        names = [algorithm.name for algorithm in self.algorithms]
        if others is None:
            others = task.algorithms()
        self.others = [other for other in others if other.name not in names]
        self.reader = reader or reader_of(task)
        chosen = measure_of(measure or task.measure or MEASURES[task.answer])
        self.sample = _sample(task, prompts, seed)
        fitting = fit_on if isinstance(fit_on, Prompts) else fitting_prompts(task, fit_on, seed)
        self.fitting, self.at = fitting, positions_at(self.sample, positions, task.first)
        self.setting = Setting(fitting, self.sample, self.at, chosen, positions, task.first, seed)
        self.bar = Parts(SHARES, progress)
        self.steps = self._steps(self.algorithms, self.others)

    @property
    def traces(self) -> dict[str, Trace]:
        """What the algorithms compute on the prompts that are compared."""
        return self.steps.traces()

    @property
    def solved(self) -> dict[Pair, Pair]:
        """The steps that have become a closed form, and which."""
        return dict(self.steps.names)

    @cached_property
    def read_from_prompt(self) -> Trace | None:
        """What a linear probe of labels reads from the tokens themselves; numbers are compared with zero instead."""
        if not self.task.labels:
            return None
        tokens = open_model(lambda tokens: {"prompt": tokens}, self.task)
        return LinearProbe().fit(tokens, self.fitting).trace(self.sample)

    def identify(
        self,
        model: nn.Module | Show | Wrapped,
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
        bar = self.bar.again("model") if progress else Parts(SHARES, False)
        evidence = self._evidence(model, stages, norm, confidence, weights, bar)
        trace, steps = evidence.trace, evidence.steps
        each = 1 - (1 - confidence) / len(trace)
        resamples = max(RESAMPLES, math.ceil(2 * ENOUGH / (1 - each)))
        informative = self.setting.measure.informative(trace, self.at).tolist()
        errors, found = trace_errors(trace, self.task, self.at), []
        for i, stage in enumerate(trace.stages):
            kinds = {kind: evidence.matches[kind] for kind in evidence.deciding}
            kept = {kind: tuple(candidates(own, stage, each, resamples)) for kind, own in kinds.items()}
            first = kept[evidence.deciding[0]][:1]
            unsure = StageVerdict(
                stage,
                errors[i],
                kept,
                steps.names,
                steps.equal,
                all(self.setting.measure.passes(end, one.null) for one in first for end in (one.low, one.high)),
                evidence.linearity[i],
                informative[i],
            )
            if not unsure.null:
                closest = steps.pairs.index(unsure.closest)
                unsure = replace(unsure, mixture_gain=evidence.gain(i, closest, each, resamples))
            found.append(unsure)
            bar.done("intervals", 1, len(trace))
        return Verdict(tuple(found), trace, steps.algorithms, steps.errors, evidence.matches, confidence, self.task)

    def _evidence(
        self,
        model: nn.Module | Show | Wrapped,
        stages: Sequence[str] | None,
        norm: Literal["none", "each", "last"],
        confidence: float,
        weights: bool,
        bar: Parts,
    ) -> Evidence:
        states = open_model(model, self.task, stages, norm)
        reader = self.reader.chosen(states)
        if isinstance(reader, LinearProbe) and isinstance(self.setting.measure, ErrorSimilarity):
            done = bar.part("model", self.fitting.batch + self.sample.batch)
            return ProbeEvidence(states, self.steps, self.setting, confidence, weights and self._weighable(), done)
        reading = reader.fit(states, self.fitting)
        memory, steps = reading.memory(), self.steps
        if memory is not None:
            compared, others = ([each.on_memory(memory) for each in part] for part in (self.algorithms, self.others))
            steps = self._steps(compared, others)
        return TraceEvidence(reading, steps, self.setting, confidence, self.read_from_prompt)

    def _weighable(self) -> bool:
        """Whether all algorithms have weights, of one target, that can be compared with those of a model."""
        one = replace(self.sample, x=self.sample.x[:1], y=self.sample.y[:1])
        return one.y.ndim == 2 and all(each.trace(one).weights is not None for each in self.algorithms)

    def _steps(self, compared: Sequence[Algorithm], others: Sequence[Algorithm]) -> Steps:
        prompted, setting = Prompted(self.fitting, self.sample, self.at), self.setting
        done = self.bar.part("algorithms", self.fitting.batch + self.sample.batch)
        by_errors = isinstance(setting.measure, ErrorSimilarity)
        return Steps(self.task, compared, others, prompted, by_errors, done)


def identify(
    model: nn.Module | Show | Wrapped,
    task: Task,
    algorithms: Sequence[Algorithm] | None = None,
    prompts: int | Prompts = 1000,
    fit_on: int | Prompts = 1000,
    seed: int = 0,
    stages: Sequence[str] | None = None,
    norm: Literal["none", "each", "last"] = "none",
    positions: Positions | None = None,
    confidence: float = 0.95,
    weights: bool = True,
    progress: bool = False,
    reader: Reader | None = None,
    measure: Measure | str | None = None,
) -> Verdict:
    """Which algorithm each stage of a model follows: an `Instrument` for the task, applied to one model.

    `model`, `stages` and `norm` are as in `ag.probe`; by default, `algorithms` are all that the task names, and
    `positions` are "all", or the last where a network makes sense of whole prompts alone. `reader` and `measure` say
    how stages become a trace, and how alike two traces are; by default as the task says. Without `weights` those that
    the stages induce are not asked for, which saves many passes of the model.
    """
    positions = positions_for(model, task) if positions is None else positions
    arguments.boolean("weights", weights)
    arguments.boolean("progress", progress)
    open_model(model, task, stages, norm).shown(task.sample(2, seed=0))  # a model that does not fit is told at once
    instrument = Instrument(
        task, algorithms, prompts, fit_on, seed, positions, progress, reader=reader, measure=measure
    )
    return instrument.identify(model, stages, norm, confidence, weights, progress)


def positions_for(model: object, task: Task) -> Positions:
    """All, or the last where a network makes sense of whole prompts alone."""
    return task.positions - 1 if isinstance(model, Network) and model.whole and not task.labels else "all"


def trace_errors(trace: Trace, task: Task, at: Tensor) -> list[float]:
    """Of each stage: the normalized error at the last position, or of labels the share that is wrong at all."""
    if not task.labels:
        return trace.normalized_error()[:, at][:, -1].tolist()
    return (trace.values.to(trace.prompts.y) != trace.prompts.y)[:, :, at].double().flatten(1).mean(1).tolist()


def _checked(task: Task, given: Sequence[Algorithm] | None) -> list[Algorithm]:
    algorithms = task.algorithms() if given is None else given
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
    return algorithms


def _sample(task: Task, prompts: int | Prompts, seed: int) -> Prompts:
    if isinstance(prompts, Prompts):
        check_prompts(prompts, task)
        return prompts
    arguments.integer("prompts", prompts, 2, 2**31)
    return task.sample(prompts, seed)

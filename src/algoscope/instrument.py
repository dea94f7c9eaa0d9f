"""A model and a task in, a verdict out: every algorithm that applies, and the null, against every stage.

All steps of all algorithms are judged together, and all that are statistically tied with the closest are kept. The
closest is not yet the right one: the right one may not be among those compared. So a third question is asked: does a
mixture of all known steps explain more of the stage than the closest step alone? Where it does, the stage is something
else, and the step is only the closest.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor, nn

from algoscope import arguments
from algoscope.contracts import Algorithm, Measure, Network, Reader, Show, Task
from algoscope.evidence import Evidence, ProbeEvidence, Setting, TraceEvidence
from algoscope.experiments import Answered, Experiments, Separated
from algoscope.matching import Agreement, ErrorSimilarity, candidates, measure_of
from algoscope.matching.compare import Positions, confidence_between_0_and_1, positions_at
from algoscope.progress import Parts
from algoscope.reading.probe import check_prompts, fit, fitting_prompts, ignored
from algoscope.reading.readers import LinearProbe, reader_of
from algoscope.reading.states import check_answers_unseen, open_model
from algoscope.reading.wrapped import Wrapped
from algoscope.steps import Pair, Steps
from algoscope.trace import Prompts, Trace
from algoscope.verdict import UNTESTED, StageVerdict, Verdict

RESAMPLES, ENOUGH = 1000, 5  # at least, and so many in each tail of an interval
SEPARATING = 300  # prompts on which algorithms differ more
# Of tasks that name none, by the kind of their answers.
MEASURES: dict[str, Measure] = {"number": ErrorSimilarity(), "chance": Agreement(), "choice": Agreement()}
SHARES = {"algorithms": 0.4, "model": 0.4, "intervals": 0.2}  # of the time that each part takes, roughly


@contextmanager
def clear_failures() -> Iterator[None]:
    """A decomposition that fails says so in one line."""
    try:
        yield
    except torch.linalg.LinAlgError as problem:  # pyright: ignore[reportPrivateImportUsage]
        raise ValueError(f"linear algebra failed on these prompts or states: {str(problem).splitlines()[0]}") from None


class Instrument:
    """Prompts of a task, and on them every step of the algorithms: what any number of models is compared with.

    The reader is fitted on `fit_on` prompts, and the comparison is made on `prompts` others, at the `positions` "all"
    (but t = 0, where nothing has been seen), "t<dim", "t>=dim", or one position t; instead of how many prompts, one may
    say which. `others` are not compared, but their steps are in the mixtures that tell whether the closest step is all:
    by default whatever else applies to the task. `reader` and `measure` are the task's own, unless others are given.
    """

    @clear_failures()
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
        self.span = task.spanning()
        self.steps = self._steps(self.algorithms, self.others)

    @cached_property
    def experiments(self) -> Experiments:
        """The laws of the task on changed prompts, which all models answer."""
        wrong = [each.name for each in self.task.symmetries if each.family != self.task.family]
        if wrong:
            raise ValueError(f"symmetries must be of the family of the task, {self.task.family}; {wrong} are not")
        return Experiments(self.task.symmetries, self.steps, self.seed)

    @cached_property
    def separating(self) -> dict[str, tuple[Steps, Setting]]:
        """Prompts on which the algorithms of the task differ more, by what these are called."""
        found = {}
        for name, task in self.task.separating().items():
            sample = task.sample(SEPARATING, self.seed, purpose="separating")
            steps = Steps(task, self.algorithms, [], [], sample, self.at, ignored)
            found[name] = steps, replace(self.setting, sample=sample)
        return found

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

    @clear_failures()
    def identify(
        self,
        model: nn.Module | Show | Wrapped,
        stages: Sequence[str] | None = None,
        norm: Literal["none", "each", "last"] = "none",
        confidence: float = 0.95,
        weights: bool = True,
        progress: bool = False,
        experiments: bool = True,
    ) -> Verdict:
        """Which algorithm each stage of a model follows. `confidence` holds for all its stages together.

        Without `weights` those that the stages induce are not asked for, and without `experiments` no prompts are
        changed, which saves many passes of the model.
        """
        confidence_between_0_and_1(confidence)
        bar = self.bar.again("model") if progress else Parts(SHARES, False)
        evidence = self._evidence(model, stages, norm, confidence, weights, bar)
        trace, steps = evidence.trace, evidence.steps
        each = 1 - (1 - confidence) / len(trace)
        resamples = max(RESAMPLES, math.ceil(2 * ENOUGH / (1 - each)))
        informative = self.setting.measure.informative(trace, self.at).tolist()
        errors, found = trace_errors(trace, self.task, self.at), []
        asked = experiments and steps is self.steps and bool(self.at[-1])  # most laws are about the last position
        answered = self.experiments.on(evidence) if asked else None
        separated = Separated(evidence, self.separating if answered else {}, confidence)
        for i in range(len(trace)):
            found.append(self._judged(evidence, answered, separated, i, errors[i], informative[i], each, resamples))
            bar.done("intervals", 1, len(trace))
        unsolved = answered.unsolved if answered is not None else ()
        known = steps.algorithms, steps.errors, evidence.matches
        return Verdict(tuple(found), trace, *known, confidence, self.task, unsolved)

    def _judged(
        self,
        evidence: Evidence,
        answered: Answered | None,
        separated: Separated,
        i: int,
        error: float,
        informative: bool,
        confidence: float,
        resamples: int,
    ) -> StageVerdict:
        """One stage: the steps that are tied, without those that experiments exclude or that lose on prompts which
        separate the others; and what the closest of them misses.
        """
        steps, passes, stage = evidence.steps, self.setting.measure.passes, evidence.trace.stages[i]
        matches, tested = next(iter(evidence.matches.values())), UNTESTED
        kept = candidates(matches, stage, confidence, resamples) if informative else []
        if kept and answered is not None:
            pairs = [(name, step) for name, match in matches.items() if (step := match.best[i]) is not None]
            tested = answered.test(i, pairs, confidence, resamples)
            left = {name: match for name, match in matches.items() if name not in tested.excluded}
            if len(left) < len(matches):
                kept = candidates(left, stage, confidence, resamples) if left else []
        apart = separated.left(i, kept, confidence, resamples)
        surviving = set.intersection(*map(set, apart.values())) if apart else set()
        if surviving:
            kept = [each for each in kept if steps.methods[each.name] in surviving]
        clear = all(passes(end, one.null) for one in kept[:1] for end in (one.low, one.high))
        about = {"names": steps.names, "methods": steps.methods, "clear": clear, "linearity": evidence.linearity[i]}
        about |= {"informative": informative, "tested": tested, "separated": apart}
        if not kept:
            return StageVerdict(stage, error, (), equal=steps.equal, **about)
        closest = steps.pairs.index((kept[0].name, kept[0].step))
        misfit = evidence.misfit(i, closest, confidence, resamples)
        return StageVerdict(stage, error, tuple(kept), equal=steps.same_as(closest), misfit=misfit, **about)

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
            check_answers_unseen(states, self.sample, self.at)
            seen = reader.seen(states, self.fitting, self.steps.weights)
            probe = fit(seen, self.fitting, self.steps.weights, done)
            return ProbeEvidence(probe, self.steps, self.setting, confidence, weights and self._weighable(), done)
        reading = reader.fit(states, self.fitting)
        memory, steps = reading.memory(), self.steps
        if memory is not None:
            compared, others = ([each.on_memory(memory) for each in part] for part in (self.algorithms, self.others))
            steps = self._steps(compared, others)
        return TraceEvidence(reading, steps, self.setting, confidence, self.read_from_prompt)

    def _weighable(self) -> bool:
        """Whether some algorithm has weights, of one target, that can be compared with those of a model."""
        one = replace(self.sample, x=self.sample.x[:1], y=self.sample.y[:1])
        return one.y.ndim == 2 and any(each.trace(one).weights is not None for each in self.algorithms)

    def _steps(self, compared: Sequence[Algorithm], others: Sequence[Algorithm]) -> Steps:
        done = self.bar.part("algorithms", self.sample.batch)
        return Steps(self.task, compared, others, self.span, self.sample, self.at, done)


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

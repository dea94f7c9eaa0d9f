"""Experiments: prompts are changed, and a stage should answer as the algorithm would that it follows.

Closeness does not separate what predicts alike, and a law may: conjugate gradients are not additive in the targets, and
Newton's method is. A stage that follows an algorithm has the algorithm's own defect, so the slope of its defect on that
one is 1. Where the slope is 0, the stage does not follow the algorithm, however close it is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from jaxtyping import Float
from torch import Tensor

from algoscope.contracts import Algorithm, Change, Symmetry
from algoscope.evidence import Evidence, Setting
from algoscope.matching import Candidate, candidates
from algoscope.matching.bootstrap import resampling
from algoscope.matching.statistics import Estimate, slope
from algoscope.steps import Pair, Steps, first, run
from algoscope.symmetries import changed
from algoscope.trace import Prompts, Stage

PROMPTS, FEW = 150, 30  # that are changed, and those on which it is found out which algorithms break a law
BROKEN = 0.02  # relative defect from which on a law is broken
PRESENT, ABSENT = (0.8, 1.2), (-0.2, 0.2)  # slopes
WORSE = 4.0  # times the distance from the solution on unchanged prompts: a model that is farther does not solve them
NEAR = 0.01  # normalized squared distance, or share of labels, from the solution that is always near enough


@dataclass(frozen=True)
class Experiment:
    """A law, a step that breaks it, by how much (`own`), and the slope of a stage's defect on that of the step."""

    law: str
    algorithm: str
    step: Stage
    own: float
    slope: Estimate

    def record(self) -> dict[str, Any]:
        """Its numbers, as JSON can hold them."""
        slope = dict(zip(("slope", "low", "high"), self.slope[:3], strict=True))
        return {**asdict(self), **slope, "outcome": self.outcome}

    @property
    def outcome(self) -> Literal["present", "absent", "undecided"]:
        """Whether the stage breaks the law as the step does, not at all, or neither is certain."""
        low, high = self.slope.low, self.slope.high
        if ABSENT[0] < low and high < ABSENT[1]:
            return "absent"
        return "present" if low > ABSENT[1] and high >= PRESENT[0] and low <= PRESENT[1] else "undecided"


@dataclass(frozen=True)
class Tested:
    """What experiments say about one stage; `defects` are its own relative defects, by law."""

    experiments: tuple[Experiment, ...] = ()
    defects: Mapping[str, float] = field(default_factory=dict)

    @property
    def excluded(self) -> tuple[str, ...]:
        """The algorithms whose defect is absent."""
        return tuple(dict.fromkeys(each.algorithm for each in self.experiments if each.outcome == "absent"))

    def contradicts(self, algorithm: str) -> bool:
        """Whether the stage breaks a law, as another algorithm does, that this one keeps; or as much as it does not."""
        own = [each for each in self.experiments if each.algorithm == algorithm]
        broken = {each.law for each in own}
        other = any(each.outcome == "present" and each.law not in broken for each in self.experiments)
        return other or any(each.slope.low > PRESENT[1] or each.slope.high < PRESENT[0] for each in own)


class Trial:
    """One law: changed prompts, and what the algorithms that break the law compute on them.

    `values` are by algorithm, for each of the prompts in turn. Where a task would not draw the prompts, `form` is its
    last closed form, whose answers tell whether a model still solves them.
    """

    def __init__(self, symmetry: Symmetry, steps: Steps, seed: int) -> None:
        self.symmetry, self.steps = symmetry, steps
        forms = steps.closed_forms
        self.form = None if symmetry.in_distribution or not forms else forms[-1]
        self.breakers = self._breakers(changed(symmetry, first(steps.sample, FEW), seed))
        self.change: Change = changed(symmetry, first(steps.sample, PROMPTS), seed)
        ran = {each.name: each for each in (*self.breakers, *([self.form] if self.form else []))}
        self.values = [self._of(list(ran.values()), prompts) for prompts in self.change.prompts]
        self.names = {each.name for each in self.breakers}

    def defect(self, answers: Sequence[Tensor], k: int) -> Float[Tensor, "batch rows"]:
        """Of stage or step k, by prompt; where the law is about all positions, as they are weighed."""
        found = self.change.defect(answers)[k]
        weights = self.steps.weights
        if found.ndim > 1 and found.shape[1] == len(weights) > 1:
            found = found * weights.sqrt().reshape(-1, *[1] * (found.ndim - 2))
        return found.reshape(len(found), -1)

    def solved_by(self, answers: Sequence[Tensor]) -> bool:
        """Whether the last stage answers changed prompts about as well as those of the task, which are first."""
        if self.form is None:
            return True
        here, *there = (self._distance(*each) for each in zip(answers, self.values, strict=True))
        return all(each <= WORSE * here + NEAR for each in there)

    def _distance(self, answers: Tensor, values: Mapping[str, Tensor]) -> float:
        assert self.form is not None
        return distance(answers, values[self.form.name], self.change.labels)

    def _of(self, algorithms: Sequence[Algorithm], prompts: Prompts) -> Mapping[str, Tensor]:
        """What algorithms compute on some prompts; on those of the comparison that is known. They are given the noise
        of the task: a model does not see that it has changed.
        """
        return self.steps.known(algorithms, prompts) or run(algorithms, replace(prompts, noise=self.steps.sample.noise))

    def _breakers(self, few: Change) -> list[Algorithm]:
        values = [self._of(self.steps.compared, prompts) for prompts in few.prompts]
        found = []
        for each in self.steps.compared:
            usable = self.steps.usable[list(self.steps.places(each.name))]
            defects = few.relative_defect([own[each.name] for own in values])
            if bool((defects > BROKEN)[usable].any()):
                found.append(each)
        return found


class Experiments:
    """All laws of a task, on prompts of a comparison: for any number of models."""

    def __init__(self, symmetries: Sequence[Symmetry], steps: Steps, seed: int) -> None:
        self.steps, self.seed = steps, seed
        self.trials = [Trial(symmetry, steps, seed) for symmetry in symmetries]

    def on(self, evidence: Evidence) -> "Answered":
        return Answered(self, evidence)


class Answered:
    """What the stages of one model answer to the changed prompts. `unsolved` are laws whose prompts it cannot solve."""

    def __init__(self, experiments: Experiments, evidence: Evidence) -> None:
        self.steps, self.seed, self.evidence = experiments.steps, experiments.seed, evidence
        shown = [(trial, self._answers(trial)) for trial in experiments.trials]
        self.trials = [(trial, answers) for trial, answers in shown if answers and trial.solved_by(answers)]
        solved = {trial for trial, _ in self.trials}
        self.unsolved = tuple(trial.symmetry.name for trial in experiments.trials if trial not in solved)

    def _answers(self, trial: Trial) -> list[Tensor]:
        """Nothing where states are not finite."""
        try:
            return [self.evidence.answers(each) for each in trial.change.prompts]
        except ValueError:
            return []

    def test(self, stage: int, closest: Sequence[Pair], confidence: float, resamples: int) -> Tested:
        """One stage against some steps, by every law that a step breaks."""
        found, defects = list[Experiment](), dict[str, float]()
        for trial, answers in self.trials:
            defects[trial.symmetry.name] = float(trial.change.relative_defect(answers)[stage])
            own, pairs = trial.defect(answers, stage), [pair for pair in closest if pair[0] in trial.names]
            tried = (self._against(trial, stage, pair, own, confidence, resamples) for pair in pairs)
            found += [each for each in tried if each is not None]
        return Tested(tuple(found), defects)

    def _against(
        self, trial: Trial, stage: int, pair: Pair, own: Tensor, confidence: float, resamples: int
    ) -> Experiment | None:
        (algorithm, step), place = pair, self.steps.pairs.index(pair)
        k = place - self.steps.places(algorithm)[0]
        plain = [values[algorithm] for values in trial.values]
        size = float(trial.change.relative_defect(plain)[k])
        if not size > BROKEN:
            return None
        brought = [values.clone() for values in plain]  # a law may depend on which step it is
        for values in brought:
            values[k : k + 1] = self.evidence.brought(stage, values[k : k + 1], place)
        draws = resampling(len(own), resamples, self.seed)
        found = slope(own, trial.defect(brought, k), draws, confidence, share=trial.change.labels)
        return Experiment(trial.symmetry.name, algorithm, step, size, found)


class Separated:
    """The same model on prompts of other tasks, on which algorithms differ more: which of those tied are closest there?

    Prompts that the model does not solve are left out.
    """

    def __init__(self, evidence: Evidence, prompts: Mapping[str, tuple[Steps, Setting]], confidence: float) -> None:
        self.own, self.prompts, self.confidence = evidence, prompts, confidence

    @cached_property
    def evidence(self) -> dict[str, Evidence]:
        found = {name: self.own.again(*given, self.confidence) for name, given in self.prompts.items()}
        return {name: each for name, each in found.items() if _solves(each, self.own)}

    def left(
        self, stage: int, tied: Sequence[Candidate], confidence: float, resamples: int
    ) -> dict[str, tuple[str, ...]]:
        """Of the methods of some steps, those that are closest, for each kind of prompts; nothing if there is one."""
        methods = {self.own.steps.methods[each.name] for each in tied}
        if len(methods) < 2:
            return {}
        found = {}
        for name, evidence in self.evidence.items():
            label, of = evidence.trace.stages[stage], evidence.steps.methods
            matches = {own: match for own, match in next(iter(evidence.matches.values())).items() if of[own] in methods}
            closest = candidates(matches, label, confidence, resamples)
            found[name] = tuple(dict.fromkeys(of[each.name] for each in closest))
        return {name: left for name, left in found.items() if left}


def _solves(there: Evidence, here: Evidence) -> bool:
    """Whether the last stage answers the prompts there about as well as those here."""
    forms = here.steps.closed_forms
    if not forms:
        return True
    far = []
    for each in (there, here):
        prompts = first(each.setting.sample, PROMPTS)
        right = (each.steps.known([forms[-1]], prompts) or run([forms[-1]], prompts))[forms[-1].name]
        far.append(distance(each.trace.values[:, : prompts.batch], right, each.steps.task.labels))
    return far[0] <= WORSE * far[1] + NEAR


def distance(answers: Tensor, right: Tensor, labels: bool) -> float:
    """Of the last stage from the solution, at the last position: normalized, or the share of labels that differ."""
    found, wanted = (each[-1][:, -1].double() for each in (answers, right))
    if labels:
        return float((found != wanted).double().mean())
    return float((found - wanted).square().mean() / wanted.square().mean().clamp(min=1e-300))

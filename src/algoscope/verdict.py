"""What the evidence says about a model, stage by stage and in words, and never more than that."""

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from algoscope import arguments, runs, tables
from algoscope.contracts import Task
from algoscope.matching import Candidate, Match, RateLaw, rate_law
from algoscope.trace import Stage, Trace

MISSED = 0.05  # share of what a step misses of a stage that other steps may explain, and it is still that step
SPOILED = -1.0  # a mixture that may be twice as far off as the step itself was fitted to too little, and tells nothing
SHOWN = 4  # steps of one algorithm in words
Pair = tuple[str, Stage]  # an algorithm and one of its steps


@dataclass(frozen=True)
class StageVerdict:
    """What one stage may be.

    `candidates` holds, for each kind of evidence that decides, the steps that are statistically tied with the closest,
    closest first; none where nothing beats the null. `names` are the steps that have become a closed form, and which;
    `equal` are steps that are the same as another. `mixture_gain` is how much of what the closest step misses of the
    stage is explained by a mixture of all the steps, with its 95% CI: where it is zero, nothing that is known adds to
    that step. `linearity` tells how linear its predictions are in the query (1: quite). A stage that is not
    `informative` cannot tell algorithms apart, as a look-up that is nearly always right.
    """

    stage: Stage
    error: float  # normalized, at the last position; of labels, the share that is wrong
    candidates: Mapping[str, tuple[Candidate, ...]]
    names: Mapping[Pair, Pair]
    equal: Mapping[Pair, Pair] = field(default_factory=dict)
    clear: bool = True  # whether the whole interval of the closest step passes the bar of the measure
    linearity: float = math.nan
    informative: bool = True
    mixture_gain: tuple[float, float, float] = (math.nan, math.nan, math.nan)

    @property
    def null(self) -> bool:
        """Nothing was found here."""
        return not self.informative or not all(self.candidates.values())

    @property
    def agreed(self) -> tuple[Pair, ...]:
        """The steps that all kinds of evidence keep, as (algorithm, step), closest by the first kind first.

        A method that has converged is named by what it has converged to, and of equal steps the first is named.
        """
        first, *others = (
            dict.fromkeys(self._called((found.name, found.step)) for found in kept) for kept in self.candidates.values()
        )  # dictionaries keep the order
        return tuple(pair for pair in first if all(pair in other for other in others)) if self.informative else ()

    def _called(self, pair: Pair) -> Pair:
        pair = self.names.get(pair, pair)
        return self.equal.get(pair, pair)

    @property
    def closest(self) -> Pair:
        """The closest of the steps that are agreed on, or of all by the first kind of evidence.

        Where it goes by the name of a step that is not tied with it, it is that itself, and not what it is called.
        """
        first = [(found.name, found.step) for found in next(iter(self.candidates.values()))]
        if not self.agreed or self.agreed[0] in first:
            return (*self.agreed, *first)[0]
        return next(pair for pair in first if self._called(pair) == self.agreed[0])

    @property
    def certain(self) -> bool:
        """It is one step of one algorithm: no other is as close, it is close enough, and nothing known adds to it."""
        return len(self.agreed) == 1 and self.exact and self.clear

    @property
    def exact(self) -> bool:
        """Nothing that is known adds to the closest step, and the evidence suffices to say so."""
        return not self.null and self.mixture_gain[2] <= MISSED and self.mixture_gain[1] >= SPOILED

    @property
    def words(self) -> str:
        """What it may be."""
        if not self.informative:
            return "right too often to tell algorithms apart"
        if self.null:
            return "none: no algorithm beats the null"
        if not self.agreed:
            different = [f"{kind} says {kept[0].name} {kept[0].step}" for kind, kept in self.candidates.items()]
            return f"undecided: {', '.join(different)}"
        names = dict.fromkeys(name for name, _ in self.agreed)
        words = "; ".join(f"{name} {some([step for own, step in self.agreed if own == name])}" for name in names)
        same = [f"{name} {step}" for name, step in self.spellings if len(self.agreed) == 1][1:]
        return " = ".join([words, *same])

    @property
    def spellings(self) -> tuple[Pair, ...]:
        """The steps that are agreed on, and those that are equal to them."""
        return (*self.agreed, *(pair for pair, first in self.equal.items() if first in self.agreed))

    def steps(self, name: str) -> list[Stage]:
        """The steps of an algorithm that this stage may be."""
        return [step for algorithm, step in self.spellings if algorithm == name]

    def row(self) -> dict[str, Any]:
        """In a table: its numbers, and None where there is none."""
        first = next(iter(self.candidates.values()), ())
        name, step = self.closest if first else (None, None)
        closest = next((found for found in first if (found.name, found.step) == (name, step)), None)
        gain, low, high = (number if math.isfinite(number) else None for number in self.mixture_gain)
        return {
            "stage": self.stage,
            "error": self.error,
            "algorithm": name,
            "step": step,
            "certain": self.certain,
            "similarity": closest and closest.similarity,
            "low": closest and closest.low,
            "high": closest and closest.high,
            "mixture_gain": gain,
            "mixture_gain_low": low,
            "mixture_gain_high": high,
            "tied": self.words,
        }

    def record(self) -> dict[str, Any]:
        return {
            "stage": str(self.stage),
            "error": self.error,
            "words": self.words,
            "null": self.null,
            "certain": self.certain,
            "exact": self.exact,
            "linearity": self.linearity if math.isfinite(self.linearity) else None,
            "mixture_gain": [number if math.isfinite(number) else None for number in self.mixture_gain],
            "agreed": [list(pair) for pair in self.agreed],
            "candidates": {kind: [asdict(found) for found in kept] for kind, kept in self.candidates.items()},
        }


@dataclass(frozen=True, eq=False)
class Verdict:
    """The evidence, and what it says.

    `trace` is what the stages predict; `algorithms` are those that they were compared with, by name, and their steps;
    `errors` are the normalized errors of these by step and position, where answers are numbers. `matches` are by
    measure and by algorithm; the first measure orders candidates, and rates are fitted by it.
    """

    stages: tuple[StageVerdict, ...]
    trace: Trace
    algorithms: Mapping[str, tuple[Stage, ...]]
    errors: Mapping[str, Tensor]
    matches: Mapping[str, Mapping[str, Match]]
    confidence: float
    task: Task

    @property
    def measure(self) -> str:
        """The measure that orders candidates."""
        return next(iter(self.matches))

    @cached_property
    def laws(self) -> dict[str, RateLaw]:
        """How the matching step of each algorithm grows, by the first measure."""
        found = {} if self.task.labels else self.matches[self.measure]  # a law takes similarities that change smoothly
        return {name: rate_law(match) for name, match in found.items() if len(match.steps) > 2}

    def __repr__(self) -> str:
        return f"Verdict({self.text})"

    def record(self) -> dict[str, Any]:
        """All numbers, as JSON can hold them: what a page is made of."""
        prompts, errors = self.trace.prompts, dict(self.errors)
        if not self.task.labels:
            errors = {self.trace.name: self.trace.normalized_error()} | errors
        stages = {self.trace.name: self.trace.stages, **self.algorithms}
        scales = {name: next(iter(found.values())).scale for name, found in self.matches.items() if found}
        return {
            "text": self.text,
            "controls": runs.controls(),
            "provenance": runs.provenance(prompts.x.device),
            "confidence": self.confidence,
            "prompts": prompts.batch,
            "measure": self.measure,
            "family": self.task.family,
            "labels": self.task.labels,
            "larger_is_closer": {name: scale.larger_is_closer for name, scale in scales.items()},
            "stages": [found.record() for found in self.stages],
            "errors_by_position": {
                name: {str(stage): row for stage, row in zip(stages[name], short(rows), strict=True)}
                for name, rows in errors.items()
            },
            "matches": {
                measure: {name: matched(match) for name, match in found.items()}
                for measure, found in self.matches.items()
            },
            "laws": {name: plain_law(law) for name, law in self.laws.items()},
        }

    def table(self) -> list[dict[str, Any]]:
        """A row a stage: its error, the closest step, how similar its errors are, and what a mixture would add."""
        return [found.row() for found in self.stages]

    def to_frame(self) -> Any:
        """The same as a pandas DataFrame."""
        try:
            import pandas  # only where a user has it
        except ImportError:
            raise ValueError("to_frame needs pandas: pip install pandas, or use table()") from None
        return pandas.DataFrame(self.table())

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self.text)}</p>{tables.to_html(self.table())}"

    def save(
        self, path: Path | str, figure: str = "overview", title: str = "A model", command: str = "verdict.save(…)"
    ) -> Path:
        """Writes what the suffix says: .html the page, .json all numbers, .csv the table; .png, .svg and .pdf one
        `figure` of the page, by default the overview. The page shows a `title` and the `command` behind it.
        """
        arguments.path("path", path)
        from algoscope.report import saving  # only where it is asked for: it loads the library of charts

        return saving.save(self, Path(path), figure, title, command)

    @property
    def named(self) -> tuple[str, ...]:
        """The algorithms that are among the closest at some stage, most often first."""
        return tuple(sorted((name for name in self.algorithms if self.count(name)), key=lambda name: -self.count(name)))

    @cached_property
    def text(self) -> str:
        """One paragraph; its first sentence says it in short."""
        from algoscope.wording import in_words  # which needs the classes of this file

        return in_words(self)

    def count(self, name: str) -> int:
        """The stages that may be a step of an algorithm."""
        return sum(bool(found.steps(name)) for found in self.stages)


def some(steps: Sequence[Stage]) -> str:
    return ", ".join(str(step) for step in steps[:SHOWN]) + (" …" if len(steps) > SHOWN else "")


def short(numbers: Tensor | float) -> Any:
    """Nested lists of numbers of six digits; None where there is none."""
    if isinstance(numbers, Tensor) and numbers.ndim:
        return [short(part) for part in numbers]
    value = float(numbers)
    return float(f"{value:.6g}") if math.isfinite(value) else None


def matched(match: Match) -> dict[str, Any]:
    numbers = {name: short(getattr(match, name)) for name in ("similarity", "low", "high", "null")}
    labels = {name: getattr(match, name) for name in ("steps", "best", "ties", "none")}
    return {**numbers, **labels}


def plain_law(law: RateLaw) -> dict[str, Any]:
    found = {name: value for name, value in asdict(law).items() if name != "lost"}
    return {name: None if isinstance(v, float) and not math.isfinite(v) else v for name, v in found.items()}

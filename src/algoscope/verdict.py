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
from algoscope.experiments import Tested
from algoscope.matching import Candidate, Match, Misfit, RateLaw, rate_law
from algoscope.matching.statistics import Estimate
from algoscope.trace import Stage, Trace

SHOWN = 4  # steps of one algorithm in words
UNKNOWN, UNTESTED = Misfit(), Tested()
Pair = tuple[str, Stage]  # an algorithm and one of its steps


@dataclass(frozen=True)
class StageVerdict:
    """What one stage may be.

    `candidates` are the steps that are statistically tied with the closest, closest first; none where nothing beats the
    null. `names` are the steps that have become a closed form, and which; `equal` are steps that are the same as
    another. `methods` are those of the algorithms, by name: starts and rates of one method are one family. `tested` is
    what experiments say, whose `excluded` algorithms are no candidates; `separated` are the methods that are left of
    those tied, on prompts that separate them; and `misfit` is what the closest step misses of
    the stage. `linearity` tells how linear its predictions are in the query (1: quite). A stage that is not
    `informative` cannot tell algorithms apart, as a look-up that is nearly always right or the same for all queries.
    """

    stage: Stage
    error: float  # normalized, at the last position; of labels, the share that is wrong
    candidates: tuple[Candidate, ...]
    names: Mapping[Pair, Pair]
    methods: Mapping[str, str]
    equal: Mapping[Pair, Pair] = field(default_factory=dict)
    clear: bool = True  # whether the whole interval of the closest step passes the bar of the measure
    linearity: float = math.nan
    informative: bool = True
    misfit: Misfit = UNKNOWN
    tested: Tested = UNTESTED
    separated: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def null(self) -> bool:
        """Nothing was found here."""
        return not self.informative or not self.candidates

    @property
    def agreed(self) -> tuple[Pair, ...]:
        """The steps that it may be, as (algorithm, step), closest first.

        A method that has converged is named by what it has converged to, and of equal steps the first is named. Where
        what the closest step misses is noise, and far less than what any other step would miss, it is alone. Where it
        is not even a step of its method, other methods that are behind by very little are named as well.
        """
        if self.null:
            return ()
        if self.misfit.noise:
            return (self._called((self.candidates[0].name, self.candidates[0].step)),)
        settled = self.misfit.within_method
        own = self.methods[self.candidates[0].name]
        named = (each for each in self.candidates if not each.behind or not (settled or self.methods[each.name] == own))
        return tuple(dict.fromkeys(self._called((each.name, each.step)) for each in named))

    def _called(self, pair: Pair) -> Pair:
        pair = self.names.get(pair, pair)
        return self.equal.get(pair, pair)

    @property
    def certain(self) -> bool:
        """It is one step of one algorithm: no other is as close, it is close enough, what it misses is noise, and no
        experiment contradicts it.
        """
        return len(self.agreed) == 1 and self.clear and self.misfit.noise and self.lawful

    @property
    def family(self) -> str | None:
        """The method that it surely is a step of, at a rate or from a start which may not be on the list."""
        found = {self.methods.get(name, name) for name, _ in self.agreed}
        sure = self.clear and self.misfit.within_method and self.lawful
        return found.pop() if len(found) == 1 and sure else None

    @property
    def lawful(self) -> bool:
        """It breaks no law, as another algorithm does, that the closest one keeps."""
        return not self.candidates or not self.tested.contradicts(self.candidates[0].name)

    @property
    def words(self) -> str:
        """What it may be."""
        if not self.informative:
            return "right too often, or the same for every query: it cannot tell algorithms apart"
        if self.null:
            return "none: no algorithm beats the null"
        names = dict.fromkeys(name for name, _ in self.agreed)
        words = "; ".join(f"{name} {some([step for own, step in self.agreed if own == name])}" for name in names)
        same = [f"{name} {step}" for name, step in self.spellings if len(self.agreed) == 1][1:]
        return " = ".join([words, *same])

    @property
    def spellings(self) -> tuple[Pair, ...]:
        """The steps that are agreed on, and those that are equal to them."""
        return (*self.agreed, *(pair for pair, first in self.equal.items() if first in self.agreed))

    @property
    def spelled_methods(self) -> set[str]:
        """The methods of the steps that are agreed on, and of those that are equal to them."""
        return {self.methods.get(name, name) for name, _ in self.spellings}

    def excludes(self, method: str) -> bool:
        """Whether experiments exclude all algorithms of a method."""
        return {name for name, own in self.methods.items() if own == method} <= set(self.tested.excluded)

    def steps(self, name: str) -> list[Stage]:
        """The steps of an algorithm that this stage may be."""
        return [step for algorithm, step in self.spellings if algorithm == name]

    def row(self) -> dict[str, Any]:
        """In a table: its numbers, and None where there is none."""
        closest = self.candidates[0] if self.candidates else None
        return {
            "stage": self.stage,
            "error": self.error,
            "algorithm": closest and closest.name,
            "step": closest and closest.step,
            "certain": self.certain,
            "family": self.family,
            "similarity": closest and closest.similarity,
            "low": closest and closest.low,
            "high": closest and closest.high,
            **{
                f"{name}{end}": value
                for name, estimate in self.estimates.items()
                for end, value in zip(("", "_low", "_high"), finite(estimate), strict=True)
            },
            "tied": self.words,
        }

    @property
    def estimates(self) -> dict[str, Estimate]:
        """Of the misfit, by name."""
        return {
            "mixture_gain": self.misfit.gain,
            "systematic_misfit": self.misfit.systematic,
            "step_spread": self.misfit.spread,
        }

    def record(self, measure: str) -> dict[str, Any]:
        """Its numbers; `measure` is what similarities are."""
        return {
            "stage": str(self.stage),
            "error": self.error,
            "words": self.words,
            "null": self.null,
            "certain": self.certain,
            "family": self.family,
            "excluded": list(self.tested.excluded),
            "experiments": [each.record() for each in self.tested.experiments],
            "defects": dict(self.tested.defects),
            "separated": {name: list(left) for name, left in self.separated.items()},
            "linearity": self.linearity if math.isfinite(self.linearity) else None,
            **{name: finite(estimate) for name, estimate in self.estimates.items()},
            "agreed": [list(pair) for pair in self.agreed],
            "candidates": {measure: [asdict(found) for found in self.candidates]},
        }


@dataclass(frozen=True, eq=False)
class Verdict:
    """The evidence, and what it says.

    `trace` is what the stages predict; `algorithms` are those that they were compared with, by name, and their steps;
    `errors` are the normalized errors of these by step and position, where answers are numbers. `matches` are by
    measure and by algorithm; the first measure orders candidates, and rates are fitted by it. `unsolved` are laws about
    prompts that the model cannot solve, which therefore were not tested.
    """

    stages: tuple[StageVerdict, ...]
    trace: Trace
    algorithms: Mapping[str, tuple[Stage, ...]]
    errors: Mapping[str, Tensor]
    matches: Mapping[str, Mapping[str, Match]]
    confidence: float
    task: Task
    unsolved: tuple[str, ...] = ()

    @property
    def measure(self) -> str:
        """The measure that orders candidates."""
        return next(iter(self.matches))

    @property
    def laws(self) -> dict[str, RateLaw]:
        """How the matching step grows, by the first measure: for algorithms that are named, and one of each method."""
        return {name: self.law(name) for name in self.algorithms_with_laws}

    @cached_property
    def algorithms_with_laws(self) -> tuple[str, ...]:
        """The algorithms of which there is a law."""
        found = {} if self.task.labels else self.matches[self.measure]  # a law takes similarities that change smoothly
        numbered = [name for name, match in found.items() if sum(isinstance(step, int) for step in match.steps) > 2]
        often = [name for name in self.named if name in numbered]
        one = {self.method_of(name): name for name in reversed([*often, *numbered])}
        return tuple(dict.fromkeys([*often, *one.values()]))

    def law_of(self, method: str) -> tuple[str, RateLaw | None]:
        """The algorithm of a method which is named most often, and its law if it has one."""
        name = next((name for name in self.algorithms_with_laws if self.method_of(name) == method), "")
        return name, self.law(name) if name else None

    def law(self, name: str) -> RateLaw:
        """The same of one algorithm."""
        if name not in self._laws:
            self._laws[name] = rate_law(self.matches[self.measure][name])
        return self._laws[name]

    @cached_property
    def _laws(self) -> dict[str, RateLaw]:
        return {}

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
            "methods": dict(self.stages[0].methods),
            "unsolved": list(self.unsolved),
            "labels": self.task.labels,
            "larger_is_closer": {name: scale.larger_is_closer for name, scale in scales.items()},
            "stages": [found.record(self.measure) for found in self.stages],
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
    def families(self) -> Mapping[str, str]:
        """The method of each algorithm."""
        return self.stages[0].methods

    def method_of(self, name: str) -> str:
        """What people call an algorithm, whatever its rate or its start."""
        return self.families.get(name, name)

    @property
    def known_methods(self) -> tuple[str, ...]:
        """Those of the algorithms that were compared."""
        return tuple(dict.fromkeys(self.method_of(name) for name in self.algorithms))

    @property
    def methods(self) -> tuple[str, ...]:
        """Those that some stage may be, most often first. Steps of labels are often those of several methods:
        the method comes first that needs the fewest steps: reaching 1, 2 and 4 nodes far is squaring, not 4 hops.
        """
        first = self._fewest_steps if self.task.labels else lambda _: 0
        found = filter(self.count, self.known_methods)
        return tuple(sorted(found, key=lambda each: (-self.count(each), first(each))))

    def _fewest_steps(self, method: str) -> int:
        """Over all stages that may be one of the method, by their numbers."""
        steps = [[step for name, step in found.spellings if self.method_of(name) == method and isinstance(step, int)]
                 for found in self.stages]  # fmt: skip
        return sum(min(own) for own in steps if own)

    def named_at(self, found: StageVerdict) -> dict[str, list[Pair]]:
        """The steps that a stage may be, by method, the closest first; of equal steps, one of the commonest method."""
        places, named = {method: k for k, method in enumerate(self.methods)}, dict[str, list[Pair]]()
        for pair in found.agreed:
            equal = [pair, *(own for own, first in found.equal.items() if first == pair)]
            best = min(equal, key=lambda each: places[self.method_of(each[0])])
            named.setdefault(self.method_of(best[0]), []).append(best)
        return named

    @property
    def named(self) -> tuple[str, ...]:
        """The algorithms that are among the closest at some stage, most often first."""
        stages = [{name for pairs in self.named_at(found).values() for name, _ in pairs} for found in self.stages]
        counts = {name: sum(name in stage for stage in stages) for name in self.algorithms}
        return tuple(sorted((name for name, count in counts.items() if count), key=lambda name: -counts[name]))

    @cached_property
    def text(self) -> str:
        """One paragraph; its first sentence says it in short."""
        from algoscope.wording import in_words  # which needs the classes of this file

        return in_words(self)

    def count(self, method: str) -> int:
        """The stages that may be a step of a method."""
        return sum(method in found.spelled_methods for found in self.stages)


def str_last(step: Stage) -> tuple[bool, int, str]:
    """Orders steps by their numbers, and names behind them."""
    return (False, step, "") if isinstance(step, int) else (True, 0, step)


def some(steps: Sequence[Stage]) -> str:
    return ", ".join(str(step) for step in steps[:SHOWN]) + (" …" if len(steps) > SHOWN else "")


def finite(estimate: Estimate) -> list[float | None]:
    """A number and its interval; None where there is none."""
    return [number if math.isfinite(number) else None for number in estimate[:3]]


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

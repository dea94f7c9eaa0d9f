"""What the evidence says about a model, stage by stage and in words, and never more than that."""

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from algoscope import arguments, files, runs, tables
from algoscope.matching import Candidate, Match, RateLaw, rate_law
from algoscope.trace import Stage, Trace

MISSED = 0.05  # share of what a step misses of a stage that other steps may explain, and it is still that step
SPOILED = -1.0  # a mixture that may be twice as far off as the step itself was fitted to too little, and tells nothing
SHOWN = 4  # steps of one algorithm in words
SUFFIXES = (".html", ".json", ".csv", ".png", ".svg", ".pdf")  # of files that a verdict is saved to


@dataclass(frozen=True)
class StageVerdict:
    """What one stage may be.

    `errors` and `decodability` hold the steps that cannot be told from the closest by each kind of evidence, closest
    first; none where nothing beats the null. `beyond` is how much of what the closest step misses of the stage is
    explained by a mixture of all the steps, with its interval: where it is zero, nothing that is known adds to that
    step. `linearity` tells how linear its predictions are in the query (1: quite). `solved`
    are the steps that have become a closed form, and which.
    """

    stage: Stage
    error: float  # normalized, at the last position
    errors: tuple[Candidate, ...]
    decodability: tuple[Candidate, ...]
    solved: Mapping[tuple[str, Stage], tuple[str, Stage]]
    linearity: float = math.nan
    beyond: tuple[float, float, float] = (math.nan, math.nan, math.nan)

    @property
    def null(self) -> bool:
        """Nothing was found here."""
        return not self.errors or not self.decodability

    @property
    def agreed(self) -> tuple[tuple[str, Stage], ...]:
        """The steps that both kinds of evidence keep, as (algorithm, step), closest by its errors first.

        A method that has converged is named by what it has converged to.
        """
        kept = [[(found.name, found.step) for found in kind] for kind in (self.errors, self.decodability)]
        errors, other = (dict.fromkeys(self.solved.get(pair, pair) for pair in kind) for kind in kept)
        return tuple(pair for pair in errors if pair in other)

    @property
    def certain(self) -> bool:
        """It is one step of one algorithm: no other is as close, and nothing that is known adds to it."""
        return len(self.agreed) == 1 and self.exact

    @property
    def exact(self) -> bool:
        """Nothing that is known adds to the closest step, and the evidence suffices to say so."""
        return not self.null and self.beyond[2] <= MISSED and self.beyond[1] >= SPOILED

    @property
    def words(self) -> str:
        """What it may be."""
        if self.null:
            return "nothing: no algorithm beats the null"
        if not self.agreed:
            errors, decoded = (f"{kind[0].name} {kind[0].step}" for kind in (self.errors, self.decodability))
            return f"undecided: errors say {errors}, decodability says {decoded}"
        names = dict.fromkeys(name for name, _ in self.agreed)
        return "; ".join(f"{name} {some(self.steps(name))}" for name in names)

    def steps(self, name: str) -> list[Stage]:
        """The steps of an algorithm that this stage may be."""
        return [step for algorithm, step in self.agreed if algorithm == name]

    def row(self) -> dict[str, Any]:
        """In a table: its numbers, and None where there is none."""
        name, step = (*self.agreed, *((found.name, found.step) for found in self.errors), (None, None))[0]
        closest = next((found for found in self.errors if (found.name, found.step) == (name, step)), None)
        gain, low, high = (number if math.isfinite(number) else None for number in self.beyond)
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
        kinds = {"errors": self.errors, "decodability": self.decodability}
        return {
            "stage": str(self.stage),
            "error": self.error,
            "words": self.words,
            "null": self.null,
            "certain": self.certain,
            "exact": self.exact,
            "linearity": self.linearity if math.isfinite(self.linearity) else None,
            "beyond": [number if math.isfinite(number) else None for number in self.beyond],
            "agreed": [list(pair) for pair in self.agreed],
            **{kind: [asdict(found) for found in kept] for kind, kept in kinds.items()},
        }


@dataclass(frozen=True, eq=False)
class Verdict:
    """The evidence, and what it says.

    `trace` is what the stages predict and `traces` what the algorithms do, unscaled, on the same prompts. `matches` are
    by measure ("errors", "distance", "decodability", "weights") and by algorithm.
    """

    stages: tuple[StageVerdict, ...]
    trace: Trace
    traces: Mapping[str, Trace]
    matches: Mapping[str, Mapping[str, Match]]
    confidence: float

    @cached_property
    def laws(self) -> dict[str, RateLaw]:
        """How the matching step of each algorithm grows, by its errors."""
        return {name: rate_law(match) for name, match in self.matches["errors"].items() if len(match.steps) > 2}

    def __repr__(self) -> str:
        return f"Verdict({self.text})"

    def record(self) -> dict[str, Any]:
        """All numbers, as JSON can hold them: what a page is made of."""
        prompts = self.trace.prompts
        return {
            "text": self.text,
            "controls": runs.controls(),
            "provenance": runs.provenance(prompts.x.device),
            "confidence": self.confidence,
            "prompts": prompts.batch,
            "dim": prompts.dim,
            "examples": prompts.positions - 1,
            "stages": [found.record() for found in self.stages],
            "errors_by_position": {
                trace.name: {str(stage): row for stage, row in zip(trace.stages, short(rows), strict=True)}
                for trace, rows in ((t, t.normalized_error()) for t in (self.trace, *self.traces.values()))
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
        self, path: Path | str, figure: str = "map-errors", title: str = "A model", command: str = "verdict.save(…)"
    ) -> Path:
        """Writes what the suffix says: .html the page, .json all numbers, .csv the table; .png, .svg and .pdf one
        `figure` of the page, by default the map of similarities. The page shows a `title` and the `command` behind it.
        """
        arguments.path("path", path)
        for name, text in (("title", title), ("command", command)):
            if not isinstance(text, str):
                raise ValueError(f"{name} must be a string, got {arguments.shown(text)}")
        path = Path(path)
        if path.suffix not in SUFFIXES:
            raise ValueError(f"path must end in one of {', '.join(SUFFIXES)}, got {str(path)!r}")
        if not path.parent.is_dir():
            raise ValueError(f"path must be in a folder that is there, got {str(path)!r}")
        if path.suffix == ".csv":
            files.write_text(path, tables.to_csv(self.table()))
            return path
        record = {**self.record(), "title": title, "command": command}
        if path.suffix == ".json":
            files.write_json(path, record)
        elif path.suffix == ".html":
            from algoscope.report.page import page

            files.write_text(path, page(record))
        else:
            from algoscope.report import charts, figures

            made = figures.figures(record, figures.leading(record))
            arguments.choice("figure", figure, made)
            charts.save(made[figure], path.with_suffix(""), (path.suffix.removeprefix("."),))
        return path

    @property
    def named(self) -> tuple[str, ...]:
        """The algorithms that are among the closest at some stage, most often first."""
        return tuple(sorted((name for name in self.traces if self._count(name)), key=lambda name: -self._count(name)))

    @property
    def text(self) -> str:
        """One paragraph."""
        held = [found for found in self.stages if not found.null]
        if not held:
            return (
                f"No stage holds a prediction that beats the null: none of the {len(self.traces)} algorithms was found."
            )
        sentences = [self._empty(), *self._closest(held), self._rates(), self._rest(held)]
        return " ".join(sentence for sentence in sentences if sentence)

    def _empty(self) -> str:
        empty = [found.stage for found in self.stages if found.null]
        return f"Nothing was found at {spans(empty, self.trace.stages)}." if empty else ""

    def _closest(self, held: Sequence[StageVerdict]) -> list[str]:
        """One sentence for all stages that are told the same, and whether that is all there is."""
        groups: dict[tuple[tuple[str, ...], bool], list[StageVerdict]] = {}
        for found in held:
            names = tuple(sorted({name for name, _ in found.agreed}, key=self.named.index))
            groups.setdefault((names, found.certain), []).append(found)
        sentences = [self._say(names, certain, stages) for (names, certain), stages in groups.items()]
        more = [found for found in held if not found.exact and found.beyond[1] > 0]
        if more:
            missed = [found.beyond[0] for found in more]
            share = f"{min(missed):.0%} to {max(missed):.0%}" if len(missed) > 1 else f"{missed[0]:.0%}"
            where = spans([found.stage for found in more], self.trace.stages)
            sentences.append(
                f"That is not all of it: of what the closest step misses of {where}, a mixture of known steps explains "
                f"{share}."
            )
        unclear = [found.stage for found in held if not found.exact and not found.beyond[1] > 0]
        if unclear:
            sentences.append(f"Whether that is all of {spans(unclear, self.trace.stages)}, these prompts cannot tell.")
        return sentences

    def _say(self, names: tuple[str, ...], certain: bool, stages: Sequence[StageVerdict]) -> str:
        where, many = spans([found.stage for found in stages], self.trace.stages), len(stages) > 1
        if not names:
            return f"At {where} errors and decodability name different steps."
        name, *others = names
        if others:
            return f"At {where}, {', '.join([name, *others[:-1]])} and {others[-1]} cannot be told apart."
        verb = ("compute" if many else "computes") if certain else ("are closest to" if many else "is closest to")
        steps = ", ".join("/".join(str(step) for step in in_order(found.steps(name))) for found in stages)
        which = f", step{'s' if many else ''} {steps}" if len(self.traces[name]) > 1 else ""
        return f"{where[0].upper()}{where[1:]} {verb} {name}{which}."

    def _rates(self) -> str:
        """How the matching steps grow."""
        told = []
        often = [name for name in self.named if 2 * self._count(name) >= self._count(self.named[0])]
        for name, law in ((name, law) for name, law in self.laws.items() if name in often):
            times = f"{law.growth:.2f} ({self.confidence:.0%} {law.low:.2f} to {law.high:.2f})"
            where = spans(law.used, self.trace.stages)
            if law.law == "linear" and law.low > 0:
                told.append(f"{name} would advance {times} steps a stage over {where}")
            elif law.law == "exponential" and law.low > 1:
                told.append(f"{name} would need {times} times as many steps at each further stage over {where}")
        return f"By the steps that fit best, {'; '.join(told)}." if told else ""

    def _count(self, name: str) -> int:
        return sum(bool(found.steps(name)) for found in self.stages)

    def _rest(self, held: Sequence[StageVerdict]) -> str:
        near = {found.name for stage in held for found in (*stage.errors, *stage.decodability)}
        rejected = [name for name in self.traces if name not in near and not any(f.steps(name) for f in held)]
        return f"Never among the closest: {', '.join(rejected)}." if rejected else ""


def some(steps: Sequence[Stage]) -> str:
    return ", ".join(str(step) for step in steps[:SHOWN]) + (" …" if len(steps) > SHOWN else "")


def in_order(steps: Sequence[Stage]) -> list[Stage]:
    """By their numbers."""
    return sorted(steps, key=lambda step: (isinstance(step, str), step if isinstance(step, int) else 0))


def short(numbers: Tensor) -> Any:
    """Nested lists of numbers of six digits; None where there is none."""
    if numbers.ndim:
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


def spans(stages: Sequence[object], order: Sequence[Stage]) -> str:
    """Stages in words: "layers 3–9 and layer 12"."""
    places = sorted(order.index(stage) for stage in order if stage in stages)
    runs: list[list[int]] = []
    for place in places:
        if runs and runs[-1][-1] == place - 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    words = []
    for run in runs:
        first, last = str(order[run[0]]), str(order[run[-1]])
        kind, _, number = last.rpartition(" ")
        if len(run) == 1:
            words.append(first)
        elif kind and first.startswith(f"{kind} "):
            words.append(f"{kind}s {first.removeprefix(kind).strip()}–{number}")
        else:
            words.append(f"{first} to {last}")
    return " and ".join(words)

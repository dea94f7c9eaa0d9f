"""Two traces on the same prompts, stage against stage: similarities, intervals, best stages with ties, and the null."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from algoscope import arguments, tables
from algoscope.contracts import Measure, Scale
from algoscope.matching.bootstrap import interval, larger_than_zero, resampling
from algoscope.matching.lookups import ReadsWhileSearching, WrongReads
from algoscope.matching.measures import (
    Agreement,
    ErrorSimilarity,
    PredictionDistance,
    UnexplainedVariance,
    WeightSimilarity,
    errors_vanish,
)
from algoscope.matching.statistics import bounded_interval
from algoscope.trace import Prompts, Stage, Trace

Positions: TypeAlias = str | int
VIEWS = ("all", "t<dim", "t>=dim")
HIGHEST = 0.999  # confidence
SHARES = (0.0, 1.0)  # the range of a measure that is a share of equal labels
MEASURES: dict[str, Measure] = {  # by the names that stand for them
    measure.name: measure
    for measure in (
        ErrorSimilarity(),
        WeightSimilarity(),
        PredictionDistance(),
        Agreement(),
        WrongReads(),
        ReadsWhileSearching(),
        UnexplainedVariance(),
    )
}
CELLS = 500  # that are resampled at once: as fast as many more, and of bounded memory


@dataclass(frozen=True, eq=False)
class Match:
    """The comparison of every stage of `a` with every stage of `b`.

    `similarity`, `low` and `high` are [stage of a, stage of b]: the mean over the sequences and its interval by
    bootstrap-t (NaN where a stage has no finite or no directed residual). `best[i]` is the label of b's stage that is
    closest to a's i-th (None where nothing could be measured), `ties[i]` all labels that are tied with it, and
    `none[i]` is true where no stage of b beats its null; `null[i]` is the closest null. `scale` says what was measured;
    of a distance smaller is closer. `per_sequence` holds the values behind the means. Where a similarity is a ratio of
    two means, as a cosine over the batch at a single position, they are influences on it, and `below` is what each
    sequence adds to the lower mean. benchmarks/coverage.py measures how often the intervals hold the truth.
    """

    a: str
    b: str
    stages: tuple[Stage, ...]
    steps: tuple[Stage, ...]
    scale: Scale
    positions: Positions
    first: int
    per_sequence: Float[Tensor, "batch a b"]
    null_per_sequence: Float[Tensor, "batch a nulls"]
    confidence: float
    resamples: int
    seed: int
    below: Float[Tensor, "batch a #b"] | None = None

    @cached_property
    def similarity(self) -> Float[Tensor, "a b"]:
        return self.per_sequence.mean(0)

    @cached_property
    def best(self) -> tuple[Stage | None, ...]:
        usable = self.per_sequence.isfinite().all(0)
        closest = torch.where(usable, self.sign * self.similarity, -torch.inf).argmax(-1).tolist()
        return tuple(self.steps[k] if some else None for k, some in zip(closest, usable.any(-1).tolist(), strict=True))

    @property
    def low(self) -> Float[Tensor, "a b"]:
        return self._judged.low

    @property
    def high(self) -> Float[Tensor, "a b"]:
        return self._judged.high

    @property
    def ties(self) -> tuple[tuple[Stage, ...], ...]:
        return tuple(tuple(self.steps[j] for j in row) for row in self._judged.ties)

    @property
    def none(self) -> tuple[bool, ...]:
        return tuple(self._judged.none)

    @cached_property
    def null(self) -> Float[Tensor, "a"]:
        means = self.null_per_sequence.mean(0)
        return means.amax(-1) if self.scale.larger_is_closer else means.amin(-1)

    @cached_property
    def _judged(self) -> "_Rows":
        """What takes resampling, for those who ask."""
        values, null, below = self.per_sequence, self.null_per_sequence, self.below
        draws = resampling(values.shape[0], self.resamples, self.seed)
        blocks = torch.arange(values.shape[1]).split(max(CELLS // max(values.shape[2], 1), 1))
        parts = [_rows(values[:, block], null[:, block], draws, self.scale, self.confidence,
                       None if below is None else below[:, block]) for block in blocks]  # fmt: skip
        ties, none = ([row for part in parts for row in getattr(part, name)] for name in ("ties", "none"))
        return _Rows(torch.cat([part.low for part in parts]), torch.cat([part.high for part in parts]), ties, none)

    @property
    def measure(self) -> str:
        """The name of what was measured."""
        return self.scale.name

    @property
    def sign(self) -> int:
        """+1 where a larger value means closer, −1 where a smaller one does."""
        return 1 if self.scale.larger_is_closer else -1

    def __repr__(self) -> str:
        shape = f"{len(self.stages)} stages of {self.a} x {len(self.steps)} of {self.b}"
        return f"Match({shape}, {self.measure}, {self.positions}, {self.per_sequence.shape[0]} prompts)"

    def _repr_html_(self) -> str:
        """The closest step of each stage."""
        rows = []
        for i, stage in enumerate(self.stages):
            step = self.best[i]
            j = None if step is None else self.steps.index(step)
            numbers = (
                [None] * 3 if j is None else [float(each[i, j]) for each in (self.similarity, self.low, self.high)]
            )
            named = dict(zip((self.measure, "low", "high"), numbers, strict=True))
            tied = ", ".join(str(each) for each in self.ties[i] if each != step)
            rows.append({"stage": stage, "closest step": "none" if self.none[i] else step, **named, "tied": tied})
        return tables.to_html(rows, repr(self))

    def records(self) -> list[dict[str, object]]:
        """One flat record a cell, for charts and files."""
        return [
            {
                "stage": stage,
                "step": step,
                "similarity": float(self.similarity[i, j]),
                "low": float(self.low[i, j]),
                "high": float(self.high[i, j]),
                "best": step == self.best[i],
                "tie": step in self.ties[i],
                "none": self.none[i],
            }
            for i, stage in enumerate(self.stages)
            for j, step in enumerate(self.steps)
        ]


def compare(
    a: Trace,
    b: Trace,
    measure: str | Measure | None = None,
    positions: Positions = "all",
    first: int = 1,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Match:
    """Compares every stage of `a` with every stage of `b`.

    `measure` is one of your own or a name: "errors" (cosine of residuals), "weights", "distance", "unexplained
    variance", "agreement" (of labels) or "wrong reads" (of look-ups). None is "errors", and "distance" where residuals
    vanish within the view, since rounding has no direction. `positions` is "all", "t<dim", "t>=dim" or
    one position t; `first` leaves out positions before it (0 reproduces published numbers that kept t = 0).
    """
    _check(a, b, confidence, resamples, seed)
    at = positions_at(a.prompts, positions, first)
    chosen = _measure(measure, a, b, at)
    values = chosen.per_sequence(a, b, at)
    null = chosen.per_sequence(a, chosen.null(b), at)
    below = chosen.below(a, b, at)
    return Match(a.name, b.name, a.stages, b.stages, chosen, positions, first, values, null, confidence, resamples,
                 seed, below)  # fmt: skip


def similarity_interval(
    values: Float[Tensor, "batch cells"],
    draws: Float[Tensor, "resamples batch"],
    scale: Scale,
    confidence: float,
    below: Float[Tensor, "batch cells"] | None = None,
) -> tuple[Float[Tensor, "cells"], Float[Tensor, "cells"]]:
    """Of each similarity, within its range; of a share, also where next to all sequences are equal."""
    if scale.range == SHARES:
        return bounded_interval(values, draws, confidence, SHARES, below)
    low, high = interval(values, draws, confidence, below)
    return low.clamp(*scale.range), high.clamp(*scale.range)


def positions_at(prompts: Prompts, positions: Positions = "all", first: int = 1) -> Bool[Tensor, "positions"]:
    """Which positions t a view keeps; t is the number of examples seen."""
    arguments.integer("first", first, 0)
    t = prompts.before + torch.arange(prompts.positions)
    if isinstance(positions, int):
        arguments.integer("positions", positions, 0)
        kept = t == positions
    else:
        arguments.choice("positions", positions, VIEWS, alternative="a single position t")
        views = {"all": t >= 0, "t<dim": t < prompts.dim, "t>=dim": t >= prompts.dim}
        kept = views[positions] & (t >= first)
    if not bool(kept.any()):
        raise ValueError(
            f"positions {positions!r} from first = {first} on: these prompts, with t = {t[0]}..{t[-1]}, have none"
        )
    return kept


class _Rows(NamedTuple):
    """Of stages of a, each against all stages of b: intervals, the stages tied with the best, and `none`."""

    low: Float[Tensor, "a b"]
    high: Float[Tensor, "a b"]
    ties: list[list[int]]
    none: list[bool]


def _rows(
    values: Float[Tensor, "batch a b"],
    null: Float[Tensor, "batch a nulls"],
    draws: Float[Tensor, "resamples batch"],
    measure: Scale,
    confidence: float,
    below: Float[Tensor, "batch a #b"] | None,
) -> _Rows:
    """Each row is judged alone; a cell that is not finite for every sequence has no say."""
    flat = None if below is None else below.expand_as(values).flatten(1)
    ends = similarity_interval(values.flatten(1), draws, measure, confidence, flat)
    low, high = (end.unflatten(0, values.shape[1:]) for end in ends)
    usable = values.isfinite().all(0)
    sign = 1 if measure.larger_is_closer else -1
    closeness = torch.where(usable, sign * values, 0.0)
    best = torch.where(usable, closeness.mean(0), -torch.inf).argmax(-1)
    behind = closeness.gather(-1, best[None, :, None].expand(len(values), -1, 1)) - closeness
    ahead = closeness - sign * null
    worse, beats = (
        larger_than_zero(torch.where(usable, part, 0.0), draws, confidence, measure.resolution)
        for part in (behind, ahead)
    )
    ties = [row.nonzero()[:, 0].tolist() for row in usable & ~worse]
    return _Rows(low, high, ties, (~beats.any(-1)).tolist())


def _measure(chosen: str | Measure | None, a: Trace, b: Trace, at: Tensor) -> Measure:
    if chosen is None:
        return MEASURES["distance" if errors_vanish(a, at) or errors_vanish(b, at) else "errors"]
    return measure_of(chosen)


def measure_of(chosen: str | Measure) -> Measure:
    """A measure, or that which a name stands for."""
    if isinstance(chosen, Measure):
        return chosen
    arguments.choice("measure", chosen, MEASURES, alternative="a Measure")
    return MEASURES[chosen]


def confidence_between_0_and_1(confidence: float) -> None:
    arguments.number("confidence", confidence, strict=True)
    if confidence >= 1:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence!r}")
    if confidence > HIGHEST:
        raise ValueError(f"confidence must be at most {HIGHEST}: tails that are thinner take too many resamples")


def _check(a: Trace, b: Trace, confidence: float, resamples: int, seed: int) -> None:
    for name, value in (("a", a), ("b", b)):
        if not isinstance(value, Trace):
            raise ValueError(f"{name} must be a Trace, got {type(value).__name__}")
    if not a.prompts.same_as(b.prompts):
        raise ValueError(f"a and b must be traces of the same prompts; those of {a.name} and {b.name} differ")
    if a.prompts.batch < 2:
        raise ValueError("a and b must hold at least 2 prompts: an interval needs a spread, got 1")
    confidence_between_0_and_1(confidence)
    arguments.integer("resamples", resamples, 100, arguments.MOST)
    arguments.integer("seed", seed, 0)

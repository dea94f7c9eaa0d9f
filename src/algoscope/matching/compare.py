"""Two traces on the same prompts, stage against stage: similarities, intervals, best stages with ties, and the null."""

from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from algoscope import arguments
from algoscope.matching.bootstrap import interval, larger_than_zero, resampling
from algoscope.matching.measures import MEASURES, SCALES, Measure, Scale, errors_vanish
from algoscope.trace import Prompts, Stage, Trace

Positions: TypeAlias = str | int
VIEWS = ("all", "t<dim", "t>=dim")


@dataclass(frozen=True, eq=False)
class Match:
    """The comparison of every stage of `a` with every stage of `b`.

    `similarity`, `low` and `high` are [stage of a, stage of b]: the mean over the sequences and its interval by
    bootstrap-t (NaN where a stage has no finite or no directed residual). `best[i]` is the label of b's stage that is
    closest to a's i-th (None where nothing could be measured), `ties[i]` all labels that cannot be told from it, and
    `none[i]` is true where no stage of b beats the null. `measure` says what was measured; for "distance" smaller is
    closer. `per_sequence` holds the values behind the means; at a single position they are influences on the cosine
    over the batch, and the interval is good to first order only: below about 100 prompts it covers less than it says.
    """

    a: str
    b: str
    stages: tuple[Stage, ...]
    steps: tuple[Stage, ...]
    measure: str
    positions: Positions
    first: int
    similarity: Float[Tensor, "a b"]
    low: Float[Tensor, "a b"]
    high: Float[Tensor, "a b"]
    best: tuple[Stage | None, ...]
    ties: tuple[tuple[Stage, ...], ...]
    none: tuple[bool, ...]
    null: Float[Tensor, "a"]
    per_sequence: Float[Tensor, "batch a b"]
    null_per_sequence: Float[Tensor, "batch a"]
    confidence: float
    resamples: int
    seed: int

    @property
    def sign(self) -> int:
        """+1 where a larger value means closer, −1 where a smaller one does."""
        return 1 if SCALES[self.measure].larger_is_closer else -1

    def __repr__(self) -> str:
        shape = f"{len(self.stages)} stages of {self.a} x {len(self.steps)} of {self.b}"
        return f"Match({shape}, {self.measure}, {self.positions}, {self.per_sequence.shape[0]} prompts)"

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
    measure: str | None = None,
    positions: Positions = "all",
    first: int = 1,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Match:
    """Compares every stage of `a` with every stage of `b`.

    `measure` is "errors" (cosine of residuals), "weights", "distance" or "agreement"; None is "errors", and "distance"
    where residuals vanish within the view, since rounding has no direction. `positions` is "all", "t<dim", "t>=dim" or
    one position t; `first` leaves out positions before it (0 reproduces published numbers that kept t = 0).
    """
    _check(a, b, confidence, resamples, seed)
    at = positions_at(a.prompts, positions, first)
    chosen = _measure(measure, a, b, at)
    values = chosen.per_sequence(a, b, at)
    null = chosen.per_sequence(a, chosen.null(b), at)[..., 0]
    return judge((a.name, b.name), (a.stages, b.stages), chosen.name, values, null, positions, first, confidence,
                 resamples, seed)  # fmt: skip


def judge(
    names: tuple[str, str],
    stages: tuple[tuple[Stage, ...], tuple[Stage, ...]],
    measure: str,
    values: Float[Tensor, "batch a b"],
    null: Float[Tensor, "batch a"],
    positions: Positions = "all",
    first: int = 1,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Match:
    """Intervals, best stages, ties and `none`, from one value a sequence for each pair of stages."""
    draws, scale = resampling(values.shape[0], resamples, seed), SCALES[measure]
    rows = [_row(values[:, i], null[:, i], draws, scale, confidence) for i in range(values.shape[1])]
    return Match(
        a=names[0],
        b=names[1],
        stages=stages[0],
        steps=stages[1],
        measure=measure,
        positions=positions,
        first=first,
        similarity=values.mean(0),
        low=torch.stack([row.low for row in rows]),
        high=torch.stack([row.high for row in rows]),
        best=tuple(None if row.best is None else stages[1][row.best] for row in rows),
        ties=tuple(tuple(stages[1][j] for j in row.ties) for row in rows),
        none=tuple(row.none for row in rows),
        null=null.mean(0),
        per_sequence=values,
        null_per_sequence=null,
        confidence=confidence,
        resamples=resamples,
        seed=seed,
    )


def positions_at(prompts: Prompts, positions: Positions = "all", first: int = 1) -> Bool[Tensor, "positions"]:
    """Which positions t a view keeps; t is the number of examples seen."""
    arguments.integer("first", first, 0)
    t = prompts.before + torch.arange(prompts.positions)
    if isinstance(positions, int):
        arguments.integer("positions", positions, 0)
        kept = t == positions
    else:
        arguments.choice("positions", positions, VIEWS, otherwise="a single position t")
        views = {"all": t >= 0, "t<dim": t < prompts.dim, "t>=dim": t >= prompts.dim}
        kept = views[positions] & (t >= first)
    if not bool(kept.any()):
        raise ValueError(
            f"positions {positions!r} from first = {first} on: these prompts, with t = {t[0]}..{t[-1]}, have none"
        )
    return kept


@dataclass(frozen=True, eq=False)
class _Row:
    low: Tensor
    high: Tensor
    best: int | None
    ties: list[int]
    none: bool


def _row(
    values: Float[Tensor, "batch b"],
    null: Float[Tensor, "batch"],
    draws: Float[Tensor, "resamples batch"],
    measure: Scale,
    confidence: float,
) -> _Row:
    """One stage of a against all stages of b."""
    low, high = (end.clamp(*measure.range) for end in interval(values, draws, confidence))
    usable = values.isfinite().all(0)
    if not bool(usable.any()):
        return _Row(low, high, None, [], True)
    index = usable.nonzero()[:, 0].tolist()
    closeness = values[:, usable] if measure.larger_is_closer else -values[:, usable]
    reference = null if measure.larger_is_closer else -null
    best = int(closeness.mean(0).argmax())
    behind = closeness[:, best, None] - closeness
    worse = larger_than_zero(behind, draws, confidence, measure.resolution)
    ahead = closeness - reference[:, None]
    beats = larger_than_zero(ahead, draws, confidence, measure.resolution)
    ties = [index[j] for j in (~worse).nonzero()[:, 0].tolist()]
    return _Row(low, high, index[best], ties, not bool(beats.any()))


def _measure(name: str | None, a: Trace, b: Trace, at: Tensor) -> Measure:
    if name is None:
        return MEASURES["distance" if errors_vanish(a, at) or errors_vanish(b, at) else "errors"]
    arguments.choice("measure", name, MEASURES)
    return MEASURES[name]


def confidence_between_0_and_1(confidence: float) -> None:
    arguments.number("confidence", confidence, strict=True)
    if confidence >= 1:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence!r}")


def _check(a: Trace, b: Trace, confidence: float, resamples: int, seed: int) -> None:
    for name, value in (("a", a), ("b", b)):
        if not isinstance(value, Trace):
            raise ValueError(f"{name} must be a Trace, got {type(value).__name__}")
    if not a.prompts.same_as(b.prompts):
        raise ValueError(f"a and b must be traces of the same prompts; those of {a.name} and {b.name} differ")
    if a.prompts.batch < 2:
        raise ValueError("a and b must hold at least 2 prompts: an interval needs a spread, got 1")
    confidence_between_0_and_1(confidence)
    arguments.integer("resamples", resamples, 100)
    arguments.integer("seed", seed, 0)

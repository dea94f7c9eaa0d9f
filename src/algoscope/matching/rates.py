"""The rate law: how the matching step of b grows with the stage of a.

A law is a path through the similarity matrix, from some step at the first informative stage to some step at the last:
constant, straight, or by equal factors. The growing ones have the same two free ends and differ only in the way
between, so neither wins by being more flexible. What a path *loses* is the similarity between it and the best step at
each stage. A match is called linear or exponential when, in the bootstrap,

1. the other growing path loses at least `TIMES` as much, and
2. the better one loses less than one constant step does, and recovers at least `RECOVERED` of what that loses.

Otherwise it is "constant" (no growing path loses less) or "undecided".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from algoscope.matching.bootstrap import interval, resampling
from algoscope.matching.compare import Match

Law: TypeAlias = Literal["constant", "linear", "exponential", "undecided"]
FEWEST = 3  # stages: two always lie on every path
TIMES = 2.0
RECOVERED = 0.9
COARSE, FINE = 41, 11  # candidates for each end of a path: over all steps, then around the best


@dataclass(frozen=True)
class RateLaw:
    """How the matching step grows with the stage (with its label where all labels are numbers, else with its rank).

    `growth` is the number of steps per stage for a linear law and the factor per stage for an exponential one, with its
    interval `low`, `high`. `lost` is the mean similarity per stage that each path loses, and `recovered` is what the
    better one recovers of the constant one's loss. `used` are the stages the law rests on: those that beat the null and
    are not yet at b's last step, beyond which nothing can be seen.
    """

    law: Law
    reason: str
    used: tuple[object, ...]
    start: float = float("nan")  # the step at the first stage used
    growth: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    recovered: float = float("nan")
    lost: Mapping[str, float] = field(default_factory=dict)

    def step(self, stages: float) -> float:
        """The step that the path gives so many stages after the first one used."""
        return self.start * self.growth**stages if self.law == "exponential" else self.start + self.growth * stages


def rate_law(match: Match) -> RateLaw:
    """Decides between "constant", "linear", "exponential" and "undecided"; the module's text states the criterion."""
    rows = [i for i in range(len(match.stages)) if not match.none[i] and match.steps[-1] not in match.ties[i]]
    used = tuple(match.stages[i] for i in rows)
    columns = [j for j, step in enumerate(match.steps) if isinstance(step, int)]
    columns = [j for j in columns if bool(match.per_sequence[:, rows, j].isfinite().all())]
    if len(rows) < FEWEST or len(columns) < FEWEST:
        have = f"has {len(rows)} and {len(columns)}"
        return RateLaw("undecided", f"needs {FEWEST} stages before saturation and {FEWEST} steps, {have}", used)
    closeness = match.sign * match.per_sequence[:, rows][:, :, columns]
    draws = resampling(closeness.shape[0], match.resamples, match.seed)
    matrices = torch.cat([closeness.mean(0)[None], (draws @ closeness.flatten(1)).unflatten(1, closeness.shape[1:])])
    numbered = [label for label in used if isinstance(label, int)]
    stages = torch.tensor(numbered if len(numbered) == len(used) else rows, dtype=torch.float64)
    search = _Search(matrices, torch.tensor([match.steps[j] for j in columns], dtype=torch.float64), stages)
    return _decide(search, match.confidence, used)


def inseparable(laws: Mapping[str, RateLaw]) -> list[tuple[str, ...]]:
    """Groups of algorithms whose matching steps follow the same law: the rate alone cannot separate them.

    Newton and conjugate gradients, for instance, both grow linearly at first. An undecided law may be any of the
    others.
    """
    groups = []
    for law in ("constant", "linear", "exponential"):
        names = tuple(name for name, found in laws.items() if found.law in (law, "undecided"))
        if len(names) > 1 and any(laws[name].law == law for name in names):
            groups.append(names)
    return groups


def _decide(search: "_Search", confidence: float, used: tuple[object, ...]) -> RateLaw:
    paths = {law: search.best(law) for law in ("constant", "linear", "exponential")}
    lost = {law: search.matrices.amax(2).mean(1) - path.kept for law, path in paths.items()}
    better, other = sorted(("linear", "exponential"), key=lambda law: float(lost[law][0]))
    gain = (lost["constant"] - lost[better]).clamp(min=0)
    margin = lost[other] - TIMES * lost[better]
    recovered = float(gain[0] / lost["constant"][0].clamp(min=1e-300))
    law: Law = "undecided"
    if float(interval(gain[1:], confidence)[0]) <= 1e-9:
        law, reason = "constant", "no growing path loses less similarity than one constant step"
    elif recovered < RECOVERED:
        reason = f"no path follows the best steps (the better one recovers {recovered:.0%} of the constant one's loss)"
    elif float(interval(margin[1:], confidence)[0]) <= 0:
        reason = "a straight path and one of equal factors follow the best steps about equally well"
    elif better == "linear":
        law, reason = "linear", "a straight path follows the best steps, one of equal factors does not"
    else:
        law, reason = "exponential", "a path of equal factors follows the best steps, a straight one does not"
    path = paths["constant" if law == "constant" else better]
    start, growth = float(path.start[0]), path.growth
    low, high = (float(end) for end in interval(growth[1:], confidence))
    sample = {law: float(loss[0]) for law, loss in lost.items()}
    return RateLaw(law, reason, used, start, float(growth[0]), low, high, recovered, sample)


@dataclass(frozen=True, eq=False)
class _Path:
    kept: Float[Tensor, "draws"]  # mean similarity along the best path of each draw
    start: Float[Tensor, "draws"]
    growth: Float[Tensor, "draws"]


@dataclass(frozen=True, eq=False)
class _Search:
    """Looks for the path that keeps most similarity, in every draw; the first draw is the sample itself."""

    matrices: Float[Tensor, "draws stages steps"]
    labels: Float[Tensor, "steps"]
    stages: Float[Tensor, "stages"]

    def best(self, law: str) -> _Path:
        """The ends are found among `COARSE` columns each, then refined in `FINE` parts around the best of each draw."""
        last = len(self.labels) - 1
        coarse = torch.linspace(0, last, min(COARSE, last + 1), dtype=torch.float64)
        grid = (
            torch.cartesian_prod(coarse, coarse)[None] if law != "constant" else coarse[None, :, None].expand(-1, -1, 2)
        )
        ends = self._closest(grid, law)
        around = torch.linspace(-1, 1, FINE, dtype=torch.float64) * float(coarse[1])
        nearby = torch.cartesian_prod(around, around) if law != "constant" else around[:, None].expand(-1, 2)
        ends = self._closest((ends[:, None] + nearby).clamp(0, last), law)
        start, stop = self._label(ends).unbind(-1)
        span = float(self.stages[-1] - self.stages[0])
        growth = (stop / start.clamp(min=1e-9)) ** (1 / span) if law == "exponential" else (stop - start) / span
        return _Path(self._kept(ends[:, None], law)[:, 0], start, growth)

    def _closest(self, ends: Float[Tensor, "draws_or_1 paths 2"], law: str) -> Float[Tensor, "draws 2"]:
        best = self._kept(ends, law).argmax(dim=1)
        return ends.expand(len(best), -1, -1)[torch.arange(len(best)), best]

    def _kept(self, ends: Float[Tensor, "draws_or_1 paths 2"], law: str) -> Float[Tensor, "draws paths"]:
        """Mean similarity along each path, in each draw; `ends` are fractional columns."""
        start, stop = self._label(ends).unbind(-1)
        way = (self.stages - self.stages[0]) / (self.stages[-1] - self.stages[0])
        total = torch.zeros((), dtype=torch.float64)
        for i, share in enumerate(way.tolist()):
            between = start.clamp(min=1e-9) ** (1 - share) * stop.clamp(min=1e-9) ** share
            step = between if law == "exponential" else start + (stop - start) * share
            column = self._column(step).expand(len(self.matrices), -1)
            left = column.floor().long().clamp(max=len(self.labels) - 2)
            part, row = column - left, self.matrices[:, i]
            total = total + row.gather(1, left) * (1 - part) + row.gather(1, left + 1) * part
        return total / len(way)

    def _label(self, column: Tensor) -> Tensor:
        left = column.floor().long().clamp(max=len(self.labels) - 2)
        return self.labels[left] + (column - left) * (self.labels[left + 1] - self.labels[left])

    def _column(self, step: Tensor) -> Tensor:
        """The inverse of `_label` on a logarithmic scale, on which similarity is smooth between sparse steps too."""
        place, labels = torch.log1p(step), torch.log1p(self.labels)
        left = (torch.searchsorted(labels, place.contiguous(), right=True) - 1).clamp(0, len(labels) - 2)
        return (left + (place - labels[left]) / (labels[left + 1] - labels[left])).clamp(0, len(labels) - 1)

"""Paired bootstrap: every cell of a comparison is resampled with the same sequences.

Intervals and tests are studentized (bootstrap-t): each resampled mean is measured in its own standard error.
Percentiles of the means themselves are too narrow for few or skewed values, and cosines near 1 are skewed. A ratio of
two means is resampled as a ratio: to resample the influences on it as if it were a mean is too narrow by far where a
few sequences make up much of the lower mean (benchmarks/coverage.py).
"""

import functools

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from algoscope.randomness import stream

LARGEST_RATIO = 1e6  # stands for the ratio of a resample that has no spread
FEW = 10  # sequences that make up the spread of a cell: with fewer, of at least 20 times as many, outliers dominate


@functools.lru_cache(maxsize=4)  # one stage after the other is resampled in the same way
def resampling(batch: int, resamples: int, seed: int) -> Float[Tensor, "resamples batch"]:
    """Rows of weights that sum to 1; `resampling @ values` holds the means of `values` over resampled sequences."""
    drawn = torch.randint(batch, (resamples, batch), generator=stream("bootstrap", seed))
    counts = torch.zeros(resamples, batch, dtype=torch.float64)
    return counts.scatter_add_(1, drawn, torch.ones_like(counts)) / batch


def percentiles(means: Float[Tensor, "resamples *cells"], confidence: float) -> tuple[Tensor, Tensor]:
    """The central interval of a resampled statistic."""
    tail = (1 - confidence) / 2
    low, high = torch.quantile(means, means.new_tensor([tail, 1 - tail]), dim=0)  # sorted once for both
    return low, high


def interval(
    values: Float[Tensor, "batch cells"],
    draws: Float[Tensor, "resamples batch"],
    confidence: float,
    below: Float[Tensor, "batch cells"] | None = None,
) -> tuple[Float[Tensor, "cells"], Float[Tensor, "cells"]]:
    """Of the mean of each cell. Very wide where resamples without any spread are common: few values cannot say more.

    Where a cell is a ratio of two means, the values are the influences of the sequences on it, around it, and `below`
    is what each adds to the lower mean.
    """
    weights = None if below is None else below / below.mean(0).clamp(min=1e-300)
    low, high = percentiles(_studentized(values, draws, weights), confidence)
    mean, error = values.mean(0), standard_error(values, weights)
    return mean - error * high, mean - error * low


def larger_than_zero(
    values: Float[Tensor, "batch *rows cells"], draws: Float[Tensor, "resamples batch"], confidence: float, least: float
) -> Bool[Tensor, "*rows cells"]:
    """Which means are above zero, all cells of a row judged together, and each row alone.

    A mean counts when its ratio to its standard error is above what resampling alone produces in *any* cell (max-t:
    the more cells, the higher the bar) with the probability of one tail of a two-sided interval, and when it is above
    `least`, the resolution of the measure. A cell whose spread is that of a few sequences, such as a step that diverges
    on them, has ratios without measure whenever a resample misses these: it raises its own bar alone. Where there are
    such cells, they and the others have half of the probability each, and among them it is divided.
    """
    rows = values.unsqueeze(1).flatten(1, -2)
    mean, error = rows.mean(0), standard_error(rows)
    exact = error <= least  # no spread at all: the mean itself decides
    outlier_dominated = effective_sample_size(rows) < min(FEW, rows.shape[0] / 20)
    ratios, tail = _studentized(rows.flatten(1), draws).unflatten(1, mean.shape), (1 - confidence) / 2
    chance = torch.where(exact | outlier_dominated, -torch.inf, ratios).amax(dim=-1).clamp(min=0)
    bars = torch.quantile(chance, 1 - tail, dim=0)[:, None].repeat(1, mean.shape[1])
    for i in outlier_dominated.any(1).nonzero()[:, 0].tolist():
        own, half = outlier_dominated[i], tail / 2
        bars[i] = torch.quantile(chance[:, i], 1 - half)
        alone = torch.quantile(ratios[:, i, own], 1 - half / int(own.sum()), dim=0)
        bars[i, own] = alone.maximum(bars[i, own])
    return ((mean > least) & (exact | (mean / error > bars))).view(values.shape[1:])


def effective_sample_size(values: Float[Tensor, "batch *cells"]) -> Float[Tensor, "*cells"]:
    """How many sequences make up the spread of a cell: all, if it is spread evenly; 1, if it is one sequence's."""
    spread = (values - values.mean(0)).square()
    shares = spread / spread.sum(0).clamp(min=1e-300)
    return 1 / shares.square().sum(0).clamp(min=1e-300)


def standard_error(
    values: Float[Tensor, "batch *cells"], weights: Float[Tensor, "batch *#cells"] | None = None
) -> Float[Tensor, "*cells"]:
    """Of means, or of ratios by the jackknife: without a sequence of large weight the lower mean is smaller, too."""
    n = values.shape[0]
    if weights is None:
        return values.std(0) / n**0.5
    changes = (values - values.mean(0)) / (n - weights).clamp(min=1e-300)
    return changes.std(0) * (n - 1) / n**0.5


def _studentized(
    values: Float[Tensor, "batch cells"],
    draws: Float[Tensor, "resamples batch"],
    weights: Float[Tensor, "batch cells"] | None = None,
) -> Tensor:
    """(resampled mean − mean) / resampled standard error, for every resample and cell; of ratios by influences."""
    centered = values - values.mean(0)
    moves, squares = draws @ centered, draws @ centered.square()
    if weights is None:
        variance = squares - moves.square()
    else:
        total = (draws @ weights).clamp(min=1e-300)
        moves = moves / total
        products, own = draws @ (centered * weights), draws @ weights.square()
        variance = (squares - 2 * moves * products + moves.square() * own) / total.square()
    error = (variance.clamp(min=0) / max(values.shape[0] - 1, 1)).sqrt()
    moved = moves.abs() > 1e-12 * centered.abs().amax(0).clamp(min=1e-300)
    return torch.where(moved, moves / error, 0.0).clamp(-LARGEST_RATIO, LARGEST_RATIO)


def ratio_interval(
    above: Float[Tensor, "batch cells"],
    below: Float[Tensor, "batch cells"],
    draws: Float[Tensor, "resamples batch"],
    confidence: float,
) -> tuple[Float[Tensor, "cells"], Float[Tensor, "cells"], Float[Tensor, "cells"]]:
    """The ratio of two means and its interval."""
    unit = below.mean(0).clamp(min=1e-300)
    ratio = above.mean(0) / unit
    low, high = interval(ratio + (above - ratio * below) / unit, draws, confidence, below)
    return ratio, low, high

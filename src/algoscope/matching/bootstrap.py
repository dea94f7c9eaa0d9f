"""Paired bootstrap: every cell of a comparison is resampled with the same sequences."""

import torch
from jaxtyping import Float
from torch import Tensor

from algoscope.randomness import stream


def resampling(batch: int, resamples: int, seed: int) -> Float[Tensor, "resamples batch"]:
    """Rows of weights that sum to 1; `resampling @ values` holds the means of `values` over resampled sequences."""
    drawn = torch.randint(batch, (resamples, batch), generator=stream("bootstrap", seed))
    counts = torch.zeros(resamples, batch, dtype=torch.float64)
    return counts.scatter_add_(1, drawn, torch.ones_like(counts)) / batch


def interval(
    means: Float[Tensor, "resamples *cells"], confidence: float
) -> tuple[Float[Tensor, "*cells"], Float[Tensor, "*cells"]]:
    """The central percentile interval."""
    tail = (1 - confidence) / 2
    return torch.quantile(means, tail, dim=0), torch.quantile(means, 1 - tail, dim=0)


def larger_than_chance(
    difference: Float[Tensor, "cells"], resampled: Float[Tensor, "resamples cells"], confidence: float, least: float
) -> Tensor:
    """Which differences are above zero, all cells judged together.

    A difference counts when its ratio to its standard error is above what resampling alone produces in *any* cell
    (max-t: the more cells, the higher the bar) with the probability of one tail of a two-sided interval, and when it
    is above `least`, the resolution of the measure.
    """
    error = resampled.std(dim=0)
    exact = error <= least  # no spread at all: the difference itself decides
    safe = torch.where(exact, 1.0, error)
    chance = torch.where(exact, -torch.inf, (resampled - difference) / safe).amax(dim=1)
    bar = torch.quantile(chance.clamp(min=0), (1 + confidence) / 2)
    return (difference > least) & (exact | (difference / safe > bar))

"""Numbers with their 95% CI: means and ratios over sequences by bootstrap-t, shares of few trials by Wilson.

benchmarks/coverage.py measures how often each of them holds the truth.
"""

import math
from statistics import NormalDist
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from algoscope.matching.bootstrap import (
    FEW,
    effective_sample_size,
    interval,
    ratio_interval,
    resampling,
    standard_error,
)

RESAMPLES = 1000
EQUAL = 1e-18  # variance of a mean of shares that is rounding
NORMAL = 1.96  # standard deviations on either side hold 95%


class Estimate(NamedTuple):
    """A number with its confidence interval, and over how many sequences or trials."""

    value: float
    low: float
    high: float
    n: int


def means(values: Float[Tensor, "batch cells"], confidence: float = 0.95, seed: int = 0) -> list[Estimate]:
    """The mean of each cell over the sequences."""
    low, high = interval(values, resampling(len(values), RESAMPLES, seed), confidence)
    return _estimates((values.mean(0), low, high), len(values))


def bounded_means(
    values: Float[Tensor, "batch cells"], least: float = 0.0, most: float = 1.0, confidence: float = 0.95, seed: int = 0
) -> list[Estimate]:
    """The same of numbers between bounds, such as shares, also where next to all are equal."""
    draws = resampling(len(values), RESAMPLES, seed)
    low, high = bounded_interval(values, draws, confidence, (least, most))
    return _estimates((values.mean(0), low, high), len(values))


def bounded_interval(
    values: Float[Tensor, "batch cells"],
    draws: Float[Tensor, "resamples batch"],
    confidence: float,
    bounds: tuple[float, float],
    below: Float[Tensor, "batch cells"] | None = None,
) -> tuple[Float[Tensor, "cells"], Float[Tensor, "cells"]]:
    """As `interval`, of numbers between bounds.

    Where fewer than `FEW` sequences make up the spread, resampling cannot tell how rare such sequences are: then it is
    Agresti and Coull's interval of a share in as many trials as would have that spread. Where there is none, these are
    as many as there are sequences, which is wider than need be if each holds many answers.
    """
    (least, most), n = bounds, len(values)
    plain = interval(values, draws, confidence, below)
    weights = torch.ones_like(values[:, :1]) if below is None else below / below.mean(0).clamp(min=1e-300)
    share = ((values.mean(0) - least) / (most - least)).clamp(0, 1)
    variance = (standard_error(values, weights) / (most - least)).square()
    equal = variance < EQUAL
    trials = torch.where(equal, n**2 / weights.square().sum(0), share * (1 - share) / variance.clamp(min=EQUAL))
    deviations = NormalDist().inv_cdf((1 + confidence) / 2)
    more = trials + deviations**2
    middle = (share * trials + deviations**2 / 2) / more
    half, few = deviations * (middle * (1 - middle) / more).sqrt(), equal | (effective_sample_size(values) < FEW)
    ends = (least + (most - least) * end for end in (middle - half, middle + half))
    low, high = (torch.where(few, own, end).clamp(*bounds) for own, end in zip(ends, plain, strict=True))
    return low, high


def ratios(
    above: Float[Tensor, "batch cells"], below: Float[Tensor, "batch cells"], confidence: float = 0.95, seed: int = 0
) -> list[Estimate]:
    """The ratio of two means over the same sequences, for each cell."""
    return _estimates(ratio_interval(above, below, resampling(len(above), RESAMPLES, seed), confidence), len(above))


def slope(
    a: Float[Tensor, "batch rows"],
    b: Float[Tensor, "batch rows"],
    draws: Tensor,
    confidence: float,
    share: bool = False,
) -> Estimate:
    """Of a on b through the origin, over sequences; as a `share` it is one of those rows at which b is 1."""
    above, below = (a * b).sum(1, keepdim=True), b.square().sum(1, keepdim=True)
    value, low, high = ratio_interval(above, below, draws, confidence)
    if share:
        influences = value + (above - value * below) / below.mean(0).clamp(min=1e-300)
        low, high = bounded_interval(influences, draws, confidence, (0.0, 1.0), below)
    return Estimate(float(value), float(low), float(high), len(a))


def wilson(share: float, trials: int) -> tuple[float, float]:
    """Wilson's interval of a share: unlike resampling, it does not end where no trial has failed."""
    spread = NORMAL**2 / trials
    middle = (share + spread / 2) / (1 + spread)
    half = NORMAL / (1 + spread) * math.sqrt(share * (1 - share) / trials + spread / (4 * trials))
    return max(middle - half, 0.0), min(middle + half, 1.0)


def _estimates(numbers: tuple[Tensor, Tensor, Tensor], n: int) -> list[Estimate]:
    value, low, high = (part.tolist() for part in numbers)
    return [Estimate(*row, n) for row in zip(value, low, high, strict=True)]

"""Numbers with their 95% CI: means and ratios over sequences by bootstrap-t, shares of few trials by Wilson."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from algoscope.matching.bootstrap import interval, percentiles, ratio_interval, resampling

RESAMPLES = 1000
WILD = 20.0  # standard errors that no honest interval is wide
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
    """The same of numbers between bounds, such as shares. Where next to all are equal, many resamples have no spread to
    be measured in: percentiles of their means then.
    """
    draws = resampling(len(values), RESAMPLES, seed)
    low, high = interval(values, draws, confidence)
    plain, wild = percentiles(draws @ values, confidence), high - low > WILD * values.std(0) / len(values) ** 0.5
    low, high = torch.where(wild, plain[0], low), torch.where(wild, plain[1], high)
    return _estimates((values.mean(0), low.clamp(least, most), high.clamp(least, most)), len(values))


def ratios(
    above: Float[Tensor, "batch cells"], below: Float[Tensor, "batch cells"], confidence: float = 0.95, seed: int = 0
) -> list[Estimate]:
    """The ratio of two means over the same sequences, for each cell."""
    return _estimates(ratio_interval(above, below, resampling(len(above), RESAMPLES, seed), confidence), len(above))


def wilson(share: float, trials: int) -> tuple[float, float]:
    """Wilson's interval of a share: unlike resampling, it does not end where no trial has failed."""
    spread = NORMAL**2 / trials
    middle = (share + spread / 2) / (1 + spread)
    half = NORMAL / (1 + spread) * math.sqrt(share * (1 - share) / trials + spread / (4 * trials))
    return max(middle - half, 0.0), min(middle + half, 1.0)


def _estimates(numbers: tuple[Tensor, Tensor, Tensor], n: int) -> list[Estimate]:
    value, low, high = (part.tolist() for part in numbers)
    return [Estimate(*row, n) for row in zip(value, low, high, strict=True)]

"""Shares of few trials."""

import math

from algoscope.studies.claim import Value

NORMAL = 1.96  # standard deviations on either side hold 95%


def wilson(share: float, trials: int) -> tuple[float, float]:
    """Wilson's interval of a share: unlike resampling, it does not end where no trial has failed."""
    spread = NORMAL**2 / trials
    middle = (share + spread / 2) / (1 + spread)
    half = NORMAL / (1 + spread) * math.sqrt(share * (1 - share) / trials + spread / (4 * trials))
    return max(middle - half, 0.0), min(middle + half, 1.0)


def share_of(count: int, trials: int) -> Value:
    share = count / trials
    return Value(share, *wilson(share, trials), trials)

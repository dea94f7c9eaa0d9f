"""Shares of few trials, as claims judge them."""

from algoscope.matching.statistics import wilson
from algoscope.studies.claim import Value


def share_of(count: int, trials: int) -> Value:
    share = count / trials
    return Value(share, *wilson(share, trials), trials)

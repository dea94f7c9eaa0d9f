"""The algorithms that people know for regressions: what a model of such a task is compared with."""

from algoscope import algorithms as known
from algoscope.algorithms.features import Reduction
from algoscope.contracts import Algorithm

GRID = (*range(24), *(round(2 ** (k / 2)) for k in range(10, 25)))  # of slow methods: two steps an octave, to 4,096
SHORT = tuple(step for step in GRID if step <= 256)


def regressions(dim: int, noise: float) -> list[Algorithm]:
    found: list[Algorithm] = [
        known.Newton(steps=24),
        known.ConjugateGradients(steps=dim),
        known.GradientDescent(GRID),
        known.GradientDescent(GRID, rate="best"),
        known.PreconditionedGradientDescent(SHORT),
        known.HeavyBall(SHORT),
        known.Chebyshev(SHORT),
        known.GradientDescentPlusPlus(steps=12),
        known.OnlineGradientDescent(),
        known.OrdinaryLeastSquares(),
    ]
    if noise:
        ridge = round(noise**2, 12)  # named in the verdict
        found += [known.Ridge(), known.Newton(steps=24, ridge=ridge), known.ConjugateGradients(dim, ridge=ridge)]
    return found


def on_features(task: Reduction, dim: int, noise: float) -> list[Algorithm]:
    """The same on the features that a model has to learn first."""
    return [known.OnFeatures(each, task) for each in regressions(dim, noise)]

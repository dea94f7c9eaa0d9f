"""The algorithms that people know for regressions: what a model of such a task is compared with.

A grid of steps that ends before its method has solved the problem makes another method the closest, and so does a rate
or a penalty that is missing between two others: planted answers show both (docs/log.md). Rates and penalties are in
units of the largest eigenvalue that prompts of the task have.
"""

import functools

import torch

from algoscope import algorithms as known
from algoscope.algorithms.features import Reduction
from algoscope.contracts import Algorithm, Task

GRID = (*range(24), *(round(2 ** (k / 2)) for k in range(10, 25)))  # of slow methods: two steps an octave, to 4,096
SHORT = tuple(step for step in GRID if step <= 256)
FEW = tuple(step for step in GRID if step <= 64)
PENALTIES = tuple(10.0 ** (k / 4) for k in range(-14, 1))  # four in each factor of ten, of the largest eigenvalue
RATES = (1.0, 0.25)  # of the largest at which no prompt diverges
TUNED_ON = 300  # prompts, on which no model is tested


def regressions(task: Task, dim: int) -> list[Algorithm]:
    """By method: the same method from several starts and at several rates is one family."""
    rate = steady_rate(task)
    return [*spectral(task.noise, dim, rate), *others(rate)]


def spectral(noise: float, dim: int, rate: float) -> list[Algorithm]:
    """Methods that depend on the examples through XᵀX and Xᵀy alone, and treat all directions of x alike."""
    rates = [each for each in (_rounded(rate * part) for part in RATES) if not 0.8 < each / 0.01 < 1.25]
    found: list[Algorithm] = [
        known.Newton(steps=24),
        *(known.Newton(steps=24, start=start) for start in ("2/frobenius", "1/spectral", "2/spectral")),
        known.Newton(steps=24, start=_rounded(rate**2)),
        *(known.Halley(steps=15, start=start) for start in ("1/frobenius", "2/frobenius")),
        known.ConjugateGradients(steps=dim),
        known.GradientDescent(GRID),
        *(known.GradientDescent(GRID, rate=each) for each in (*rates, "safe", "best")),
        known.SteepestDescent(FEW),
        known.BarzilaiBorwein(FEW),
        known.HeavyBall(SHORT),
        known.Nesterov(SHORT),
        known.Chebyshev(SHORT),
        known.GradientDescentPlusPlus(steps=12),
        known.RidgePath(tuple(_rounded(part / rate) for part in PENALTIES)),
        known.OrdinaryLeastSquares(),
    ]
    if noise:
        ridge = round(noise**2, 12)  # named in the verdict
        found += [known.Ridge(), known.Newton(steps=24, ridge=ridge), known.ConjugateGradients(dim, ridge=ridge)]
    return found


def others(rate: float) -> list[Algorithm]:
    """Methods that depend on the axes of x, on the order of the examples, or on single examples."""
    return [
        known.PreconditionedGradientDescent(SHORT),
        *(known.Lasso(FEW, penalty=_rounded(part / rate)) for part in (0.03, 0.1)),
        known.OnlineGradientDescent(),
        known.Kaczmarz(range(1, 7)),
        known.Kaczmarz(range(1, 7), order="randomized"),
        *(known.KernelSmoother(temperature) for temperature in ("sqrt(dim)", 1.0)),
        *(known.NearestNeighbors(count) for count in (1, 3)),
    ]


def on_features(task: Reduction, noise: float, dim: int, rate: float) -> list[Algorithm]:
    """The same on the features that a model has to learn first."""
    return [known.OnFeatures(each, task) for each in spectral(noise, dim, rate)]


def spanning(task: Reduction | None = None) -> list[Algorithm]:
    """What mixtures of them hold beside their steps."""
    basis = known.Krylov(range(7))
    return [basis if task is None else known.OnFeatures(basis, task)]


@functools.cache
def steady_rate(task: Task, on_features: bool = True) -> float:
    """One rate for all prompts and prefixes that suits them all: 1 over the largest eigenvalue of many, which leaves
    others room for twice of it. One prompt on which it diverges would spoil its steps on all. Where a task has
    features, it is that on these, or on x itself.
    """
    prompts = task.sample(TUNED_ON, seed=0, purpose="tuning")
    problems = task.problems(prompts) if on_features and isinstance(task, Reduction) else [prompts]
    largest = max(float(torch.linalg.matrix_norm(problem.x[:, :-1], 2).max()) for problem in problems) ** 2
    return _rounded(1 / largest) if largest else 1.0


def _rounded(number: float) -> float:
    return float(f"{number:.2g}")

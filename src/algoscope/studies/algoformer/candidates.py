"""The algorithms that a loop may run, each at the steps at which it is compared.

A grid that ends before its method has solved the problem makes another method the closest, and a closed form that is
not on the list is called by the name of an iteration: planted answers show both (docs/log.md). So grids are long, and
there are ridge regressions of many penalties and the mean of the targets.
"""

from algoscope import algorithms as known
from algoscope.algorithms import Algorithm, OnFeatures
from algoscope.algorithms.features import Reduction
from algoscope.contracts import Task
from algoscope.tasks.candidates import steady_rate

# Of ridge regression, .0001 to 100. Between two decades an exact ridge regression is closer to some step of descent
# than to either (docs/log.md).
PENALTIES = tuple(float(f"{10.0 ** (k / 4):.2g}") for k in range(-16, 9))
NEWTON = (*range(17), 18, 20, 22, 24, 28, 32, 40, 48)
STEPS_PER_DOUBLING = (*(n << k for k in range(3, 16) for n in (3, 4)), *(2**k for k in range(18, 21)))
SLOW = (*range(1, 9), 10, 12, 16, 20, *STEPS_PER_DOUBLING)  # of gradient descent
FAST = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128)  # of methods with momentum
KRYLOV = (*range(1, 13), 14, 16, 18, 20, 24, 32, 48, 64)


def candidates(task: Task) -> list[Algorithm]:
    """On features where there are some, and the closed forms that the task lists on x itself; and the mean."""
    penalties = {*PENALTIES, *([right_penalty(task)] if task.noise else [])}
    forms = [known.OrdinaryLeastSquares(), *map(known.Ridge, sorted(penalties))]
    found = [on_features(task, each) for each in (*_iterations(task), *forms)]
    if isinstance(task, Reduction):
        found += [each for each in task.algorithms() if each.closed_form and not isinstance(each, OnFeatures)]
    return [*found, known.Mean()]


def _iterations(task: Task) -> list[Algorithm]:
    return [
        known.GradientDescent(SLOW, rate=steady_rate(task)),
        known.GradientDescent(SLOW, rate="safe"),
        known.GradientDescent(SLOW, rate="best"),
        known.Newton(NEWTON),
        known.ConjugateGradients([k for k in KRYLOV if k < task.inputs] + [task.inputs]),
        known.Chebyshev(FAST),
        known.HeavyBall(FAST),
        known.GradientDescentPlusPlus([k for k in FAST if k <= 12]),
    ]


def on_features(task: Task, method: Algorithm) -> Algorithm:
    return OnFeatures(method, task) if isinstance(task, Reduction) else method


def right_penalty(task: Task) -> float:
    """The λ of ridge regression that is right for the noise and for how large the weights are drawn."""
    spread = getattr(task, "spread", 1.0)
    return float(f"{(task.noise / spread) ** 2:.4g}")

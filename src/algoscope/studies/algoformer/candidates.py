"""The algorithms that a loop may run, each at the steps at which it is compared.

A grid that ends before its method has solved the problem makes another method the closest, and a closed form that is
not on the list is called by the name of an iteration: planted answers show both (docs/log.md). So grids are long, and
there are ridge regressions of many penalties, the mean of the targets and, on x, an intercept.
"""

from dataclasses import dataclass

from algoscope import algorithms as known
from algoscope.algorithms import Algorithm, OnFeatures
from algoscope.studies.algoformer.references import AFFINE, LEAST_SQUARES, Intercept, right_penalty, steady_rate
from algoscope.tasks import LinearRegression, RepresentationRegression, Task

# Of ridge regression, .0001 to 100. Between two decades an exact ridge regression is closer to some step of descent
# than to either (docs/log.md).
PENALTIES = tuple(float(f"{10.0 ** (k / 4):.2g}") for k in range(-16, 9))
MEAN = "the mean of y"


@dataclass(frozen=True)
class Grids:
    """The steps of Newton, of descent, of methods with momentum and of conjugate gradients."""

    newton: tuple[int, ...]
    slow: tuple[int, ...]
    fast: tuple[int, ...]
    krylov: tuple[int, ...]


GRIDS = Grids(
    newton=(*range(17), 18, 20, 22, 24, 28, 32, 40, 48),
    slow=(
        *range(1, 9),
        10,
        12,
        16,
        20,
        *(n << k for k in range(3, 16) for n in (3, 4)),
        *(2**k for k in range(18, 21)),
    ),
    fast=(1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128),
    krylov=(*range(1, 13), 14, 16, 18, 20, 24, 32, 48, 64),
)
ON_INPUTS = Grids(newton=(1, 2, 4, 6, 8, 12), slow=(1, 2, 4, 8, 16, 32, 64), fast=(), krylov=(1, 2, 3, 4, 6, 8))


def candidates(task: Task) -> list[Algorithm]:
    """On features where there are some, and a few on x itself; and the mean of the targets, which needs neither."""
    if isinstance(task, LinearRegression):
        return [*_iterations(task, task.dim), *closed_forms(task).values()]
    found: list[Algorithm] = [on_features(task, each) for each in _iterations(task, task.inputs)]
    found += closed_forms(task).values()
    if isinstance(task, RepresentationRegression):
        steps = ON_INPUTS
        plain = [known.Newton(steps.newton), known.GradientDescent(steps.slow, rate="safe"),
                 known.ConjugateGradients(steps.krylov), known.OrdinaryLeastSquares()]  # fmt: skip
        found += [OnFeatures(each, Intercept(), AFFINE) for each in plain]
    return found


def _iterations(task: Task, dim: int) -> list[Algorithm]:
    return [
        known.GradientDescent(GRIDS.slow, rate=steady_rate(task)),
        known.GradientDescent(GRIDS.slow, rate="safe"),
        known.GradientDescent(GRIDS.slow, rate="best"),
        known.Newton(GRIDS.newton),
        known.ConjugateGradients([k for k in GRIDS.krylov if k < dim] + [dim]),
        known.Chebyshev(GRIDS.fast),
        known.HeavyBall(GRIDS.fast),
        known.GradientDescentPlusPlus([k for k in GRIDS.fast if k <= 12]),
    ]


def closed_forms(task: Task) -> dict[str, Algorithm]:
    """By what they are called: least squares, ridge regressions with the right λ among them, and the mean."""
    penalties = {*PENALTIES, *([right_penalty(task)] if task.noise else [])}
    forms: dict[str, Algorithm] = {LEAST_SQUARES: known.OrdinaryLeastSquares()}
    forms |= {ridge(penalty): known.Ridge(penalty) for penalty in sorted(penalties)}
    return {name: on_features(task, form) for name, form in forms.items()} | {MEAN: known.Mean()}


def ridge(penalty: float) -> str:
    return f"ridge {penalty:g}"


def on_features(task: Task, method: Algorithm) -> Algorithm:
    return method if isinstance(task, LinearRegression) else OnFeatures(method, task)  # pyright: ignore[reportArgumentType]

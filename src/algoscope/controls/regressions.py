"""The controls of regressions.

What is listed is taken from the list of the task, at early steps, which are those that differ. What is not listed lies
between what is (`parameter`), is a method that was taken off the list (`family`), or is made of several steps
(`mixture`, `coin`). Rates, penalties and starts are in units of the task's own, as on the list.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from algoscope import algorithms as known
from algoscope.constructions import Written
from algoscope.contracts import Algorithm, Model, Task
from algoscope.controls.control import Control
from algoscope.controls.variants import Coin, DecayingRate, FixedMomentum, GaussSeidel, Mixed, PrincipalComponents
from algoscope.models import Transformer
from algoscope.tasks import (
    AutoregressiveRepresentation,
    ChainOfThought,
    LinearRegression,
    RepresentationRegression,
)
from algoscope.tasks.candidates import steady_rate

NOISES = (0.0, 0.1, 0.3)
FIRST = 100  # seed: those before it were looked at while the thresholds of the instrument were chosen
HELD_OUT = 300  # first seed of the held-out set
EARLY: dict[type[Algorithm], tuple[int, ...]] = {
    known.Newton: (2, 4, 6),
    known.Halley: (1, 2, 4),
    known.ConjugateGradients: (1, 2, 3),
    known.GradientDescent: (1, 3, 8, 20),
    known.SteepestDescent: (2, 4, 8),
    known.BarzilaiBorwein: (2, 4, 6),
    known.HeavyBall: (2, 4, 8),
    known.Nesterov: (2, 4, 8),
    known.Chebyshev: (2, 4, 8),
    known.GradientDescentPlusPlus: (1, 2, 4),
    known.PreconditionedGradientDescent: (1, 3, 8),
    known.Lasso: (1, 4, 16),
    known.Kaczmarz: (1, 2, 4),
}
SMALL, NOISY = LinearRegression(dim=5, examples=20), LinearRegression(dim=5, examples=20, noise=0.5)
LARGE = LinearRegression(dim=20, examples=40)
FEATURES = (
    RepresentationRegression(dim=4, examples=16),
    AutoregressiveRepresentation(dim=4, examples=16),
    ChainOfThought(dim=4, examples=12, depth=2),
)
ON_FEATURES = (known.Newton, known.ConjugateGradients, known.GradientDescent, known.OrdinaryLeastSquares)
STRETCHED: dict[str, Any] = {"covariance": "ill-conditioned", "condition": 5.0, "rescale": True}
COVARIANCES: tuple[dict[str, Any], ...] = ({}, STRETCHED)
BY_HAND = [
    LinearRegression(dim, examples, **covariance)
    for (dim, examples), covariance in itertools.product(((3, 15), (4, 20), (5, 20)), COVARIANCES)
]
SHAPES = [Transformer(*shape) for shape in itertools.product((1, 3, 6), (1, 4), (16, 64))]
OTHERS = (
    LinearRegression(dim=8, examples=24),
    LinearRegression(dim=10, examples=30, covariance="ill-conditioned", condition=30.0, rescale=True),
)


def tuning() -> Iterator[Control]:
    """What the instrument may be improved by."""
    two = range(FIRST, FIRST + 2)
    yield from listed(SMALL, two, NOISES)
    yield from listed(NOISY, [FIRST], NOISES)
    yield from listed(LARGE, [FIRST], [0.1], every=2)
    for task in FEATURES:
        yield from listed(task, [FIRST], NOISES, ON_FEATURES)
    yield from unlisted("parameter", SMALL, parameters(SMALL), two, NOISES)
    yield from unlisted("parameter", NOISY, parameters(NOISY), [FIRST], NOISES)
    yield from families(SMALL, FIRST, NOISES)
    yield from families(NOISY, FIRST, [0.1])
    for each in (SMALL, NOISY):
        yield from unlisted("mixture", each, map(Mixed, pairs(each)), [FIRST], NOISES)
        yield from unlisted("coin", each, map(Coin, pairs(each)), [FIRST], NOISES)
    yield from nulls(SMALL, range(FIRST, FIRST + 5), SHAPES, every=3)
    yield from nulls(NOISY, [FIRST], SHAPES, every=2)
    for task in BY_HAND:
        yield from by_hand(task, two)
    yield from by_hand_on_features(RepresentationRegression(4, 20), two)


def held_out() -> Iterator[Control]:
    """Other tasks, seeds, parameters and methods, which no one looks at until the instrument is done."""
    for k, task in enumerate(OTHERS):
        seed = HELD_OUT + 10 * k
        yield from listed(task, [seed], [0.2 * k], every=1 + k)
        yield from unlisted("parameter", task, other_parameters(task), [seed], [0.2 * k])
        yield from unlisted("family", task, other_methods(), [seed], [0.0, 0.2])
        yield from itertools.islice(families(task, seed, [0.2 * k]), k, None, 4)
        yield from unlisted("mixture", task, map(Mixed, other_pairs(task)), [seed], [0.2 * k])
        yield from unlisted("coin", task, map(Coin, other_pairs(task)), [seed], [0.2 * k])
        yield from nulls(task, [seed, seed + 1], SHAPES[k::4], every=8)
        yield from by_hand(LinearRegression(6, 24, **COVARIANCES[k]), [seed])


def early(algorithm: Any) -> Algorithm:
    """An algorithm of a list at a few of its early steps."""
    if isinstance(algorithm, known.OnFeatures):
        return replace(algorithm, algorithm=early(algorithm.algorithm))
    if isinstance(algorithm, known.RidgePath):
        return replace(algorithm, penalties=algorithm.penalties[6::3])
    return replace(algorithm, steps=EARLY[type(algorithm)]) if type(algorithm) in EARLY else algorithm


def of_kinds(task: Task, kinds: Sequence[type[Algorithm]]) -> list[Algorithm]:
    """Those of a list whose algorithm, maybe on features, is of some classes: the first of each."""
    found: dict[type[Algorithm], Algorithm] = {}
    for each in task.algorithms():
        kind = type(each.algorithm if isinstance(each, known.OnFeatures) else each)
        if kind in kinds:
            found.setdefault(kind, each)
    return list(found.values())


def listed(
    task: Task,
    seeds: Iterable[int],
    noises: Sequence[float],
    kinds: Sequence[type[Algorithm]] = (),
    every: int = 1,
) -> Iterator[Control]:
    """Algorithms of the list: all, every second, or those of some classes."""
    chosen = of_kinds(task, kinds) if kinds else task.algorithms()[::every]
    for seed, noise, each in itertools.product(seeds, noises, chosen):
        yield Control(task, "listed", each.method, seed, early(each), noise)


def unlisted(
    group: str, task: Task, algorithms: Iterable[Algorithm], seeds: Iterable[int], noises: Sequence[float]
) -> Iterator[Control]:
    for seed, noise, each in itertools.product(seeds, noises, list(algorithms)):
        yield Control(task, "unlisted", group, seed, each, noise)


def families(task: Task, seed: int, noises: Sequence[float]) -> Iterator[Control]:
    """Algorithms of the list, where their whole method is not on it."""
    for each, noise in itertools.product(task.algorithms(), noises):
        yield Control(task, "unlisted", "family", seed, early(each), noise, left_out=each.method)


def nulls(task: Task, seeds: Iterable[int], models: Sequence[Model], every: int) -> Iterator[Control]:
    """Algorithms on shuffled prompts, every so many of the list, and untrained networks."""
    for seed in seeds:
        for each, noise in itertools.product(task.algorithms()[::every], NOISES[:-1]):
            yield Control(task, "null", "shuffled", seed, early(each), noise)
        for model in models:
            yield Control(task, "null", "untrained", seed, network=model)


def parameters(task: Task) -> list[Algorithm]:
    """Rates, starts and penalties that are between those on the list, or beyond."""
    r, gd, newton = steady_rate(task), EARLY[known.GradientDescent], EARLY[known.Newton]
    listed_penalties = next(each.penalties for each in task.algorithms() if isinstance(each, known.RidgePath))
    return [
        *(known.GradientDescent(gd, rate=_rounded(part * r)) for part in (0.1, 0.5, 0.85, 1.3)),
        known.GradientDescent(gd, rate=r, ridge=_rounded(0.1 / r)),
        known.GradientDescent(gd, rate=r, start="uniform"),
        *(known.Newton(newton, start=_rounded(part * r**2)) for part in (0.03, 0.2, 0.5)),
        *(known.Newton(newton, ridge=_rounded(part / r)) for part in (0.02, 0.1)),
        *(known.Halley((1, 2, 3), start=start) for start in ("1/spectral", "2/spectral", _rounded(0.3 * r**2))),
        known.RidgePath(tuple(_rounded(each * 10**0.125) for each in listed_penalties[6::3])),
        *(known.Lasso((2, 4, 16), penalty=_rounded(part / r)) for part in (0.01, 0.055, 0.2)),
        *(known.ConjugateGradients((1, 2, 3), ridge=_rounded(part / r)) for part in (0.02, 0.1)),
        known.GradientDescentPlusPlus((2, 4, 8), rate=r, transform=_rounded(r / 2)),
        known.PreconditionedGradientDescent((2, 4, 8), rate=0.2),
        *(known.OnlineGradientDescent(rate) for rate in (0.05, 0.15)),
        known.Kaczmarz((1, 2, 4), order="randomized", seed=7),
        *(known.KernelSmoother(temperature) for temperature in (0.5, 1.5, 2.0)),
        known.KernelSmoother(kernel="gaussian"),
        *(known.NearestNeighbors(count) for count in (2, 5)),
    ]


def pairs(task: Task) -> list[tuple[Algorithm, Algorithm]]:
    """Steps of two methods, and steps of one method that are far apart."""
    r = steady_rate(task)
    return [
        (known.Newton((3,)), known.ConjugateGradients((2,))),
        (known.GradientDescent((5,), rate=r), known.ConjugateGradients((1,))),
        (known.GradientDescent((3,), rate="best"), known.Newton((5,))),
        (known.OnlineGradientDescent(), known.OrdinaryLeastSquares()),
        (known.KernelSmoother(), known.GradientDescent((3,), rate=r)),
        (known.NearestNeighbors(3), known.OrdinaryLeastSquares()),
        (known.Lasso((4,), penalty=_rounded(0.1 / r)), known.HeavyBall((3,))),
        (known.SteepestDescent((1,)), known.Chebyshev((6,))),
        (known.Kaczmarz((1,)), known.Newton((4,))),
        (known.GradientDescentPlusPlus((2,)), known.BarzilaiBorwein((2,))),
        (known.GradientDescent((2,), rate=r), known.GradientDescent((40,), rate=r)),
        (known.Newton((1,)), known.Newton((6,))),
        (known.ConjugateGradients((1,)), known.ConjugateGradients((4,))),
        (known.HeavyBall((1,)), known.HeavyBall((6,))),
        (known.Halley((0,)), known.Halley((4,))),
        (known.Kaczmarz((1,)), known.Kaczmarz((5,))),
    ]


def other_parameters(task: Task) -> list[Algorithm]:
    """Of the held-out set."""
    r = steady_rate(task)
    return [
        *(known.GradientDescent((2, 6, 15), rate=_rounded(part * r)) for part in (0.15, 0.6, 1.2)),
        known.Newton((3, 5, 7), start=_rounded(0.1 * r**2)),
        known.Newton((3, 5, 7), ridge=_rounded(0.05 / r)),
        known.Halley((2, 3), start="1/spectral"),
        known.RidgePath((_rounded(0.004 / r), _rounded(0.04 / r))),
        *(known.Lasso((3, 8, 20), penalty=_rounded(part / r)) for part in (0.02, 0.06)),
        known.ConjugateGradients((2, 4), ridge=_rounded(0.05 / r)),
        known.OnlineGradientDescent(0.08),
        *(known.KernelSmoother(temperature) for temperature in (0.7, 4.0)),
        known.NearestNeighbors(4),
    ]


def other_methods() -> list[Algorithm]:
    """Of the held-out set: on no list."""
    return [
        *(PrincipalComponents(count) for count in (2, 4, 6)),
        GaussSeidel((1, 2, 4)),
        DecayingRate((2, 5, 20)),
        FixedMomentum((2, 5, 10)),
        known.Mean(),
    ]


def other_pairs(task: Task) -> list[tuple[Algorithm, Algorithm]]:
    """Of the held-out set."""
    r = steady_rate(task)
    return [
        (known.Newton((2,)), known.GradientDescent((10,), rate=r)),
        (known.ConjugateGradients((3,)), known.OnlineGradientDescent()),
        (known.Chebyshev((3,)), known.NearestNeighbors(1)),
        (GaussSeidel((1,)), known.Newton((5,))),
        (known.Newton((2,)), known.Newton((7,))),
        (known.Chebyshev((1,)), known.Chebyshev((7,))),
    ]


def by_hand(task: LinearRegression, seeds: Iterable[int]) -> Iterator[Control]:
    """Networks that run algorithms of the list, at its rates and from its start that is a number."""
    dim, examples = task.dim, task.examples
    rates = [each.rate for each in task.algorithms() if isinstance(each, known.GradientDescent)]
    numbers = [each for each in rates if not isinstance(each, str)]
    starts = [each.start for each in task.algorithms() if type(each) is known.Newton]
    (alpha,) = (start for start in starts if not isinstance(start, str))
    made: list[tuple[Algorithm, Written]] = [
        (known.GradientDescent(range_of(1, 4), rate=each), Written("gradient_descent", (dim, examples, 4, each)))
        for each in numbers
    ]
    made.append((known.Newton(range_of(0, 5), start=alpha), Written("newton", (dim, examples, 5, alpha))))
    made.append((known.Newton(range_of(0, 3), start=alpha), Written("causal_newton", (dim, examples, 3, alpha))))
    for seed, (algorithm, network) in itertools.product(seeds, made):
        yield Control(task, "by hand", network.function, seed, algorithm, network=network)


def by_hand_on_features(task: RepresentationRegression, seeds: Iterable[int]) -> Iterator[Control]:
    """Gradient descent on features, at the rates of the list."""
    matrices = task.features.matrices()
    for seed, each in itertools.product(seeds, task.algorithms()):
        inner = each.algorithm if isinstance(each, known.OnFeatures) else None
        if isinstance(inner, known.GradientDescent) and not isinstance(inner.rate, str):
            network = Written("representation_regression", (matrices, task.examples, 4, inner.rate))
            own = known.OnFeatures(replace(inner, steps=range_of(1, 4)), task)
            yield Control(task, "by hand", network.function, seed, own, network=network)


def range_of(first: int, last: int) -> tuple[int, ...]:
    return tuple(range(first, last + 1))


def _rounded(number: float) -> float:
    return float(f"{number:.2g}")

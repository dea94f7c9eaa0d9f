"""Algorithms that must pass `algoscope.testing.check_algorithm`, and what ours do beyond that. New algorithms are added
to the lists here.
"""

from dataclasses import replace

import torch

import algoscope as ag
from algoscope.algorithms import Algorithm
from algoscope.trace import Prompts

ALGORITHMS: list[Algorithm] = [
    ag.algorithms.OrdinaryLeastSquares(),
    ag.algorithms.Ridge(),
    ag.algorithms.Ridge(ridge=0.7),
    ag.algorithms.Zero(),
    ag.algorithms.Mean(),
    ag.algorithms.GradientDescent(steps=6),
    ag.algorithms.GradientDescent(steps=[0, 2, 5], rate="best", start="uniform"),
    ag.algorithms.GradientDescent(steps=6, start="uniform/sqrt(dim)", ridge=0.3),
    ag.algorithms.GradientDescent(steps=[0, 1, 5, 40], rate="safe"),
    ag.algorithms.PreconditionedGradientDescent(steps=6),
    ag.algorithms.HeavyBall(steps=6),
    ag.algorithms.Chebyshev(steps=6),
    ag.algorithms.GradientDescentPlusPlus(steps=6),
    ag.algorithms.GradientDescentPlusPlus(steps=[1, 3], rate=0.02, transform=0.01),
    ag.algorithms.ConjugateGradients(steps=6),
    ag.algorithms.ConjugateGradients(steps=[2, 3], ridge=0.2),
    ag.algorithms.Newton(steps=6),
    ag.algorithms.Newton(steps=[3, 30], start="2/frobenius", ridge=0.1),
    ag.algorithms.Newton(steps=6, start="1/spectral"),
    ag.algorithms.Newton(steps=6, start="2/spectral"),
    ag.algorithms.Newton(steps=6, start=1e-4),
    ag.algorithms.OnlineGradientDescent(),
    ag.algorithms.OnlineGradientDescent(rate=0.05),
    ag.algorithms.RidgePath(penalties=(0.1, 3.0)),
    ag.algorithms.Krylov(steps=4),
    ag.algorithms.Nesterov(steps=6),
    ag.algorithms.Halley(steps=6),
    ag.algorithms.Halley(steps=[2, 20], start="2/spectral", ridge=0.1),
    ag.algorithms.SteepestDescent(steps=6),
    ag.algorithms.SteepestDescent(steps=[3, 60]),
    ag.algorithms.BarzilaiBorwein(steps=6),
    ag.algorithms.BarzilaiBorwein(steps=[3, 60]),
    ag.algorithms.Lasso(steps=6),
    ag.algorithms.Lasso(steps=[0, 2, 90], penalty=0.5),
    ag.algorithms.Kaczmarz(steps=3),
    ag.algorithms.Kaczmarz(steps=[1, 4], order="randomized", seed=3),
    ag.algorithms.KernelSmoother(),
    ag.algorithms.KernelSmoother(temperature=0.7, kernel="gaussian"),
    ag.algorithms.NearestNeighbors(),
    ag.algorithms.NearestNeighbors(count=1),
    ag.algorithms.Hops(steps=6),
    ag.algorithms.Hops(steps=[1, 3, 9]),
    ag.algorithms.Squaring(steps=4),
    ag.algorithms.Tripling(steps=3),
    ag.algorithms.LabelPropagation(steps=6),
    ag.algorithms.Degree(),
    ag.algorithms.Degree(thresholds=(2, 5)),
    ag.algorithms.Components(),
    ag.algorithms.AllConnected(),
]

WITHOUT_WEIGHTS = (ag.algorithms.Mean, ag.algorithms.KernelSmoother, ag.algorithms.NearestNeighbors)  # on x
REGRESSIONS = [algorithm for algorithm in ALGORITHMS if algorithm.family == "regression"]

LINE_SEARCHES: list[Algorithm] = [  # for points with one coordinate
    ag.algorithms.BinarySearch(lookups=4),
    ag.algorithms.InterpolationSearch(lookups=4),
    ag.algorithms.InterpolationSearch(lookups=4, low=0.5, high=12.5),
    ag.algorithms.InterpolationSearch(lookups=4, place="expected"),
    ag.algorithms.Treap(lookups=4, universe=12),
    ag.algorithms.Buckets(lookups=2, buckets=4),
    ag.algorithms.RangeCells(lookups=3, count=1),
]

CELL_SEARCHES: list[Algorithm] = [  # for points with any number of coordinates
    ag.algorithms.KDTree(lookups=4),
    ag.algorithms.SimHash(lookups=4, bits=1),
    ag.algorithms.IterativeQuantization(lookups=3, bits=1, seed=2),
    ag.algorithms.KMeansCells(lookups=3, count=2),
]

SKETCHES: list[Algorithm] = [
    ag.algorithms.CountMin(cells=6),
    ag.algorithms.CountMin(cells=6, rows=3, increment=0.8, seed=1),
    ag.algorithms.CountMean(cells=6, rows=2),
    ag.algorithms.CountSketch(cells=7, rows=3),
]


def check_trace(algorithm: Algorithm, prompts: Prompts) -> None:
    """Weights, where x has weights, and whether they solve the problem."""
    trace = algorithm.trace(prompts)
    target = tuple(prompts.y.shape[2:])
    batch, points = prompts.batch, prompts.positions
    assert len(trace) > 1 or trace.stages == (0,) or hasattr(algorithm, "steps")
    if isinstance(algorithm, WITHOUT_WEIGHTS):
        assert (trace.weights, trace.converged) == (None, None)
        return
    assert trace.weights is not None
    assert trace.weights.shape == (len(trace), batch, points, prompts.dim, *target)
    assert trace.converged is not None
    assert trace.converged.shape == (len(trace), batch, points)
    assert trace.weights.dtype == trace.values.dtype == torch.float64
    assert bool(trace.values.isfinite().all())
    products = torch.einsum("bpd,sbpd...->sbp...", prompts.x.double(), trace.weights)
    torch.testing.assert_close(trace.values, products, rtol=1e-12, atol=1e-12)


def check_convergence(algorithm: Algorithm, prompts: Prompts) -> None:
    """`converged` means that the gradient of the method's own problem has vanished, and nothing else."""
    trace = algorithm.trace(prompts)
    if isinstance(algorithm, WITHOUT_WEIGHTS):
        return
    assert trace.weights is not None
    assert trace.converged is not None
    ridge = getattr(algorithm, "ridge", 0.0)
    ridge = prompts.noise**2 if ridge is None else ridge
    penalty = getattr(algorithm, "penalty", 0.0)  # on |w|: then the gradient is what a proximal step takes away
    weights = trace.weights.reshape(*trace.weights.shape[:4], -1)
    for t in range(prompts.positions):
        x, y = prompts.x[:, :t], prompts.target_columns[:, :t]
        matrix = x.mT @ x + ridge * torch.eye(prompts.dim, dtype=torch.float64, device=x.device)
        gradient = matrix @ weights[:, :, t] - x.mT @ y
        if penalty:
            rate = 1 / torch.linalg.matrix_norm(matrix, ord=2).clamp(min=1e-300)[:, None, None]
            moved = weights[:, :, t] - rate * gradient
            gradient = (weights[:, :, t] - moved + moved.clamp(-rate * penalty, rate * penalty)) / rate
        size = gradient.flatten(2).norm(dim=2)
        origin = (x.mT @ y).flatten(1).norm(dim=1)
        assert bool((size <= 1.1e-8 * origin + 1e-12)[trace.converged[:, :, t]].all())
        assert bool((size >= 0.9e-8 * origin)[~trace.converged[:, :, t]].all())


def check_answers(algorithm: Algorithm, prompts: Prompts) -> None:
    """One answer a pair, yes or no, the same for (i, j) and (j, i), and yes for a node and its neighbors."""
    trace = algorithm.trace(prompts)
    assert bool(((trace.values == 0) | (trace.values == 1)).all())
    assert torch.equal(trace.values, trace.values.mT)
    assert bool((trace.values.diagonal(dim1=2, dim2=3) == 1).all())
    assert trace.converged is not None
    right = (trace.values == prompts.y).all(-1)
    assert torch.equal(trace.converged, right)
    if not trace.note:  # a method that converges never says too much, and what is right stays right
        assert bool((trace.values <= prompts.y).all())
        assert bool((right[1:] >= right[:-1]).all())


def check_last_step(algorithm: Algorithm, prompts: Prompts) -> None:
    """As many steps as there are nodes are enough for all that converge."""
    if hasattr(algorithm, "steps"):
        enough = type(algorithm)(**{**vars(algorithm), "steps": [prompts.positions]}).trace(prompts)
        assert torch.equal(enough.values[0], prompts.y.double())


ALGORITHM_CHECKS = {
    "regression": [check_trace, check_convergence],
    "graphs": [check_answers, check_last_step],
}


def check_reads(algorithm: Algorithm, prompts: Prompts) -> None:
    """Stage m is the number of a point, also of more look-ups than there are points."""
    trace, count = algorithm.trace(prompts), prompts.before
    many = getattr(algorithm, "lookups")  # noqa: B009 - as above
    assert bool(((trace.values == trace.values.round()) & (trace.values >= 0) & (trace.values < count)).all())
    more = replace(algorithm, lookups=many + count).trace(prompts)  # pyright: ignore[reportArgumentType]
    assert torch.equal(more.values[:many], trace.values)
    assert bool(((more.values >= 0) & (more.values < count)).all())


def check_queries(algorithm: Algorithm, prompts: Prompts) -> None:
    """A query is treated alike whatever else is asked."""
    values, count = algorithm.trace(prompts).values, prompts.before
    first = replace(prompts, x=prompts.x[:, : count + 1], y=prompts.y[:, :1])
    assert torch.equal(algorithm.trace(first).values, values[:, :, :1])


LOOKUP_CHECKS = [check_reads, check_queries]


def check_sketch(algorithm: Algorithm, prompts: Prompts) -> None:
    """Estimates for every position of a stream, which later items do not change; after m reads, those of m rows."""
    trace = algorithm.trace(prompts)
    assert not bool(trace.values[:, :, 0].any())  # nothing has been seen
    for t in range(prompts.positions):
        part = replace(prompts, x=prompts.x[:, : t + 1], y=prompts.y[:, : t + 1])
        assert torch.equal(algorithm.trace(part).values, trace.values[:, :, : t + 1])

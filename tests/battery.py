"""The checks that every member of a family must pass. New tasks and algorithms are added to the lists here."""

from dataclasses import replace

import pytest
import torch

import algoscope as ag
from algoscope.algorithms import Algorithm
from algoscope.tasks import LinearRegression, Task
from algoscope.trace import Prompts

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]

TASKS: list[Task] = [
    LinearRegression(dim=4, examples=9),
    LinearRegression(dim=1, examples=3),
    LinearRegression(dim=3, examples=0),
    LinearRegression(dim=3, examples=1, noise=0.5),
    LinearRegression(dim=4, examples=8, covariance="ill-conditioned", rescale=True),
    LinearRegression(dim=2, examples=5, covariance=((2.0, 0.5), (0.5, 1.0)), targets=3),
]

ALGORITHMS: list[Algorithm] = [
    ag.algorithms.OrdinaryLeastSquares(),
    ag.algorithms.Ridge(),
    ag.algorithms.Ridge(ridge=0.7),
    ag.algorithms.Zero(),
    ag.algorithms.GradientDescent(steps=6),
    ag.algorithms.GradientDescent(steps=[0, 2, 5], rate="best", start="uniform"),
    ag.algorithms.GradientDescent(steps=6, start="uniform/sqrt(dim)", ridge=0.3),
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
]


def check_task(task: Task) -> None:
    """Sampling is a function of the seed, on any device and dtype, and leaves the global random state alone."""
    before = torch.random.get_rng_state()
    prompts = task.sample(3, seed=7)
    assert torch.equal(before, torch.random.get_rng_state())
    assert prompts.same_as(task.sample(3, seed=7))
    assert not prompts.same_as(task.sample(3, seed=8))
    assert prompts.batch == 3
    assert prompts.x.dtype == prompts.y.dtype == torch.float64
    assert task.sample(1, seed=0).batch == 1
    for device in DEVICES:
        for dtype in (torch.float32, torch.bfloat16):
            other = task.sample(3, seed=7, device=device, dtype=dtype)
            assert other.x.dtype == other.y.dtype == dtype
            assert other.x.device.type == other.y.device.type == device
            assert torch.equal(other.x.cpu(), prompts.x.to(dtype))
        x, y = task.draw(2, torch.Generator(device).manual_seed(0), torch.float32)
        assert x.device.type == y.device.type == device
        assert x.dtype == y.dtype == torch.float32
    tokens = task.encode(prompts.x, prompts.y)
    assert tokens.shape == (3, task.length, task.inputs)
    assert task.read(tokens.new_zeros(3, task.length, task.outputs)).shape == prompts.y.shape
    with pytest.raises(ValueError, match="batch must be an integer >= 1"):
        task.sample(0, seed=0)
    with pytest.raises(ValueError, match="seed must be an integer >= 0"):
        task.sample(1, seed=-1)
    with pytest.raises(ValueError, match="dtype must be a floating-point type"):
        task.sample(1, seed=0, dtype=torch.int64)


def check_trace(algorithm: Algorithm, prompts: Prompts) -> None:
    """Shapes, dtype, labels and the tie between weights and predictions."""
    trace = algorithm.trace(prompts)
    target = tuple(prompts.y.shape[2:])
    batch, points = prompts.batch, prompts.positions
    assert trace.prompts is prompts
    assert trace.values.shape == (len(trace), *prompts.y.shape)
    assert trace.weights is not None
    assert trace.weights.shape == (len(trace), batch, points, prompts.dim, *target)
    assert trace.converged is not None
    assert trace.converged.shape == (len(trace), batch, points)
    assert trace.values.dtype == trace.weights.dtype == torch.float64
    assert trace.values.device == prompts.x.device
    assert bool(trace.values.isfinite().all())
    products = torch.einsum("bpd,sbpd...->sbp...", prompts.x.double(), trace.weights)
    torch.testing.assert_close(trace.values, products, rtol=1e-12, atol=1e-12)


def check_prefixes(algorithm: Algorithm, prompts: Prompts) -> None:
    """The prediction at t does not change when examples after it, or its own target, do."""
    other = type(prompts)(x=-2 * prompts.x, y=prompts.y + 3, noise=prompts.noise)
    for t in range(prompts.positions):
        x, y = prompts.x.clone(), prompts.y.clone()
        x[:, t + 1 :], y[:, t:] = other.x[:, t + 1 :], other.y[:, t:]
        changed = algorithm.trace(replace(prompts, x=x, y=y)).values[:, :, t]
        torch.testing.assert_close(changed, algorithm.trace(prompts).values[:, :, t], rtol=1e-9, atol=1e-9)


def check_sequences(algorithm: Algorithm, prompts: Prompts) -> None:
    """A sequence is treated alike in any batch (random starts, which a batch shares out, apart)."""
    if getattr(algorithm, "start", "zero") in ("uniform", "uniform/sqrt(dim)"):
        return
    alone = replace(prompts, x=prompts.x[1:2], y=prompts.y[1:2])
    torch.testing.assert_close(
        algorithm.trace(alone).values[:, 0], algorithm.trace(prompts).values[:, 1], rtol=1e-9, atol=1e-9
    )


def check_stages(algorithm: Algorithm, prompts: Prompts) -> None:
    """Stage k is what a fresh run of k steps ends with; `steps` as a number keeps every step from 0."""
    trace = algorithm.trace(prompts)
    if not hasattr(algorithm, "steps"):
        assert trace.stages == (0,)
        return
    steps = getattr(algorithm, "steps")  # noqa: B009 - the algorithms share the field, not a class that declares it
    assert trace.stages == (tuple(range(steps + 1)) if isinstance(steps, int) else tuple(steps))
    for k, step in enumerate(trace.stages):
        fresh = type(algorithm)(**{**vars(algorithm), "steps": step}).trace(prompts)
        torch.testing.assert_close(trace.values[k], fresh.values[-1], rtol=1e-12, atol=1e-12)


def check_convergence(algorithm: Algorithm, prompts: Prompts) -> None:
    """`converged` means that the gradient of the method's own problem has vanished, and nothing else."""
    trace = algorithm.trace(prompts)
    assert trace.weights is not None
    assert trace.converged is not None
    ridge = getattr(algorithm, "ridge", 0.0)
    ridge = prompts.noise**2 if ridge is None else ridge
    weights = trace.weights.reshape(*trace.weights.shape[:4], -1)
    for t in range(prompts.positions):
        x, y = prompts.x[:, :t], prompts.target_columns[:, :t]
        matrix = x.mT @ x + ridge * torch.eye(prompts.dim, dtype=torch.float64, device=x.device)
        size = (matrix @ weights[:, :, t] - x.mT @ y).flatten(2).norm(dim=2)
        origin = (x.mT @ y).flatten(1).norm(dim=1)
        assert bool((size <= 1.1e-8 * origin + 1e-12)[trace.converged[:, :, t]].all())
        assert bool((size >= 0.9e-8 * origin)[~trace.converged[:, :, t]].all())


ALGORITHM_CHECKS = [check_trace, check_prefixes, check_sequences, check_stages, check_convergence]

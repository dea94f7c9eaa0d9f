"""Spectral filters against the residual factors of the textbook, and spans against projections."""

import numpy as np
import pytest
import torch

from algoscope.algorithms import GradientDescent, Newton, OrdinaryLeastSquares
from algoscope.reading.spectrum import outside_span, spectral_filter
from algoscope.tasks import LinearRegression

TASK = LinearRegression(dim=4, examples=10)
PROMPTS = TASK.sample(60, seed=0)
T = 10


def factor(name: str, eigenvalues: np.ndarray, trace_of_squares: np.ndarray, steps: int) -> np.ndarray:
    """What is left after some steps, along directions of these eigenvalues."""
    if name == "gradient descent":
        return (1 - 0.01 * eigenvalues) ** steps
    return (1 - eigenvalues**2 / np.sqrt(trace_of_squares)) ** (2**steps)  # Newton from S/‖SSᵀ‖


@pytest.mark.parametrize(("name", "algorithm"), [("gradient descent", GradientDescent([7])), ("newton", Newton([3]))])
def test_the_filter_of_a_method_is_one_minus_its_residual_factor(name, algorithm):
    weights = algorithm.trace(PROMPTS).weights
    found = spectral_filter((0,), weights[:, :, T], PROMPTS, T, bins=5)
    seen = PROMPTS.x[:, :T].numpy()
    eigenvalues = np.linalg.eigvalsh(np.einsum("btd,bte->bde", seen, seen))
    solved = 1 - factor(name, eigenvalues, (eigenvalues**4).sum(1, keepdims=True), algorithm.steps[0])
    edges = np.quantile(eigenvalues, np.linspace(0, 1, 6))
    for k in range(5):
        inside = (eigenvalues >= edges[k] - 1e-9) & (eigenvalues <= edges[k + 1] + 1e-9)
        assert solved[inside].min() - 1e-9 <= float(found.solved[0, k]) <= solved[inside].max() + 1e-9
        assert edges[k] - 1e-9 <= float(found.eigenvalues[k]) <= edges[k + 1] + 1e-9
    assert bool((found.low <= found.solved + 1e-12).all())
    assert bool((found.solved <= found.high + 1e-12).all())


def test_the_solution_has_solved_everything_and_nothing_has_solved_nothing():
    weights = OrdinaryLeastSquares().trace(PROMPTS).weights
    assert weights is not None
    for position in (2, T):  # also where some directions were never seen
        both = torch.cat([weights[:, :, position], torch.zeros_like(weights[:, :, position])])
        found = spectral_filter(("solution", "nothing"), both, PROMPTS, position, bins=3)
        torch.testing.assert_close(found.solved[0], torch.ones(3, dtype=torch.float64))
        assert not bool(found.solved[1].any())


def test_what_lies_outside_the_span_is_measured():
    seen = PROMPTS.x[:, :2].mT  # [batch, dim, 2]
    inside = (seen @ torch.randn(60, 2, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64))[..., 0]
    q, _ = torch.linalg.qr(seen)
    random = torch.randn(60, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    across = random - (q @ (q.mT @ random[..., None]))[..., 0]
    shares = outside_span(torch.stack([inside, across, random]), PROMPTS, 2)
    torch.testing.assert_close(shares[:, 0], torch.zeros(60, dtype=torch.float64), atol=1e-12, rtol=0)
    torch.testing.assert_close(shares[:, 1], torch.ones(60, dtype=torch.float64))
    torch.testing.assert_close(shares[:, 2], across.square().sum(1) / random.square().sum(1))

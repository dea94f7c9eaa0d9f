"""Sums of moments of S as transformers, against powers of S in plain numpy and against the algorithms."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import chebyshev

import algoscope as ag
from algoscope.constructions import Term, moments, recursion


def predictions(network, task, prompts):
    return task.read(network(task.encode(prompts.x, prompts.y)))[:, -1].detach().numpy()


@settings(max_examples=25, deadline=None)
@given(
    dim=st.integers(1, 8),
    examples=st.integers(1, 20),
    coefficients=st.lists(st.floats(-2, 2, allow_subnormal=False), min_size=1, max_size=7),
    seed=st.integers(0, 10**6),
)
def test_a_sum_of_moments(dim, examples, coefficients, seed):
    task = ag.tasks.LinearRegression(dim, examples)
    prompts = task.sample(3, seed)
    network = moments(dim, examples, coefficients)
    x, y = prompts.x.numpy(), prompts.y.numpy()
    sizes, exact = [], []
    for inputs, targets in zip(x, y, strict=True):
        s, b = inputs[:-1].T @ inputs[:-1], inputs[:-1].T @ targets[:-1]
        parts = [beta * inputs[-1] @ np.linalg.matrix_power(s, k) @ b for k, beta in enumerate(coefficients)]
        exact.append(sum(parts))
        sizes.append(sum(map(abs, parts)) + 1e-300)  # what rounding is relative to
    off = np.abs(predictions(network, task, prompts) - exact) / sizes
    assert off.max() < 1e-10
    assert len(network.blocks) == len(coefficients) + 1
    assert network.read_out.in_features <= 8 * dim + 8


def test_gradient_descent_is_one():
    dim, examples, steps, rate = 4, 12, 9, 0.02
    task = ag.tasks.LinearRegression(dim, examples)
    prompts = task.sample(5, seed=0)
    network = recursion(dim, examples, 0.0, [Term(keep=1.0, apply=-rate, start=rate)] * steps)
    exact = ag.algorithms.GradientDescent(steps, rate=rate).trace(prompts).values[:, :, -1]
    np.testing.assert_allclose(predictions(network, task, prompts), exact[-1], rtol=1e-11)
    states = network.run(task.encode(prompts.x, prompts.y), network.stages)[1]
    for step in range(steps + 1):
        shown = network.read_out(states[f"layer {step + 2}"])[:, -1, 0]
        torch.testing.assert_close(shown, exact[step], rtol=1e-11, atol=1e-12)


def test_chebyshev_is_one():
    """w_k = (I − T_k(Z)/T_k(z_0)) S⁻¹Xᵀy with Z = (M + m − 2S)/(M − m), for a spectrum within [m, M]."""
    dim, examples, steps, low, high = 3, 10, 6, 1.0, 30.0
    center, half = (high + low) / 2, (high - low) / 2
    ratios = [chebyshev.Chebyshev.basis(k)(center / half) for k in range(steps + 1)]
    terms = [Term(keep=1.0, apply=-1 / center, start=1 / center)]
    for k in range(1, steps):
        # T_{k+1} = 2z T_k − T_{k−1}, for the errors divided by T_k(z_0)
        a, b = 2 * ratios[k] / (half * ratios[k + 1]), ratios[k - 1] / ratios[k + 1]
        terms.append(Term(keep=a * center, apply=-a, before=-b, start=a))
    task = ag.tasks.LinearRegression(dim, examples)
    prompts = task.sample(4, seed=1)
    found = predictions(recursion(dim, examples, 0.0, terms), task, prompts)
    for k, (inputs, targets) in enumerate(zip(prompts.x.numpy(), prompts.y.numpy(), strict=True)):
        values, basis = np.linalg.eigh(inputs[:-1].T @ inputs[:-1])
        left = chebyshev.Chebyshev.basis(steps)((center - values) / half) / ratios[steps]
        weights = basis @ ((1 - left) / values * (basis.T @ (inputs[:-1].T @ targets[:-1])))
        np.testing.assert_allclose(found[k], inputs[-1] @ weights, rtol=1e-9)


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_coefficients_are_named():
    with pytest.raises(ValueError, match="coefficients must be at least one number"):
        moments(2, 3, [])
    with pytest.raises(ValueError, match="coefficients must be finite numbers"):
        moments(2, 3, [1.0, float("nan")])
    with pytest.raises(ValueError, match="coefficients must be a list of numbers, got 2"):
        moments(2, 3, 2.0)  # pyright: ignore[reportArgumentType]
    for terms in (3, [(1.0,) * 5]):
        with pytest.raises(ValueError, match="terms must be a list of Term"):
            recursion(2, 3, 0.0, terms)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="coefficients must be a list of numbers, got 1"):
        recursion(2, 3, 0.0, [1.0])  # pyright: ignore[reportArgumentType]


@pytest.mark.usefixtures("as_users_run_it")
def test_coefficients_may_be_a_tensor_or_an_array():
    task = ag.tasks.LinearRegression(2, 3)
    prompts = task.sample(3, seed=0)
    plain = predictions(moments(2, 3, [1.0, 2.0]), task, prompts)
    for numbers in (torch.tensor([1.0, 2.0]), np.array([1, 2])):
        built = moments(2, 3, numbers)  # pyright: ignore[reportArgumentType]
        np.testing.assert_array_equal(predictions(built, task, prompts), plain)

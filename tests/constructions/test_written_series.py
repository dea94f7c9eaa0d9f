"""The looped transformer for series against gradient descent on the features, loop by loop."""

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

import algoscope as ag
from algoscope.constructions import autoregression


@settings(max_examples=15, deadline=None)
@given(
    dim=st.integers(1, 5),
    order=st.integers(1, 4),
    layers=st.integers(1, 3),
    examples=st.integers(4, 20),
    loops=st.integers(1, 8),
    seed=st.integers(0, 10**6),
)
@example(dim=20, order=3, layers=3, examples=40, loops=20, seed=0)
def test_every_loop_is_a_step_of_gradient_descent_on_the_features(dim, order, layers, examples, loops, seed):
    task = ag.tasks.AutoregressiveRepresentation(dim, examples, order, layers, noise=0.5, gain=0.3)
    prompts = task.sample(3, seed)
    left = task.represented(prompts)
    rate = 1 / (torch.linalg.matrix_norm(left.x[:, :-1], 2).max().item() ** 2 + 1)
    size = max(left.x.square().sum(-1).max().item(), 1e-6)  # of the scores: c is to be small beside 1/size
    matrices = task.features.matrices()
    network = autoregression(matrices, order, examples, loops, rate, small=6e-6 * dim / size)
    assert network.borders == (layers + 1, layers + 2)
    assert network.get_submodule("blocks.0.attention").heads == max(order, 2)
    stages = [f"loop {loop}" for loop in range(1, loops + 1)]
    with torch.no_grad():
        states = network.run(task.encode(prompts.x, prompts.y), stages)[1]
        exact = ag.algorithms.GradientDescent(loops, rate=rate).trace(left).values[:, :, -1].reshape(-1, 3, dim)
        for k, stage in enumerate(stages):
            found = network.read_out(states[stage])[:, -1]
            assert float((found - exact[k + 1]).norm()) <= 1e-8 * float(prompts.y.norm() + exact[k + 1].norm())


def test_a_token_holds_the_ones_before_it_and_the_next():
    """Lemma A.3, in plain numpy: what is before the first is zero."""
    task = ag.tasks.AutoregressiveRepresentation(2, 6, 3, noise=1.0, gain=0.3)
    prompts = task.sample(2, seed=0)
    network = autoregression(task.features.matrices(), 3, 6, 1, 0.01)
    with torch.no_grad():
        state = network.run(task.encode(prompts.x, prompts.y), ["pre"])[1]["pre"]
    at = {name: place.where for name, place in network.places.items()}
    series = np.concatenate([np.zeros((2, 2, 2)), prompts.x.numpy()], axis=1)
    np.testing.assert_allclose(state[..., at["before 2"]], series[:, :7], atol=1e-12)
    np.testing.assert_allclose(state[..., at["before 1"]], series[:, 1:8], atol=1e-12)
    np.testing.assert_allclose(state[:, :-1, at["y"]], prompts.y[:, :-1], atol=1e-12)
    assert not state[:, -1, at["y"]].any()


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="the first of matrices must read 2 values, got 3 columns"):
        autoregression([torch.ones(2, 3)], 2, 6, 1, 0.01)
    with pytest.raises(ValueError, match="order must be less than the length of the series"):
        autoregression([torch.ones(2, 14)], 7, 6, 1, 0.01)

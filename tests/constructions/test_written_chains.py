"""The looped transformer for chain of thought against gradient descent on the layer that is asked for."""

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

import algoscope as ag
from algoscope.constructions import chain_of_thought


@settings(max_examples=15, deadline=None)
@given(
    dim=st.integers(1, 5),
    examples=st.integers(1, 12),
    layers=st.integers(1, 4),
    loops=st.integers(1, 8),
    slope=st.sampled_from([0.01, 0.3]),
    seed=st.integers(0, 10**6),
    data=st.data(),
)
@example(dim=20, examples=40, layers=6, loops=20, slope=0.01, seed=0, data=None)
def test_every_loop_is_a_step_of_gradient_descent_on_the_layer_asked_for(
    dim, examples, layers, loops, slope, seed, data
):
    level = data.draw(st.integers(0, layers - 1)) if data else 3
    task = ag.tasks.ChainOfThought(dim, examples, layers, slope)
    prompts = task.sample(3, seed)
    layer = task.problems(prompts)[level]
    largest = torch.linalg.matrix_norm(layer.x[:, :-1], 2).max().item() ** 2
    size = max(layer.x.square().sum(-1).max().item(), 1e-3)  # of the scores: c is to be small beside 1/size
    network = chain_of_thought(dim, examples, layers, loops, 1 / (largest + 1), slope, small=6e-6 * dim / size)
    assert (len(network.blocks), network.borders) == (4, (2, 3))
    tokens = task.encode(prompts.x, prompts.y)[:, : examples * (layers + 1) + level + 1]  # ends at that state
    stages = [f"loop {loop}" for loop in range(1, loops + 1)]
    with torch.no_grad():
        outputs, states = network.run(tokens, stages)
    exact = ag.algorithms.GradientDescent(loops, rate=1 / (largest + 1)).trace(layer).values[:, :, -1]
    exact = exact.reshape(-1, 3, dim)
    for k, stage in enumerate(stages):
        found = states[stage][:, -1, network.places["r"].where]
        assert float((found - exact[k + 1]).norm()) <= 1e-8 * float(layer.y.norm() + exact[k + 1].norm())
    answer = torch.nn.functional.leaky_relu(exact[-1], slope)
    assert float((outputs[:, -1] - answer).norm()) <= 1e-8 * float(layer.y.norm() + answer.norm())


@pytest.mark.parametrize("level", [0, 1, 2])
def test_only_the_states_of_the_level_asked_for_are_kept(level):
    task = ag.tasks.ChainOfThought(3, 4, 3)
    prompts = task.sample(2, seed=0)
    network = chain_of_thought(3, 4, 3, 1, 0.01)
    end = 16 + level + 1
    with torch.no_grad():
        state = network.run(task.encode(prompts.x, prompts.y)[:, :end], ["pre"])[1]["pre"]
    at = {name: place.where for name, place in network.places.items()}
    keep = torch.arange(end) % 4 == level
    assert torch.equal(state[0, :, at["keep"].start], keep.double())
    assert torch.equal(state[0, :, at["last"].start], (torch.arange(end) == end - 1).double())
    assert not state[:, ~keep][..., at["x"]].any()
    assert not state[:, ~keep][..., at["r"]].any()
    torch.testing.assert_close(state[:, keep][..., at["x"]], task.problems(prompts)[level].x)
    torch.testing.assert_close(state[:, keep][:, :-1, at["r"]], -task.problems(prompts)[level].y[:, :-1])


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="slope must be"):
        chain_of_thought(2, 3, 2, 1, 0.01, slope=0.0)
    with pytest.raises(ValueError, match="bound must be"):
        chain_of_thought(2, 3, 2, 1, 0.01, bound=-1.0)

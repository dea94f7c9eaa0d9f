"""Newton on every prefix, in one causal transformer."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import algoscope as ag
from algoscope.constructions import causal_newton


@settings(max_examples=15, deadline=None)
@given(
    dim=st.integers(1, 5),
    examples=st.integers(1, 12),
    steps=st.integers(0, 8),
    hard=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_every_prefix_gets_its_newton_steps(dim, examples, steps, hard, seed):
    task = ag.tasks.LinearRegression(dim, examples, "ill-conditioned" if hard else "isotropic", rescale=hard)
    prompts = task.sample(3, seed)
    alpha = 1 / torch.linalg.matrix_norm(prompts.x[:, :-1], 2).max().item() ** 4
    network = causal_newton(dim, examples, steps, alpha)
    exact = ag.algorithms.Newton(steps, start=alpha).trace(prompts).values
    with torch.no_grad():
        _, states = network.run(task.encode(prompts.x, prompts.y), network.stages)
        for step in range(steps + 1):
            shown = task.read(network.read_out(states[f"layer {2 * step + 4}"]))
            assert float((shown - exact[step]).norm() / exact[step].norm()) <= 1e-9
    assert len(network.blocks) == 2 * steps + 4
    assert network.read_out.in_features <= 4 * dim**2 + 5 * dim + 15


def test_later_tokens_change_nothing():
    task = ag.tasks.LinearRegression(3, 8)
    prompts, network = task.sample(2, seed=0), causal_newton(3, 8, 4, 1e-3)
    tokens = task.encode(prompts.x, prompts.y)
    with torch.no_grad():
        torch.testing.assert_close(network(tokens[:, :7]), network(tokens)[:, :7], rtol=1e-11, atol=1e-12)


def test_the_instrument_names_it_layer_by_layer_at_all_positions():
    task, alpha = ag.tasks.LinearRegression(dim=3, examples=10), 1e-3
    algorithms = [
        ag.algorithms.Newton(9, start=alpha),
        ag.algorithms.GradientDescent(range(40), rate="best"),
        ag.algorithms.ConjugateGradients(3),
        ag.algorithms.OrdinaryLeastSquares(),
    ]
    stages = [f"layer {2 * step + 4}" for step in range(7)]
    verdict = ag.identify(
        causal_newton(3, 10, 6, alpha), task, algorithms, 300, 300, stages=["layer 2", *stages], weights=False
    )
    before, *found = verdict.stages
    assert before.null
    assert [stage.agreed for stage in found] == [((f"Newton(start={alpha})", step),) for step in range(7)]


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_sizes_are_named():
    with pytest.raises(ValueError, match="steps must be an integer >= 0"):
        causal_newton(2, 3, -1, 0.1)

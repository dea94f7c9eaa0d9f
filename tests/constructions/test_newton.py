"""The hand-built Newton transformer against the algorithm, in numbers, and as a control of the instrument."""

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

import algoscope as ag
from algoscope.constructions import newton


def predictions(network, task, prompts):
    return task.read(network(task.encode(prompts.x, prompts.y)))[:, -1].detach()


@pytest.mark.parametrize(("dim", "examples", "steps"), [(1, 1, 0), (3, 7, 5), (5, 20, 8)])
def test_it_runs_newton(dim, examples, steps):
    task, alpha = ag.tasks.LinearRegression(dim=dim, examples=examples), 1e-3
    prompts, network = task.sample(16, seed=0), newton(dim, examples, steps, alpha)
    exact = ag.algorithms.Newton(steps, start=alpha).trace(prompts).values[:, :, -1]
    torch.testing.assert_close(predictions(network, task, prompts), exact[-1], rtol=1e-9, atol=1e-9)
    states = network.run(task.encode(prompts.x, prompts.y), network.stages)[1]
    for step in range(steps + 1):  # the prediction of each step is in the stream, read by the network's own head
        shown = network.read_out(states[f"layer {step + 3}"])[:, -1, 0]
        torch.testing.assert_close(shown, exact[step], rtol=1e-9, atol=1e-9)


@settings(max_examples=25, deadline=None)
@given(
    dim=st.integers(1, 20),
    examples=st.integers(1, 100),
    steps=st.integers(0, 20),
    hard=st.booleans(),
    seed=st.integers(0, 10**6),
)
@example(dim=20, examples=100, steps=20, hard=False, seed=0)
@example(dim=20, examples=100, steps=20, hard=True, seed=0)
def test_theorem_1(dim, examples, steps, hard, seed):
    """The relative error over a batch is at most 1e-9, in at most k + 8 layers of width at most 8d + 8."""
    task = ag.tasks.LinearRegression(dim, examples, "ill-conditioned" if hard else "isotropic", rescale=hard)
    prompts = task.sample(4, seed)
    largest = torch.linalg.matrix_norm(prompts.x[:, :-1], 2).max().item() ** 2  # λ of S
    alpha = 1 / largest**2  # one constant for the batch; it may be far too small for some prompts
    network = newton(dim, examples, steps, alpha)
    found = predictions(network, task, prompts)
    exact = ag.algorithms.Newton([steps], start=alpha).trace(prompts).values[0, :, -1]
    assert float((found - exact).norm() / exact.norm()) <= 1e-9
    assert len(network.blocks) <= steps + 8
    assert network.read_out.in_features <= 8 * dim + 8


def test_the_instrument_names_it_layer_by_layer():
    task, alpha = ag.tasks.LinearRegression(dim=3, examples=12), 4e-4
    verdict = ag.identify(
        newton(3, 12, 8, alpha),
        task,
        algorithms=[ag.algorithms.Newton(10, start=alpha), ag.algorithms.GradientDescent(range(30), rate="best"),
                    ag.algorithms.ConjugateGradients(3), ag.algorithms.OrdinaryLeastSquares()],
        weights=False,
    )  # fmt: skip
    assert verdict.matches["errors"]["ConjugateGradients"].positions == 12  # the only one at which it answers
    found = {str(stage.stage): stage for stage in verdict.stages}
    assert all(found[name].null for name in ("embedding", "layer 1", "layer 2"))
    for step in range(8):
        assert found[f"layer {step + 3}"].agreed == ((f"Newton(start={alpha})", step),)


@pytest.mark.parametrize(("arguments", "message"), [((0, 4, 2, 0.1), "dim"), ((2, 4, 2, 0.0), "alpha")])
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_sizes_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        newton(*arguments)

"""The hand-built transformer against the algorithm, in numbers, and as a control of the instrument."""

import pytest
import torch

import algoscope as ag
from algoscope.constructions import newton


@pytest.mark.parametrize(("dim", "examples", "steps"), [(1, 1, 0), (3, 7, 5), (5, 20, 8)])
def test_it_runs_newton(dim, examples, steps):
    task, alpha = ag.tasks.LinearRegression(dim=dim, examples=examples), 1e-3
    prompts, network = task.sample(16, seed=0), newton(dim, examples, steps, alpha)
    exact = ag.algorithms.Newton(steps, start=alpha).trace(prompts).values[:, :, -1]
    tokens = task.encode(prompts.x, prompts.y)
    torch.testing.assert_close(task.read(network(tokens))[:, -1], exact[-1], rtol=1e-9, atol=1e-9)
    states = network.run(tokens, network.stages)[1]
    for step in range(steps + 1):  # the prediction of each step is in the stream, read by the network's own read-out
        shown = network.read_out(states[f"layer {step + 3}"])[:, -1, 0]
        torch.testing.assert_close(shown, exact[step], rtol=1e-9, atol=1e-9)


def test_it_has_at_most_the_layers_of_the_theorem_and_a_width_linear_in_the_dimension():
    widths = [newton(dim, 4, 6, 1e-3).read_out.in_features for dim in (10, 20, 40)]
    assert len(newton(10, 4, 6, 1e-3).blocks) <= 6 + 8
    assert widths[2] - widths[1] == pytest.approx(2 * (widths[1] - widths[0]), abs=8)


def test_the_instrument_names_it_layer_by_layer():
    task, alpha = ag.tasks.LinearRegression(dim=3, examples=12), 4e-4
    verdict = ag.identify(
        newton(3, 12, 8, alpha),
        task,
        algorithms=[ag.algorithms.Newton(10, start=alpha), ag.algorithms.GradientDescent(range(30), rate="best"),
                    ag.algorithms.ConjugateGradients(3), ag.algorithms.OrdinaryLeastSquares()],
        positions=12,
        weights=False,
    )  # fmt: skip
    found = {str(stage.stage): stage for stage in verdict.stages}
    assert all(found[name].null for name in ("embedding", "layer 1", "layer 2"))
    for step in range(8):
        assert found[f"layer {step + 3}"].agreed == ((f"Newton(start={alpha})", step),)


@pytest.mark.parametrize(("arguments", "message"), [((0, 4, 2, 0.1), "dim"), ((2, 4, 2, 0.0), "alpha")])
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_sizes_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        newton(*arguments)

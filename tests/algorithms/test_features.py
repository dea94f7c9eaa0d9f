"""Algorithms on features: against the definition in plain numpy."""

import numpy as np
import pytest
import torch

import algoscope as ag
from algoscope.algorithms import GradientDescent, OnFeatures, OrdinaryLeastSquares
from algoscope.tasks import AutoregressiveRepresentation, ChainOfThought, RepresentationRegression


@pytest.mark.parametrize(
    "task",
    [RepresentationRegression(dim=3, examples=9), AutoregressiveRepresentation(dim=3, examples=9, order=2, noise=0.5)],
    ids=str,
)
def test_descent_on_features_is_descent_on_what_the_features_are(task):
    prompts = task.sample(2, seed=0)
    trace = OnFeatures(GradientDescent([0, 3], rate=0.02), task).trace(prompts)
    assert trace.name == "GradientDescent(rate=0.02) on features"
    assert trace.stages == (0, 3)
    left, y = task.represented(prompts).x.numpy(), prompts.target_columns.numpy()
    for b, t in ((0, 9), (1, 4)):
        weights = np.zeros((3, y.shape[-1]))
        for _ in range(3):
            weights -= 0.02 * left[b, :t].T @ (left[b, :t] @ weights - y[b, :t])
        found = trace.values[1, b, t].numpy().reshape(-1)
        np.testing.assert_allclose(found, (left[b, t] @ weights).reshape(-1), atol=1e-10)
    assert not trace.values[0].any()
    assert OnFeatures(GradientDescent(3), task, "(1, x)").name == "GradientDescent on (1, x)"


def test_least_squares_on_a_chain_of_thought_finds_every_state_that_it_can():
    """A layer is known once as many chains have been seen as it has inputs."""
    task = ChainOfThought(dim=2, examples=6, depth=3)
    prompts = task.sample(4, seed=0)
    values = OnFeatures(OrdinaryLeastSquares(), task).trace(prompts).values[0]
    torch.testing.assert_close(values[:, 2 * 3 :], prompts.y[:, 2 * 3 :], rtol=1e-5, atol=1e-6)
    assert float((values - prompts.y)[:, :3].abs().max()) > 0.1  # of the first chain nothing is known


def test_what_may_have_been_learned_includes_both():
    names = [algorithm.name for algorithm in RepresentationRegression(dim=3, examples=4).algorithms()]
    assert {"Newton", "Newton on features"} <= set(names)
    names = [algorithm.name for algorithm in ChainOfThought(dim=3, examples=4).algorithms()]
    assert all(name.endswith("on features") for name in names)


def test_the_instrument_names_descent_on_features_loop_by_loop():
    """The network of Theorem 3.1, with its features written into it."""
    task, rate = RepresentationRegression(dim=3, examples=10), 0.03
    network = ag.constructions.representation_regression(task.features.matrices(), 10, 3, rate)
    listed = [
        OnFeatures(GradientDescent(6, rate=rate), task),
        GradientDescent(6, rate=rate),
        OnFeatures(OrdinaryLeastSquares(), task),
    ]
    verdict = ag.identify(
        network, task, listed, 400, 400, stages=["pre", "loop 2", "loop 3"], positions=10, weights=False
    )
    before, *found = verdict.stages
    assert before.null
    for loop, stage in zip((2, 3), found, strict=True):
        assert (f"GradientDescent(rate={rate}) on features", loop) in stage.agreed
        assert all(name == f"GradientDescent(rate={rate}) on features" for name, _ in stage.agreed)

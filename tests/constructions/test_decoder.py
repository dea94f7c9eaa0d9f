"""Gradient descent on every prefix, in one looped decoder."""

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

import algoscope as ag
from algoscope.constructions import decoder_gradient_descent, quasi_orthogonal
from algoscope.instrument import Instrument


@settings(max_examples=20, deadline=None)
@given(dim=st.integers(1, 6), examples=st.integers(1, 15), loops=st.integers(1, 10), seed=st.integers(0, 10**6))
@example(dim=20, examples=40, loops=20, seed=0)
@example(dim=1, examples=1, loops=1, seed=3)
def test_every_loop_is_a_step_on_every_prefix(dim, examples, loops, seed):
    task = ag.tasks.LinearRegression(dim, examples)
    prompts = task.sample(3, seed)
    rate = 1 / torch.linalg.matrix_norm(prompts.x[:, :-1], 2).max().item() ** 2
    network = decoder_gradient_descent(dim, examples, loops, rate)
    exact = ag.algorithms.GradientDescent([loops], rate=rate).trace(prompts)
    tokens, at = task.encode(prompts.x, prompts.y), network.places["w"].where
    with torch.no_grad():
        found, states = network.run(tokens, [f"loop {loops}"])
    assert float((task.read(found) - exact.values[0]).norm() / prompts.y.norm()) < 1e-8
    assert exact.weights is not None
    weights = states[f"loop {loops}"][:, ::2, at]
    assert float((weights - exact.weights[0]).norm() / max(float(exact.weights[0].norm()), 1e-3)) < 1e-8


def test_later_tokens_change_nothing():
    task = ag.tasks.LinearRegression(3, 8)
    prompts, network = task.sample(2, seed=0), decoder_gradient_descent(3, 8, 4, 0.02)
    tokens = task.encode(prompts.x, prompts.y)
    with torch.no_grad():
        torch.testing.assert_close(network(tokens[:, :7]), network(tokens)[:, :7], rtol=1e-7, atol=1e-9)


def test_it_has_the_layers_and_heads_of_the_theorem():
    network = decoder_gradient_descent(3, 8, 4, 0.02)
    assert network.borders == (2, 3)  # one more before the loop than stated, since x and y share coordinates
    assert len(network.blocks) == 4  # and one less after it
    assert all(block.get_submodule("attention").heads == 2 for block in network.blocks)


def test_the_instrument_names_it_at_all_positions():
    task, rate = ag.tasks.LinearRegression(dim=3, examples=8), 0.02
    algorithms = [
        ag.algorithms.GradientDescent(12, rate=rate),
        ag.algorithms.Newton(10),
        ag.algorithms.ConjugateGradients(3),
        ag.algorithms.OnlineGradientDescent(),
    ]
    instrument = Instrument(task, algorithms, prompts=800, fit_on=800)
    network = decoder_gradient_descent(3, 8, 1, rate)
    for loops in (1, 4, 7):
        network.run_loops(loops)
        (found,) = instrument.identify(network, stages=["post"], weights=False).stages
        assert found.agreed == ((f"GradientDescent(rate={rate})", loops),)


@settings(deadline=None)
@given(count=st.integers(1, 60))
def test_codes_are_quasi_orthogonal(count):
    codes = quasi_orthogonal(count)
    products = codes @ codes.T
    torch.testing.assert_close(products.diagonal(), torch.ones(count, dtype=torch.float64))
    assert float((products - 2 * torch.eye(count)).max()) <= 0.5 + 1e-12
    assert codes.shape[1] <= count


def test_codes_are_short():
    assert quasi_orthogonal(400).shape[1] < 2 * quasi_orthogonal(40).shape[1] + 20  # they grow like a logarithm


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="rate must be"):
        decoder_gradient_descent(2, 3, 1, rate=0.0)
    with pytest.raises(ValueError, match="count must be an integer >= 1"):
        quasi_orthogonal(0)

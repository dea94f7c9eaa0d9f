"""The looped transformers written by hand against their algorithms, loop by loop, and as controls of the instrument."""

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

import algoscope as ag
from algoscope.constructions import anatomy, gradient_descent, looped_newton, representation_regression
from algoscope.models.transformer import added

TASK = ag.tasks.LinearRegression(dim=5, examples=12)
PROMPTS = TASK.sample(8, seed=0)


@torch.no_grad()
def shown(network, stage, task=TASK, prompts=PROMPTS):
    """What the network's own head predicts at a stage, for the test point."""
    states = network.run(task.encode(prompts.x, prompts.y), [stage])[1]
    return task.read(network.read_out(states[stage]))[:, -1]


def off(found, exact, unit=None):
    """Relative to the exact answers, or to a unit: where these are small by chance, rounding is not."""
    return float((found - exact).norm() / (exact if unit is None else unit).norm())


@settings(max_examples=25, deadline=None)
@given(
    dim=st.integers(1, 8),
    examples=st.integers(1, 20),
    targets=st.integers(1, 3),
    loops=st.integers(1, 12),
    ridge=st.sampled_from([0.0, 0.5]),
    seed=st.integers(0, 10**6),
)
@example(dim=20, examples=40, targets=1, loops=20, ridge=0.0, seed=0)
def test_every_loop_is_a_step_of_gradient_descent(dim, examples, targets, loops, ridge, seed):
    task = ag.tasks.LinearRegression(dim, examples, targets=targets)
    prompts = task.sample(4, seed)
    rate = 1 / (torch.linalg.matrix_norm(prompts.x[:, :-1], 2).max().item() ** 2 + ridge)
    network = gradient_descent(dim, examples, loops, rate, ridge, targets)
    exact = ag.algorithms.GradientDescent(loops, rate=rate, ridge=ridge).trace(prompts).values[:, :, -1]
    for loop in range(1, loops + 1):
        assert off(shown(network, f"loop {loop}", task, prompts), exact[loop], prompts.y[:, -1]) < 1e-8


@settings(max_examples=15, deadline=None)
@given(dim=st.integers(1, 8), examples=st.integers(1, 20), loops=st.integers(1, 12), seed=st.integers(0, 10**6))
@example(dim=20, examples=40, loops=20, seed=0)
def test_theorem_4_1(dim, examples, loops, seed):
    task = ag.tasks.LinearRegression(dim, examples)
    prompts = task.sample(4, seed)
    alpha = 1 / torch.linalg.matrix_norm(prompts.x[:, :-1], 2).max().item() ** 4
    network = looped_newton(dim, examples, loops, alpha)
    exact = ag.algorithms.Newton([loops], start=alpha).trace(prompts).values[0, :, -1]
    found = shown(network, "post", task, prompts)
    assert float((found - exact).norm()) <= 1e-8 * float(exact.norm() + 0.1 * prompts.y.norm())


@pytest.mark.parametrize("loops", [1, 4, 8, 16])
def test_every_loop_is_a_step_of_newton(loops):
    network = looped_newton(5, 12, 3, alpha=1e-4)
    network.run_loops(loops)
    exact = ag.algorithms.Newton([loops], start=1e-4).trace(PROMPTS).values[0, :, -1]
    assert off(shown(network, "post"), exact) < 1e-8


def test_it_is_as_exact_as_c_is_small_until_rounding_takes_over():
    exact = ag.algorithms.GradientDescent([6], rate=0.02).trace(PROMPTS).values[0, :, -1]
    errors = {
        c: off(shown(gradient_descent(5, 12, 6, 0.02, small=c), "loop 6"), exact)
        for c in (1e-1, 1e-2, 1e-3, 1e-5, 1e-7, 1e-9)
    }
    assert errors[1e-1] / errors[1e-2] == pytest.approx(100, rel=0.05)  # what is left is of third order in c
    assert errors[1e-2] / errors[1e-3] == pytest.approx(100, rel=0.05)
    assert errors[1e-5] < 1e-8
    assert errors[1e-9] > 10 * errors[1e-7] > 10 * errors[1e-5]  # ε/c


def test_it_is_as_exact_as_e_to_the_minus_c_is_small():
    exact = ag.algorithms.GradientDescent([1], rate=0.02).trace(PROMPTS).values[0, :, -1]
    errors = [off(shown(gradient_descent(5, 12, 1, 0.02, large=c), "loop 1"), exact) for c in (5.0, 10.0, 15.0)]
    assert errors[0] / errors[1] == pytest.approx(2.718281828**5, rel=0.2)
    assert errors[1] / errors[2] == pytest.approx(2.718281828**5, rel=0.2)


def test_the_blank_token_stays_blank():
    """It would come back e^C times as large."""
    network, seen = looped_newton(5, 12, 8, alpha=1e-4), []
    network.blocks[2].register_forward_hook(lambda module, given, left: seen.append(added(*left)))
    with torch.no_grad():
        network(TASK.encode(PROMPTS.x, PROMPTS.y))
    assert len(seen) == 8
    for state in seen:
        assert not state[:, 0, network.places["u"].where].any()
        assert state[:, 1, network.places["u"].where].any()


def test_layers_and_heads_are_those_of_the_lemmas():
    for network, pre, post in ((gradient_descent(5, 12, 3, 0.01), 1, 0), (looped_newton(5, 12, 3, 1e-4), 2, 1)):
        assert [len(network.blocks), network.borders] == [pre + 1 + post, (pre, pre + 1)]
        assert network.get_submodule(f"blocks.{pre}.attention").heads == 2
    parts = anatomy(gradient_descent(5, 12, 3, 0.01)).parts
    assert ("loop", "head 1", "x and −point and all asks x and −test and blank, carries −r to r") in parts
    assert ("loop", "head 2", "−x and −point and all asks x and −test and blank, carries r to r") in parts


def test_the_instrument_names_gradient_descent_loop_by_loop():
    rate = 0.01
    algorithms = [
        ag.algorithms.GradientDescent(12, rate=rate),
        ag.algorithms.Newton(10),
        ag.algorithms.ConjugateGradients(5),
        ag.algorithms.OrdinaryLeastSquares(),
    ]
    network = gradient_descent(5, 12, 6, rate)
    verdict = ag.identify(network, TASK, algorithms=algorithms, positions=12, weights=False)
    found = {str(stage.stage): stage for stage in verdict.stages}
    assert found["embedding"].null
    assert found["pre"].null
    for loop in range(1, 7):
        assert found[f"loop {loop}"].agreed == (("GradientDescent", loop),)


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="rate times ridge must be below 1"):
        gradient_descent(2, 3, 1, rate=1.0, ridge=2.0)
    with pytest.raises(ValueError, match="small must be a finite number > 0"):
        gradient_descent(2, 3, 1, rate=1.0, small=0.0)
    with pytest.raises(ValueError, match="loops"):
        looped_newton(2, 3, -1, alpha=1.0)


def leaky_mlp(matrices, x, slope):
    for matrix in matrices:
        x = torch.nn.functional.leaky_relu(x @ matrix.T, slope)
    return x


@settings(max_examples=20, deadline=None)
@given(
    widths=st.lists(st.integers(1, 7), min_size=2, max_size=4),
    examples=st.integers(1, 15),
    targets=st.integers(1, 2),
    loops=st.integers(1, 8),
    slope=st.sampled_from([0.0, 0.01, 0.3]),
    seed=st.integers(0, 10**6),
)
def test_every_loop_is_a_step_of_gradient_descent_on_the_representation(widths, examples, targets, loops, slope, seed):
    generator = torch.Generator().manual_seed(seed)
    pairs = zip(widths[1:], widths, strict=False)
    matrices = [torch.randn(to, of, generator=generator, dtype=torch.float64) * (2 / of) ** 0.5 for to, of in pairs]
    task = ag.tasks.LinearRegression(widths[0], examples, targets=targets)
    prompts = task.sample(3, seed)
    features = ag.Prompts(leaky_mlp(matrices, prompts.x, slope), prompts.y)
    rate = 1 / (torch.linalg.matrix_norm(features.x[:, :-1], 2).max().item() ** 2 + 1)
    size = max(features.x.square().sum(-1).mean().item(), 1e-6)  # of the scores: c is to be small beside 1/size
    network = representation_regression(matrices, examples, loops, rate, slope, targets, 6e-6 * widths[-1] / size)
    assert network.borders == (len(matrices) + 1, len(matrices) + 2)  # L + 1 layers before the loop, as stated
    exact = ag.algorithms.GradientDescent(loops, rate=rate).trace(features).values[:, :, -1]
    for loop in range(1, loops + 1):
        found = shown(network, f"loop {loop}", task, prompts)
        assert float((found - exact[loop]).norm()) <= 1e-8 * float(prompts.y.norm() + exact[loop].norm())

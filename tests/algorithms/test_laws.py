"""What the theory promises of each method."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from algoscope.algorithms import (
    BarzilaiBorwein,
    Chebyshev,
    ConjugateGradients,
    GradientDescent,
    GradientDescentPlusPlus,
    Halley,
    HeavyBall,
    Kaczmarz,
    KernelSmoother,
    NearestNeighbors,
    Nesterov,
    Newton,
    OnlineGradientDescent,
    OrdinaryLeastSquares,
    Ridge,
    SteepestDescent,
    Zero,
)
from algoscope.algorithms.least_squares import LeastSquares
from algoscope.tasks import LinearRegression
from algoscope.trace import Prompts


def condition_numbers(prompts: Prompts) -> torch.Tensor:
    """κ(S) on the range of S, [batch, positions]."""
    out = torch.ones(prompts.batch, prompts.positions, dtype=torch.float64)
    for t in range(1, prompts.positions):
        sigma = torch.linalg.svdvals(prompts.x[:, :t])
        out[:, t] = (sigma[:, 0] / sigma[:, min(t, prompts.dim) - 1]) ** 2
    return out


def loss(weights: torch.Tensor, prompts: Prompts, t: int) -> torch.Tensor:
    """Squared error on the examples seen, [stage, batch]."""
    x, y = prompts.x[:, :t], prompts.y[:, :t]
    return (torch.einsum("btd,sbd->sbt", x, weights[:, :, t]) - y).square().sum(-1)


@pytest.mark.parametrize("covariance", ["isotropic", "ill-conditioned"])
def test_conjugate_gradients_are_exact_after_dim_steps(covariance):
    prompts = LinearRegression(covariance=covariance, rescale=True).sample(64, seed=0)
    error = ConjugateGradients([20]).trace(prompts).values[0] - OrdinaryLeastSquares().trace(prompts).values[0]
    benign = condition_numbers(prompts) <= 1e3
    assert float(benign.double().mean()) > 0.3
    assert float(error[benign].abs().max()) <= 1e-6


def test_online_gradient_descent_makes_no_error_on_the_example_just_seen():
    prompts = LinearRegression(noise=1.0).sample(64, seed=0)
    weights = OnlineGradientDescent().trace(prompts).weights
    assert weights is not None
    error = torch.einsum("btd,btd->bt", weights[0, :, 1:], prompts.x[:, :-1]) - prompts.y[:, :-1]
    assert float(error.abs().max()) < 1e-12


def test_newton_is_its_polynomial_in_s():
    """M₁ = 2αS − α²S³ and M₂ = 4αS − 6α²S³ + 4α³S⁵ − α⁴S⁷, of degree 2^(k+1) − 1."""
    prompts = LinearRegression(dim=5, examples=9).sample(3, seed=0)
    alpha = 1e-3
    weights = Newton([1, 2], start=alpha).trace(prompts).weights
    assert weights is not None
    coefficients = [{1: 2 * alpha, 3: -(alpha**2)}, {1: 4 * alpha, 3: -6 * alpha**2, 5: 4 * alpha**3, 7: -(alpha**4)}]
    for b in range(3):
        for t in range(10):
            x, y = prompts.x[b, :t].numpy(), prompts.y[b, :t].numpy()
            for k, terms in enumerate(coefficients):
                matrix = sum(c * np.linalg.matrix_power(x.T @ x, degree) for degree, c in terms.items())
                np.testing.assert_allclose(weights[k, b, t], matrix @ (x.T @ y), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("start", ["1/frobenius", "2/frobenius", "1/spectral", "2/spectral"])
def test_newton_residual_factors_stay_bounded_over_60_steps_at_t_below_dim(start):
    """1 − (share of each eigen-direction that is solved) lies in [−1, 1] at every step, also where float32 blows up."""
    prompts = LinearRegression().sample(16, seed=0)
    weights, solution = Newton(60, start=start).trace(prompts).weights, OrdinaryLeastSquares().trace(prompts).weights
    assert weights is not None
    assert solution is not None
    for t in range(1, 20):
        basis = torch.linalg.svd(prompts.x[:, :t], full_matrices=False).Vh
        solved, whole = (torch.einsum("brd,sbd->sbr", basis, w[:, :, t]) for w in (weights, solution))
        factor = 1 - solved / whole
        telling = whole[0].abs() > 1e-3
        assert float(factor[:, telling].abs().max()) <= 1 + 1e-9


def test_newton_says_where_it_cannot_converge():
    prompts = LinearRegression(dim=5, examples=10).sample(8, seed=0)
    traces = {start: Newton(60, start=start).trace(prompts) for start in ("1/frobenius", "2/frobenius", "2/spectral")}
    assert traces["1/frobenius"].note == ""
    assert "cannot converge on 9.1% of the prefixes" in traces["2/frobenius"].note  # t = 1, one of eleven
    assert "cannot converge on 90.9% of the prefixes" in traces["2/spectral"].note  # all but t = 0
    for start, reached in (("1/frobenius", [True] * 11), ("2/spectral", [True] + [False] * 10)):
        converged = traces[start].converged
        assert converged is not None
        assert converged[-1].all(0).tolist() == reached
        assert converged[-1].any(0).tolist() == reached


ITERATIONS = [
    GradientDescent([3000], rate="best"),
    HeavyBall([600]),
    Chebyshev([600]),
    GradientDescentPlusPlus([20]),
    Newton([40]),
    ConjugateGradients([10]),
    Nesterov([600]),
    Halley([25]),
    SteepestDescent([1200]),
    BarzilaiBorwein([200]),
]


@pytest.mark.parametrize("method", ITERATIONS, ids=str)
def test_iterations_converge_to_the_minimum_norm_solution(method):
    prompts = LinearRegression(dim=5, examples=10, noise=0.3).sample(32, seed=0)
    trace, least = method.trace(prompts), OrdinaryLeastSquares().trace(prompts)
    assert trace.converged is not None
    benign = condition_numbers(prompts) <= 100
    assert bool(trace.converged[0][benign].all())
    torch.testing.assert_close(trace.values[0][benign], least.values[0][benign], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "method", [Newton([40], ridge=0.5), GradientDescent([3000], ridge=0.5), ConjugateGradients([9], 0.5)]
)
def test_regularized_iterations_converge_to_ridge(method):
    prompts = LinearRegression(dim=5, examples=10, noise=0.3).sample(32, seed=0)
    torch.testing.assert_close(
        method.trace(prompts).values, Ridge(ridge=0.5).trace(prompts).values, rtol=1e-6, atol=1e-6
    )


@settings(deadline=None, max_examples=25)
@given(
    dim=st.integers(1, 6),
    examples=st.integers(1, 9),
    seed=st.integers(0, 10**6),
    noise=st.sampled_from([0.0, 0.5]),
    step=st.integers(1, 5),
)
def test_no_method_with_k_products_by_s_beats_conjugate_gradients(dim, examples, seed, noise, step):
    """CG minimizes the error over the Krylov space in which the k-th iterate of each first-order method lies."""
    prompts = LinearRegression(dim, examples, noise=noise).sample(2, seed=seed)
    best = ConjugateGradients([step]).trace(prompts).weights
    assert best is not None
    named = (HeavyBall([step]), Nesterov([step]), Chebyshev([step]), SteepestDescent([step]), BarzilaiBorwein([step]))
    for method in (GradientDescent([step], rate="best"), *named, Zero()):
        weights = method.trace(prompts).weights
        assert weights is not None
        ours, theirs = loss(best, prompts, examples), loss(weights, prompts, examples)
        assert bool((ours <= theirs * (1 + 1e-9) + 1e-9 * prompts.y.square().sum()).all())


@settings(deadline=None, max_examples=25)
@given(dim=st.integers(1, 6), examples=st.integers(0, 9), seed=st.integers(0, 10**6), steps=st.integers(0, 8))
def test_rotating_the_inputs_changes_no_prediction(dim, examples, seed, steps):
    """All but the diagonal preconditioner and the LASSO treat every direction alike."""
    prompts = LinearRegression(dim, examples, noise=0.1).sample(2, seed=seed)
    gaussian = torch.randn(dim, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    turned = Prompts(prompts.x @ torch.linalg.qr(gaussian).Q, prompts.y, prompts.noise)
    methods = (Newton(steps), GradientDescent(steps), ConjugateGradients(steps), Ridge(), OnlineGradientDescent())
    new = (Nesterov(steps), SteepestDescent(steps), Kaczmarz(steps), KernelSmoother(), NearestNeighbors())
    for method in methods + new:
        there, here = method.trace(turned).values, method.trace(prompts).values
        torch.testing.assert_close(there, here, rtol=1e-6, atol=1e-6 * float(here.abs().max() + 1))


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10**6), factor=st.floats(0.01, 100))
def test_newton_does_not_care_about_the_scale_of_the_inputs(seed, factor):
    prompts = LinearRegression(3, 6).sample(2, seed=seed)
    scaled = Prompts(prompts.x * factor, prompts.y)
    for start in ("1/frobenius", "2/spectral"):
        torch.testing.assert_close(
            Newton(5, start=start).trace(scaled).values,
            Newton(5, start=start).trace(prompts).values,
            rtol=1e-8,
            atol=1e-8,
        )


def test_many_steps_are_welcome():
    """Long after convergence nothing overflows, underflows or crashes."""
    prompts = LinearRegression(dim=5, examples=10).sample(4, seed=0)
    exact = OrdinaryLeastSquares().trace(prompts).values[0]
    for method in (
        Newton([64, 5000]),
        Halley([64, 5000]),
        Nesterov([5000]),
        BarzilaiBorwein([1000]),
        GradientDescentPlusPlus([500, 3000]),
        ConjugateGradients([500]),
        Chebyshev([5000]),
    ):
        trace = method.trace(prompts)
        torch.testing.assert_close(trace.values[-1], exact, rtol=1e-6, atol=1e-6)
        assert trace.note == ""
    far = GradientDescent([10**20], rate="best").trace(prompts)
    torch.testing.assert_close(far.values[0], exact, rtol=1e-6, atol=1e-6)


def test_gradient_descent_plus_plus_that_diverges_says_so():
    trace = GradientDescentPlusPlus([50], rate=1.0, transform=1.0).trace(LinearRegression(5, 10).sample(4, seed=0))
    assert trace.note.startswith("diverges on ")


def test_a_rate_that_is_only_too_large_for_nothing_has_no_note():
    """Before the first example there is nothing to diverge on."""
    prompts = LinearRegression(dim=3, examples=6).sample(4, seed=0)
    small = Prompts(prompts.x * 1e-3, prompts.y)
    assert GradientDescent(3, rate=3.0).trace(small).note == ""


def test_steepest_descent_turns_by_a_right_angle_in_every_step():
    prompts = LinearRegression(dim=5, examples=10, noise=0.3).sample(16, seed=0)
    weights = SteepestDescent(6).trace(prompts).weights
    assert weights is not None
    x, y = prompts.x[:, :8], prompts.y[:, :8]
    gradient = torch.einsum("btd,sbt->sbd", x, torch.einsum("btd,sbd->sbt", x, weights[:, :, 8]) - y)
    cosine = torch.cosine_similarity(gradient[1:], gradient[:-1], dim=-1)
    assert float(cosine.abs().max()) < 1e-9


def test_a_sweep_of_kaczmarz_is_online_gradient_descent():
    prompts = LinearRegression(noise=0.5, targets=2).sample(16, seed=0)
    once = Kaczmarz([1]).trace(prompts).weights
    torch.testing.assert_close(once, OnlineGradientDescent().trace(prompts).weights, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("order", ["cyclic", "randomized"])
def test_kaczmarz_converges_to_the_minimum_norm_solution_where_there_is_no_noise(order):
    prompts = LinearRegression(dim=5, examples=10).sample(32, seed=0)
    trace, least = Kaczmarz([500], order=order).trace(prompts), OrdinaryLeastSquares().trace(prompts)
    assert trace.converged is not None
    benign = condition_numbers(prompts) <= 20
    assert bool(trace.converged[0][benign].all())
    torch.testing.assert_close(trace.values[0][benign], least.values[0][benign], rtol=1e-6, atol=1e-6)


def test_randomized_kaczmarz_draws_examples_by_their_squared_norms():
    """With one coordinate, w = y/x of the last example drawn, so each sweep shows what its last draw was."""
    squares = np.array([1.0, 0.0, 2.0, 3.0, 4.0])
    x = torch.tensor([*squares, 1.0], dtype=torch.float64).sqrt()[None, :, None]
    y = x[..., 0] * torch.arange(6)
    weights = Kaczmarz(3000, order="randomized", seed=1).trace(Prompts(x, y)).weights
    assert weights is not None
    for t in range(1, 6):
        drawn = weights[1:, 0, t, 0].numpy()
        counts = np.bincount(drawn.round().astype(int), minlength=5)[:5]
        np.testing.assert_allclose(drawn, drawn.round(), atol=1e-12)
        expected = np.where(np.arange(5) < t, squares, 0) / squares[:t].sum()
        np.testing.assert_allclose(counts / 3000, expected, rtol=0, atol=0.035)  # nearly four standard errors
        assert counts[expected == 0].sum() == 0
    others = Kaczmarz(50, order="randomized", seed=2).trace(Prompts(x, y)).weights
    assert others is not None
    assert not torch.equal(weights[:51], others)


def test_of_equally_near_neighbors_the_earlier_count():
    x = torch.tensor([1.0, -1.0, 1.0, 5.0, 0.0], dtype=torch.float64)[None, :, None]
    trace = NearestNeighbors(2).trace(Prompts(x, torch.tensor([[1.0, 10.0, 100.0, 1000.0, 0.0]])))
    assert trace.values[0, 0].tolist() == [0.0, 1.0, 5.5, 50.5, 5.5]


def test_a_smoother_that_is_cold_is_the_nearest_neighbor_and_one_that_is_hot_is_the_mean():
    prompts = LinearRegression(dim=3, examples=8).sample(4, seed=0)
    for temperature, limit in ((1e-9, NearestNeighbors(1)), (1e12, NearestNeighbors(100))):
        smooth = KernelSmoother(temperature, "gaussian").trace(prompts).values
        torch.testing.assert_close(smooth, limit.trace(prompts).values, rtol=1e-6, atol=1e-6)


def test_prompts_that_were_changed_in_place_are_solved_anew():
    prompts = LinearRegression(dim=3, examples=6).sample(4, seed=0)
    OrdinaryLeastSquares().trace(prompts)
    prompts.x.mul_(2)
    prompts.y.mul_(3)
    fresh = OrdinaryLeastSquares().trace(Prompts(prompts.x.clone(), prompts.y.clone()))
    torch.testing.assert_close(OrdinaryLeastSquares().trace(prompts).values, fresh.values)


def test_names_tell_variants_apart():
    assert Newton(3).name == "Newton"
    assert Newton(5, start="2/spectral", ridge=0.5).name == "Newton(start=2/spectral, ridge=0.5)"
    assert Ridge().name == "Ridge"


def test_what_no_example_has_shown_is_what_least_squares_leaves_of_a_point():
    """Also where examples repeat each other, so that they show fewer directions than there are of them."""
    x = torch.randn(3, 7, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x[0, 1], x[1, 2], x[1, 3] = 2 * x[0, 0], x[1, 0] - x[1, 1], 0.0
    found = LeastSquares.of(Prompts(x, torch.zeros(3, 7, dtype=torch.float64))).unseen
    for b, t in np.ndindex(3, 7):
        seen, point = x[b, :t].numpy().T, x[b, t].numpy()
        left = point - seen @ np.linalg.lstsq(seen, point, rcond=1e-10)[0] if t else point
        assert float(found[b, t]) == pytest.approx(np.linalg.norm(left), abs=1e-10)

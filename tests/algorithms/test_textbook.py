"""Independent judges: scikit-learn for the closed forms, plain textbook loops for every iteration.

The loops run in numpy's longdouble, so that a difference is ours and not the judge's. Conjugate gradients need more:
see `test_conjugate_gradients_follow_exact_arithmetic`.
"""

import mpmath
import numpy as np
import pytest
import textbook
import torch
from sklearn.linear_model import Lasso as SklearnLasso
from sklearn.linear_model import LinearRegression as SklearnLeastSquares
from sklearn.linear_model import Ridge as SklearnRidge
from sklearn.neighbors import KNeighborsRegressor

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
    Lasso,
    Mean,
    NearestNeighbors,
    Nesterov,
    Newton,
    OnlineGradientDescent,
    OrdinaryLeastSquares,
    PreconditionedGradientDescent,
    Ridge,
    SteepestDescent,
)
from algoscope.tasks import LinearRegression
from algoscope.trace import Prompts, Trace

DIM = 20
POSITIONS = [0, 1, 2, 5, 10, 18, 19, 20, 21, 25, 30, 40]  # t < dim is the rank-deficient case
TASKS = {
    "isotropic": LinearRegression(),
    "ill-conditioned": LinearRegression(covariance="ill-conditioned", rescale=True),
    "noisy": LinearRegression(noise=0.5),
}


@pytest.fixture(params=TASKS, scope="module")
def prompts(request) -> Prompts:
    return TASKS[request.param].sample(2, seed=11)


def prefixes(prompts: Prompts, dtype: type = np.longdouble):
    x, y = prompts.x.numpy().astype(dtype), prompts.y.numpy().astype(dtype)
    for b in range(prompts.batch):
        for t in POSITIONS:
            yield b, t, x[b, :t], y[b, :t]


def assert_follows(trace: Trace, loop, tolerance: float = 1e-9, steps: int | None = None) -> None:
    """The trace's weights are those of `loop(x, y, b, t)` at every step, relative to the largest weight."""
    assert trace.weights is not None
    for b, t, x, y in prefixes(trace.prompts):
        expected = np.array(loop(x, y, b, t)).astype(float)[: None if steps is None else steps + 1]
        ours = trace.weights[: len(expected), b, t].numpy()
        np.testing.assert_allclose(ours, expected, rtol=0, atol=tolerance * max(1.0, np.abs(expected).max()))


def test_least_squares_and_ridge_agree_with_scikit_learn(prompts):
    least, ridge = OrdinaryLeastSquares().trace(prompts), Ridge(ridge=0.3).trace(prompts)
    assert least.weights is not None
    assert ridge.weights is not None
    for b, t, x, y in prefixes(prompts, float):
        if t == 0:
            assert not least.weights[0, b, 0].any()
            assert not ridge.weights[0, b, 0].any()
            continue
        judge = SklearnLeastSquares(fit_intercept=False).fit(x, y)
        np.testing.assert_allclose(least.weights[0, b, t], judge.coef_, rtol=1e-9, atol=1e-9 * abs(judge.coef_).max())
        judge = SklearnRidge(alpha=0.3, fit_intercept=False, solver="svd").fit(x, y)
        np.testing.assert_allclose(ridge.weights[0, b, t], judge.coef_, rtol=1e-9, atol=1e-11)


def test_ridge_takes_the_noise_of_the_prompts_by_default():
    prompts = TASKS["noisy"].sample(3, seed=0)
    torch.testing.assert_close(Ridge().trace(prompts).values, Ridge(ridge=0.25).trace(prompts).values)


@pytest.mark.parametrize("targets", [1, 3])
def test_the_mean_is_that_of_the_targets_seen(targets):
    y = np.random.default_rng(0).normal(size=(4, 7, targets))[..., 0 if targets == 1 else slice(None)]
    trace = Mean().trace(Prompts(torch.ones(4, 7, 2, dtype=torch.float64), torch.from_numpy(y)))
    assert trace.stages == (0,)
    assert not trace.values[0, :, 0].any()
    for t in range(1, 7):
        np.testing.assert_allclose(trace.values[0, :, t], y[:, :t].mean(1), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("rate", [0.01, "best", "safe"])
def test_gradient_descent(prompts, rate):
    trace = GradientDescent(60, rate=rate).trace(prompts)
    assert_follows(trace, lambda x, y, b, t: textbook.gradient_descent(x, y, 60, rate))


@pytest.mark.parametrize(("start", "scale"), [("uniform", 1.0), ("uniform/sqrt(dim)", DIM**-0.5)])
def test_gradient_descent_from_a_random_start(prompts, start, scale):
    trace = GradientDescent(40, start=start, seed=5).trace(prompts)
    assert trace.weights is not None
    first = trace.weights[0].numpy()
    assert 0 <= first.min() < 0.05 * scale
    assert 0.95 * scale < first.max() < scale
    assert not np.array_equal(first[0, 3], first[0, 4])  # drawn anew for every prefix
    assert_follows(trace, lambda x, y, b, t: textbook.gradient_descent(x, y, 40, 0.01, first[b, t]))


def test_gradient_descent_with_ridge(prompts):
    trace = GradientDescent(40, start="uniform", ridge=0.5).trace(prompts)
    assert trace.weights is not None
    first = trace.weights[0].numpy()
    assert_follows(trace, lambda x, y, b, t: textbook.gradient_descent(x, y, 40, 0.01, first[b, t], ridge=0.5))


def test_at_the_safe_rate_no_direction_overshoots_and_at_the_best_one_does():
    """The top direction of diag(100, 1) is solved at once at 1/λ_max, and changes its sign in each step at the best."""
    x = torch.tensor([[[10.0, 0.0], [0.0, 1.0], [1.0, 1.0]]], dtype=torch.float64)
    prompts = Prompts(x, torch.tensor([[10.0, 1.0, 0.0]], dtype=torch.float64))  # w* = (1, 1)
    safe, best = (GradientDescent([1, 2, 3], rate=rate).trace(prompts).weights for rate in ("safe", "best"))
    assert safe is not None
    assert best is not None
    np.testing.assert_allclose(1 - safe[:, 0, 2].numpy(), [[0, 0.99], [0, 0.99**2], [0, 0.99**3]], atol=1e-12)
    assert (np.sign(1 - best[:, 0, 2, 0].numpy()) == [-1, 1, -1]).all()


def test_gradient_descent_that_diverges_says_so():
    prompts = LinearRegression(covariance="ill-conditioned").sample(4, seed=0)
    trace = GradientDescent([10, 4000], rate=0.01).trace(prompts)
    assert trace.note.startswith("cannot converge on 9")
    assert not bool(trace.values[1, :, 30].isfinite().any())  # infinite, not replaced by something harmless
    assert trace.converged is not None
    assert not bool(trace.converged[1, :, 1:].any())


def test_preconditioned_gradient_descent(prompts):
    a = np.random.default_rng(0).normal(size=(DIM, DIM))
    matrix = a @ a.T / DIM + np.eye(DIM)
    trace = PreconditionedGradientDescent(30, preconditioner=torch.from_numpy(matrix), rate=0.002).trace(prompts)
    assert_follows(trace, lambda x, y, b, t: textbook.preconditioned_gradient_descent(x, y, 30, matrix, 0.002))

    def jacobi(x):
        diagonal = (x * x).sum(0)
        return np.diag(1 / np.where(diagonal > 0, diagonal, 1))

    def best(x):
        root = np.sqrt(jacobi(x.astype(float)))
        return 2 / sum(textbook.spectrum(x.astype(float) @ root))

    trace = PreconditionedGradientDescent(30, preconditioner="diagonal", rate=0.1).trace(prompts)
    assert_follows(trace, lambda x, y, b, t: textbook.preconditioned_gradient_descent(x, y, 30, jacobi(x), 0.1))
    trace = PreconditionedGradientDescent(30, preconditioner="diagonal", rate="best").trace(prompts)
    assert_follows(trace, lambda x, y, b, t: textbook.preconditioned_gradient_descent(x, y, 30, jacobi(x), best(x)))


def test_heavy_ball(prompts):
    assert_follows(HeavyBall(60).trace(prompts), lambda x, y, b, t: textbook.heavy_ball(x, y, 60))


def test_nesterov(prompts):
    assert_follows(Nesterov(60).trace(prompts), lambda x, y, b, t: textbook.nesterov(x, y, 60))


def test_chebyshev(prompts):
    assert_follows(Chebyshev(60).trace(prompts), lambda x, y, b, t: textbook.chebyshev(x, y, 60))


def test_gradient_descent_plus_plus(prompts):
    """The weights reproduce the predictions of the layer-wise procedure at queries that were never examples."""
    trace = GradientDescentPlusPlus(12, rate=0.01, transform=0.004).trace(prompts)
    assert trace.weights is not None
    queries = np.random.default_rng(1).normal(size=(30, DIM))
    for b, t, x, y in prefixes(prompts):
        judge = textbook.gradient_descent_plus_plus(x, y, queries, 12, 0.01, 0.004)
        ours = trace.weights[:, b, t].numpy() @ queries.T
        np.testing.assert_allclose(ours, np.array(judge).astype(float), rtol=0, atol=1e-9)


def test_gradient_descent_plus_plus_at_best_shrinks_the_condition_number_more_than_sixfold_a_step():
    """γ maps both ends of the spectrum to one value, so κ' <= (4/27) κ (1 + √(1/κ) + 1/κ)³ …: κ falls by up to 27/4."""
    prompts = LinearRegression(dim=2, examples=2).sample(1, seed=0)
    x = torch.tensor([[[10.0, 0.0], [0.0, 1.0], [1.0, 1.0]]], dtype=torch.float64)
    prompts = Prompts(x, torch.tensor([[10.0, 1.0, 0.0]], dtype=torch.float64))  # S = diag(100, 1), w* = (1, 1)
    weights = GradientDescentPlusPlus(3).trace(prompts).weights
    assert weights is not None
    left = 1 - weights[:, 0, 2]  # r_k of both directions
    eigenvalues, factor = np.array([100.0, 1.0]), np.ones(2)
    for k in range(4):
        np.testing.assert_allclose(left[k], factor, atol=1e-12)
        low, high = eigenvalues.min(), eigenvalues.max()
        factor = factor * (1 - 2 / (low + high) * eigenvalues)
        eigenvalues = eigenvalues * (1 - eigenvalues / (high + np.sqrt(high * low) + low)) ** 2
        if k == 0:
            assert eigenvalues[0] == pytest.approx(eigenvalues[1])


@pytest.mark.parametrize("start", ["1/frobenius", "2/frobenius", "1/spectral", "2/spectral"])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_newton(prompts, start, ridge):
    """At 2/spectral the first factor is −1 but for rounding, which the loop doubles: it is a judge to step 12."""
    trace = Newton(24, start=start, ridge=ridge).trace(prompts)
    steps = 12 if start == "2/spectral" else 24
    assert_follows(trace, lambda x, y, b, t: textbook.newton(x, y, steps, start, ridge), steps=steps)


@pytest.mark.parametrize("start", ["1/frobenius", "2/frobenius", "1/spectral", "2/spectral"])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_halley(prompts, start, ridge):
    """At 2/spectral the loop triples its rounding."""
    trace = Halley(16, start=start, ridge=ridge).trace(prompts)
    steps = 8 if start == "2/spectral" else 16
    assert_follows(trace, lambda x, y, b, t: textbook.newton(x, y, steps, start, ridge, order=3), steps=steps)


def exact(array: np.ndarray) -> np.ndarray:
    return np.vectorize(mpmath.mpf, otypes=[object])(array)


@pytest.mark.parametrize("t", [1, 7, 19, 20, 22, 40])
@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_conjugate_gradients_follow_exact_arithmetic(prompts, t, ridge):
    """In float64 the plain loop is no judge: permuting the coordinates, which changes nothing, changes its iterates by
    whole digits once κ(S) is large (next test). So the same loop runs with 80 digits."""
    trace = ConjugateGradients(DIM, ridge=ridge).trace(prompts)
    assert trace.weights is not None
    with mpmath.workdps(80):
        x, y = exact(prompts.x[0, :t].numpy()), exact(prompts.y[0, :t].numpy())
        expected, sizes = textbook.conjugate_gradients(x, y, DIM, mpmath.mpf(ridge))
        expected = np.array(expected).astype(float)
    judged = np.array(sizes) >= 1e-12
    ours = trace.weights[:, 0, t].numpy()
    np.testing.assert_allclose(ours[judged], expected[judged], rtol=0, atol=1e-9 * np.abs(expected).max())


def test_conjugate_gradients_follow_the_plain_loop_where_float64_determines_it(prompts):
    """Where the plain float64 loop is the same to 1e-11 in any order of the coordinates, ours agrees to 1e-9."""
    trace = ConjugateGradients(DIM).trace(prompts)
    assert trace.weights is not None
    orders = [np.random.default_rng(seed).permutation(DIM) for seed in range(3)]
    compared = 0
    for b, t, x, y in prefixes(prompts, float):
        plain, sizes = (np.array(part) for part in textbook.conjugate_gradients(x, y, DIM))
        permuted = [np.array(textbook.conjugate_gradients(x[:, o], y, DIM)[0])[:, np.argsort(o)] for o in orders]
        scale = max(1.0, np.abs(plain).max())
        wobble = np.maximum.accumulate(np.abs(plain - permuted).max((0, 2))) / scale
        judged = (wobble < 1e-11) & (sizes >= 1e-12)
        compared += int(judged.sum())
        ours = trace.weights[:, b, t].numpy()
        np.testing.assert_allclose(ours[judged], plain[judged], rtol=0, atol=1e-9 * scale)
    assert compared > 100


@pytest.mark.parametrize(
    ("method", "loop"), [(SteepestDescent, textbook.steepest_descent), (BarzilaiBorwein, textbook.barzilai_borwein)]
)
@pytest.mark.parametrize("t", [1, 7, 20, 40])
def test_descent_with_rates_from_the_gradient_follows_exact_arithmetic(prompts, method, loop, t):
    weights = method(24).trace(prompts).weights
    assert weights is not None
    with mpmath.workdps(60):
        expected, sizes = loop(exact(prompts.x[0, :t].numpy()), exact(prompts.y[0, :t].numpy()), 24)
        expected = np.array(expected).astype(float)
    judged = np.array(sizes) >= 1e-12
    np.testing.assert_allclose(
        weights[judged, 0, t].numpy(), expected[judged], rtol=0, atol=1e-9 * np.abs(expected).max()
    )


def test_bfgs_and_l_bfgs_with_exact_line_search_are_conjugate_gradients(prompts):
    """So they need no classes of their own (Nazareth 1979). Judged in exact arithmetic, like CG itself."""
    weights = ConjugateGradients(8).trace(prompts).weights
    assert weights is not None
    for t in (12, 25):
        with mpmath.workdps(60):
            x, y = exact(prompts.x[0, :t].numpy()), exact(prompts.y[0, :t].numpy())
            judges = [textbook.bfgs(x, y, 8), *(textbook.lbfgs(x, y, 8, memory) for memory in (1, 4))]
        for judge in judges:
            expected = np.array(judge).astype(float)
            np.testing.assert_allclose(weights[:, 0, t], expected, rtol=0, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("t", [4, 23])
def test_newton_at_2_over_spectral_follows_exact_arithmetic_to_step_24(t):
    """Where no judge in floating point can follow: the top factor is −1, and 1 from then on."""
    prompts = LinearRegression(dim=8, examples=23).sample(1, seed=0)
    weights = Newton(24, start="2/spectral").trace(prompts).weights
    assert weights is not None
    with mpmath.workdps(60):
        expected = textbook.newton(exact(prompts.x[0, :t].numpy()), exact(prompts.y[0, :t].numpy()), 24, "2/spectral")
        expected = np.array(expected).astype(float)
    np.testing.assert_allclose(weights[:, 0, t], expected, rtol=0, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("rate", ["1/norm", 0.02])
def test_online_gradient_descent(prompts, rate):
    weights = OnlineGradientDescent(rate=rate).trace(prompts).weights
    assert weights is not None
    for b in range(prompts.batch):
        x, y = prompts.x[b, :-1].numpy(), prompts.y[b, :-1].numpy()
        expected = textbook.online_gradient_descent(x, y, None if rate == "1/norm" else rate)
        np.testing.assert_allclose(weights[0, b], expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("penalty", [0.0, 0.1, 20.0])
def test_lasso(prompts, penalty):
    trace = Lasso(40, penalty=penalty).trace(prompts)
    assert_follows(trace, lambda x, y, b, t: textbook.ista(x, y, 40, penalty))


def test_lasso_converges_to_that_of_scikit_learn():
    """Whose squared error is a mean over the examples, so that its penalty is ours divided by their number."""
    prompts = LinearRegression(dim=6, examples=12, noise=0.5).sample(3, seed=4)
    trace = Lasso([4000], penalty=2.0).trace(prompts)
    assert trace.weights is not None
    assert trace.converged is not None
    zeros = 0
    for b, t in np.ndindex(3, 13):
        if t and trace.converged[0, b, t]:
            judge = SklearnLasso(alpha=2.0 / t, fit_intercept=False, tol=1e-12, max_iter=10**5)
            expected = judge.fit(prompts.x[b, :t].numpy(), prompts.y[b, :t].numpy()).coef_
            np.testing.assert_allclose(trace.weights[0, b, t], expected, rtol=0, atol=1e-6)
            zeros += int((expected == 0).sum())
    assert float(trace.converged.double().mean()) > 0.9
    assert zeros > 20


def test_kaczmarz(prompts):
    assert_follows(Kaczmarz(4).trace(prompts), lambda x, y, b, t: textbook.kaczmarz(x, y, 4))


@pytest.mark.parametrize("temperature", ["sqrt(dim)", 0.8])
@pytest.mark.parametrize("kernel", ["softmax", "gaussian"])
@pytest.mark.parametrize("targets", [1, 3])
def test_the_kernel_smoother_weighs_targets_by_a_kernel(temperature, kernel, targets):
    """The kernels are those of Nadaraya and Watson, not their logarithms."""
    prompts = LinearRegression(dim=4, examples=9, noise=0.1, targets=targets).sample(3, seed=2)
    values = KernelSmoother(temperature, kernel).trace(prompts).values[0].numpy()
    x, y, width = prompts.x.numpy(), prompts.y.numpy(), 2.0 if temperature == "sqrt(dim)" else temperature
    assert not values[:, 0].any()
    for b, t in np.ndindex(3, 10):
        if t:
            near = {"softmax": x[b, :t] @ x[b, t], "gaussian": -((x[b, :t] - x[b, t]) ** 2).sum(1) / 2}[kernel]
            expected = np.average(y[b, :t], axis=0, weights=np.exp(near / width))
            np.testing.assert_allclose(values[b, t], expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("count", [1, 3, 50])
@pytest.mark.parametrize("targets", [1, 3])
def test_nearest_neighbors_agree_with_scikit_learn(count, targets):
    prompts = LinearRegression(dim=4, examples=9, noise=0.1, targets=targets).sample(3, seed=2)
    values = NearestNeighbors(count).trace(prompts).values[0].numpy()
    x, y = prompts.x.numpy(), prompts.y.numpy()
    assert not values[:, 0].any()
    for b, t in np.ndindex(3, 10):
        if t:
            judge = KNeighborsRegressor(min(count, t), algorithm="brute").fit(x[b, :t], y[b, :t])
            np.testing.assert_allclose(values[b, t], judge.predict(x[b, t : t + 1])[0], rtol=1e-12, atol=1e-13)

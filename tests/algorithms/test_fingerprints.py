"""Which settings made the published numbers of Fu et al. (d = 20, 41 points, t = 0 kept)? Each leaves its mark."""

import pytest

from algoscope.algorithms import GradientDescent, Newton, Zero
from algoscope.matching import compare
from algoscope.tasks import LinearRegression

NULL_AGAINST_NEWTON = {1: 0.920, 2: 0.876, 5: 0.734, 10: 0.569}  # read off the published heat map
GRADIENT_AGAINST_NEWTON = {(1, 1): 0.974, (1300, 21): 0.990}  # (GD steps, Newton steps)


@pytest.fixture(scope="module")
def prompts():
    return LinearRegression(dim=20, examples=40).sample(1280, seed=0)


def misses_of_newton(prompts, start) -> list[float]:
    """How far the similarity of errors with the null is from the published values, in units of the tolerance."""
    newton = Newton(list(NULL_AGAINST_NEWTON), start=start).trace(prompts)
    found = compare(Zero().trace(prompts), newton, measure="errors", first=0, resamples=100).similarity[0]
    return [abs(float(s) - p) / 0.008 for s, p in zip(found, NULL_AGAINST_NEWTON.values(), strict=True)]


def misses_of_gradient_descent(prompts, start) -> list[float]:
    gradient = GradientDescent([1, 1300], rate=0.01, start=start).trace(prompts)
    newton = Newton([1, 21], start="2/frobenius").trace(prompts)
    match = compare(gradient, newton, measure="errors", first=0, resamples=100)
    cells = [match.similarity[match.stages.index(g), match.steps.index(n)] for g, n in GRADIENT_AGAINST_NEWTON]
    return [abs(float(s) - p) / 0.003 for s, p in zip(cells, GRADIENT_AGAINST_NEWTON.values(), strict=True)]


def test_the_published_newton_started_at_2_over_frobenius(prompts):
    assert max(misses_of_newton(prompts, "2/frobenius")) <= 1


@pytest.mark.parametrize("start", ["1/frobenius", "1/spectral", "2/spectral"])
def test_no_other_starting_scale_of_newton_fits(prompts, start):
    assert max(misses_of_newton(prompts, start)) > 1


def test_the_published_gradient_descent_started_at_uniform_over_sqrt_dim(prompts):
    assert max(misses_of_gradient_descent(prompts, "uniform/sqrt(dim)")) <= 1


@pytest.mark.parametrize("start", ["zero", "uniform"])
def test_no_other_start_of_gradient_descent_fits(prompts, start):
    assert max(misses_of_gradient_descent(prompts, start)) > 1

"""Regression on learned features, and series made by them: the judge is the definition in plain numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from algoscope.tasks import AutoregressiveRepresentation, RepresentationRegression


def features(task, x):
    for matrix in task.features.matrices():
        x = x @ matrix.numpy().T
        x = np.where(x > 0, x, task.slope * x)
    return x


def test_the_representation_is_fixed_and_weights_are_fresh():
    task = RepresentationRegression(dim=3, examples=30, targets=2)
    prompts = task.sample(500, seed=0)
    assert stats.kstest(prompts.x.numpy().ravel(), "norm").pvalue > 1e-3
    weights = []
    for x, y in zip(prompts.x.numpy(), prompts.y.numpy(), strict=True):
        found, *_ = np.linalg.lstsq(features(task, x), y, rcond=None)
        np.testing.assert_allclose(features(task, x) @ found, y, atol=1e-9)
        weights.append(found.ravel())
    assert stats.kstest(np.concatenate(weights), "norm").pvalue > 1e-3
    other = RepresentationRegression(dim=3, examples=30, targets=2, representation=1)
    assert not np.allclose(features(other, np.ones(3)), features(task, np.ones(3)))


@given(layers=st.integers(1, 4), dim=st.integers(16, 24), slope=st.sampled_from([0.01, 0.2, 1.0]))
@settings(deadline=None, max_examples=4)
def test_weights_keep_the_scale_on_average_over_representations(layers, dim, slope):
    powers = [RepresentationRegression(dim, 0, layers, slope=slope, representation=k).power / dim for k in range(16)]
    assert 0.6 < np.mean(powers) < 1.6


@pytest.mark.parametrize(
    "task",
    [
        RepresentationRegression(noise=0.5),
        RepresentationRegression(targets=3),
        AutoregressiveRepresentation(),
        AutoregressiveRepresentation(noise=0.1),
        AutoregressiveRepresentation(gain=0.3),
    ],
    ids=str,
)
def test_power_is_that_of_the_targets(task):
    y = task.sample(3000, seed=1).y.numpy()
    assert np.mean(y**2) == pytest.approx(task.power, rel=0.06)


def test_the_problem_that_is_left_is_linear():
    task = RepresentationRegression(dim=5, examples=12)
    prompts = task.sample(4, seed=0)
    left = task.represented(prompts)
    np.testing.assert_allclose(left.x.numpy(), features(task, prompts.x.numpy()), atol=1e-12)
    for x, y in zip(left.x.numpy(), left.y.numpy(), strict=True):
        found, *_ = np.linalg.lstsq(x[:-1], y[:-1], rcond=None)
        assert x[-1] @ found == pytest.approx(y[-1], abs=1e-8)


@given(order=st.integers(1, 4), seed=st.integers(0, 100), gain=st.sampled_from([None, 1.5]))
@settings(deadline=None, max_examples=40)
def test_a_series_follows_its_recursion(order, seed, gain):
    task = AutoregressiveRepresentation(dim=3, examples=20, order=order, noise=0.0, gain=gain)
    prompts = task.sample(2, seed=seed)
    for x, y, left in zip(prompts.x.numpy(), prompts.y.numpy(), task.represented(prompts).x.numpy(), strict=True):
        np.testing.assert_array_equal(x[1:], y[:-1])
        before = np.concatenate([np.zeros((order - 1, 3)), x])
        windows = np.stack([before[t : t + order].ravel() for t in range(len(x))])
        seen = features(task, windows)
        if gain is None:
            seen *= np.sqrt(3) / np.linalg.norm(seen, axis=1, keepdims=True)
        found, *_ = np.linalg.lstsq(seen, y, rcond=None)
        np.testing.assert_allclose(seen @ found, y, atol=1e-9 * np.abs(y).max())
        np.testing.assert_allclose(left, seen, atol=1e-12)


def test_a_series_has_noise_of_the_stated_size():
    task = AutoregressiveRepresentation(dim=2, examples=600, noise=0.7)
    left = task.represented(task.sample(20, seed=0))
    residuals = []
    for x, y in zip(left.x.numpy(), left.y.numpy(), strict=True):
        found, *_ = np.linalg.lstsq(x, y, rcond=None)
        residuals.append(y - x @ found)
    assert np.std(residuals) == pytest.approx(0.7, rel=0.02)


@pytest.mark.parametrize("gain", [None, 0.3])
@pytest.mark.parametrize("noise", [1.0, 0.1])
def test_series_stay_bounded(noise, gain):
    y = AutoregressiveRepresentation(noise=noise, gain=gain).sample(5000, seed=0).y
    assert float(y.square().mean(-1).max()) < 10


@pytest.mark.parametrize("noise", [1.0, 0.1])
def test_the_noise_of_a_series_has_its_share_at_every_position(noise):
    y = AutoregressiveRepresentation(noise=noise).sample(5000, seed=0).y
    np.testing.assert_allclose(y.square().mean((0, 2)).numpy(), 1 + noise**2, rtol=0.03)


@pytest.mark.parametrize(
    ("kind", "wrong", "message"),
    [
        (AutoregressiveRepresentation, {"order": 5, "examples": 4}, "order must be less than the length of the series"),
        (AutoregressiveRepresentation, {"order": 0}, "order must be an integer >= 1"),
        (AutoregressiveRepresentation, {"gain": 0.0}, "gain must be"),
        (RepresentationRegression, {"depth": 0}, "depth must be an integer >= 1"),
        (RepresentationRegression, {"targets": 0}, "targets must be an integer >= 1"),
        (RepresentationRegression, {"dim": -1}, "dim must be an integer >= 1"),
        (RepresentationRegression, {"noise": -0.1}, "noise must be"),
    ],
)
def test_what_makes_no_sense_is_refused(kind, wrong, message):
    with pytest.raises(ValueError, match=message):
        kind(**wrong)

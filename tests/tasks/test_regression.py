"""In-context linear regression: the distribution is the one that it says it is."""

import battery
import numpy as np
import pytest
import torch
from scipy import stats

import algoscope as ag
from algoscope.tasks import LinearRegression

EVERY = [*battery.TASKS, *battery.SEARCHES, *battery.STREAMS]


@pytest.mark.parametrize("task", EVERY, ids=str)
def test_battery(task):
    battery.check_task(task)


def test_every_task_is_in_the_battery():
    classes = [getattr(ag.tasks, name) for name in ag.tasks.__all__ if name != "Task"]
    assert {type(task) for task in EVERY} == set(classes)


def test_isotropic_inputs_are_standard_normal():
    prompts = LinearRegression(dim=5, examples=9).sample(400, seed=0)
    assert stats.kstest(prompts.x.numpy().ravel(), "norm").pvalue > 1e-3


@pytest.mark.parametrize("targets", [1, 2])
def test_noiseless_targets_are_linear_in_x_with_standard_normal_weights(targets):
    prompts = LinearRegression(dim=3, examples=5, targets=targets).sample(2000, seed=1)
    weights = []
    for x, y in zip(prompts.x.numpy(), prompts.target_columns.numpy(), strict=True):
        w, *_ = np.linalg.lstsq(x, y, rcond=None)
        np.testing.assert_allclose(x @ w, y, atol=1e-9)
        weights.append(w.ravel())
    assert stats.kstest(np.concatenate(weights), "norm").pvalue > 1e-3


def test_noise_has_the_stated_size():
    clean, noisy = (LinearRegression(dim=2, examples=200, noise=noise).sample(50, seed=3) for noise in (0.0, 0.7))
    assert torch.equal(clean.x, noisy.x)
    difference = (noisy.y - clean.y).numpy().ravel()
    assert stats.kstest(difference / 0.7, "norm").pvalue > 1e-3
    assert noisy.noise == 0.7


@pytest.mark.parametrize("rescale", [False, True])
def test_ill_conditioned_data_has_a_spectrum_of_two_values_and_a_basis_for_each_sequence(rescale):
    task = LinearRegression(dim=4, examples=4999, covariance="ill-conditioned", rescale=rescale)
    prompts = task.sample(6, seed=0)
    covariances = prompts.x.mT @ prompts.x / 5000
    values, vectors = torch.linalg.eigh(covariances)
    expected = torch.tensor([1.0, 1.0, 100.0, 100.0], dtype=torch.float64) * (4 / 202 if rescale else 1)
    assert bool(((values / expected - 1).abs() < 0.1).all())
    planes = vectors[:, :, 2:] @ vectors[:, :, 2:].mT  # projection on the two large directions
    assert all(float((planes[i] - planes[j]).abs().max()) > 0.1 for i in range(6) for j in range(i))


def test_the_eigenbasis_is_uniform():
    """For a uniform basis in d dimensions the squared coordinate of a direction is Beta(1/2, (d − 1)/2)."""
    task = LinearRegression(dim=5, examples=400, covariance="ill-conditioned", condition=1e12)
    x = task.sample(500, seed=2).x  # the two large directions dwarf the rest
    plane = torch.linalg.svd(x, full_matrices=False).Vh[:, :2]
    share = plane[:, :, 0].square().sum(1).numpy()  # of the first axis: Beta(2/2, 3/2)
    assert stats.kstest(share, stats.beta(1.0, 1.5).cdf).pvalue > 1e-3


def test_a_covariance_matrix_is_used_as_it_is():
    matrix = ((2.0, 0.9), (0.9, 1.0))
    prompts = LinearRegression(dim=2, examples=20_000, covariance=matrix).sample(2, seed=0)
    estimate = (prompts.x.mT @ prompts.x / 20_001).mean(0)
    np.testing.assert_allclose(estimate, matrix, atol=0.05)
    tensor = torch.tensor(matrix, dtype=torch.float64)
    assert LinearRegression(dim=2, covariance=tensor) == LinearRegression(dim=2, covariance=matrix)


@pytest.mark.parametrize("task", [t for t in battery.TASKS if isinstance(t, LinearRegression)], ids=str)
def test_power_is_the_mean_square_of_the_targets(task):
    prompts = task.sample(20_000, seed=5)
    assert prompts.power == pytest.approx(float(prompts.y.square().mean()), rel=0.1)
    if task.rescale:
        assert float(prompts.x.square().sum(-1).mean()) == pytest.approx(task.dim, rel=0.05)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"dim": 0}, "dim must be an integer >= 1, got 0"),
        ({"dim": 2.5}, "dim must be an integer >= 1"),
        ({"examples": -1}, "examples must be an integer >= 0"),
        ({"noise": -0.1}, "noise must be a finite number >= 0"),
        ({"noise": float("nan")}, "noise must be a finite number >= 0"),
        ({"targets": 0}, "targets must be an integer >= 1"),
        ({"condition": 0.5}, "condition must be a finite number >= 1"),
        ({"rescale": "no"}, "rescale must be True or False"),
        ({"covariance": "wishart"}, "covariance must be one of 'isotropic', 'ill-conditioned' or a matrix"),
        ({"dim": 2, "covariance": ((1.0, 2.0), (2.0, 1.0))}, "positive semidefinite"),
        ({"dim": 2, "covariance": ((1.0, 2.0), (0.0, 1.0))}, "not symmetric"),
        ({"dim": 2, "covariance": ((0.0, 0.0), (0.0, 0.0))}, "not zero"),
        ({"dim": 2, "covariance": ((1.0, float("nan")), (float("nan"), 1.0))}, "covariance must hold finite"),
        (
            {"dim": 3, "covariance": ((1.0, 0.0), (0.0, 1.0))},
            "covariance must be one of .* or a 3 x 3 matrix .*, got shape",
        ),
        ({"dim": 2, "covariance": ((1.0,), (0.0, 1.0))}, "covariance must be one of"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named(bad, message):
    with pytest.raises(ValueError, match=message):
        LinearRegression(**bad)


def test_tokens_alternate_x_and_y_and_the_last_target_is_hidden():
    task = LinearRegression(dim=2, examples=2)
    prompts = task.sample(1, seed=0)
    (x, y), tokens = (prompts.x[0], prompts.y[0]), task.encode(prompts.x, prompts.y)[0]
    zero = torch.zeros((), dtype=torch.float64)
    torch.testing.assert_close(
        tokens, torch.stack([x[0], torch.stack([y[0], zero]), x[1], torch.stack([y[1], zero]), x[2]])
    )
    outputs = torch.arange(5.0)[None, :, None]
    assert task.read(outputs).tolist() == [[0.0, 2.0, 4.0]]


def test_targets_wider_than_inputs_fit_into_the_tokens():
    task = LinearRegression(dim=1, examples=1, targets=3)
    prompts = task.sample(1, seed=0)
    tokens = task.encode(prompts.x, prompts.y)[0]
    torch.testing.assert_close(tokens[1], prompts.y[0, 0])


def test_a_curriculum_uses_the_first_coordinates_only():
    x, y = LinearRegression(dim=4, examples=8).draw(5, [torch.Generator().manual_seed(0)], dims=torch.tensor(2))
    assert not bool(x[..., 2:].any())
    assert bool(x[..., :2].all())
    residual = torch.linalg.lstsq(x[:, :8, :2], y[:, :8, None]).solution
    torch.testing.assert_close((x[..., :2] @ residual)[..., 0], y)

"""Every algorithm passes the battery, and bad arguments are named."""

from typing import Any

import battery
import numpy as np
import pytest
import torch

import algoscope as ag
from algoscope import testing
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
    NearestNeighbors,
    Nesterov,
    Newton,
    OnlineGradientDescent,
    PreconditionedGradientDescent,
    Ridge,
    SteepestDescent,
)

CHECKS = [
    (algorithm, check) for algorithm in battery.ALGORITHMS for check in battery.ALGORITHM_CHECKS[algorithm.family]
]


@pytest.mark.parametrize("algorithm", battery.ALGORITHMS, ids=str)
def test_contract(algorithm):
    for task in battery.TASKS:
        if task.family == algorithm.family:
            testing.check_algorithm(algorithm, task)


@pytest.mark.parametrize(("algorithm", "check"), CHECKS, ids=lambda part: getattr(part, "__name__", str(part)))
def test_battery(algorithm, check):
    for device in battery.DEVICES:
        for task in battery.TASKS:
            if task.family == algorithm.family:
                check(algorithm, task.sample(3, seed=1, device=device))


@pytest.mark.parametrize("algorithm", battery.REGRESSIONS, ids=str)
def test_float32_prompts_and_single_sequences_are_welcome(algorithm):
    battery.check_trace(algorithm, battery.TASKS[0].sample(1, seed=2, dtype=torch.float32))


@pytest.mark.parametrize("algorithm", battery.REGRESSIONS, ids=str)
def test_degenerate_data_gives_finite_answers(algorithm):
    """Repeated inputs, inputs that are zero, and targets that are zero."""
    x = torch.zeros(1, 6, 3, dtype=torch.float64)
    x[:, 2:4] = torch.tensor([1.0, 2.0, 0.0])
    for y in (torch.ones(1, 6, dtype=torch.float64), torch.zeros(1, 6, dtype=torch.float64)):
        assert bool(algorithm.trace(ag.Prompts(x, y)).values.isfinite().all())


@pytest.mark.usefixtures("as_users_run_it")
def test_numbers_of_numpy_are_welcome():
    two: Any = np.int64(2)
    prompts = ag.tasks.LinearRegression(dim=two, examples=two).sample(2, seed=0)
    several: Any = np.arange(0, 5, 2)
    assert Newton(two).trace(prompts).stages == (0, 1, 2)
    assert Newton(several).trace(prompts).stages == (0, 2, 4)


def test_every_algorithm_is_in_the_battery():
    classes = [getattr(ag.algorithms, name) for name in ag.algorithms.__all__ if name != "Algorithm"]
    others = [*battery.LINE_SEARCHES, *battery.CELL_SEARCHES, *battery.SKETCHES, ag.algorithms.Counting()]
    tested = {type(algorithm) for algorithm in (*battery.ALGORITHMS, *others)}
    assert tested | {ag.algorithms.OnFeatures} == set(classes)  # this one is another algorithm on other prompts


ITERATIONS = [GradientDescent, HeavyBall, Nesterov, Chebyshev, GradientDescentPlusPlus, Newton, Halley, SteepestDescent]


@pytest.mark.parametrize("method", [*ITERATIONS, BarzilaiBorwein, Lasso, Kaczmarz])
@pytest.mark.parametrize("steps", [-1, [], [3, 1], [1, 1], [-2, 0], 2.5, "many", True])
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_steps_are_named(method, steps):
    with pytest.raises(ValueError, match="steps must be an integer >= 0"):
        method(steps=steps)


@pytest.mark.parametrize(
    ("method", "bad", "message"),
    [
        (GradientDescent, {"steps": 3, "rate": 0.0}, "rate must be a finite number > 0"),
        (GradientDescent, {"steps": 3, "rate": float("inf")}, "rate must be a finite number > 0"),
        (GradientDescent, {"steps": 3, "rate": "fast"}, "rate must be one of 'best', 'safe' or a positive number"),
        (
            GradientDescent,
            {"steps": 3, "start": "ones"},
            "start must be one of 'zero', 'uniform', ",
        ),
        (GradientDescent, {"steps": 3, "ridge": -1.0}, "ridge must be a finite number >= 0"),
        (GradientDescent, {"steps": 3, "seed": -1}, "seed must be an integer >= 0"),
        (GradientDescentPlusPlus, {"steps": 3, "transform": -1.0}, "transform must be a finite number > 0"),
        (
            PreconditionedGradientDescent,
            {"steps": 3, "preconditioner": "magic"},
            "must be one of 'diagonal'",
        ),
        (
            Newton,
            {"steps": 3, "start": "3/frobenius"},
            "start must be one of '1/frobenius', '2/frobenius', ",
        ),
        (Newton, {"steps": 3, "start": 0.0}, "start must be a finite number > 0"),
        (Newton, {"steps": 3, "ridge": float("nan")}, "ridge must be a finite number >= 0"),
        (ConjugateGradients, {"steps": 3, "ridge": -1.0}, "ridge must be a finite number >= 0"),
        (OnlineGradientDescent, {"rate": "slow"}, "rate must be one of '1/norm' or a positive number"),
        (Ridge, {"ridge": -0.5}, "ridge must be a finite number >= 0"),
        (Halley, {"steps": 3, "start": 0.0}, "start must be a finite number > 0"),
        (Lasso, {"steps": 3, "penalty": -1.0}, "penalty must be a finite number >= 0"),
        (Kaczmarz, {"steps": 3, "order": "random"}, "order must be one of 'cyclic', 'randomized', got 'random'"),
        (Kaczmarz, {"steps": 3, "seed": -1}, "seed must be an integer >= 0"),
        (KernelSmoother, {"temperature": 0.0}, "temperature must be a finite number > 0"),
        (KernelSmoother, {"temperature": "hot"}, r"temperature must be one of 'sqrt\(dim\)' or a positive number"),
        (KernelSmoother, {"kernel": "box"}, "kernel must be one of 'softmax', 'gaussian'"),
        (NearestNeighbors, {"count": 0}, "count must be an integer >= 1"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named(method, bad, message):
    with pytest.raises(ValueError, match=message):
        method(**bad)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (torch.eye(3), "preconditioner must be 'diagonal' or a 2 x 2 matrix .*, got shape"),
        (torch.tensor([[1.0, 0.0], [0.0, -1.0]]), "symmetric positive definite"),
        (torch.tensor([[1.0, 0.5], [0.0, 1.0]]), "symmetric positive definite"),
        (torch.tensor([[1.0, torch.nan], [torch.nan, 1.0]]), "preconditioner must hold finite"),
    ],
)
def test_a_preconditioner_that_does_not_fit_is_named(matrix, message):
    prompts = ag.tasks.LinearRegression(dim=2, examples=3).sample(1, seed=0)
    with pytest.raises(ValueError, match=message):
        PreconditionedGradientDescent(3, preconditioner=matrix).trace(prompts)

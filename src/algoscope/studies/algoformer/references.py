"""What known methods make of the prompts that the models are tested on."""

import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from algoscope import algorithms as known
from algoscope import arguments
from algoscope.algorithms import Algorithm, OnFeatures
from algoscope.algorithms.features import Reduction
from algoscope.algorithms.least_squares import LeastSquares
from algoscope.tasks import (
    AutoregressiveRepresentation,
    ChainOfThought,
    LinearRegression,
    RepresentationRegression,
    Task,
)
from algoscope.trace import Prompts, Stage

STEPS = (5, 10, 15, 20)  # those of the paper's figure 5
SHARES = tuple(10 ** (-k / 4) for k in range(11))  # of the largest rate that is tried: 1 to .003
MARGIN = 1.25  # above the largest eigenvalue of the prompts to tune on: those of other prompts may be larger
LENGTHS = (5, 10, 20, 40, 80, 160, 320, 640, 1280)
TUNED_ON = 300  # prompts, which no model is tested on; for errors fewer where each asks for many coordinates
ON_FEATURES, ON_INPUTS, AFFINE = "on features", "on x", "(1, x)"
LEAST_SQUARES, RIDGE, TUNED = "least squares", "ridge", "tuned gradient descent"
Methods = dict[str, tuple[Algorithm, Stage]]  # an algorithm, and the step of it that answers


@dataclass(frozen=True)
class Intercept:
    """Regression on x with an intercept: on (1, x)."""

    def problems(self, prompts: Prompts) -> list[Prompts]:
        return [replace(prompts, x=torch.cat([torch.ones_like(prompts.x[..., :1]), prompts.x], dim=-1))]

    def solved(self, values: Sequence[Tensor]) -> Tensor:
        return values[0]


def newton(steps: int) -> str:
    return f"Newton, {steps} steps"


def descent(steps: int) -> str:
    return f"gradient descent, {steps} steps"


def safe(steps: int) -> str:
    return f"gradient descent at 1/λ_max, {steps} steps"


def methods(task: Task) -> Methods:
    """By name. On a task with features, these are known to all methods but one."""
    if isinstance(task, LinearRegression):
        return _plain(task) | {newton(k): (known.Newton(STEPS), k) for k in STEPS}
    assert isinstance(task, Reduction)
    found: Methods = {
        f"{name} {ON_FEATURES}": (OnFeatures(method, task), step)
        for name, (method, step) in (_plain(task) | _others(task.inputs)).items()
        if name not in {called(k) for k in STEPS[:-1] for called in (descent, safe)}
    }
    if isinstance(task, RepresentationRegression):
        found[f"{LEAST_SQUARES} {ON_INPUTS}"] = (known.OrdinaryLeastSquares(), 0)
        with_intercept = OnFeatures(known.OrdinaryLeastSquares(), Intercept(), AFFINE)
        found[f"{LEAST_SQUARES} on {AFFINE}"] = (with_intercept, 0)
        found[f"{RIDGE} {ON_INPUTS}"] = (known.Ridge(float(task.dim)), 0)
    return found


def _plain(task: Task) -> Methods:
    chosen = tuned(task)
    (steps,) = arguments.steps_to_keep(chosen.steps)
    found: Methods = {
        LEAST_SQUARES: (known.OrdinaryLeastSquares(), 0),
        TUNED: (chosen, steps),
        **{descent(k): (known.GradientDescent(STEPS, rate="best"), k) for k in STEPS},
        **{safe(k): (known.GradientDescent(STEPS, rate="safe"), k) for k in STEPS},
    }
    return found | ({RIDGE: (known.Ridge(right_penalty(task)), 0)} if task.noise else {})


def right_penalty(task: Task) -> float:
    """The λ of ridge regression that is right for the noise and for how large the weights are drawn."""
    spread = getattr(task, "spread", 1.0)
    return float(f"{(task.noise / spread) ** 2:.4g}")


def least(task: Task, prompts: Prompts) -> Tensor:
    """What no predictor beats on average: the target to be expected by who knows how prompts are drawn.

    The weights of a prompt are normal, and given its examples they are normal again: around those of ridge regression
    with the right λ or, without noise, around the shortest of those that fit. Features are known, since they are the
    same for all prompts. A chain of thought asks for what an activation makes of that, of which the mean hangs on the
    deviation, too: on how far a state is from the span of those that were seen.
    """
    method: Algorithm = known.Ridge(right_penalty(task)) if task.noise else known.OrdinaryLeastSquares()
    if isinstance(task, ChainOfThought):
        problems = task.problems(prompts)
        means = [method.trace(problem).values[0] for problem in problems]
        return task.expected(means, [task.spread * LeastSquares.of(problem).unseen for problem in problems])
    assert isinstance(task, LinearRegression | RepresentationRegression | AutoregressiveRepresentation)
    method = method if isinstance(task, LinearRegression) else OnFeatures(method, task)
    return method.trace(prompts).values[0]


def _others(dim: int) -> Methods:
    most = STEPS[-1]
    return {
        newton(most): (known.Newton([most]), most),
        f"conjugate gradients, {dim} steps": (known.ConjugateGradients([dim]), dim),
        f"Chebyshev, {most} steps": (known.Chebyshev([most]), most),
        f"heavy ball, {most} steps": (known.HeavyBall([most]), most),
        "GD++, 12 steps": (known.GradientDescentPlusPlus([12]), 12),
    }


def answers(task: Task, prompts: Prompts) -> Iterator[tuple[str, Tensor]]:
    """What each method predicts; a method with several steps in use runs once."""
    by_method = itertools.groupby(methods(task).items(), key=lambda item: item[1][0])
    for method, group in by_method:
        trace = method.trace(prompts)
        for name, (_, step) in group:
            yield name, trace.values[trace.stages.index(step)]


@functools.cache
def tuned(task: Task) -> known.GradientDescent:
    """Gradient descent at one rate for all prefixes, stopped after one number of steps: those with the least error.

    The rates that are tried stay well below 1/λ_max of all prompts to tune on, and so below 2/λ_max of any others.
    """
    prompts = _tuning(task)
    most, target, best = 1 / (MARGIN * _largest(task)), prompts.target_columns, torch.inf
    found = (most, LENGTHS[0])
    for rate in (share * most for share in SHARES):
        method: Algorithm = known.GradientDescent(LENGTHS, rate=rate)
        method = method if isinstance(task, LinearRegression) else OnFeatures(method, task)  # pyright: ignore[reportArgumentType]
        values = method.trace(prompts).values.reshape(len(LENGTHS), *target.shape)
        errors = (values - target).square().flatten(1).mean(1)
        if float(errors.min()) < best:
            best, found = float(errors.min()), (rate, LENGTHS[int(errors.argmin())])
    return known.GradientDescent((found[1],), rate=float(f"{found[0]:.3g}"))


@functools.cache
def steady_rate(task: Task) -> float:
    """One rate for all prompts and prefixes that suits them all: 1 over the largest eigenvalue of many, which leaves
    others room for twice of it. One prompt on which it diverges would spoil its steps on all.
    """
    return float(f"{1 / _largest(task):.2g}")


@functools.cache
def _largest(task: Task) -> float:
    """The largest eigenvalue of the prompts to tune on; that of a whole prompt is above those of its prefixes."""
    prompts = task.sample(TUNED_ON, seed=0, purpose="tuning")
    problems = [prompts] if isinstance(task, LinearRegression) else task.problems(prompts)  # pyright: ignore[reportAttributeAccessIssue]
    return max(float(torch.linalg.matrix_norm(problem.x[:, :-1], 2).max()) for problem in problems) ** 2


@functools.lru_cache(maxsize=1)
def _tuning(task: Task) -> Prompts:
    return task.sample(TUNED_ON if task.outputs == 1 else TUNED_ON // 10, seed=0, purpose="tuning")

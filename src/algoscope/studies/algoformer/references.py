"""What known methods make of the prompts that the models are tested on, and the least error that is possible."""

import itertools
from collections.abc import Iterator

from torch import Tensor

from algoscope import algorithms as known
from algoscope.algorithms import Algorithm
from algoscope.algorithms.features import Reduction
from algoscope.algorithms.least_squares import LeastSquares
from algoscope.contracts import Task
from algoscope.studies.algoformer.candidates import on_features, right_penalty
from algoscope.trace import Prompts, Stage

STEPS = (5, 10, 15, 20)  # those of the paper's figure 5
LEAST_SQUARES, RIDGE = "least squares", "ridge"
Methods = dict[str, tuple[Algorithm, Stage]]  # an algorithm, and the step of it that answers


def newton(steps: int) -> str:
    return f"Newton, {steps} steps"


def gradient_descent(steps: int) -> str:
    return f"gradient descent, {steps} steps"


def methods(task: Task) -> Methods:
    """By name; where there are features, they know these."""
    found: Methods = {
        LEAST_SQUARES: (known.OrdinaryLeastSquares(), 0),
        **{gradient_descent(k): (known.GradientDescent(STEPS, rate="best"), k) for k in STEPS},
        **{newton(k): (known.Newton(STEPS), k) for k in STEPS},
        **({RIDGE: (known.Ridge(right_penalty(task)), 0)} if task.noise else {}),
    }
    space = " on features" if isinstance(task, Reduction) else ""
    return {name + space: (on_features(task, method), step) for name, (method, step) in found.items()}


def answers(task: Task, prompts: Prompts) -> Iterator[tuple[str, Tensor]]:
    """What each method predicts; a method with several steps in use runs once."""
    for method, group in itertools.groupby(methods(task).items(), key=lambda item: item[1][0]):
        trace = method.trace(prompts)
        for name, (_, step) in group:
            yield name, trace.values[trace.stages.index(step)]


def least(task: Task, prompts: Prompts) -> Tensor:
    """What no predictor beats on average: the target to be expected by who knows how prompts are drawn.

    The weights of a prompt are normal, and given its examples they are normal again: around those of ridge regression
    with the right λ or, without noise, around the shortest of those that fit. Features are known, since they are the
    same for all prompts. A task whose answers are no linear function of that says what is `expected`: a chain of
    thought asks for what an activation makes of it, of which the mean depends on the deviation, too: on how far a
    state is from the span of those that were seen.
    """
    method: Algorithm = known.Ridge(right_penalty(task)) if task.noise else known.OrdinaryLeastSquares()
    expected = getattr(task, "expected", None)
    if expected is None or not isinstance(task, Reduction):
        return on_features(task, method).trace(prompts).values[0]
    problems = task.problems(prompts)
    spread = getattr(task, "spread", 1.0)
    deviations = [spread * LeastSquares.of(problem).unseen for problem in problems]
    return expected([method.trace(problem).values[0] for problem in problems], deviations)

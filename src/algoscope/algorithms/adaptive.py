"""Gradient descent that finds its rate in the gradient itself, so that no rate has to be chosen."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from algoscope import arguments
from algoscope.algorithms.least_squares import LeastSquares, keeps_as_moments
from algoscope.contracts import Algorithm, Symmetry
from algoscope.symmetries import AddTargets, ExchangeSpectrum, RotateInputs, ScaleInputs
from algoscope.trace import Prompts, Trace


@dataclass(frozen=True)
class SteepestDescent(Algorithm):
    """w ← w + ηr, r = Xᵀy − Sw, η = r·r / r·Sr, from w = 0: each step makes the loss as small as its direction can.

    Cauchy 1847. The exact line search makes each gradient orthogonal to the one before, so it zigzags between the top
    and the bottom of the spectrum (Akaike 1959). Several targets are several runs, each with its own η.
    """

    steps: arguments.Steps

    def __post_init__(self) -> None:
        arguments.steps(self.steps)

    def keeps(self, symmetry: Symmetry) -> bool | None:
        return _keeps(symmetry)

    def trace(self, prompts: Prompts) -> Trace:
        return _trace(self.name, self.steps, prompts, delay=False)


@dataclass(frozen=True)
class BarzilaiBorwein(Algorithm):
    """w ← w + ηr, r = Xᵀy − Sw, with η = s·s / s·Ss of the last move s (BB1), and η = r·r / r·Sr in the first step.

    Barzilai and Borwein 1988. Since s points along the residual before it, η is the one that steepest descent would
    have chosen a step ago. The loss may rise in single steps. Several targets are several runs, each with its own η.
    """

    aliases = ("bb",)

    steps: arguments.Steps

    def __post_init__(self) -> None:
        arguments.steps(self.steps)

    def keeps(self, symmetry: Symmetry) -> bool | None:
        return _keeps(symmetry)

    def trace(self, prompts: Prompts) -> Trace:
        return _trace(self.name, self.steps, prompts, delay=True)


def _keeps(symmetry: Symmetry) -> bool | None:
    """The rates depend on the targets and on the spectrum."""
    match symmetry:
        case RotateInputs() | ScaleInputs():
            return True
        case AddTargets() | ExchangeSpectrum():
            return False
    return keeps_as_moments(symmetry)


def _trace(name: str, steps: arguments.Steps, prompts: Prompts, delay: bool) -> Trace:
    problem, stages = LeastSquares.of(prompts), arguments.steps_to_keep(steps)
    iterates = itertools.compress(_iterates(problem, delay), (k in stages for k in range(stages[-1] + 1)))
    return problem.trace(name, stages, iterates)


def _iterates(problem: LeastSquares, delay: bool) -> Iterator[Tensor]:
    """In the eigenbasis, where a step multiplies each coordinate of the residual: none loses digits to the others."""
    eigenvalues = problem.eigenvalues[..., None]
    w, r = torch.zeros_like(problem.solution), eigenvalues * problem.solution
    rate = _line_search(r, eigenvalues)
    while True:
        yield w
        w, r, before = w + rate * r, r * (1 - rate * eigenvalues), r
        rate = _line_search(before if delay else r, eigenvalues)


def _line_search(
    r: Float[Tensor, "batch positions dim targets"], eigenvalues: Float[Tensor, "batch positions dim 1"]
) -> Float[Tensor, "batch positions 1 targets"]:
    """η = r·r / r·Sr, and 0 where nothing is left to do. Only the direction of r counts, so tiny ones are scaled up."""
    size = r.abs().amax(-2, keepdim=True)
    squares = (r / torch.where(size > 0, size, 1.0)).square()
    return torch.where(size > 0, squares.sum(-2, keepdim=True) / (eigenvalues * squares).sum(-2, keepdim=True), 0.0)

"""Conjugate gradients: the best that any method can do with k products by S."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from algoscope import arguments
from algoscope.algorithms.least_squares import LeastSquares, keeps_as_moments
from algoscope.contracts import Algorithm, Symmetry
from algoscope.symmetries import AddTargets, ExchangeSpectrum, RotateInputs, ScaleInputs
from algoscope.trace import Prompts, Trace

FLOOR = 1e-15  # a residual this small, relative to the first, is rounding


@dataclass(frozen=True)
class ConjugateGradients(Algorithm):
    """w_k minimizes the squared error over span{b, Sb, …, S^(k−1)b}, b = Xᵀy; exact after as many steps as S has rank.

        α = r·r / p·Sp,   w ← w + αp,   r' = r − αSp,   p ← r' + (r'·r' / r·r) p,   from w = 0, r = p = b.

    Hestenes and Stiefel 1952. BFGS and L-BFGS with exact line search make the same iterates on a quadratic. Two things
    keep the iterates those of exact arithmetic, where the plain loop in float64 loses all digits once κ(S) passes about
    1e3 (docs/log.md): it runs in the eigenbasis, where products by S are exact to rounding, and every residual is made
    orthogonal to all earlier ones again. `ridge` ρ runs on S + ρI. Several targets are several runs.
    """

    aliases = ("cg",)

    steps: arguments.Steps
    ridge: float = 0.0

    def __post_init__(self) -> None:
        arguments.steps(self.steps)
        arguments.number("ridge", self.ridge)

    def keeps(self, symmetry: Symmetry) -> bool | None:
        match symmetry:
            case AddTargets() | ExchangeSpectrum():
                return False
            case RotateInputs():
                return True
            case ScaleInputs():
                return not self.ridge
        return keeps_as_moments(symmetry)

    def trace(self, prompts: Prompts) -> Trace:
        problem, stages = LeastSquares.of(prompts, self.ridge), arguments.steps_to_keep(self.steps)
        iterates = itertools.compress(_iterates(problem), (k in stages for k in range(stages[-1] + 1)))
        return problem.trace(self.name, stages, iterates)


def _iterates(problem: LeastSquares) -> Iterator[Tensor]:
    eigenvalues = problem.eigenvalues[..., None]
    w = torch.zeros_like(problem.solution)
    r = p = eigenvalues * problem.solution
    squared = first = _dot(r, r)
    earlier: list[Tensor] = []
    while True:
        yield w
        active = (squared > FLOOR**2 * first) & (len(earlier) < problem.prompts.dim)
        if not bool(active.any()):
            continue
        earlier.append(torch.where(active, r / squared.sqrt(), 0.0))
        product = eigenvalues * p
        length = torch.where(active, squared / _dot(p, product), 0.0)
        w, r = w + length * p, r - length * product
        for q in earlier + earlier:  # twice is enough (Kahan and Parlett)
            r = r - _dot(q, r) * q
        squared, before = _dot(r, r), squared
        p = r + torch.where(active, squared / before, 0.0) * p


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum(-2, keepdim=True)

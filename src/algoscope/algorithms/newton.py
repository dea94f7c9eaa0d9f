"""Iterative Newton, the second-order method of Fu et al., and the same of third order."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from jaxtyping import Float
from torch import Tensor

from algoscope import arguments
from algoscope.algorithms.least_squares import LeastSquares, keeps_as_moments
from algoscope.algorithms.powers import powers_of_one_minus
from algoscope.contracts import Algorithm, Symmetry
from algoscope.symmetries import AddTargets, ExchangeSpectrum, RotateInputs, ScaleInputs
from algoscope.trace import Prompts, Trace

STARTS = ("1/frobenius", "2/frobenius", "1/spectral", "2/spectral")


@dataclass(frozen=True)
class Newton(Algorithm):
    """w_k = M_k Xᵀy with M_0 = αS and M_{k+1} = 2M_k − M_k S M_k, so r_k(λ) = (1 − αλ²)^(2^k): it squares every step.

    Schulz 1933; Ben-Israel 1965. M_k is a polynomial in S of degree 2^(k+1) − 1. `start` is α: "1/frobenius" is
    1/‖SSᵀ‖_F, which always converges; "1/spectral" and "2/spectral" take the spectral norm instead. Fu et al. write
    2/spectral, publish figures that fit 2/frobenius, and release code with 1/frobenius. With αλ_max² = 2 the largest
    direction is never solved: always so at 2/spectral, at 2/frobenius where S has rank one. `ridge` ρ runs on S + ρI.
    """

    order: ClassVar[int] = 2  # what each step raises the residual factor to

    steps: arguments.Steps
    start: Literal["1/frobenius", "2/frobenius", "1/spectral", "2/spectral"] | float = "1/frobenius"
    ridge: float = 0.0

    def __post_init__(self) -> None:
        arguments.steps(self.steps)
        arguments.number_or_choice("start", self.start, STARTS)
        arguments.number("ridge", self.ridge)

    def keeps(self, symmetry: Symmetry) -> bool | None:
        match symmetry:
            case AddTargets() | RotateInputs():
                return True
            case ScaleInputs():
                return isinstance(self.start, str) and not self.ridge
            case ExchangeSpectrum():
                return not isinstance(self.start, str)
        return keeps_as_moments(symmetry)

    def trace(self, prompts: Prompts) -> Trace:
        problem, stages = LeastSquares.of(prompts, self.ridge), arguments.steps_to_keep(self.steps)
        first = self.scale(problem) * problem.eigenvalues**2
        share = float((first.amax(-1) >= 2 - 1e-12).double().mean())
        note = f"cannot converge on {share:.1%} of the prefixes: αλ_max² is at least 2 there" if share else ""
        iterates = map(problem.at, powers_of_one_minus(first, (self.order**k for k in stages)))
        return problem.trace(self.name, stages, iterates, note)

    def scale(self, problem: LeastSquares) -> Float[Tensor, "batch positions 1"] | float:
        """α, for every prefix."""
        if not isinstance(self.start, str):
            return self.start
        above, norm = self.start.split("/")
        if norm == "spectral":
            return float(above) / problem.largest**2
        relative = problem.eigenvalues / problem.largest  # keeps the fourth powers in range
        return float(above) / (problem.largest**2 * (relative**4).sum(-1, keepdim=True).sqrt().clamp(min=1))


@dataclass(frozen=True)
class Halley(Newton):
    """As Newton with M_{k+1} = M_k(3I − SM_k(3I − SM_k)), so r_k(λ) = (1 − αλ²)^(3^k): it cubes every step.

    The third-order method for the inverse of a matrix that is known as Halley's or Chebyshev's; the hyperpower method
    of order three (Altman 1960). M_k is a polynomial in S of degree 2·3^k − 1. `start` and `ridge` are those of Newton.
    """

    order = 3

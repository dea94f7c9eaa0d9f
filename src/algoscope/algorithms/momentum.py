"""First-order methods that remember: momentum turns κ into √κ in the number of steps."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from algoscope import arguments
from algoscope.algorithms.least_squares import LeastSquares, keeps_as_moments
from algoscope.algorithms.powers import chebyshev_first, chebyshev_second
from algoscope.contracts import Algorithm, Symmetry
from algoscope.symmetries import AddTargets, ExchangeSpectrum, RotateInputs, ScaleInputs
from algoscope.trace import Prompts, Trace

EPSILON = torch.finfo(torch.float64).eps


@dataclass(frozen=True)
class HeavyBall(Algorithm):
    """w_{k+1} = w_k − η(Sw_k − Xᵀy) + β(w_k − w_{k−1}), from w_0 = w_{−1} = 0.

    Polyak 1964, with his optimal constants for the spectrum [m, M] of each prefix: q = (√M − √m)/(√M + √m), β = q²,
    η = 4/(√M + √m)². The recursion solves to r_k(λ) = q^k (U_k(z) − q U_{k−1}(z)), z = (1 + β − ηλ)/2q, with U the
    Chebyshev polynomials of the second kind.
    """

    steps: arguments.Steps

    def __post_init__(self) -> None:
        arguments.steps(self.steps)

    def keeps(self, symmetry: Symmetry) -> bool | None:
        return _keeps(symmetry)

    def trace(self, prompts: Prompts) -> Trace:
        problem, stages = LeastSquares.of(prompts), arguments.steps_to_keep(self.steps)
        low, high = problem.smallest.sqrt(), problem.largest.sqrt()
        q = ((high - low) / (high + low)).clamp(min=EPSILON)  # m = M needs no memory: one step solves it
        z = (1 + q**2 - (1 + q) ** 2 * problem.eigenvalues / problem.largest) / (2 * q)
        factors = (q**k * (chebyshev_second(k, z) - q * chebyshev_second(k - 1, z)) for k in stages)
        return problem.trace(self.name, stages, map(problem.at, factors))


@dataclass(frozen=True)
class Nesterov(Algorithm):
    """w_{k+1} = v_k − η(Sv_k − Xᵀy), v_k = w_k + β(w_k − w_{k−1}), from w_0 = w_{−1} = 0: the gradient is taken ahead.

    Nesterov 1983, with his constants of 2004 for the spectrum [m, M] of each prefix: η = 1/M and
    β = (√M − √m)/(√M + √m). So r_{k+1}(λ) = (1 − ηλ)((1 + β) r_k(λ) − β r_{k−1}(λ)).
    """

    aliases = ("nag",)

    steps: arguments.Steps

    def __post_init__(self) -> None:
        arguments.steps(self.steps)

    def keeps(self, symmetry: Symmetry) -> bool | None:
        return _keeps(symmetry)

    def trace(self, prompts: Prompts) -> Trace:
        problem, stages = LeastSquares.of(prompts), arguments.steps_to_keep(self.steps)
        factors = itertools.compress(self._factors(problem), (k in stages for k in range(stages[-1] + 1)))
        return problem.trace(self.name, stages, map(problem.at, factors))

    def _factors(self, problem: LeastSquares) -> Iterator[Tensor]:
        low, high = problem.smallest.sqrt(), problem.largest.sqrt()
        momentum = (high - low) / (high + low)
        left = 1 - problem.eigenvalues / problem.largest
        factor = before = torch.ones_like(left)
        while True:
            yield factor
            factor, before = left * ((1 + momentum) * factor - momentum * before), factor


@dataclass(frozen=True)
class Chebyshev(Algorithm):
    """The polynomial method with the smallest worst case on the spectrum [m, M] of each prefix, from w = 0:

        r_k(λ) = T_k((M + m − 2λ)/(M − m)) / T_k((M + m)/(M − m)).

    Flanders and Shortley 1950; Golub and Varga 1961. No first-order method that knows only m and M does better.
    """

    steps: arguments.Steps

    def __post_init__(self) -> None:
        arguments.steps(self.steps)

    def keeps(self, symmetry: Symmetry) -> bool | None:
        return _keeps(symmetry)

    def trace(self, prompts: Prompts) -> Trace:
        problem, stages = LeastSquares.of(prompts), arguments.steps_to_keep(self.steps)
        low, high = problem.smallest, problem.largest
        spread = (high - low).maximum(EPSILON * high)
        z = (high + low - 2 * problem.eigenvalues) / spread
        growth = torch.acosh((high + low) / spread)
        factors = (chebyshev_first(k, z) / torch.cosh(k * growth) for k in stages)  # cosh(k·arcosh) is T_k beyond 1
        return problem.trace(self.name, stages, map(problem.at, factors))


def _keeps(symmetry: Symmetry) -> bool | None:
    """What methods keep whose constants are those of the spectrum."""
    match symmetry:
        case AddTargets() | RotateInputs() | ScaleInputs():
            return True
        case ExchangeSpectrum():
            return False
    return keeps_as_moments(symmetry)

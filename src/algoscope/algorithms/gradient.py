"""First-order methods with a constant rate, and the variants proposed as what transformers really do."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from algoscope import arguments
from algoscope.algorithms.least_squares import LeastSquares, keeps_as_moments, prefixes
from algoscope.algorithms.powers import powers_of_one_minus
from algoscope.contracts import Algorithm, Symmetry
from algoscope.randomness import stream
from algoscope.symmetries import AddTargets, ExchangeSpectrum, RotateInputs, ScaleInputs
from algoscope.trace import Prompts, Trace

Rate: TypeAlias = float | Literal["best"]
PlainRate: TypeAlias = float | Literal["best", "safe"]
STARTS = ("zero", "uniform", "uniform/sqrt(dim)")


def best_rate(problem: LeastSquares) -> Float[Tensor, "batch positions 1"]:
    """η = 2/(λ_max + λ_min), which makes the largest |1 − ηλ| as small as a constant rate can (Polyak 1964)."""
    return 2 / (problem.largest + problem.smallest)


def chosen_rate(rate: PlainRate, problem: LeastSquares) -> Float[Tensor, "batch positions 1"] | float:
    """η, for every prefix."""
    if isinstance(rate, str):
        return best_rate(problem) if rate == "best" else 1 / problem.largest
    return rate


def divergence(rate: Tensor | float, problem: LeastSquares) -> str:
    """A note on prefixes on which ηλ_max >= 2, where gradient descent cannot converge."""
    share = float((rate * problem.eigenvalues.amax(-1, keepdim=True) >= 2).double().mean())
    return f"cannot converge on {share:.1%} of the prefixes: the rate is at least 2/λ_max there" if share else ""


@dataclass(frozen=True)
class GradientDescent(Algorithm):
    """w ← w − η(Sw − Xᵀy), so r_k(λ) = (1 − ηλ)^k. The gradient is summed over the examples, not averaged.

    Cauchy 1847. `rate` is η; "best" is the best constant rate of each prefix, 2/(λ_max + λ_min), at which the top
    direction of an ill-conditioned problem overshoots in nearly every step; "safe" is 1/λ_max of each prefix, at which
    none ever does. `start` is w_0: "zero", or a fresh draw for every prefix of U[0,1) ("uniform") or of U[0,1)/√d
    ("uniform/sqrt(dim)", which the published heat maps of Fu et al. fit). `ridge` ρ descends on S + ρI.
    """

    aliases = ("gd",)

    steps: arguments.Steps
    rate: PlainRate = 0.01
    start: Literal["zero", "uniform", "uniform/sqrt(dim)"] = "zero"
    ridge: float = 0.0
    seed: int = 0  # of the random start

    def __post_init__(self) -> None:
        arguments.steps(self.steps)
        arguments.number_or_choice("rate", self.rate, ["best", "safe"])
        arguments.choice("start", self.start, STARTS)
        arguments.number("ridge", self.ridge)
        arguments.integer("seed", self.seed, 0)

    def keeps(self, symmetry: Symmetry) -> bool | None:
        match symmetry:
            case AddTargets() | RotateInputs():
                return self.start == "zero"
            case ScaleInputs():
                return isinstance(self.rate, str) and not self.ridge
            case ExchangeSpectrum():
                return not isinstance(self.rate, str)
        return keeps_as_moments(symmetry)

    def trace(self, prompts: Prompts) -> Trace:
        problem = LeastSquares.of(prompts, self.ridge)
        rate = chosen_rate(self.rate, problem)
        start, stages = self._start(problem), arguments.steps_to_keep(self.steps)
        iterates = (problem.at(factor, start) for factor in powers_of_one_minus(rate * problem.eigenvalues, stages))
        return problem.trace(self.name, stages, iterates, divergence(rate, problem))

    def _start(self, problem: LeastSquares) -> Tensor | None:
        if self.start == "zero":
            return None
        shape, generator = problem.solution.shape, stream("start of gradient descent", self.seed)
        weights = torch.rand(shape, generator=generator, dtype=torch.float64).to(problem.solution.device)
        scale = problem.prompts.dim**-0.5 if self.start == "uniform/sqrt(dim)" else 1.0
        return problem.basis.mT @ (scale * weights)


@dataclass(frozen=True, eq=False)
class PreconditionedGradientDescent(Algorithm):
    """w ← w − ηP(Sw − Xᵀy) from w = 0. With P = LLᵀ this is gradient descent on u, w = Lu, whose matrix is LᵀSL.

    What Ahn et al. (2023) find linear transformers to learn. `preconditioner` is P, one positive definite matrix for
    all prompts (S⁻¹ up to scale where the covariance is known: Σ⁻¹), or "diagonal" for 1/diag(S) of each prefix
    (Jacobi). `rate` is η, or "best" for the best constant rate of each prefix in the new coordinates.
    """

    aliases = ("preconditioned-gd",)

    steps: arguments.Steps
    preconditioner: Literal["diagonal"] | Sequence[Sequence[float]] | Tensor = "diagonal"
    rate: Rate = "best"

    def __post_init__(self) -> None:
        arguments.steps(self.steps)
        arguments.number_or_choice("rate", self.rate, ["best"])
        if isinstance(self.preconditioner, str):
            arguments.choice("preconditioner", self.preconditioner, ["diagonal"], alternative="a matrix")

    def keeps(self, symmetry: Symmetry) -> bool | None:
        match symmetry:
            case AddTargets():
                return True
            case RotateInputs():
                return self._isotropic
            case ScaleInputs():
                return self.rate == "best" or isinstance(self.preconditioner, str)
            case ExchangeSpectrum():
                return self._isotropic and self.rate != "best"
        return keeps_as_moments(symmetry)

    @property
    def _isotropic(self) -> bool:
        """Whether P is a multiple of the identity, and all this gradient descent."""
        if isinstance(self.preconditioner, str):
            return False
        matrix = torch.as_tensor(self.preconditioner)
        return torch.equal(matrix, matrix[0, 0] * torch.eye(len(matrix)).to(matrix))

    def trace(self, prompts: Prompts) -> Trace:
        problem = LeastSquares.preconditioned(prompts, self._root(prompts))
        rate = best_rate(problem) if self.rate == "best" else self.rate
        stages = arguments.steps_to_keep(self.steps)
        iterates = map(problem.at, powers_of_one_minus(rate * problem.eigenvalues, stages))
        return problem.trace(self.name, stages, iterates, divergence(rate, problem))

    def _root(self, prompts: Prompts) -> Float[Tensor, "*positions dim dim"]:
        if isinstance(self.preconditioner, str):
            norms = prefixes(prompts.x).square().sum(2).sqrt()
            return torch.diag_embed(torch.where(norms > 0, 1 / norms, 0.0))
        matrix = arguments.matrix("preconditioner", self.preconditioner, prompts.dim, "'diagonal'").to(prompts.x.device)
        root, failed = torch.linalg.cholesky_ex(matrix)
        if failed or not torch.allclose(matrix, matrix.mT):
            raise ValueError("preconditioner must be symmetric positive definite")
        return root


@dataclass(frozen=True)
class GradientDescentPlusPlus(Algorithm):
    """GD++: gradient descent that also transforms the data, x ← (I − γS)x, so that its spectrum contracts.

    Both use the current data, whose eigenvalues are λ_k: r_{k+1} = r_k(1 − η λ_k) and λ_{k+1} = λ_k(1 − γλ_k)². Von
    Oswald et al. 2022; the rival account of second-order behavior, since log κ shrinks step by step. A number for
    `rate` (η) and `transform` (γ) holds for all prompts and steps. "best" takes them from the current spectrum with
    ends m and M: η = 2/(M + m), and γ = 1/(M + √(Mm) + m), which maps both ends to the same value.
    """

    aliases = ("gd++",)

    steps: arguments.Steps
    rate: Rate = "best"
    transform: Rate = "best"

    def __post_init__(self) -> None:
        arguments.steps(self.steps)
        arguments.number_or_choice("rate", self.rate, ["best"])
        arguments.number_or_choice("transform", self.transform, ["best"])

    def keeps(self, symmetry: Symmetry) -> bool | None:
        match symmetry:
            case AddTargets() | RotateInputs():
                return True
            case ScaleInputs():
                return self.rate == self.transform == "best"
            case ExchangeSpectrum():
                return "best" not in (self.rate, self.transform)
        return keeps_as_moments(symmetry)

    def trace(self, prompts: Prompts) -> Trace:
        problem = LeastSquares.of(prompts)
        stages = arguments.steps_to_keep(self.steps)
        kept = list(itertools.compress(self._factors(problem), (k in stages for k in range(stages[-1] + 1))))
        share = float((~(kept[-1].abs().amax(-1) <= 1 + 1e-9)).double().mean())
        note = f"diverges on {share:.1%} of the prefixes: a residual factor has left [−1, 1]" if share else ""
        return problem.trace(self.name, stages, map(problem.at, kept), note)

    def _factors(self, problem: LeastSquares) -> Iterator[Tensor]:
        seen, eigenvalues = problem.eigenvalues > 0, problem.eigenvalues
        factor = torch.ones_like(eigenvalues)
        while True:
            yield factor
            high = eigenvalues.amax(-1, keepdim=True).clamp(min=1e-200)  # far below, all is solved and only shrinks on
            low = torch.where(seen, eigenvalues, torch.inf).amin(-1, keepdim=True).minimum(high)
            rate = 2 / (high + low) if self.rate == "best" else self.rate
            transform = 1 / (high + (high * low).sqrt() + low) if self.transform == "best" else self.transform
            factor = factor * (1 - rate * eigenvalues)
            eigenvalues = eigenvalues * (1 - transform * eigenvalues).square()

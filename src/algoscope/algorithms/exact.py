"""Closed forms: the answers that the iterations converge to, and the answer that uses nothing."""

from dataclasses import dataclass

import torch

from algoscope import arguments
from algoscope.algorithms.least_squares import LeastSquares, keeps_as_moments, weights_trace
from algoscope.contracts import Algorithm, Symmetry
from algoscope.symmetries import (
    AddQueries,
    AddTargets,
    ExchangeSpectrum,
    FlipExamples,
    MixExamples,
    PermuteExamples,
    RotateInputs,
    ScaleInputs,
)
from algoscope.trace import Prompts, Trace


@dataclass(frozen=True)
class OrdinaryLeastSquares(Algorithm):
    """w = S⁺Xᵀy, the least-squares solution of minimum norm. One stage, labeled 0.

    Gauss 1809; the pseudo-inverse S⁺ is Moore's (1920) and Penrose's (1955).
    """

    aliases = ("ols", "least-squares")

    @property
    def closed_form(self) -> bool:
        return True

    def keeps(self, symmetry: Symmetry) -> bool | None:
        if isinstance(symmetry, AddTargets | RotateInputs | ScaleInputs | ExchangeSpectrum):
            return True
        return keeps_as_moments(symmetry)

    def trace(self, prompts: Prompts) -> Trace:
        problem = LeastSquares.of(prompts)
        return problem.trace(self.name, [0], [problem.solution])


@dataclass(frozen=True)
class Ridge(Algorithm):
    """w = (S + ρI)⁻¹Xᵀy. With ρ = σ², the variance of the noise, it is the Bayes-optimal answer for w ~ N(0, I).

    Tikhonov 1943; Hoerl and Kennard 1970. `ridge` is ρ; None takes σ² from the prompts, and ρ = 0 is ordinary least
    squares. One stage, labeled 0.
    """

    ridge: float | None = None

    def __post_init__(self) -> None:
        if self.ridge is not None:
            arguments.number("ridge", self.ridge)

    @property
    def closed_form(self) -> bool:
        return True

    def keeps(self, symmetry: Symmetry) -> bool | None:
        match symmetry:
            case AddTargets() | RotateInputs() | ExchangeSpectrum():
                return True
            case ScaleInputs():
                return not self.ridge  # the noise that it takes from the prompts is scaled, too
        return keeps_as_moments(symmetry)

    def trace(self, prompts: Prompts) -> Trace:
        problem = LeastSquares.of(prompts, prompts.noise**2 if self.ridge is None else self.ridge)
        return problem.trace(self.name, [0], [problem.solution])


@dataclass(frozen=True)
class RidgePath(Algorithm):
    """Ridge regression at several `penalties` ρ, which are its stages: w = (S + ρI)⁻¹Xᵀy.

    Iterations that stop early shrink small directions much as some ρ does (Ali, Kolter and Tibshirani 2019).
    """

    stage_fields = ("penalties",)

    penalties: tuple[float, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.penalties, tuple) or not self.penalties:
            raise ValueError(f"penalties must be a tuple of numbers, got {arguments.shown(self.penalties)}")
        for penalty in self.penalties:
            arguments.number("penalties", penalty)

    @property
    def method(self) -> str:
        return Ridge.__name__

    @property
    def name(self) -> str:
        return type(self).__name__

    def keeps(self, symmetry: Symmetry) -> bool | None:
        return Ridge(max(self.penalties)).keeps(symmetry)

    def trace(self, prompts: Prompts) -> Trace:
        problem = LeastSquares.of(prompts)
        eigenvalues = problem.eigenvalues
        iterates = (problem.at(torch.where(eigenvalues > 0, penalty / (eigenvalues + penalty), 0.0))
                    for penalty in self.penalties)  # fmt: skip
        return problem.trace(self.name, [f"ρ={penalty:g}" for penalty in self.penalties], iterates)


@dataclass(frozen=True)
class Mean(Algorithm):
    """The mean of the targets seen so far, whatever x is; zero before the first. One stage, labeled 0.

    What is left of regression without the inputs: an intercept. It has no weights on x.
    """

    def keeps(self, symmetry: Symmetry) -> bool | None:
        match symmetry:
            case AddTargets() | PermuteExamples() | RotateInputs() | ScaleInputs():
                return True
            case AddQueries() | FlipExamples() | MixExamples() | ExchangeSpectrum():
                return False
        return None

    def trace(self, prompts: Prompts) -> Trace:
        targets = prompts.target_columns.double()
        seen = torch.arange(1, targets.shape[1], device=targets.device, dtype=torch.float64)[:, None]
        means = torch.nn.functional.pad(targets[:, :-1].cumsum(1) / seen, (0, 0, 1, 0))
        return Trace(self.name, means.reshape(1, *prompts.y.shape), (0,), prompts)


@dataclass(frozen=True)
class Zero(Algorithm):
    """w = 0: the null. What does not fit better than this has not been identified. One stage, labeled 0."""

    def keeps(self, symmetry: Symmetry) -> bool | None:
        if isinstance(symmetry, AddTargets | RotateInputs | ScaleInputs | ExchangeSpectrum):
            return True
        return keeps_as_moments(symmetry)

    def trace(self, prompts: Prompts) -> Trace:
        batch, positions, targets = prompts.target_columns.shape
        weights = torch.zeros(1, batch, positions, prompts.dim, targets, dtype=torch.float64, device=prompts.x.device)
        solved = prompts.target_columns[:, :-1].abs().sum(-1).cumsum(1) == 0  # so long as all targets were zero
        converged = torch.nn.functional.pad(solved, (1, 0), value=True)[None]
        return weights_trace(self.name, [0], prompts, weights, converged)

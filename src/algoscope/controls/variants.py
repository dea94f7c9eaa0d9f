"""Algorithms of which no step is on a list: mixtures and choices of known steps, and methods that no task names."""

import itertools
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from algoscope import arguments
from algoscope.algorithms import Algorithm
from algoscope.algorithms.least_squares import LeastSquares, prefixes, weights_trace
from algoscope.trace import Prompts, Trace


@dataclass(frozen=True)
class Combined(Algorithm):
    """A single step that is made of single steps of several `algorithms`, each of which keeps one stage."""

    algorithms: tuple[Algorithm, ...]

    def __post_init__(self) -> None:
        given = self.algorithms
        if not isinstance(given, tuple) or len(given) < 2 or not all(isinstance(each, Algorithm) for each in given):
            raise ValueError(f"algorithms must be a tuple of at least two algorithms, got {arguments.shown(given)}")

    @property
    def name(self) -> str:
        return f"{type(self).__name__}({', '.join(map(_step, self.algorithms))})"

    @property
    def method(self) -> str:
        """That of its parts, if they have one."""
        methods = {each.method for each in self.algorithms}
        return methods.pop() if len(methods) == 1 else type(self).__name__

    def trace(self, prompts: Prompts) -> Trace:
        parts = [each.trace(prompts) for each in self.algorithms]
        if any(len(part) > 1 for part in parts):
            several = next(part for part in parts if len(part) > 1)
            raise ValueError(f"algorithms must keep one step each, such as Newton((3,)); {several.name} keeps several")
        values = self._combined(torch.stack([part.values[0].double() for part in parts]), prompts)
        return Trace(self.name, values[None], (0,), prompts)

    @abstractmethod
    def _combined(self, values: Tensor, prompts: Prompts) -> Tensor:
        """The answers, from those of each algorithm."""


@dataclass(frozen=True)
class Mixed(Combined):
    """The mean of the single steps of several algorithms. One stage, labeled 0."""

    def _combined(self, values: Tensor, prompts: Prompts) -> Tensor:
        return values.mean(0)


@dataclass(frozen=True)
class Coin(Combined):
    """Each prompt follows one of two single steps: the first where its very first coordinate x[0, 0] is negative, the
    second elsewhere. One stage, labeled 0.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.algorithms) != 2:
            raise ValueError(f"algorithms must be two, got {len(self.algorithms)}")

    def _combined(self, values: Tensor, prompts: Prompts) -> Tensor:
        heads = heads_of(prompts).reshape(-1, *[1] * (values.ndim - 2))
        return torch.where(heads, values[1], values[0])


def heads_of(prompts: Prompts) -> Bool[Tensor, "batch"]:
    """Which of two steps a prompt follows; a coin does not look at targets."""
    return prompts.x[:, 0, 0] >= 0


def _step(algorithm: Algorithm) -> str:
    """An algorithm and which step it keeps."""
    kept = next((getattr(algorithm, field) for field in algorithm.stage_fields if hasattr(algorithm, field)), None)
    steps = () if kept is None else arguments.steps_to_keep(kept)
    return " ".join([algorithm.name, *map(str, steps)])


@dataclass(frozen=True)
class PrincipalComponents(Algorithm):
    """w = Σ_i v_i v_iᵀ w* over the `count` directions of x with the largest eigenvalues of S, w* = S⁺Xᵀy.

    Principal component regression (Massy 1965), without centering. One stage, labeled 0.
    """

    aliases = ("pcr",)

    count: int

    def __post_init__(self) -> None:
        arguments.size("count", self.count)

    def trace(self, prompts: Prompts) -> Trace:
        problem = LeastSquares.of(prompts)
        ranks = problem.eigenvalues.argsort(dim=-1, descending=True, stable=True).argsort(-1)
        return problem.trace(self.name, [0], [problem.at((ranks >= self.count).double())])


@dataclass(frozen=True)
class GaussSeidel(Algorithm):
    """w ← w + L⁻¹(Xᵀy − Sw) from w = 0, L the lower triangle of S: each step solves for one coordinate after another.

    Gauss 1823, Seidel 1874; the same as cyclic coordinate descent on the squared error. It depends on the axes of x.
    """

    steps: arguments.Steps

    def __post_init__(self) -> None:
        arguments.steps(self.steps)

    def trace(self, prompts: Prompts) -> Trace:
        x, y, stages = prompts.x.double(), prompts.target_columns.double(), arguments.steps_to_keep(self.steps)
        seen = prefixes(x)
        targets = torch.nn.functional.pad(y[:, :-1], (0, 0, 0, seen.shape[2] - y.shape[1] + 1))[:, None]
        s, b = seen.mT @ seen, seen.mT @ targets
        lower = s.tril() + torch.diag_embed((s.diagonal(dim1=-2, dim2=-1) == 0).double())  # where no x was seen yet
        iterates = itertools.compress(_sweeps(s, b, lower), (k in stages for k in range(stages[-1] + 1)))
        weights = torch.stack(list(iterates))
        return weights_trace(self.name, stages, prompts, weights, torch.zeros(weights.shape[:3], dtype=torch.bool))


def _sweeps(s: Tensor, b: Tensor, lower: Tensor) -> Iterator[Tensor]:
    w = torch.zeros_like(b)
    while True:
        yield w
        w = w + torch.linalg.solve_triangular(lower, b - s @ w, upper=False)


@dataclass(frozen=True)
class DecayingRate(Algorithm):
    """w_{k+1} = w_k − c/(k+1) (Sw_k − Xᵀy) from w = 0, so r_k(λ) = Π_{j=1..k} (1 − cλ/j).

    The rates of Robbins and Monro (1951), on all examples. `rate` is c, or None for c = 1/λ_max of each prefix.
    """

    steps: arguments.Steps
    rate: float | None = None

    def __post_init__(self) -> None:
        arguments.steps(self.steps)
        if self.rate is not None:
            arguments.number("rate", self.rate, strict=True)

    def trace(self, prompts: Prompts) -> Trace:
        problem, stages = LeastSquares.of(prompts), arguments.steps_to_keep(self.steps)
        slowed = problem.eigenvalues * (1 / problem.largest if self.rate is None else self.rate)
        factors = itertools.accumulate(range(1, stages[-1] + 1), lambda r, j: r * (1 - slowed / j), initial=slowed**0)
        return problem.trace(self.name, stages, (problem.at(r) for k, r in enumerate(factors) if k in stages))


@dataclass(frozen=True)
class FixedMomentum(Algorithm):
    """w_{k+1} = w_k − η(Sw_k − Xᵀy) + β(w_k − w_{k−1}) from w_0 = w_{−1} = 0, with one β for all prompts.

    Polyak's heavy ball (1964) as it is used in training: η is 1/λ_max of each prefix, β is `momentum`.
    """

    steps: arguments.Steps
    momentum: float = 0.5

    def __post_init__(self) -> None:
        arguments.steps(self.steps)
        arguments.number("momentum", self.momentum)

    @property
    def method(self) -> str:
        """Heavy ball with other constants."""
        return "HeavyBall"

    def trace(self, prompts: Prompts) -> Trace:
        problem, stages = LeastSquares.of(prompts), arguments.steps_to_keep(self.steps)
        factors = itertools.islice(self._factors(problem.eigenvalues / problem.largest), stages[-1] + 1)
        return problem.trace(self.name, stages, (problem.at(r) for k, r in enumerate(factors) if k in stages))

    def _factors(self, scaled: Tensor) -> Iterator[Tensor]:
        r = before = torch.ones_like(scaled)
        while True:
            yield r
            r, before = (1 + self.momentum - scaled) * r - self.momentum * before, r

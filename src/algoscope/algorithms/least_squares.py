"""The problem that all the regression methods solve, in the coordinates in which they are simple.

With the first t examples in the rows of X and their targets in y, every method looks for weights w with

    S w = Xᵀy,    S = XᵀX = V diag(λ) Vᵀ    (S + ρI in place of S for the ridge-regularized problem).

Gradient descent, momentum, Chebyshev, GD++ and Newton never mix the eigen-directions of S. Each only multiplies the
distance to the solution, direction by direction, by a **residual factor** r_k(λ) after step k:

    Vᵀw_k = Vᵀw* + r_k(λ) (Vᵀw_0 − Vᵀw*)

So a method is its factor, and thousands of steps cost what a few do. The decomposition is that of X, not of S: the
eigenvalues then have a relative error of ε·κ(X) instead of ε·κ(X)².
"""

import contextlib
import contextvars
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from algoscope.contracts import Symmetry
from algoscope.symmetries import AddQueries, FlipExamples, MixExamples, PermuteExamples
from algoscope.trace import Prompts, Stage, Trace

SOLVED = 1e-8  # a gradient this small, relative to the one at w = 0, counts as converged
CHUNK = 4096  # prefixes decomposed at once: bounds the memory of the left singular vectors


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """One problem for each sequence and each prefix t = 0..examples of `prompts`.

    `basis` holds the eigenvectors in its columns, `eigenvalues` λ (exactly zero beyond the rank of X) and `solution`
    the coordinates of w*, the solution of least norm.
    """

    prompts: Prompts
    basis: Float[Tensor, "batch positions dim dim"]
    eigenvalues: Float[Tensor, "batch positions dim"]
    solution: Float[Tensor, "batch positions dim targets"]
    ridge: float = 0.0

    @staticmethod
    def of(prompts: Prompts, ridge: float = 0.0) -> "LeastSquares":
        """The problems of these prompts; the decomposition is done once for as long as the prompts live."""
        version = (prompts.x._version, prompts.y._version)  # counts changes in place
        if prompts not in _decomposed or _decomposed[prompts][0] != version:
            _decomposed[prompts] = version, _decompose(prompts, prefixes(prompts.x))
        return LeastSquares(prompts, *_decomposed[prompts][1]).regularized(ridge)

    @staticmethod
    def preconditioned(prompts: Prompts, root: Float[Tensor, "*positions dim dim"]) -> "LeastSquares":
        """The problems in the coordinates u of w = L u: gradient descent on u is descent on w preconditioned by LLᵀ."""
        basis, eigenvalues, solution = _decompose(prompts, prefixes(prompts.x) @ root)
        return LeastSquares(prompts, root @ basis, eigenvalues, solution)

    def regularized(self, ridge: float) -> "LeastSquares":
        shrink = self.eigenvalues / (self.eigenvalues + ridge) if ridge else torch.ones_like(self.eigenvalues)
        return replace(
            self, eigenvalues=self.eigenvalues + ridge, solution=self.solution * shrink[..., None], ridge=ridge
        )

    @property
    def largest(self) -> Float[Tensor, "batch positions 1"]:
        """λ_max; 1 where nothing has been seen, so that rates stay finite."""
        largest = self.eigenvalues.amax(-1, keepdim=True)
        return torch.where(largest > 0, largest, 1.0)

    @property
    def smallest(self) -> Float[Tensor, "batch positions 1"]:
        """The smallest λ > 0: directions beyond the rank need no solving."""
        positive = torch.where(self.eigenvalues > 0, self.eigenvalues, torch.inf)
        return positive.amin(-1, keepdim=True).minimum(self.largest)

    @property
    def unseen(self) -> Float[Tensor, "batch positions"]:
        """How far each x is from the span of the examples before it; with a ridge nothing is unseen."""
        own = (self.basis.mT @ self.prompts.x[..., None])[..., 0]
        return torch.where(self.eigenvalues > 0, 0.0, own).norm(dim=-1)

    def at(self, factor: Float[Tensor, "batch positions dim"], start: Tensor | None = None) -> Tensor:
        """Coordinates of the iterate whose residual factor is given; `start` holds those of w_0, by default zero."""
        factor = torch.where(self.eigenvalues > 0, factor, 1.0)[..., None]  # nothing pulls on an unseen direction
        return (1 - factor) * self.solution + (0.0 if start is None else factor * start)

    def trace(self, name: str, stages: Sequence[Stage], iterates: Iterable[Tensor], note: str = "") -> Trace:
        """The trace of a method, given the coordinates of its iterate at each stage."""
        coordinates = torch.stack(list(iterates), dim=-1)  # [batch, positions, dim, targets, stages]
        if not _weights_wanted.get():
            own = torch.einsum("bpd,bpdk->bpk", self.prompts.x.double(), self.basis)
            values = torch.einsum("bpk,bpkms->sbpm", own, coordinates)
            return Trace(name, values.reshape(-1, *self.prompts.y.shape), tuple(stages), self.prompts, note=note)
        weights = (self.basis @ coordinates.flatten(-2)).reshape(coordinates.shape).movedim(-1, 0)
        gradient = self.eigenvalues[..., None, None] * (coordinates - self.solution[..., None])
        origin = (self.eigenvalues[..., None] * self.solution).flatten(2).norm(dim=2)
        converged = gradient.flatten(2, 3).norm(dim=2) <= SOLVED * origin[..., None]
        return weights_trace(name, stages, self.prompts, weights, converged.movedim(-1, 0), note)


_weights_wanted: contextvars.ContextVar[bool] = contextvars.ContextVar("weights of traces are wanted", default=True)


@contextlib.contextmanager
def without_weights() -> Iterator[None]:
    """Traces of methods that work in the eigenbasis hold values alone, which are several times as fast to make."""
    before = _weights_wanted.set(False)
    try:
        yield
    finally:
        _weights_wanted.reset(before)


def keeps_as_moments(symmetry: Symmetry) -> bool | None:
    """What every method keeps whose weights depend on the examples through S and Xᵀy alone."""
    return True if isinstance(symmetry, AddQueries | FlipExamples | MixExamples | PermuteExamples) else None


def weights_trace(
    name: str,
    stages: Sequence[Stage],
    prompts: Prompts,
    weights: Float[Tensor, "stages batch positions dim targets"],
    converged: Bool[Tensor, "stages batch positions"],
    note: str = "",
) -> Trace:
    """The trace of a method that predicts w·x, from its weights."""
    values = torch.einsum("bpd,sbpdm->sbpm", prompts.x.double(), weights)
    if prompts.y.ndim == 2:
        values, weights = values[..., 0], weights[..., 0]
    return Trace(name, values, tuple(stages), prompts, weights, converged, note)


def prefixes(values: Float[Tensor, "batch points width"]) -> Float[Tensor, "batch points rows width"]:
    """For each t = 0..examples the first t rows; the others are zero, and at least `width` rows are there."""
    examples, width = values.shape[1] - 1, values.shape[2]
    rows = max(examples, width)
    seen = torch.ones(examples + 1, rows, device=values.device, dtype=torch.bool).tril(-1)
    padded = torch.nn.functional.pad(values[:, :-1].double(), (0, 0, 0, rows - examples))
    return torch.where(seen[..., None], padded[:, None], 0.0)


Decomposition: TypeAlias = tuple[Tensor, Tensor, Tensor]  # V, λ and Vᵀw*, as in LeastSquares
_decomposed: weakref.WeakKeyDictionary[Prompts, tuple[tuple[int, int], Decomposition]] = weakref.WeakKeyDictionary()


def _decompose(prompts: Prompts, rows: Float[Tensor, "batch positions rows dim"]) -> Decomposition:
    """For every prefix. A singular value <= max(t, dim)·ε·σ_max counts as zero (numpy's rank rule)."""
    targets = prompts.target_columns.double()
    targets = torch.nn.functional.pad(targets[:, :-1], (0, 0, 0, rows.shape[2] - targets.shape[1] + 1))
    targets = targets[:, None].expand(-1, rows.shape[1], -1, -1)  # rows beyond the prefix meet zeros in X
    larger = torch.arange(rows.shape[1], device=rows.device).clamp(min=rows.shape[3]).expand(rows.shape[:2])
    chunks = (part.flatten(0, 1).split(CHUNK) for part in (rows, targets, larger[..., None]))
    parts = []
    for x, y, size in zip(*chunks, strict=True):
        left, sigma, right = torch.linalg.svd(x, full_matrices=False)
        kept = sigma > size * torch.finfo(torch.float64).eps * sigma[:, :1]
        inverse = torch.where(kept, 1 / torch.where(kept, sigma, 1.0), 0.0)
        parts.append((right.mT, torch.where(kept, sigma.square(), 0.0), inverse[..., None] * (left.mT @ y)))
    basis, eigenvalues, solution = (torch.cat(part).unflatten(0, rows.shape[:2]) for part in zip(*parts, strict=True))
    return basis, eigenvalues, solution

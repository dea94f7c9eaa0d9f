"""Projections: each example in turn is solved on its own."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from algoscope import arguments
from algoscope.algorithms.least_squares import LeastSquares
from algoscope.contracts import Algorithm, Symmetry
from algoscope.randomness import stream
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
class Kaczmarz(Algorithm):
    """w ← w + x_i (y_i − w·x_i) / ‖x_i‖², the projection on the solutions of example i, from w = 0.

    Kaczmarz 1937. A step is a sweep: at prefix t, t projections. `order` "cyclic" takes the examples in their order, so
    that the first sweep is online gradient descent with the rate "1/norm". "randomized" draws each with a probability
    that is proportional to ‖x_i‖² (Strohmer and Vershynin 2009), out of `seed`; all sequences share their uniform
    draws. Without noise the sweeps converge to the solution of least norm; with noise they circle around it.
    """

    steps: arguments.Steps
    order: Literal["cyclic", "randomized"] = "cyclic"
    seed: int = 0  # of the randomized order

    def __post_init__(self) -> None:
        arguments.steps(self.steps)
        arguments.choice("order", self.order, ["cyclic", "randomized"])
        arguments.integer("seed", self.seed, 0)

    def keeps(self, symmetry: Symmetry) -> bool | None:
        match symmetry:
            case AddTargets() | AddQueries() | FlipExamples() | RotateInputs() | ScaleInputs():
                return True
            case PermuteExamples() | MixExamples() | ExchangeSpectrum():
                return False  # the randomized order as well: the same draws take other examples
        return None

    def trace(self, prompts: Prompts) -> Trace:
        problem, stages = LeastSquares.of(prompts), arguments.steps_to_keep(self.steps)
        x, y = prompts.x.double(), prompts.target_columns.double()
        norms = x.square().sum(-1)
        projections = x / torch.where(norms > 0, norms, 1.0)[..., None]
        w = torch.zeros_like(problem.solution).movedim(1, 0).contiguous()
        kept, orders = [], self._orders(norms)
        for step in range(stages[-1] + 1):
            if step in stages:
                kept.append(problem.basis.mT @ w.movedim(0, 1))
            if step < stages[-1]:
                _sweep(w, next(orders), x, projections, y)
        return problem.trace(self.name, stages, kept)

    def _orders(self, norms: Float[Tensor, "batch points"]) -> Iterator[Int[Tensor, "batch points examples"]]:
        """For each sweep the examples that it takes, of which prefix t takes the first t."""
        batch, points = norms.shape
        sums = norms[:, :-1].cumsum(1)
        totals = torch.nn.functional.pad(sums, (1, 0))[..., None]
        generator = stream("order of Kaczmarz", self.seed)
        while True:
            if self.order == "cyclic":
                yield torch.arange(points - 1, device=norms.device).expand(batch, points, -1)
                continue
            draws = torch.rand(points, points - 1, generator=generator, dtype=norms.dtype).to(norms.device)
            yield torch.searchsorted(sums, (totals * draws).flatten(1)).unflatten(1, draws.shape)


def _sweep(w: Tensor, order: Tensor, x: Tensor, projections: Tensor, y: Tensor) -> None:
    """Changes w [points, batch, dim, targets] in place: example after example, of all prefixes that have so many."""
    first = torch.arange(x.shape[0], device=x.device) * x.shape[1]  # of the points of each sequence, once they are flat
    rows, moves, targets = (part.flatten(0, 1) for part in (x[..., None], projections[..., None], y[:, :, None]))
    for k, places in enumerate((first[:, None, None] + order).permute(2, 1, 0).contiguous()):
        index, own = places[k + 1 :].flatten(), w[k + 1 :].flatten(0, 1)
        answer = (rows.index_select(0, index) * own).sum(1, keepdim=True)
        own.addcmul_(moves.index_select(0, index), targets.index_select(0, index) - answer)

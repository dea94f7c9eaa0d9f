"""Which part of the problem a weight vector has solved, direction by direction.

Least squares is easy along the eigenvectors of S = XᵀX with large eigenvalues and hard along the others. A method is a
**filter**: along a direction with eigenvalue λ its weights hold a share 1 − r(λ) of the solution. The filter of a model
is found the same way, from the weights that its stages induce: where it lies tells the algorithm, not how well it does.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from algoscope.algorithms.least_squares import LeastSquares
from algoscope.matching.bootstrap import ratio_interval, resampling
from algoscope.trace import Prompts, Stage

RESAMPLES = 1000


@dataclass(frozen=True, eq=False)
class Filter:
    """The share of the solution held along directions of about each of the `eigenvalues`, with its interval."""

    stages: tuple[Stage, ...]
    eigenvalues: Float[Tensor, "bins"]
    solved: Float[Tensor, "stages bins"]
    low: Float[Tensor, "stages bins"]
    high: Float[Tensor, "stages bins"]


def spectral_filter(
    stages: Sequence[Stage],
    weights: Float[Tensor, "stages batch dim"],
    prompts: Prompts,
    position: int,
    bins: int = 8,
    confidence: float = 0.95,
    seed: int = 0,
) -> Filter:
    """The filter of weights found after `position` examples; a bin holds as many eigen-directions as any other.

    The share in a bin is the regression of the weights' coordinates on the solution's.
    """
    problem = LeastSquares.of(prompts)
    basis, eigenvalues, solution = (
        part[:, position] for part in (problem.basis, problem.eigenvalues, problem.solution[..., 0])
    )
    coordinates = torch.einsum("bdk,sbd->sbk", basis, weights.double())
    edges = torch.quantile(eigenvalues[eigenvalues > 0], torch.linspace(0, 1, bins + 1, dtype=torch.float64))
    place = torch.bucketize(eigenvalues.contiguous(), edges[1:-1])
    draws = resampling(prompts.batch, RESAMPLES, seed)
    middles, found = [], []
    for k in range(bins):
        inside = (place == k) & (eigenvalues > 0)
        held = torch.where(inside, coordinates * solution, 0.0).sum(-1).mT  # [batch, stages]
        whole = torch.where(inside, solution.square(), 0.0).sum(-1)[:, None].expand_as(held)
        middles.append(eigenvalues[inside].median())
        found.append(torch.stack(ratio_interval(held, whole, draws, confidence)))
    solved, low, high = torch.stack(found, dim=-1).unbind(0)
    return Filter(tuple(stages), torch.stack(middles), solved, low, high)


def outside_span(
    weights: Float[Tensor, "stages batch dim"], prompts: Prompts, position: int
) -> Float[Tensor, "batch stages"]:
    """The share of the squared weights that lies outside the span of the first `position` examples."""
    problem = LeastSquares.of(prompts)
    coordinates = torch.einsum("bdk,sbd->sbk", problem.basis[:, position], weights.double()).square()
    unseen = torch.where(problem.eigenvalues[:, position] > 0, 0.0, coordinates).sum(-1)
    return (unseen / coordinates.sum(-1).clamp(min=1e-300)).mT

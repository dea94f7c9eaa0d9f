"""Which directions decide where a look-up goes: a line between each place and all others, and the space of these."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from algoscope import arguments

RIDGE = 1.0  # of the weights, against the sum of all losses: places that a plane separates have no largest likelihood
ROUNDS, CLOSE = 50, 1e-9


@dataclass(frozen=True, eq=False)
class Subspace:
    """Of the weights of the places, one a row: principal directions, and the share of the variance along each."""

    weights: Float[Tensor, "places dim"]
    axes: Float[Tensor, "components dim"]
    shares: Float[Tensor, "components"]


def subspace(queries: Float[Tensor, "queries dim"], places: Int[Tensor, "queries"]) -> Subspace:
    """For each place that some queries read, and some do not, a logistic regression of that on the query."""
    if len(queries) != len(places) or len(queries) == 0:
        raise ValueError(f"queries and places must be as many, and not none; got {len(queries)} and {len(places)}")
    arguments.finite("queries", queries)
    known = [place for place in places.unique() if bool((places != place).any())]
    if not known:
        raise ValueError("places must differ: all queries read the same one")
    weights = torch.stack([logistic(queries.double(), places == place) for place in known])
    centered = weights - weights.mean(0)
    _, sizes, axes = torch.linalg.svd(centered, full_matrices=False)
    return Subspace(weights, axes, sizes.square() / sizes.square().sum().clamp(min=torch.finfo(sizes.dtype).tiny))


def logistic(x: Float[Tensor, "rows dim"], chosen: Tensor, ridge: float = RIDGE) -> Float[Tensor, "dim"]:
    """The weights of a logistic regression with a free intercept, by Newton's method."""
    rows = torch.cat((x, torch.ones_like(x[:, :1])), 1)
    target, weights = chosen.to(x.dtype), torch.zeros_like(rows[0])
    penalty = torch.full_like(weights, ridge)
    penalty[-1] = 0.0
    for _ in range(ROUNDS):
        chance = (rows @ weights).sigmoid()
        gradient = rows.mT @ (chance - target) + penalty * weights
        curvature = rows.mT @ (rows * (chance * (1 - chance))[:, None]) + penalty.diag()
        step = torch.linalg.solve(curvature + CLOSE * torch.eye(len(weights), dtype=x.dtype), gradient)
        step = step * (1 / step.norm()).clamp(max=1)  # far from the end Newton's steps are too long
        weights = weights - step
        if float(step.norm()) < CLOSE * (1 + float(weights.norm())):
            break
    return weights[:-1]

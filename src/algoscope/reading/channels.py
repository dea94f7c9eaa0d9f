"""Which algorithm the weights over a graph hold, read off the weights themselves (Ye et al. 2026, Section 4).

Weights that treat all nodes alike are W = A ⊗ I + B ⊗ J, with J all ones. The first part joins what is said about the
same node and never leaves a component: it is the algorithm. The second joins everything with everything, by products of
degrees: it is the heuristic.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from algoscope import arguments
from algoscope.contracts import Show
from algoscope.randomness import stream


@dataclass(frozen=True, eq=False)
class Channels:
    """The closest A ⊗ I + B ⊗ J to some weights, of one network or of each member of a population.

    A share is the inner product of the weights with a part, over their own square. The parts are not orthogonal, so
    what they have in common counts in both; the shares sum to 1 − error². All are NaN where the weights are zero.
    """

    algorithm: Float[Tensor, "*members blocks blocks"]  # A
    heuristic: Float[Tensor, "*members blocks blocks"]  # B
    algorithm_share: Float[Tensor, "*members"]
    heuristic_share: Float[Tensor, "*members"]
    error: Float[Tensor, "*members"]  # ‖W − A ⊗ I − B ⊗ J‖ / ‖W‖


def channels(weight: Float[Tensor, "*members width width"], nodes: int) -> Channels:
    """Least squares, block by block: B is the mean off the diagonal, and A what the mean on it is more than that.

    Of a single node the two are the same, and all counts as the algorithm.
    """
    arguments.integer("nodes", nodes, 1)
    if weight.shape[-1] % nodes:
        raise ValueError(f"nodes must divide the width of the weights, {weight.shape[-1]}, got {nodes}")
    count = weight.shape[-1] // nodes
    cut = weight.detach().double().unflatten(-1, (count, nodes)).unflatten(-3, (count, nodes)).transpose(-3, -2)
    on = cut.diagonal(dim1=-2, dim2=-1).mean(-1)
    off = (cut.sum((-2, -1)) - nodes * on) / (nodes * (nodes - 1)) if nodes > 1 else torch.zeros_like(on)
    algorithm, power = on - off, cut.square().sum((-4, -3, -2, -1))
    same = torch.eye(nodes, dtype=torch.float64, device=weight.device)
    parts = algorithm[..., None, None] * same, off[..., None, None] * torch.ones_like(same)
    own, crossing = ((cut * part).sum((-4, -3, -2, -1)) / power for part in parts)
    left = (cut - parts[0] - parts[1]).square().sum((-4, -3, -2, -1))
    return Channels(algorithm, off, own, crossing, (left / power).sqrt())


@torch.no_grad()
def equivariance(show: Show, x: Float[Tensor, "batch nodes nodes"], seed: int = 0) -> dict[str, Float[Tensor, "batch"]]:
    """How alike the states of a graph and of the same graph with its nodes in another order are, stage by stage.

    `show` turns graphs into states of one or more blocks of n columns, such as `network.run(x, network.stages)[1]` of a
    disentangled transformer, or a linear probe of the stages of another. Each value is the cosine of the states of
    P A Pᵀ with those of A, whose rows and columns were moved afterwards; P is drawn for each graph.
    """
    order = torch.rand(x.shape[:2], generator=stream("relabeling", seed)).argsort(-1).to(x.device)
    before, after = show(x), show(_moved(x, order))
    return {name: _cosine(_moved(state, order), after[name]) for name, state in _checked(before, x.shape[-1]).items()}


def _checked(states: Mapping[str, Tensor], nodes: int) -> Mapping[str, Tensor]:
    for name, state in states.items():
        if state.ndim != 3 or state.shape[-1] % nodes:
            want = f"[batch, {nodes}, a multiple of {nodes}]"
            raise ValueError(f"the states of stage {name!r} must be {want}, got {list(state.shape)}")
    return states


def _moved(state: Float[Tensor, "batch nodes width"], order: Tensor) -> Float[Tensor, "batch nodes width"]:
    """With its rows, and the columns of each of its blocks, in another order."""
    blocks = state.unflatten(-1, (-1, state.shape[-2]))
    rows = blocks.gather(1, order[:, :, None, None].expand_as(blocks))
    return rows.gather(3, order[:, None, None].expand_as(blocks)).flatten(-2)


def _cosine(a: Tensor, b: Tensor) -> Float[Tensor, "batch"]:
    return torch.cosine_similarity(a.double().flatten(1), b.double().flatten(1), dim=1, eps=1e-150)

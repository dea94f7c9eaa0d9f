"""Which nodes of a graph reach which, for many graphs at once.

Graphs are boolean adjacency matrices with self-loops. Only the support of a product is kept, so that nothing grows or
vanishes: counts of walks leave the range of 32-bit numbers already at a few dozen nodes.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Relation = Bool[Tensor, "*graphs nodes nodes"]


Ones = Float[Tensor, "*graphs nodes nodes"]  # the same as zeros and ones, which is what can be multiplied


def after(first: Relation, second: Relation) -> Relation:
    """Pairs (i, j) with some k such that `first` holds for (i, k) and `second` for (k, j)."""
    return _after(first.float(), second.float()).bool()


def _after(first: Ones, second: Ones) -> Ones:
    return torch.matmul(first, second).clamp_(max=1)  # sums of ones: exact, also with 10 bits of mantissa


def within(edges: Relation, hops: int) -> Relation:
    """Pairs at most so many hops apart."""
    if hops < 1:
        return torch.eye(edges.shape[-1], dtype=torch.bool, device=edges.device).expand_as(edges)
    return _within(edges.float(), hops).bool()


def _within(edges: Ones, hops: int) -> Ones:
    if hops == 1:
        return edges
    half = _within(edges, hops // 2)
    return _after(_after(half, half), edges) if hops % 2 else _after(half, half)


def connected(edges: Relation) -> Relation:
    """Pairs in the same component."""
    longest = max(edges.shape[-1] - 2, 0).bit_length()  # no two connected nodes are more than n − 1 hops apart
    return _within(edges.float(), 2**longest).bool()


def settled(edges: Relation, hops: int) -> tuple[Relation, Bool[Tensor, "*graphs"]]:
    """Pairs at most so many hops apart, and whether these are all that are connected: one more hop finds no node."""
    reached = within(edges, hops)
    return reached, (reached == after(reached, edges)).all(-1).all(-1)


def at_most(edges: Relation, diameter: int) -> Bool[Tensor, "*graphs"]:
    """Whether no component has a larger diameter."""
    return settled(edges, diameter)[1]


def distances(edges: Relation) -> Int[Tensor, "*graphs nodes nodes"]:
    """Hops between two nodes, and −1 where there is no way. It waits for the device after each hop."""
    reached = within(edges, 0)
    found = torch.where(reached, 0, -1)
    for hops in range(1, edges.shape[-1]):
        further = after(reached, edges)
        fresh = further & ~reached
        if not bool(fresh.any()):
            break
        found, reached = found.masked_fill(fresh, hops), further
    return found


def diameters(edges: Relation) -> Int[Tensor, "*graphs"]:
    """The largest distance within a component of each graph."""
    return distances(edges).amax((-2, -1))

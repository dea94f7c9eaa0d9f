"""Who is connected to whom, by people's algorithms: every value is 1 where two nodes are said to be connected, else 0.

x is the adjacency matrix A of a graph with self-loops. All but the heuristics end with the components, and never say
more than that on the way.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from algoscope import arguments, reachability
from algoscope.arguments import Steps
from algoscope.contracts import Algorithm, Symmetry
from algoscope.symmetries import RedrawOutsideComponent, RelabelNodes
from algoscope.trace import Prompts, Trace

Relation = Bool[Tensor, "batch nodes nodes"]


@dataclass(frozen=True)
class Hops(Algorithm):
    """Stage k: the pairs at most k hops apart, supp(A^k): breadth-first search from every node at once (Moore 1959)."""

    steps: Steps

    family = "graphs"

    def __post_init__(self) -> None:
        arguments.steps(self.steps)

    def keeps(self, symmetry: Symmetry) -> bool | None:
        return keeps_as_graphs(symmetry)

    def trace(self, prompts: Prompts) -> Trace:
        edges = adjacency(prompts)
        return iterated(self.name, prompts, self.steps, _growing(reachability.within(edges, 0), edges))


@dataclass(frozen=True)
class Squaring(Algorithm):
    """Stage k: the pairs at most 2^k hops apart, R ← supp(R·R) from R = A. Repeated squaring (Munro 1971)."""

    steps: Steps

    family = "graphs"

    def __post_init__(self) -> None:
        arguments.steps(self.steps)

    def keeps(self, symmetry: Symmetry) -> bool | None:
        return keeps_as_graphs(symmetry)

    def trace(self, prompts: Prompts) -> Trace:
        return iterated(self.name, prompts, self.steps, _powers(adjacency(prompts), times=2))


@dataclass(frozen=True)
class Tripling(Algorithm):
    """Stage k: the pairs at most 3^k hops apart, R ← supp(R·R·R) from R = A.

    What a layer of the disentangled transformer can do at most (Ye et al. 2026, Theorems 4.3 and 4.5): its scores join
    two of the relations that it has, and what they weigh is a third.
    """

    steps: Steps

    family = "graphs"

    def __post_init__(self) -> None:
        arguments.steps(self.steps)

    def keeps(self, symmetry: Symmetry) -> bool | None:
        return keeps_as_graphs(symmetry)

    def trace(self, prompts: Prompts) -> Trace:
        return iterated(self.name, prompts, self.steps, _powers(adjacency(prompts), times=3))


@dataclass(frozen=True)
class LabelPropagation(Algorithm):
    """Stage k: the pairs with one label after k rounds, in each of which a node takes its neighbors' smallest label.

    label_i ← min {label_j : A_ij = 1} from label_i = i: Hash-Min (Rastogi et al. 2013). Two nodes may be known to be
    connected without a short way between them, and neighbors may for long not know it: unlike hops, it depends on the
    order of the nodes.
    """

    steps: Steps

    family = "graphs"

    def __post_init__(self) -> None:
        arguments.steps(self.steps)

    def keeps(self, symmetry: Symmetry) -> bool | None:
        match symmetry:
            case RelabelNodes():
                return False
            case RedrawOutsideComponent():
                return True
        return None

    def trace(self, prompts: Prompts) -> Trace:
        return iterated(self.name, prompts, self.steps, _labels(adjacency(prompts)))


@dataclass(frozen=True)
class Components(Algorithm):
    """The solution: R_ij = 1 where i and j are in the same component. One stage, labeled 0."""

    family = "graphs"

    @property
    def closed_form(self) -> bool:
        return True

    def keeps(self, symmetry: Symmetry) -> bool | None:
        return keeps_as_graphs(symmetry)

    def trace(self, prompts: Prompts) -> Trace:
        edges = adjacency(prompts)
        return labeled(self.name, prompts, [0], [reachability.connected(edges)], edges)


@dataclass(frozen=True)
class Degree(Algorithm):
    """Who has many neighbors is in the large component: i and j are connected if d_i·d_j ≥ threshold, or A_ij = 1.

    The heuristic of Ye et al. 2026: where W_l = B ⊗ J, scores are products of degrees, whichever component the nodes
    are in. d_i counts the neighbors without i itself. Stages are thresholds; it never converges.
    """

    thresholds: tuple[int, ...] = (1, 2, 3, 4, 6, 9)

    family = "graphs"
    stage_fields = ("thresholds",)

    def __post_init__(self) -> None:
        arguments.steps(self.thresholds)

    def keeps(self, symmetry: Symmetry) -> bool | None:
        match symmetry:
            case RelabelNodes():
                return True
            case RedrawOutsideComponent():
                return False
        return None

    def trace(self, prompts: Prompts) -> Trace:
        edges = adjacency(prompts)
        degrees = edges.sum(-1) - 1
        products = degrees[:, :, None] * degrees[:, None]
        found = [edges | (products >= threshold) for threshold in self.thresholds]
        return labeled(self.name, prompts, self.thresholds, found, edges, "a heuristic: it does not converge")


@dataclass(frozen=True)
class AllConnected(Algorithm):
    """R_ij = 1, whatever the graph is. One stage, labeled 0; it never converges."""

    family = "graphs"

    def keeps(self, symmetry: Symmetry) -> bool | None:
        match symmetry:
            case RelabelNodes():
                return True
            case RedrawOutsideComponent():
                return False
        return None

    def trace(self, prompts: Prompts) -> Trace:
        edges = adjacency(prompts)
        return labeled(self.name, prompts, [0], [torch.ones_like(edges)], edges, "a heuristic: it does not converge")


def keeps_as_graphs(symmetry: Symmetry) -> bool | None:
    """What every method keeps that treats all nodes alike and goes from neighbor to neighbor."""
    return True if isinstance(symmetry, RelabelNodes | RedrawOutsideComponent) else None


def adjacency(prompts: Prompts) -> Relation:
    """The graphs, where x holds graphs."""
    x = prompts.x
    square = x.shape[1] == x.shape[2]
    if not square or not bool(((x == 0) | (x == 1)).all()) or not bool((x == x.mT).all()):
        raise ValueError("prompts must hold graphs, symmetric matrices of 0 and 1, such as those of tasks.Connectivity")
    if not bool((x.diagonal(dim1=1, dim2=2) == 1).all()):
        raise ValueError("prompts must hold graphs with self-loops: the diagonal of x must be 1")
    return x.bool()


def iterated(name: str, prompts: Prompts, steps: Steps, states: Iterator[Relation]) -> Trace:
    """The steps to keep, out of an iteration that never ends."""
    kept, found = arguments.steps_to_keep(steps), []
    for step, state in zip(range(kept[-1] + 1), states, strict=False):
        if step in kept:
            found.append(state)
    return labeled(name, prompts, kept, found, adjacency(prompts))


def labeled(
    name: str, prompts: Prompts, stages: Sequence[int], found: Sequence[Relation], edges: Relation, note: str = ""
) -> Trace:
    """A row has converged when it is the component of its node."""
    relations = torch.stack(list(found))
    converged = (relations == reachability.connected(edges)).all(-1)
    values = relations.double().reshape(len(found), *prompts.y.shape)
    return Trace(name, values, tuple(stages), prompts, converged=converged, note=note)


def _growing(reached: Relation, edges: Relation) -> Iterator[Relation]:
    while True:
        yield reached
        reached = reachability.after(reached, edges)


def _powers(reached: Relation, times: int) -> Iterator[Relation]:
    while True:
        yield reached
        reached = reachability.within(reached, times)


def _labels(edges: Relation) -> Iterator[Relation]:
    nodes = edges.shape[-1]
    labels = torch.arange(nodes, device=edges.device).expand(edges.shape[:-1])
    while True:
        yield labels[:, :, None] == labels[:, None]
        labels = torch.where(edges, labels[:, None], nodes).amin(-1)

"""Laws of graph connectivity. Answers are labels, one for each pair of nodes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from algoscope import arguments, randomness, reachability
from algoscope.contracts import Answers, Change, Symmetry
from algoscope.trace import Prompts


@dataclass(frozen=True)
class RelabelNodes(Symmetry):
    """The nodes in another order: the answers are in that order, too."""

    family = "graphs"

    def change(self, prompts: Prompts, generator: torch.Generator) -> Change:
        order = randomness.uniform([generator], *prompts.x.shape[:2]).argsort(-1).to(prompts.x.device)

        def relabeled(pairs: Tensor) -> Tensor:
            square = pairs.reshape(-1, *prompts.x.shape)  # a single node has no last axis
            rows = square.gather(-2, order[..., :, None].expand_as(square))
            return rows.gather(-1, order[..., None, :].expand_as(square)).reshape(pairs.shape)

        def law(answers: Sequence[Answers]) -> tuple[Tensor, Tensor]:
            return answers[1], relabeled(answers[0])

        return Change((prompts, replace(prompts, x=relabeled(prompts.x), y=relabeled(prompts.y))), law, labels=True)


@dataclass(frozen=True)
class RedrawOutsideComponent(Symmetry):
    """All edges outside the component of some node are redrawn, each with `chance`; the law is about the node's row.

    Its answers within its component stay, and those about all other nodes are no. In distribution for random graphs
    of any diameter: the rest of such a graph is one itself.
    """

    chance: float = 0.2  # of an edge

    family = "graphs"

    def __post_init__(self) -> None:
        arguments.number("chance", self.chance, maximum=1.0)

    def change(self, prompts: Prompts, generator: torch.Generator) -> Change:
        (batch, nodes, _), device = prompts.x.shape, prompts.x.device
        node = (randomness.uniform([generator], batch) * nodes).long().to(device)
        fresh = (randomness.uniform([generator], batch, nodes, nodes) < self.chance).triu(1).to(device)
        row, edges = torch.arange(batch, device=device), prompts.x.bool()
        inside = reachability.connected(edges)[row, node]
        outside = ~inside[:, :, None] & ~inside[:, None]
        loops = torch.eye(nodes, dtype=torch.bool, device=device)
        redrawn = torch.where(outside, fresh | fresh.mT | loops, edges)
        y = reachability.connected(redrawn).reshape(prompts.y.shape)

        def law(answers: Sequence[Answers]) -> tuple[Tensor, Tensor]:
            before, after = (each.reshape(len(each), *prompts.x.shape)[:, row, node] for each in answers)
            return after, torch.where(inside, before, 0.0)

        return Change((prompts, replace(prompts, x=redrawn.to(prompts.x), y=y.to(prompts.y))), law, labels=True)

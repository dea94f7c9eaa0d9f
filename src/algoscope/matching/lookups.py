"""Traces of look-ups: which have found the nearest point, and how alike the reads of two searches are.

That two searches both read the right point says nothing about how they search. So the wrong reads decide.
"""

from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from algoscope.matching.measures import HALF, Agreement, shared_labels
from algoscope.trace import Trace

FEWEST_WRONG = 0.05  # of the reads of a look-up: with fewer it says nothing about the search
FEWEST_DIFFERENT = 0.05  # of the reads, from one query of a prompt to the next: likewise


def distances(trace: Trace) -> Float[Tensor, "stages batch queries"]:
    """Squared distances between the queries and what each look-up reads; infinite for a slot, which is no point."""
    x, count = trace.prompts.x.double(), trace.prompts.before
    if count == 0 or trace.prompts.y.ndim != 2:
        raise ValueError(f"the trace of {trace.name} is not one of look-ups: its prompts are not those of a search")
    read = trace.values.to(x.device).long()
    known = read.clamp(max=count - 1)
    points = torch.stack([x.gather(1, each[..., None].expand(-1, -1, x.shape[2])) for each in known])
    return torch.where(read < count, (points - x[:, count:]).square().sum(-1), torch.inf)


def found(trace: Trace) -> Bool[Tensor, "stages batch queries"]:
    """Whether the nearest neighbor has been read by each look-up; any of several that are equally near counts."""
    closest, x = distances(trace).cummin(0).values, trace.prompts.x.double()
    target = x.gather(1, trace.prompts.y.long()[..., None].expand(-1, -1, x.shape[2]))
    return closest <= (target - x[:, trace.prompts.before :]).square().sum(-1)


def of_points(trace: Trace) -> Trace:
    """The look-ups that read points, those that read slots behind them: a search has its first point first."""
    slots = trace.values >= trace.prompts.before
    return replace(trace, values=trace.values.gather(0, slots.byte().argsort(dim=0, stable=True)))


class WrongReads(Agreement):
    """Share of equal reads among those by which a look-up has not found the nearest point.

    The null of a step is what it reads for another query of the same prompt: whoever reads nearly the same point for
    every query, as the first step of binary search does, shows no search.
    """

    name = "wrong reads"

    def null(self, like: Trace) -> Trace:
        if like.values.shape[2] < 2:
            return super().null(like)
        return replace(like, name="of another query", values=like.values.roll(1, 2), weights=None, converged=None)

    def bar(self, null: float) -> float:
        """A look-up is a search's where it reads the same point more often than not."""
        return HALF

    def counted(self, trace: Trace, at: Bool[Tensor, "positions"]) -> Bool[Tensor, "stages batch points"]:
        return ~found(trace).cpu() & at

    def per_sequence(self, a: Trace, b: Trace, at: Bool[Tensor, "positions"]) -> Float[Tensor, "batch a b"]:
        counted, reads = self.counted(a, at), a.values.cpu()
        same = [[((one == other) & mask).double().sum(-1) for other in b.values.cpu()]
                for one, mask in zip(reads, counted, strict=True)]  # fmt: skip
        return shared_labels(
            torch.stack([torch.stack(row, -1) for row in same], 1), counted.double().sum(-1).mT[..., None]
        )

    def below(self, a: Trace, b: Trace, at: Bool[Tensor, "positions"]) -> Float[Tensor, "batch a 1"]:
        return self.counted(a, at).double().sum(-1).mT[..., None]

    def mixed(self, trace: Trace, at: Bool[Tensor, "positions"]) -> Bool[Tensor, "stages batch points"]:
        """All reads before which the nearest point was not found: whether a read is wrong depends on itself."""
        read = found(trace).cpu()
        return ~torch.cat([torch.zeros_like(read[:1]), read[:-1]]) & at

    def informative(self, trace: Trace, at: Bool[Tensor, "positions"]) -> Bool[Tensor, "stages"]:
        reads = trace.values[..., at.to(trace.values.device)]
        differ = (
            (reads != reads.roll(1, 2)).double().mean((1, 2)).cpu() if reads.shape[2] > 1 else torch.ones(len(reads))
        )
        wrong = self.counted(trace, at)[..., at].double().mean((1, 2))
        return (wrong >= FEWEST_WRONG) & (differ >= FEWEST_DIFFERENT)


class ReadsWhileSearching(WrongReads):
    """Share of equal reads among those before which the nearest point has not been found, right or wrong."""

    name = "reads while searching"

    def counted(self, trace: Trace, at: Bool[Tensor, "positions"]) -> Bool[Tensor, "stages batch points"]:
        return self.mixed(trace, at)

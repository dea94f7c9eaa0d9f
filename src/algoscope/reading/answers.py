"""Answers about graphs: by distance, and as a whole."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from algoscope import arguments, reachability
from algoscope.trace import Trace


def binarize(trace: Trace, threshold: float = 0.5) -> Trace:
    """Labels of numbers: 1 above the threshold, else 0. Of logits it is 0, of a linear probe of y one half."""
    return replace(trace, values=(trace.values > threshold).double(), weights=None, converged=None)


@dataclass(frozen=True, eq=False)
class ByDistance:
    """The share of right answers about pairs 0, 1, 2, … hops apart, and about pairs that are not connected.

    NaN where there are no such pairs.
    """

    accuracy: Float[Tensor, "distances"]
    pairs: Int[Tensor, "distances"]
    apart: float
    pairs_apart: int

    def reach(self, enough: float = 0.99) -> int:
        """The largest distance up to which, at each distance that occurs, enough answers are right; −1: not even 0."""
        arguments.number("enough", enough)
        poor = ((self.accuracy < enough) & (self.pairs > 0)).nonzero()
        most = int(poor[0]) if len(poor) else len(self.accuracy)
        return int((self.pairs[:most] > 0).nonzero()[-1]) if most else -1


def accuracy_by_distance(
    predicted: Bool[Tensor, "batch nodes *target"], x: Float[Tensor, "batch nodes nodes"]
) -> ByDistance:
    """Answers [batch, nodes, nodes], true where nodes are said to be connected."""
    distances = reachability.distances(x.bool())
    nodes = x.shape[-1]
    right = predicted.reshape(x.shape) == (distances >= 0)
    place = torch.where(distances < 0, nodes, distances).flatten()
    pairs = torch.bincount(place, minlength=nodes + 1)
    hits = torch.bincount(place, right.flatten().double(), minlength=nodes + 1)
    share = (hits / pairs).cpu()  # 0/0 is NaN
    pairs = pairs.cpu()
    return ByDistance(share[:-1], pairs[:-1], float(share[-1]), int(pairs[-1]))


def exact_match(
    predicted: Bool[Tensor, "batch nodes *target"], y: Float[Tensor, "batch nodes *target"]
) -> Bool[Tensor, "batch"]:
    """Whether every answer about a graph is right."""
    return (predicted == y.bool()).flatten(1).all(1)

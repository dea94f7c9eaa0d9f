"""Searches for the nearest point that halve or split what is left, as traces of look-ups.

A trace says which point each look-up reads, by its number in the prompt, so that any two ways to store the points can
be compared. Every read of a stored point counts; what is computed between reads is free.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from algoscope import arguments
from algoscope.contracts import Algorithm, Symmetry
from algoscope.randomness import stream
from algoscope.symmetries import FreshValues
from algoscope.trace import Prompts, Trace

PLACES = ("between", "expected")


class Lookups(Algorithm):
    """An algorithm that reads one stored point after another: stage m is the number of the point read by look-up m.

    One that has nothing left to read goes on reading the nearest point that it has found.
    """

    family = "search"
    lookups: int

    @abstractmethod
    def reads(
        self, points: Float[Tensor, "batch points dim"], queries: Float[Tensor, "batch queries dim"]
    ) -> Int[Tensor, "batch queries lookups"]: ...

    @final
    def trace(self, prompts: Prompts) -> Trace:
        arguments.size("lookups", self.lookups)
        count = prompts.before
        if count == 0 or prompts.y.ndim != 2:
            raise ValueError("prompts must be those of a search: points, and after them queries, which are asked about")
        reads = self.reads(prompts.x[:, :count].double(), prompts.x[:, count:].double())
        return Trace(self.name, reads.movedim(-1, 0).double(), tuple(range(1, self.lookups + 1)), prompts)


class Left(NamedTuple):
    """What is left of a sorted array for each query: places from `first` to `last`, between two known values."""

    first: Int[Tensor, "batch queries"]
    last: Int[Tensor, "batch queries"]
    below: Float[Tensor, "batch queries"]
    above: Float[Tensor, "batch queries"]
    query: Float[Tensor, "batch queries"]


def descend(
    stored: Float[Tensor, "batch points dim"],
    queries: Float[Tensor, "batch queries dim"],
    lookups: int,
    choose: Callable[[Left], Int[Tensor, "batch queries"]],
    ends: tuple[float, float] = (float("-inf"), float("inf")),
) -> Int[Tensor, "batch queries lookups"]:
    """Places read by a search that keeps the side of each point read on which the query lies.

    In several dimensions the coordinates take turns. `choose` says where in what is left to read; before the first
    look-up the known values are the `ends`.
    """
    _, count, dim = stored.shape
    left = queries.new_zeros(queries.shape[:2]).long()
    right, best = left + count - 1, left
    closest = torch.full_like(queries[..., 0], torch.inf)
    below, above = (torch.full_like(queries[..., 0], end) for end in ends)
    reads = []
    for m in range(lookups):
        query = queries[..., m % dim]
        chosen = choose(Left(left, right, below, above, query)).clamp(min=left, max=right.maximum(left))
        place = torch.where(left <= right, chosen, best)
        point = stored.gather(1, place[..., None].expand(-1, -1, dim))
        distance = (point - queries).square().sum(-1)
        best = torch.where(distance < closest, place, best)
        closest = closest.minimum(distance)
        value, going = point[..., m % dim], left <= right
        lower = going & (query < value)
        higher = going & ~lower
        right = torch.where(lower, place - 1, torch.where(closest == 0, left - 1, right))
        left = torch.where(higher & (closest > 0), place + 1, left)
        below, above = torch.where(higher, value, below), torch.where(lower, value, above)
        reads.append(place)
    return torch.stack(reads, -1)


def numbers(order: Int[Tensor, "batch points"], places: Int[Tensor, "batch queries lookups"]) -> Tensor:
    """Which points are at the places."""
    return order.gather(1, places.flatten(1)).view_as(places)


def on_a_line(points: Float[Tensor, "batch points dim"], name: str) -> Int[Tensor, "batch points"]:
    if points.shape[-1] != 1:
        raise ValueError(f"{name} needs points with one coordinate, got {points.shape[-1]}")
    return points[..., 0].argsort(dim=-1, stable=True)


@dataclass(frozen=True)
class BinarySearch(Lookups):
    """Reads the middle of what is left of the sorted points (of an even number, the lower middle)."""

    lookups: int = 7

    def keeps(self, symmetry: Symmetry) -> bool | None:
        return True if isinstance(symmetry, FreshValues) else None

    def reads(
        self, points: Float[Tensor, "batch points dim"], queries: Float[Tensor, "batch queries dim"]
    ) -> Int[Tensor, "batch queries lookups"]:
        order = on_a_line(points, self.name)
        stored = points.gather(1, order[..., None])
        return numbers(order, descend(stored, queries, self.lookups, lambda left: (left.first + left.last) // 2))


@dataclass(frozen=True)
class InterpolationSearch(Lookups):
    """Reads where the nearest point is to be expected, knowing that points are uniform between `low` and `high`.

    Of k points between two known values, the share p below the query is binomial: `between` the neighbors of the query
    lies, on average, place k·p − 1/2 (Peterson 1957; Perl, Itai and Avni 1978). The place whose point has the query as
    its `expected` value is (k + 1)·p − 1: a little better at the first look-ups, and a little worse later.
    """

    lookups: int = 7
    low: float = -1.0
    high: float = 1.0
    place: Literal["between", "expected"] = "between"

    def __post_init__(self) -> None:
        arguments.choice("place", self.place, PLACES)
        arguments.less(self.low, self.high)

    def keeps(self, symmetry: Symmetry) -> bool | None:
        return False if isinstance(symmetry, FreshValues) else None

    def reads(
        self, points: Float[Tensor, "batch points dim"], queries: Float[Tensor, "batch queries dim"]
    ) -> Int[Tensor, "batch queries lookups"]:
        order = on_a_line(points, self.name)
        stored = points.gather(1, order[..., None])
        return numbers(order, descend(stored, queries, self.lookups, self._expected, (self.low, self.high)))

    def _expected(self, left: Left) -> Int[Tensor, "batch queries"]:
        width = left.above - left.below
        share = torch.where(width > 0, (left.query - left.below) / width.clamp(min=1e-300), 0.5).clamp(0, 1)
        count = left.last - left.first + 1
        place = count * share - 0.5 if self.place == "between" else (count + 1) * share - 1
        return (left.first + place).round().long()


@dataclass(frozen=True)
class Treap(Lookups):
    """A search tree in which what is asked for more often lies higher (Lin, Luo and Woodruff 2022).

    The points are integers that are asked for with chances ∝ i^−exponent, i = 1..universe. Their priorities are
    −⌊log₂ log₂ 1/chance⌋ plus a random number between 0 and 1, which keeps points of similar chances balanced.
    """

    lookups: int = 7
    universe: int = 200
    exponent: float = 1.2
    seed: int = 0

    def __post_init__(self) -> None:
        arguments.size("universe", self.universe)
        arguments.number("exponent", self.exponent)
        arguments.integer("seed", self.seed, 0)

    def keeps(self, symmetry: Symmetry) -> bool | None:
        return False if isinstance(symmetry, FreshValues) else None

    def reads(
        self, points: Float[Tensor, "batch points dim"], queries: Float[Tensor, "batch queries dim"]
    ) -> Int[Tensor, "batch queries lookups"]:
        order = on_a_line(points, self.name)
        stored = points.gather(1, order[..., None])
        priorities = self._priorities(stored[..., 0])

        def highest(left: Left) -> Int[Tensor, "batch queries"]:
            place = torch.arange(stored.shape[1], device=stored.device)
            inside = (place >= left.first[..., None]) & (place <= left.last[..., None])
            return torch.where(inside, priorities[:, None], -torch.inf).argmax(-1)

        return numbers(order, descend(stored, queries, self.lookups, highest))

    def _priorities(self, values: Float[Tensor, "batch points"]) -> Float[Tensor, "batch points"]:
        known = torch.arange(1, self.universe + 1, dtype=torch.float64, device=values.device)
        item = values.round().clamp(1, self.universe)
        chance = item**-self.exponent / (known**-self.exponent).sum()
        drawn = torch.rand(self.universe, generator=stream("treap", self.seed), dtype=torch.float64).to(values.device)
        return drawn[item.long() - 1] - (1 / chance).log2().clamp(min=1).log2().floor()


@dataclass(frozen=True)
class KDTree(Lookups):
    """Splits at the median of one coordinate after the other (Bentley 1975); the search never turns back."""

    lookups: int = 6

    def keeps(self, symmetry: Symmetry) -> bool | None:
        return True if isinstance(symmetry, FreshValues) else None

    def reads(
        self, points: Float[Tensor, "batch points dim"], queries: Float[Tensor, "batch queries dim"]
    ) -> Int[Tensor, "batch queries lookups"]:
        order = self.order(points)
        stored = points.gather(1, order[..., None].expand(points.shape))
        return numbers(order, descend(stored, queries, self.lookups, lambda left: (left.first + left.last) // 2))

    @staticmethod
    def order(points: Float[Tensor, "batch points dim"]) -> Int[Tensor, "batch points"]:
        """The points from left to right in the tree."""
        batch, count, dim = points.shape
        order = torch.arange(count, device=points.device).repeat(batch, 1)
        waiting = [(0, count, 0)]
        while waiting:
            first, end, level = waiting.pop()
            part = order[:, first:end]
            values = points[..., level % dim].gather(1, part)
            order[:, first:end] = part.gather(1, values.argsort(dim=1, stable=True))
            middle = (first + end - 1) // 2
            halves = (first, middle, level + 1), (middle + 1, end, level + 1)
            waiting += [half for half in halves if half[1] - half[0] > 1]
        return order


@dataclass(frozen=True)
class Buckets(Lookups):
    """Extra space on a line: `buckets` equal parts of what lies between `low` and `high`, each of which stores the
    point nearest to its middle. The one look-up reads that of the query's own part.
    """

    lookups: int = 1
    buckets: int = 8
    low: float = -1.0
    high: float = 1.0

    def __post_init__(self) -> None:
        arguments.size("buckets", self.buckets)
        arguments.less(self.low, self.high)

    def keeps(self, symmetry: Symmetry) -> bool | None:
        return False if isinstance(symmetry, FreshValues) else None

    def reads(
        self, points: Float[Tensor, "batch points dim"], queries: Float[Tensor, "batch queries dim"]
    ) -> Int[Tensor, "batch queries lookups"]:
        on_a_line(points, self.name)
        width = (self.high - self.low) / self.buckets
        part = ((queries[..., 0] - self.low) / width).long().clamp(0, self.buckets - 1)
        middles = self.low + width * (part + 0.5)
        nearest = (points[:, None, :, 0] - middles[..., None]).abs().argmin(-1)
        return nearest[..., None].expand(-1, -1, self.lookups)

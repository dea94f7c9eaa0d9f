"""Nearest-neighbor search: a set of points is given, and queries ask which of them is closest to each.

The distributions are those of Salemohamed et al. 2024. The points come first, then the queries; y is the number of the
nearest point, and of several that are equally near that of the first.
"""

import functools
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from algoscope import algorithms as known
from algoscope import arguments
from algoscope.contracts import Algorithm, Symmetry, Task
from algoscope.matching import WrongReads
from algoscope.randomness import normal, uniform
from algoscope.reading.readers import LinearProbe, LogitLens, LookupReader
from algoscope.symmetries import FreshValues
from algoscope.trace import Prompts

BITS = 4  # of cells in many dimensions: 16 cells, as published
SMALL = 100.0  # numbers that are told better by their logarithm than at scale
CHUNK = 2**26  # differences between queries and points that are held at once


class Search(Task):
    """What search tasks share; a task says how `size` points, and queries, are drawn.

    A network sees the points and then the queries, as they are or with coordinates that `features` makes, and answers
    each query with a logit for each point.
    """

    family = "search"
    gradual = False
    reader = LookupReader() | LogitLens() | LinearProbe()
    measure = WrongReads()
    size: int
    queries: int
    dim: int = 1
    answer: Literal["number", "chance", "choice"] = "choice"

    @property
    @final
    def power(self) -> float:
        return math.log(max(self.size, 2))

    @property
    @final
    def length(self) -> int:
        return self.size + self.queries

    @property
    @final
    def inputs(self) -> int:
        return self.features(torch.zeros(1, 1, self.dim)).shape[-1]

    @property
    @final
    def outputs(self) -> int:
        return self.size

    @property
    @final
    def answers(self) -> slice:
        return slice(-self.queries, None)

    @abstractmethod
    def places(
        self, batch: int, generators: Sequence[torch.Generator], dtype: torch.dtype
    ) -> Float[Tensor, "batch length dim"]:
        """Points, and then queries."""

    def features(self, x: Float[Tensor, "batch length dim"]) -> Float[Tensor, "batch length inputs"]:
        """What a network is shown of points and queries: numbers of about size 1."""
        return x

    def located(self, features: Float[Tensor, "batch length inputs"]) -> Float[Tensor, "batch length dim"]:
        """The inverse of `features`."""
        return features

    def below(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"] | None:
        """The chance that a point on a line lies below x, where it is as simple as that."""
        return None

    def searches(self, lookups: int, slots: int = 0) -> list[Algorithm]:
        """Those that make sense of its points, with so many look-ups; some use `slots`, space beside the points."""
        cells = [known.KMeansCells(lookups, 2**BITS)] if self.size >= 2**BITS else []
        return [known.KDTree(lookups), *cells]

    @final
    def algorithms(self) -> list[Algorithm]:
        return self.searches(self.size.bit_length())

    @final
    def draw(
        self,
        batch: int,
        generators: Sequence[torch.Generator],
        dtype: torch.dtype = torch.float64,
        dims: Tensor | None = None,
    ) -> tuple[Float[Tensor, "batch length dim"], Float[Tensor, "batch queries"]]:
        x = self.places(batch, generators, dtype)
        if dims is not None:
            x = torch.where(torch.arange(x.shape[-1], device=x.device) < dims, x, 0.0)
        return x, nearest(x[:, : self.size], x[:, self.size :]).to(dtype)

    @final
    def encode(
        self, x: Float[Tensor, "batch length dim"], y: Float[Tensor, "batch queries"]
    ) -> Float[Tensor, "batch length inputs"]:
        return self.features(x)

    @final
    def decode(self, tokens: Float[Tensor, "batch length inputs"]) -> Prompts:
        x = self.located(tokens)
        return Prompts(x, torch.zeros_like(x[:, self.size :, 0]), power=self.power)

    @final
    def check_sizes(self) -> None:
        arguments.size("size", self.size)
        arguments.size("queries", self.queries)


@dataclass(frozen=True)
class UniformSearch(Search):
    """Nearest neighbors among uniform points.

    Points and queries are uniform in the cube from −1 to 1.
    """

    size: int = 100  # points of a set
    dim: int = 1  # of a point
    queries: int = 1  # of a set

    def __post_init__(self) -> None:
        self.check_sizes()
        arguments.size("dim", self.dim)

    def places(
        self, batch: int, generators: Sequence[torch.Generator], dtype: torch.dtype
    ) -> Float[Tensor, "batch length dim"]:
        return 2 * uniform(generators, batch, self.length, self.dim, dtype=dtype) - 1

    def below(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"] | None:
        return (x + 1) / 2

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        return (FreshValues(-1.0, 1.0),) if self.dim == 1 else ()

    def searches(self, lookups: int, slots: int = 0) -> list[Algorithm]:
        if self.dim > 1:
            return super().searches(lookups)
        return on_a_line(lookups, -1.0, 1.0) + ([known.Buckets(lookups, slots)] if slots else [])


@dataclass(frozen=True)
class HardSearch(Search):
    """Nearest neighbors at distances of all sizes.

    Only the order tells where a query belongs; a query is a point plus N(0, 1).

    A balanced binary tree in which a node at level k of L is a distance U(0, base^(L − k)) to the left or to the right
    of the one above it. Each coordinate has a tree of its own, whose nodes are the points in random order.
    """

    size: int = 15  # points of a set
    dim: int = 1  # of a point
    base: float = 7.0  # ratio of the distances at two levels
    queries: int = 1  # of a set

    def __post_init__(self) -> None:
        self.check_sizes()
        arguments.size("dim", self.dim)
        arguments.number("base", self.base, 1.0)
        if self.levels * math.log10(self.base) > 100:
            raise ValueError(f"base must be smaller for {self.size} points: distances overflow, got {self.base!r}")

    @property
    def levels(self) -> int:
        return self.size.bit_length()

    @property
    def reach(self) -> float:
        """How far from zero a point can be."""
        return sum(self.base ** (self.levels - k) for k in range(self.levels))

    def places(
        self, batch: int, generators: Sequence[torch.Generator], dtype: torch.dtype
    ) -> Float[Tensor, "batch length dim"]:
        lengths = uniform(generators, batch, self.dim, self.size, dtype=dtype)
        above, rows = lengths[..., :1] * self.base**self.levels, []
        for k in range(self.levels):
            begin, end = 2**k - 1, min(2 ** (k + 1) - 1, self.size)
            if k:
                sides = torch.arange(end - begin, device=above.device) % 2 * 2 - 1  # left, right, left, …
                steps = sides * lengths[..., begin:end] * self.base ** (self.levels - k)
                above = above[..., None].expand(*above.shape, 2).flatten(-2)[..., : end - begin] + steps
            rows.append(above)
        shuffle = uniform(generators, batch, self.dim, self.size, dtype=dtype).argsort(-1)
        points = torch.cat(rows, -1).gather(-1, shuffle).mT
        chosen = one_of(points, uniform(generators, batch, self.queries, dtype=dtype))
        return torch.cat((points, chosen + normal(generators, batch, self.queries, self.dim, dtype=dtype)), 1)

    def features(self, x: Float[Tensor, "batch length dim"]) -> Float[Tensor, "batch length inputs"]:
        """At scale, and on a logarithmic scale, which tells the small ones apart."""
        return torch.cat((x / self.reach, x.sign() * x.abs().log1p() / math.log1p(self.reach)), -1)

    def located(self, features: Float[Tensor, "batch length inputs"]) -> Float[Tensor, "batch length dim"]:
        """By the coordinate at scale, or of small ones, which it rounds more, by the other."""
        plain, logarithm = features.double().chunk(2, -1)
        small = logarithm.sign() * (logarithm.abs() * math.log1p(self.reach)).expm1()
        return torch.where(small.abs() < SMALL, small, plain * self.reach)

    def searches(self, lookups: int, slots: int = 0) -> list[Algorithm]:
        if self.dim > 1:
            return super().searches(lookups)
        below = self.reach - self.base**self.levels  # the root is never negative
        return on_a_line(lookups, -below, self.reach)


@dataclass(frozen=True)
class ZipfSearch(Search):
    """Nearest neighbors of integers, some asked for often and some rarely.

    Points are different integers of 1..universe, and queries are integers with chances ∝ i^−exponent.
    """

    size: int = 100  # points of a set
    universe: int = 200  # largest integer
    exponent: float = 1.2  # of the chances of queries
    queries: int = 1  # of a set

    def __post_init__(self) -> None:
        self.check_sizes()
        arguments.size("universe", self.universe)
        arguments.number("exponent", self.exponent)
        if self.size > self.universe:
            raise ValueError(f"size must be at most universe = {self.universe}: they differ, got {self.size}")

    def places(
        self, batch: int, generators: Sequence[torch.Generator], dtype: torch.dtype
    ) -> Float[Tensor, "batch length dim"]:
        points = uniform(generators, batch, self.universe, dtype=dtype).argsort(-1)[:, : self.size] + 1
        queries = zipf(uniform(generators, batch, self.queries, dtype=dtype), self.universe, self.exponent) + 1
        return torch.cat((points, queries), 1)[..., None].to(dtype)

    def features(self, x: Float[Tensor, "batch length dim"]) -> Float[Tensor, "batch length inputs"]:
        return (2 * x - 1 - self.universe) / self.universe

    def located(self, features: Float[Tensor, "batch length inputs"]) -> Float[Tensor, "batch length dim"]:
        return ((features * self.universe + 1 + self.universe) / 2).round()

    def searches(self, lookups: int, slots: int = 0) -> list[Algorithm]:
        ends = 0.5, self.universe + 0.5
        return [*on_a_line(lookups, *ends), known.Treap(lookups, self.universe, self.exponent)]


def on_a_line(lookups: int, low: float, high: float) -> list[Algorithm]:
    return [known.BinarySearch(lookups), known.InterpolationSearch(lookups, low, high)]


def nearest(
    points: Float[Tensor, "batch points dim"], queries: Float[Tensor, "batch queries dim"]
) -> Int[Tensor, "batch queries"]:
    """The number of the nearest point; the first of several that are equally near."""
    share = max(CHUNK // max(points[:1].numel() * queries.shape[1], 1), 1)  # sequences at a time: bounds the memory
    parts = zip(points.split(share), queries.split(share), strict=True)
    distances = [(some[:, :, None] - all_[:, None]).square().sum(-1) for all_, some in parts]
    closest = torch.cat([each == each.amin(-1, keepdim=True) for each in distances])
    return closest.to(torch.uint8).argmax(-1)


def one_of(
    points: Float[Tensor, "batch points dim"], chance: Float[Tensor, "batch queries"]
) -> Float[Tensor, "batch queries dim"]:
    """Points drawn alike, from numbers between 0 and 1."""
    index = (chance * points.shape[1]).long().clamp(max=points.shape[1] - 1)
    return points.gather(1, index[..., None].expand(-1, -1, points.shape[2]))


def zipf(chance: Float[Tensor, "*shape"], universe: int, exponent: float) -> Int[Tensor, "*shape"]:
    """Items 0..universe − 1 with chances ∝ (i + 1)^−exponent, from numbers between 0 and 1."""
    edges = _edges(universe, exponent, chance.device)
    return torch.searchsorted(edges, chance.double().contiguous(), right=True).clamp(max=universe - 1)


@functools.cache
def _edges(universe: int, exponent: float, device: torch.device) -> Float[Tensor, "universe"]:
    """Cumulative chances. Kept on the device: a recorded step must not wait for the host."""
    chances = torch.arange(1, universe + 1, dtype=torch.float64) ** -exponent
    return (chances.cumsum(0) / chances.sum()).to(device)

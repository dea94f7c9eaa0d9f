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
from torch.nn import functional

from algoscope import arguments
from algoscope.contracts import Task
from algoscope.randomness import normal, uniform
from algoscope.tasks import numerals
from algoscope.tasks.vectors import vectors

CHUNK = 2**26  # differences between queries and points that are held at once


class Search(Task):
    """What search tasks share; a task says how `size` points, and queries, are drawn.

    A network sees the points and then the queries, as they are or with coordinates that `features` makes, and answers
    each query with a logit for each point.
    """

    family = "search"
    gradual = False
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


@dataclass(frozen=True)
class NumberSearch(Search):
    """Nearest neighbors of numbers that are seen as pictures.

    Points are different numbers of 0..universe − 1, queries any of them; networks see pictures of them alone.

    A picture is `digits` handwritten digits side by side: those that ship with the project, or those of a `folder`
    with the files of MNIST, which a variable may name ("$MNIST"). Images of the `split` "test" are others than those of
    "train", which are each moved by up to `shift` pixels. What is near is decided by the numbers: nobody tells a
    network.
    """

    size: int = 50  # points of a set
    universe: int = 200  # numbers are below it
    queries: int = 1  # of a set
    digits: int = 3  # in a picture
    folder: str | None = None  # of MNIST's files; by default digits that ship
    split: Literal["train", "test"] = "train"  # which images
    shift: int = 0  # pixels that an image is moved by at most

    def __post_init__(self) -> None:
        self.check_sizes()
        arguments.size("universe", self.universe)
        if self.size > self.universe:
            raise ValueError(f"size must be at most universe = {self.universe}: they differ, got {self.size}")
        numerals.check(self.universe, self.digits, self.folder, self.split, self.shift)

    def places(
        self, batch: int, generators: Sequence[torch.Generator], dtype: torch.dtype
    ) -> Float[Tensor, "batch length dim"]:
        points = uniform(generators, batch, self.universe, dtype=dtype).argsort(-1)[:, : self.size]
        queries = zipf(uniform(generators, batch, self.queries, dtype=dtype), self.universe, 0.0)
        return torch.cat((points, queries), 1)[..., None].to(dtype)

    def features(self, x: Float[Tensor, "batch length dim"]) -> Float[Tensor, "batch length inputs"]:
        return numerals.pictures(x[..., 0], self.digits, self.folder, self.split, self.shift)


@dataclass(frozen=True)
class SphereSearch(Search):
    """Nearest neighbors on a sphere of many dimensions.

    Points are uniform on the unit sphere, and a query has inner product `correlation` with one of them.
    """

    size: int = 100  # points of a set
    dim: int = 30  # of a point
    correlation: float = 0.8  # inner product of a query and its neighbor
    queries: int = 1  # of a set

    def __post_init__(self) -> None:
        self.check_sizes()
        arguments.size("dim", self.dim, 2)
        if not isinstance(self.correlation, int | float) or not -1 <= self.correlation <= 1:
            raise ValueError(f"correlation must be a number from -1 to 1, got {arguments.shown(self.correlation)}")

    def places(
        self, batch: int, generators: Sequence[torch.Generator], dtype: torch.dtype
    ) -> Float[Tensor, "batch length dim"]:
        points = functional.normalize(normal(generators, batch, self.size, self.dim, dtype=dtype), dim=-1)
        chosen = one_of(points, uniform(generators, batch, self.queries, dtype=dtype))
        away = normal(generators, batch, self.queries, self.dim, dtype=dtype)
        away = functional.normalize(away - (away * chosen).sum(-1, keepdim=True) * chosen, dim=-1)
        return torch.cat((points, self.correlation * chosen + math.sqrt(1 - self.correlation**2) * away), 1)


@dataclass(frozen=True)
class VectorSearch(Search):
    """Nearest neighbors among the vectors of a file.

    Points and queries are different vectors of a file (.npy, .fvecs or the IDX format of MNIST).

    `dim` reduces them to their first principal components, which are those of the file `basis`, by default the same
    file: a file of test vectors names that of the training vectors. They are divided by their root mean square norm.
    """

    path: str  # file of vectors
    size: int = 100  # points of a set
    dim: int = 100  # principal components to keep
    queries: int = 1  # of a set
    basis: str | None = None  # file that the components come from; by default the same

    def __post_init__(self) -> None:
        self.check_sizes()
        arguments.size("dim", self.dim)
        arguments.path("path", self.path)
        if self.basis is not None:
            arguments.path("basis", self.basis)
        rows = len(self.vectors(torch.device("cpu"), torch.float64))
        if rows < self.length:
            raise ValueError(f"size and queries must be at most the {rows} vectors of {self.path}, got {self.length}")

    def vectors(self, device: torch.device, dtype: torch.dtype) -> Float[Tensor, "vectors dim"]:
        return vectors(self.path, self.basis or self.path, self.dim, device, dtype)

    def places(
        self, batch: int, generators: Sequence[torch.Generator], dtype: torch.dtype
    ) -> Float[Tensor, "batch length dim"]:
        """One vector out of each of as many parts of the file, which was shuffled: so all differ. Where the parts begin
        is drawn as well: every vector may be a point or a query.
        """
        known = self.vectors(generators[0].device, dtype)
        edges = torch.arange(self.length + 1, device=known.device) * len(known) // self.length
        # In 64 bits: 32 do not tell a million apart.
        begin, chances = uniform(generators, batch, 1 + self.length, dtype=torch.float64).split((1, self.length), -1)
        rows = edges[:-1] + (chances * edges.diff()).long().minimum(edges.diff() - 1)
        return known[(rows + (begin * len(known)).long()) % len(known)]


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

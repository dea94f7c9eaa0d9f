"""Nearest-neighbor search among pictures, on a sphere, and among the vectors of a file."""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from algoscope import algorithms as known
from algoscope import arguments
from algoscope.algorithms.cells import means, quantizer
from algoscope.contracts import Algorithm, Symmetry
from algoscope.randomness import normal, uniform
from algoscope.symmetries import FreshValues
from algoscope.tasks import numerals
from algoscope.tasks.search import BITS, Search, on_a_line, one_of, zipf
from algoscope.tasks.vectors import vectors

PARTS = 8  # cells of equal ranges on a line, as published
LEARNED_FROM = 5000  # points, for cells that are the same for all sets


@dataclass(frozen=True)
class NumberSearch(Search):
    """Nearest neighbors of numbers that are seen as pictures.

    Points are different numbers of 0..universe − 1, queries any of them; networks see pictures of them alone.

    A picture is `digits` handwritten digits side by side: those that ship with the project, or those of a `folder`
    with the files of MNIST, which a variable may name ("$MNIST"). Images of the `split` "test" are others than those of
    "train", which are each moved by up to `shift` pixels. What is near is decided by the numbers: no one tells a
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

    def held_out(self) -> "NumberSearch":
        return replace(self, split="test")

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        return (FreshValues(0.0, self.universe - 1.0, whole=True),) if self.universe > 1 else ()

    def places(
        self, batch: int, generators: Sequence[torch.Generator], dtype: torch.dtype
    ) -> Float[Tensor, "batch length dim"]:
        points = uniform(generators, batch, self.universe, dtype=dtype).argsort(-1)[:, : self.size]
        queries = zipf(uniform(generators, batch, self.queries, dtype=dtype), self.universe, 0.0)
        return torch.cat((points, queries), 1)[..., None].to(dtype)

    def features(self, x: Float[Tensor, "batch length dim"]) -> Float[Tensor, "batch length inputs"]:
        return numerals.pictures(x[..., 0], self.digits, self.folder, self.split, self.shift)

    def located(self, features: Float[Tensor, "batch length inputs"]) -> Float[Tensor, "batch length dim"]:
        return numerals.numbers(features, self.digits, self.folder, self.split)[..., None].to(features.dtype)

    def searches(self, lookups: int, slots: int = 0) -> list[Algorithm]:
        ends = -0.5, self.universe - 0.5
        cells = [known.RangeCells(lookups, PARTS, *ends)] if self.size >= PARTS else []
        return on_a_line(lookups, *ends) + cells


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

    def searches(self, lookups: int, slots: int = 0) -> list[Algorithm]:
        """Cells of the whole distribution, as published, and of each set of points, which an index may have as well."""
        if self.size < 2**BITS:
            return super().searches(lookups)
        centers, basis = _cells(self)
        return [
            known.SimHash(lookups, BITS),
            known.IterativeQuantization(lookups, BITS, basis),
            known.KMeansCells(lookups, 2**BITS, centers),
            known.KMeansCells(lookups, 2**BITS),
        ]


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


@functools.cache
def _cells(task: SphereSearch) -> tuple[Tensor, Tensor]:
    """Centers and bases of cells that are the same for all sets."""
    sets = task.sample(-(-LEARNED_FROM // task.size), seed=0, purpose="cells")
    points = sets.x[:, : task.size].flatten(0, 1)[None]
    return means(points, 2**BITS)[0], quantizer(points, BITS)[0]

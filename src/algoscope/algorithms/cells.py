"""Searches that sort the points into cells and read those in the cell of the query, as traces of look-ups.

Cells are of one size, points // cells. A point whose cell is full goes at once into some cell that has room: only so do
the numbers come out that Salemohamed et al. (2024) published (docs/log.md).
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from algoscope import arguments
from algoscope.algorithms.search import Lookups
from algoscope.contracts import Symmetry
from algoscope.randomness import stream
from algoscope.symmetries import FreshValues

Rows: TypeAlias = tuple[tuple[float, ...], ...]
ROUNDS = 50  # of Lloyd's iteration, and of ITQ's


class Cells(Lookups):
    """Reads the points of the query's cell in the order in which they came, and then others, at random.

    Every random choice is the same for all prompts: it belongs to the structure.
    """

    seed: int

    @property
    @abstractmethod
    def cells(self) -> int: ...

    @abstractmethod
    def assign(
        self, points: Float[Tensor, "batch points dim"], queries: Float[Tensor, "batch queries dim"]
    ) -> tuple[Int[Tensor, "batch points"], Int[Tensor, "batch queries"]]:
        """The cells in which points and queries belong."""

    @final
    def keeps(self, symmetry: Symmetry) -> bool | None:
        """A cell depends on values, unless there is only one."""
        return self.cells == 1 if isinstance(symmetry, FreshValues) else None

    @final
    def reads(
        self, points: Float[Tensor, "batch points dim"], queries: Float[Tensor, "batch queries dim"]
    ) -> Int[Tensor, "batch queries lookups"]:
        arguments.integer("seed", self.seed, 0)
        count = points.shape[1]
        if count < self.cells:
            raise ValueError(f"{self.name} has {self.cells} cells, which need at least as many points, got {count}")
        wanted, asked = self.assign(points, queries)
        cell, slot = placed(wanted, self.cells, count // self.cells, self.seed)
        shuffled = torch.randperm(count, generator=stream("other points", self.seed)).to(points.device)
        inside = cell[:, None] == asked[..., None]
        ranks = torch.where(inside, slot[:, None], count + shuffled)
        reads = ranks.argsort(-1)[..., : self.lookups]
        if self.lookups <= count:
            return reads
        nearest = (queries[:, :, None] - points[:, None]).square().sum(-1).argmin(-1, keepdim=True)
        return torch.cat((reads, nearest.expand(-1, -1, self.lookups - count)), -1)


def placed(
    wanted: Int[Tensor, "batch points"], cells: int, size: int, seed: int
) -> tuple[Int[Tensor, "batch points"], Int[Tensor, "batch points"]]:
    """The cell in which each point ends, and its place there; −1 where there was no room left in any."""
    batch, count = wanted.shape
    chances = torch.rand(count, cells, generator=stream("vacant cells", seed)).to(wanted.device)
    filled = torch.zeros(batch, cells, dtype=torch.long, device=wanted.device)
    where, slots = [], []
    for i in range(count):
        room = filled < size
        vacant = torch.where(room, chances[i], -1.0).argmax(-1)
        own = wanted[:, i]
        cell = torch.where(room.gather(1, own[:, None])[:, 0], own, vacant)
        slot = filled.gather(1, cell[:, None])[:, 0]
        fits = slot < size
        filled.scatter_add_(1, cell[:, None], fits.long()[:, None])
        where.append(torch.where(fits, cell, -1))
        slots.append(torch.where(fits, slot, -1))
    return torch.stack(where, 1), torch.stack(slots, 1)


@dataclass(frozen=True)
class SimHash(Cells):
    """A cell is the signs of `bits` products with Gaussian vectors (Charikar 2002)."""

    lookups: int = 6
    bits: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        arguments.integer("bits", self.bits, 1, 20)

    @property
    def cells(self) -> int:
        return 2**self.bits

    def assign(
        self, points: Float[Tensor, "batch points dim"], queries: Float[Tensor, "batch queries dim"]
    ) -> tuple[Int[Tensor, "batch points"], Int[Tensor, "batch queries"]]:
        shape, generator = (points.shape[-1], self.bits), stream("hash", self.seed)
        normals = torch.randn(shape, generator=generator, dtype=torch.float64).to(points.device)
        return code(points @ normals), code(queries @ normals)


@dataclass(frozen=True)
class IterativeQuantization(Cells):
    """A cell is the signs of `bits` principal components, rotated to be near ±1 (ITQ, Gong and Lazebnik 2011).

    They are found from the points of each prompt, or given as a `basis` [dim, bits], such as `quantizer` finds for all.
    """

    lookups: int = 6
    bits: int = 4
    basis: Rows | Sequence[Sequence[float]] | Tensor | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        arguments.integer("bits", self.bits, 1, 20)
        if self.basis is not None:
            object.__setattr__(self, "basis", _rows("basis", self.basis, (None, self.bits)))

    @property
    def cells(self) -> int:
        return 2**self.bits

    def assign(
        self, points: Float[Tensor, "batch points dim"], queries: Float[Tensor, "batch queries dim"]
    ) -> tuple[Int[Tensor, "batch points"], Int[Tensor, "batch queries"]]:
        if self.basis is None:
            mean = points.mean(1, keepdim=True)
            basis = quantizer(points - mean, self.bits, self.seed)
            return code((points - mean) @ basis), code((queries - mean) @ basis)
        basis = _fitting("basis", self.basis, points, 0)
        return code(points @ basis), code(queries @ basis)


@dataclass(frozen=True)
class KMeansCells(Cells):
    """A cell is the nearest of several centers (Lloyd 1982).

    They are found from the points of each prompt, or given, such as `means` finds for all.
    """

    lookups: int = 6
    count: int = 16
    centers: Rows | Sequence[Sequence[float]] | Tensor | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        arguments.size("count", self.count)
        if self.centers is not None:
            object.__setattr__(self, "centers", _rows("centers", self.centers, (self.count, None)))

    @property
    def cells(self) -> int:
        return self.count

    def assign(
        self, points: Float[Tensor, "batch points dim"], queries: Float[Tensor, "batch queries dim"]
    ) -> tuple[Int[Tensor, "batch points"], Int[Tensor, "batch queries"]]:
        if self.centers is None:
            centers = means(points, self.count)
        else:
            centers = _fitting("centers", self.centers, points, 1)[None]
        return closest(points, centers), closest(queries, centers)


@dataclass(frozen=True)
class RangeCells(Cells):
    """A cell is one of `count` equal ranges between `low` and `high`, on a line."""

    lookups: int = 7
    count: int = 8
    low: float = -1.0
    high: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        arguments.size("count", self.count)
        arguments.less(self.low, self.high)

    @property
    def cells(self) -> int:
        return self.count

    def assign(
        self, points: Float[Tensor, "batch points dim"], queries: Float[Tensor, "batch queries dim"]
    ) -> tuple[Int[Tensor, "batch points"], Int[Tensor, "batch queries"]]:
        if points.shape[-1] != 1:
            raise ValueError(f"{self.name} needs points with one coordinate, got {points.shape[-1]}")
        width = (self.high - self.low) / self.count
        shares = [((part[..., 0] - self.low) / width).floor().long() for part in (points, queries)]
        return shares[0].clamp(0, self.count - 1), shares[1].clamp(0, self.count - 1)


def quantizer(centered: Float[Tensor, "batch points dim"], bits: int, seed: int = 0) -> Float[Tensor, "batch dim bits"]:
    """Principal directions, turned until the products of the points with them are as near to ±1 as they get."""
    if centered.shape[-1] < bits:
        raise ValueError(f"bits must be at most {centered.shape[-1]}, the dimension of the points, got {bits}")
    axes = torch.linalg.eigh(centered.mT @ centered).eigenvectors[..., -bits:]
    drawn = torch.randn(bits, bits, generator=stream("rotation", seed), dtype=torch.float64)
    rotation, main = torch.linalg.qr(drawn).Q.to(centered), centered @ axes
    for _ in range(ROUNDS):
        left, _, right = torch.linalg.svd(main.mT @ (main @ rotation).sign())
        rotation = left @ right
    return axes @ rotation


def means(points: Float[Tensor, "batch points dim"], cells: int) -> Float[Tensor, "batch cells dim"]:
    """Lloyd's iteration from the first points; a center without points stays where it is."""
    centers = points[:, :cells]
    for _ in range(ROUNDS):
        member = torch.nn.functional.one_hot(closest(points, centers), cells).to(points.dtype)
        sizes = member.sum(1)[..., None]
        moved = torch.where(sizes > 0, member.mT @ points / sizes.clamp(min=1), centers)
        if torch.equal(moved, centers):
            break
        centers = moved
    return centers


def closest(
    vectors: Float[Tensor, "batch vectors dim"], centers: Float[Tensor, "#batch cells dim"]
) -> Int[Tensor, "batch vectors"]:
    return (centers.square().sum(-1)[:, None] - 2 * vectors @ centers.mT).argmin(-1)


def code(products: Float[Tensor, "*shape bits"]) -> Int[Tensor, "*shape"]:
    """The number whose binary digits say which products are positive."""
    return ((products > 0).long() << torch.arange(products.shape[-1], device=products.device)).sum(-1)


def _rows(name: str, value: object, shape: tuple[int | None, int | None]) -> Rows:
    """Kept as nested tuples, so that algorithms compare and hash."""
    try:
        rows = torch.as_tensor(value, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise ValueError(f"{name} must be a matrix, got {arguments.shown(value)}") from None
    if rows.ndim != 2 or any(want not in (None, got) for want, got in zip(shape, rows.shape, strict=True)):
        wanted = " x ".join("dim" if want is None else str(want) for want in shape)
        raise ValueError(f"{name} must be a matrix {wanted}, got shape {list(rows.shape)}")
    arguments.finite(name, rows)
    return tuple(tuple(row) for row in rows.tolist())


def _fitting(name: str, rows: object, points: Tensor, axis: int) -> Tensor:
    """The rows as a tensor, one of whose axes is that of the points' coordinates."""
    found = torch.as_tensor(rows, dtype=torch.float64, device=points.device)
    if found.shape[axis] != points.shape[-1]:
        raise ValueError(f"{name} must be for points of {points.shape[-1]} coordinates, got {found.shape[axis]}")
    return found

"""Sketches of a stream: counts of all items in few cells, as traces of reads.

After m reads an estimate uses the first m rows. An item is asked about before it is counted, as the prompts want it.
"""

import functools
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from algoscope import arguments
from algoscope.contracts import Algorithm, Memory
from algoscope.randomness import stream
from algoscope.trace import Prompts, Trace

ITEMS = 2**20  # that hash functions know


class Sketch(Algorithm):
    """`cells` numbers in `rows` rows of equal length; each item is written to, and read from, one cell of each row.

    Stage m is the estimate after m reads. Hash functions are tables of random numbers.
    """

    family = "streams"
    cells: int
    rows: int
    seed: int

    @abstractmethod
    def estimates(
        self, same: Float[Tensor, "rows batch points points"], items: Int[Tensor, "batch points"]
    ) -> Float[Tensor, "rows batch points"]:
        """From which earlier item s shares a cell with item t: same[row, batch, t, s]."""

    @final
    def trace(self, prompts: Prompts) -> Trace:
        items = stream_items(prompts)
        if int(items.min()) < 0 or int(items.max()) >= ITEMS:
            raise ValueError(f"items must be from 0 to {ITEMS - 1}, got {int(items.min())} to {int(items.max())}")
        cell = self.hashed("cell", items, self.cells // self.rows)
        same = (cell[..., :, None] == cell[..., None, :]).tril(-1).double()
        return Trace(self.name, self.estimates(same, items), tuple(range(1, self.rows + 1)), prompts)

    def on_cells(
        self, shared: Float[Tensor, "rows batch points points"], items: Int[Tensor, "batch points"]
    ) -> Float[Tensor, "rows batch points"]:
        """The estimates where a memory says what items share: see `Memory.shared`."""
        return self.estimates(shared.abs(), items)

    @abstractmethod
    def of_rows(self, rows: int) -> "Sketch":
        """The same with so many rows."""

    @final
    def on_memory(self, memory: Memory) -> Algorithm:
        return OnMemory(self, memory)

    @final
    def hashed(self, purpose: str, items: Int[Tensor, "batch points"], values: int) -> Int[Tensor, "rows batch points"]:
        """Random numbers below `values`, one for each row and item."""
        tables = [_table(f"{purpose} of row {row}", self.seed, values) for row in range(self.rows)]
        return torch.stack([table.to(items.device)[items].long() for table in tables])

    @final
    def check_sizes(self) -> None:
        arguments.size("cells", self.cells)
        arguments.size("rows", self.rows)
        arguments.integer("seed", self.seed, 0)
        if self.rows > self.cells:
            raise ValueError(f"rows must be at most cells = {self.cells}, got {self.rows}")


@dataclass(frozen=True)
class CountMin(Sketch):
    """The least of the counters of an item (Cormode and Muthukrishnan 2005).

    With the usual increment of 1 it never says too little. A smaller one makes up for the items that share a cell, on
    average, as the models of Salemohamed et al. (2024) do.
    """

    cells: int = 32
    rows: int = 1
    increment: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        self.check_sizes()
        arguments.number("increment", self.increment, strict=True)

    def of_rows(self, rows: int) -> "CountMin":
        return replace(self, rows=rows, cells=max(rows, self.cells))

    def estimates(
        self, same: Float[Tensor, "rows batch points points"], items: Int[Tensor, "batch points"]
    ) -> Float[Tensor, "rows batch points"]:
        return self.increment * same.sum(-1).cummin(0).values


@dataclass(frozen=True)
class CountMean(Sketch):
    """The mean of the counters of an item."""

    cells: int = 32
    rows: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        self.check_sizes()

    def of_rows(self, rows: int) -> "CountMean":
        return replace(self, rows=rows, cells=max(rows, self.cells))

    def estimates(
        self, same: Float[Tensor, "rows batch points points"], items: Int[Tensor, "batch points"]
    ) -> Float[Tensor, "rows batch points"]:
        counters = same.sum(-1)
        return counters.cumsum(0) / torch.arange(1, len(counters) + 1, device=same.device)[:, None, None]


@dataclass(frozen=True)
class CountSketch(Sketch):
    """The median of counters to which each item adds a random sign (Charikar, Chen and Farach-Colton 2002)."""

    cells: int = 32
    rows: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        self.check_sizes()

    def of_rows(self, rows: int) -> "CountSketch":
        return replace(self, rows=rows, cells=max(rows, self.cells))

    def estimates(
        self, same: Float[Tensor, "rows batch points points"], items: Int[Tensor, "batch points"]
    ) -> Float[Tensor, "rows batch points"]:
        signs = 2.0 * self.hashed("sign", items, 2) - 1
        return _medians(signs * (same @ signs[..., None].double())[..., 0])

    def on_cells(
        self, shared: Float[Tensor, "rows batch points points"], items: Int[Tensor, "batch points"]
    ) -> Float[Tensor, "rows batch points"]:
        """By the signs of the memory; a memory without signs is given some."""
        return _medians(shared.sum(-1)) if bool((shared < 0).any()) else self.estimates(shared, items)


@dataclass(frozen=True)
class Counting(Algorithm):
    """The solution: how often each item was seen before. One stage, labeled 0."""

    family = "streams"

    @property
    def closed_form(self) -> bool:
        return True

    def trace(self, prompts: Prompts) -> Trace:
        items = stream_items(prompts)
        same = (items[..., :, None] == items[..., None, :]).tril(-1)
        return Trace(self.name, same.double().sum(-1)[None], (0,), prompts)


@dataclass(frozen=True, eq=False)
class OnMemory(Algorithm):
    """A sketch that counts in the cells of a model: hash functions differ from model to model."""

    sketch: Sketch
    own: Memory

    family = "streams"

    @property
    def name(self) -> str:
        return type(self.sketch).__name__

    def trace(self, prompts: Prompts) -> Trace:
        reads = self.own.reads
        sketch = self.sketch.of_rows(reads)
        values = sketch.on_cells(self.own.shared(prompts), stream_items(prompts))
        return Trace(self.name, values, tuple(range(1, reads + 1)), prompts)


@functools.lru_cache(maxsize=16)
def _table(purpose: str, seed: int, values: int) -> Int[Tensor, "items"]:
    """Kept: to draw it takes as long as all that is done with it. In 32 bits, which is half of the room."""
    return torch.randint(values, (ITEMS,), generator=stream(purpose, seed)).int()


def stream_items(prompts: Prompts) -> Int[Tensor, "batch points"]:
    """The items, where prompts hold a stream."""
    items = prompts.x[..., 0].round().long()
    if prompts.dim != 1 or prompts.before or prompts.y.ndim != 2 or bool((items != prompts.x[..., 0]).any()):
        raise ValueError("prompts must be those of a stream: one whole number an item")
    return items


def _medians(read: Float[Tensor, "rows batch points"]) -> Float[Tensor, "rows batch points"]:
    return torch.stack([read[: m + 1].quantile(0.5, dim=0) for m in range(len(read))])

"""Streams of items whose frequencies are asked for: how often was this one seen so far? (Salemohamed et al. 2024)"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, final

import torch
from jaxtyping import Float
from torch import Tensor

from algoscope import algorithms as known
from algoscope import arguments
from algoscope.contracts import Algorithm, Task
from algoscope.matching import UnexplainedVariance
from algoscope.randomness import uniform
from algoscope.reading.readers import CounterReader, LinearProbe
from algoscope.tasks import numerals
from algoscope.tasks.search import zipf
from algoscope.trace import Prompts

RANKS = ("random", "fixed")


class Stream(Task):
    """Items 0..universe − 1, whose chances are ∝ rank^−exponent; y[t] is how many of the first t items are x[t].

    So each item is first a question and then a part of the stream. `ranks` are "random", new for each stream, or
    "fixed": small numbers are frequent. A task says how networks see an item.
    """

    family = "streams"
    gradual = False
    reader = CounterReader() | LinearProbe()
    measure = UnexplainedVariance()

    universe: int
    items: int
    exponent: float
    ranks: Literal["random", "fixed"]

    @property
    @final
    def power(self) -> float:
        """E[y²]: with chance p, the number of earlier items that are the same is binomial."""
        chances = torch.arange(1, self.universe + 1, dtype=torch.float64) ** -self.exponent
        chances = chances / chances.sum()
        t = torch.arange(self.items + 1, dtype=torch.float64)[:, None]
        return float((chances * (t * chances * (1 - chances) + (t * chances).square())).sum(1).mean())

    @property
    @final
    def length(self) -> int:
        return self.items + 1

    @property
    @final
    def inputs(self) -> int:
        blank = torch.zeros(1, 1, 1)
        return self.encode(blank, blank[..., 0]).shape[-1]

    @property
    @final
    def outputs(self) -> int:
        return 1

    @property
    @final
    def answers(self) -> slice:
        return slice(None)

    @final
    def draw(
        self,
        batch: int,
        generators: Sequence[torch.Generator],
        dtype: torch.dtype = torch.float64,
        dims: Tensor | None = None,
    ) -> tuple[Float[Tensor, "batch points dim"], Float[Tensor, "batch points"]]:
        """A curriculum has no say here: `dims` is not used."""
        ranks = zipf(uniform(generators, batch, self.length, dtype=torch.float64), self.universe, self.exponent)
        if self.ranks == "random":
            ranks = uniform(generators, batch, self.universe, dtype=torch.float64).argsort(-1).gather(-1, ranks)
        return ranks[..., None].to(dtype), seen_before(ranks).to(dtype)

    @final
    def algorithms(self) -> list[Algorithm]:
        """Of a model that is no sketch itself, up to four reads of 32 cells."""
        return [known.CountMin(rows=4), known.CountMean(rows=4), known.CountSketch(rows=4), known.Counting()]

    @final
    def check(self) -> None:
        arguments.size("universe", self.universe)
        arguments.size("items", self.items)
        arguments.number("exponent", self.exponent)
        arguments.choice("ranks", self.ranks, RANKS)


@dataclass(frozen=True)
class ZipfStream(Stream):
    """How often was an item of a stream seen before? Items are one-hot vectors.

    Networks see items as one-hot vectors.
    """

    universe: int = 1000  # different items
    items: int = 100  # in a stream
    exponent: float = 1.2  # of the Zipf distribution
    ranks: Literal["random", "fixed"] = "random"  # whether frequent items are the same in every stream

    def __post_init__(self) -> None:
        self.check()

    def encode(
        self, x: Float[Tensor, "batch points dim"], y: Float[Tensor, "batch points"]
    ) -> Float[Tensor, "batch length inputs"]:
        return (x == torch.arange(self.universe, device=x.device)).to(x.dtype)

    def decode(self, tokens: Float[Tensor, "batch length inputs"]) -> Prompts:
        return _unlabeled(tokens.argmax(-1), tokens, self.power)


@dataclass(frozen=True)
class NumberStream(Stream):
    """How often was an item of a stream seen before? Items are pictures of numbers.

    Networks see items as pictures of their numbers: `digits` handwritten digits, another image each time.

    They are those that ship with the project, or those of a `folder` with the files of MNIST, which a variable may name
    ("$MNIST"); images of the `split` "test" are others than those of "train", which are each moved by up to `shift`
    pixels.
    """

    universe: int = 100  # different items
    items: int = 100  # in a stream
    exponent: float = 1.2  # of the Zipf distribution
    ranks: Literal["random", "fixed"] = "fixed"  # whether frequent items are the same in every stream
    digits: int = 3  # in a picture
    folder: str | None = None  # of MNIST's files; by default digits that ship
    split: Literal["train", "test"] = "train"  # which images
    shift: int = 0  # pixels that an image is moved by at most

    def __post_init__(self) -> None:
        self.check()
        numerals.check(self.universe, self.digits, self.folder, self.split, self.shift)

    def held_out(self) -> "NumberStream":
        return replace(self, split="test")

    def encode(
        self, x: Float[Tensor, "batch points dim"], y: Float[Tensor, "batch points"]
    ) -> Float[Tensor, "batch length inputs"]:
        return numerals.pictures(x[..., 0], self.digits, self.folder, self.split, self.shift)

    def decode(self, tokens: Float[Tensor, "batch length inputs"]) -> Prompts:
        return _unlabeled(numerals.numbers(tokens, self.digits, self.folder, self.split), tokens, self.power)


def _unlabeled(items: Tensor, like: Tensor, power: float) -> Prompts:
    x = items[..., None].to(like.dtype)
    return Prompts(x, torch.zeros_like(x[..., 0]), power=power)


def seen_before(items: Tensor) -> Tensor:
    """How many earlier entries of a row are the same."""
    return (items[..., :, None] == items[..., None, :]).tril(-1).sum(-1)

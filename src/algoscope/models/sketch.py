"""A sketch that is learned: a memory of a few numbers in which a network counts the items of a stream.

After Salemohamed, Charlin, Garg, Sharan and Valiant, "Discovering Data Structures" (2024).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from algoscope import arguments
from algoscope.contracts import Model, Network, TrainingNeeds
from algoscope.models.encoder import check_picture, encoder
from algoscope.models.index import QueryMLP
from algoscope.models.index_parts import TEMPERATURE, weigh

WRITE_GAIN = 5.0  # of fresh weights that choose cells to write: items begin in different cells


@dataclass(frozen=True)
class LearnedSketch(Model):
    """A sketch that is learned: cells in which the items of a stream are counted.

    Each item adds numbers to `accesses` of the `cells`, and reads as many to count how often it was seen before.

    One network chooses cells and numbers to write from the item alone, `accesses` networks choose cells to read from
    the item and what was read so far, and one predicts the count from all that was read. Each is a perceptron of two
    hidden layers. Choices are soft and noisy in training, as those of an `Index`, and hard otherwise.

    Items that are pictures become features by an encoder: `picture` is their height and width, how many features there
    are, and how many channels the first convolution has.

    The logits of reads are added to those of where the item was written, and the count to the mean of what was read.
    """

    family = "streams"

    cells: int = 32  # of memory
    accesses: int = 1  # cells that an item writes and reads
    hidden: int = 1024  # units of a network
    picture: tuple[int, int, int, int] | None = None  # height, width, features and channels, where tokens are pictures

    def __post_init__(self) -> None:
        arguments.integer("cells", self.cells, 1)
        arguments.integer("accesses", self.accesses, 1)
        if self.accesses > self.cells:
            raise ValueError(f"accesses must be at most cells, got {self.accesses} and {self.cells}")
        arguments.integer("hidden", self.hidden, 1)
        check_picture(self.picture)

    def build(self, inputs: int, outputs: int, length: int, generator: torch.Generator) -> "SketchNetwork":
        return SketchNetwork(self, inputs, outputs, length, generator)


class SketchNetwork(Network):
    """Stages: "write", what each item adds to the cells, and "read 1" … "read M", how it weighs them. Any length."""

    def __init__(
        self, model: LearnedSketch, inputs: int, outputs: int, length: int, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.model, cells, many = model, model.cells, model.accesses
        self.encoder = encoder(model.picture, inputs, generator)
        inputs = inputs if self.encoder is None else self.encoder.features
        writer = QueryMLP(inputs, model.hidden, many * (cells + 1), generator)
        with torch.no_grad():
            writer.last.weight[: many * cells] *= WRITE_GAIN
        readers = [QueryMLP(inputs + m * (cells + 1), model.hidden, cells, generator) for m in range(many)]
        self.blocks = nn.ModuleList([writer, *readers, QueryMLP(many, model.hidden, outputs, generator)])
        self.training_needs = TrainingNeeds(noise_shape=(length, 2 * many, cells))
        self.stages = ("write", *(f"read {m + 1}" for m in range(many)))

    def run(
        self,
        tokens: Float[Tensor, "*batch length inputs"],
        keep: Collection[str] = (),
        noise: Float[Tensor, "*batch length choices cells"] | None = None,
    ) -> tuple[Float[Tensor, "*batch length outputs"], dict[str, Float[Tensor, "*batch length cells"]]]:
        self.check_stages(keep)
        tokens = tokens if self.encoder is None else self.encoder(tokens)
        choices = [None] * (2 * self.model.accesses) if noise is None else noise.unbind(-2)
        logits, written = self.write(tokens, choices[: self.model.accesses])
        memory = written.cumsum(-2) - written  # before the item itself is counted
        kept, seen, values = {"write": written}, [tokens], []
        reads = zip(self.stages[1:], self.blocks[1:-1], logits, choices[self.model.accesses :], strict=True)
        for name, reader, same, own in reads:
            weights = self.choose(same + reader(torch.cat(seen, -1)), own)
            values.append((weights * memory).sum(-1, keepdim=True))
            seen += [weights, values[-1]]
            kept[name] = weights
        found = torch.cat(values, -1)
        return found.mean(-1, keepdim=True) + self.blocks[-1](found), {name: kept[name] for name in keep}

    def write(
        self, tokens: Float[Tensor, "*batch length inputs"], noises: Collection[Tensor | None]
    ) -> tuple[Sequence[Tensor], Float[Tensor, "*batch length cells"]]:
        """Where each item is written, as logits, and what it adds to the memory: 1 or more or less."""
        cells, many = self.model.cells, self.model.accesses
        outputs = self.blocks[0](tokens)
        logits, amounts = outputs[..., : many * cells].split(cells, -1), outputs[..., many * cells :].split(1, -1)
        parts = zip(logits, amounts, noises, strict=True)
        return logits, torch.stack([self.choose(own, noise) * (1 + by) for own, by, noise in parts]).sum(0)

    def choose(self, logits: Float[Tensor, "*shape cells"], noise: Tensor | None) -> Float[Tensor, "*shape cells"]:
        """How the cells are weighed."""
        return weigh(logits, noise, TEMPERATURE, noisy=True).exp()

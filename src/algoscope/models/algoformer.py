"""AlgoFormer: a transformer before, one that is looped, and one after."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from algoscope import arguments
from algoscope.models.transformer import Transformer, TransformerNetwork, added

INJECTIONS = ("none", "prompt", "pre")


@dataclass(frozen=True)
class AlgoFormer(Transformer):
    """`pre` layers once, then `layers` again and again, `loops` times, then `post` layers once (Gao et al. 2024).

    `injection` is what a loop begins with, beside what the one before it left: "none", the "prompt" as it was embedded,
    or what "pre" left (the first loop then begins with that alone). The other options are those of `Transformer`.
    """

    layers: int = 1
    pre: int = 1
    post: int = 1
    loops: int = 20
    injection: Literal["none", "prompt", "pre"] = "none"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("pre", "post", "loops"):
            arguments.integer(name, getattr(self, name), 0)
        arguments.choice("injection", self.injection, INJECTIONS)

    @property
    def depth(self) -> int:
        return self.pre + self.layers + self.post

    def build(self, inputs: int, outputs: int, length: int, generator: torch.Generator) -> "AlgoFormerNetwork":
        return AlgoFormerNetwork(self, inputs, outputs, length, generator)


class AlgoFormerNetwork(TransformerNetwork):
    """Stages: "embedding", "pre", "loop 1" … "loop T", "post", and with norm "before" also "norm"."""

    def __init__(self, model: AlgoFormer, inputs: int, outputs: int, length: int, generator: torch.Generator) -> None:
        super().__init__(model, inputs, outputs, length, generator)
        self.injection = model.injection
        self.borders = model.pre, model.pre + model.layers
        self.run_loops(model.loops)

    def run_loops(self, loops: int) -> None:
        """From now on so many, whatever it was trained with."""
        arguments.integer("loops", loops, 0)
        self.loops = loops
        self.name_stages(("pre", *(f"loop {t + 1}" for t in range(loops)), "post"))

    def passes(self, stream: tuple[Tensor, ...]) -> Iterator[tuple[str, tuple[Tensor, ...]]]:
        begin, end = self.borders
        prompt = stream[0]
        stream = self._through(slice(0, begin), stream)
        yield "pre", stream
        given = prompt if self.injection == "prompt" else added(*stream)
        for t in range(self.loops):
            if self.injection != "none" and not (t == 0 and self.injection == "pre"):
                stream = (added(*stream) + given,)
            stream = self._through(slice(begin, end), stream)
            yield f"loop {t + 1}", stream
        stream = self._through(slice(end, None), stream)
        yield "post", stream

    def _through(self, blocks: slice, stream: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        for block in self.blocks[blocks]:
            stream = block(*stream)
        return stream

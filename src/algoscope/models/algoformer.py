"""Transformers that loop: AlgoFormer, with a transformer before and one after, and the looped transformer alone."""

import contextlib
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from algoscope import arguments
from algoscope.contracts import NO_EDITS, Edits, TrainingNeeds
from algoscope.models.network import MOST_LAYERS, Norm
from algoscope.models.transformer import Attention, Transformer, TransformerNetwork, added

INJECTIONS = ("none", "prompt", "pre")
Stream = tuple[Tensor, ...]


@dataclass(frozen=True)
class AlgoFormer(Transformer):
    """AlgoFormer: layers before, in and after a loop.

    `pre` layers run once, then `layers` run `loops` times, then `post` layers once (Gao et al. 2024).

    `injection` is added to the input of every loop: "none", the "prompt" as it was embedded, or the output of "pre",
    which the first loop has as its input already. In training the last `scored_loops` answer, each through `post`, with
    equal weights in the loss; `truncated` stops the gradient at the first of them. With `loop_norm` a LayerNorm ends
    every loop, as in `Looped`. The other options are those of `Transformer`.
    """

    layers: int = 1  # blocks inside the loop
    pre: int = 1  # blocks before the loop
    post: int = 1  # blocks after the loop
    loops: int = 20  # how often they run
    injection: Literal["none", "prompt", "pre"] = "none"  # added to the input of every loop
    scored_loops: int = 1  # how many of the last loops answer in training
    truncated: bool = False  # no gradient through the loops before these
    loop_norm: bool = False  # a LayerNorm ends every loop

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("pre", "post"):
            arguments.integer(name, getattr(self, name), 0, MOST_LAYERS)
        arguments.choice("injection", self.injection, INJECTIONS)
        arguments.boolean("loop_norm", self.loop_norm)
        check_loops(self)

    @property
    def depth(self) -> int:
        return self.pre + self.layers + self.post

    def build(self, inputs: int, outputs: int, length: int, generator: torch.Generator) -> "AlgoFormerNetwork":
        return AlgoFormerNetwork(self, inputs, outputs, length, generator)


@dataclass(frozen=True)
class Looped(Transformer):
    """A looped transformer.

    `layers` run `loops` times, each time on the sum of the last loop's output and the embedded prompt.

    Yang et al. 2024: the first loop starts from zero, positions are part of the prompt, and every loop ends with a norm
    that the next loop and the head read. `scored_loops` and `truncated` are as in `AlgoFormer`.
    """

    layers: int = 1  # blocks inside the loop
    loops: int = 20  # how often they run
    scored_loops: int = 1  # how many of the last loops answer in training
    truncated: bool = False  # no gradient through the loops before these

    def __post_init__(self) -> None:
        super().__post_init__()
        check_loops(self)

    def build(self, inputs: int, outputs: int, length: int, generator: torch.Generator) -> "LoopedNetwork":
        return LoopedNetwork(self, inputs, outputs, length, generator)


def check_loops(model: "AlgoFormer | Looped") -> None:
    for name in ("layers", "loops", "scored_loops"):
        arguments.integer(name, getattr(model, name), 1, MOST_LAYERS)
    if model.scored_loops > model.loops:
        raise ValueError(f"scored_loops must be at most loops = {model.loops}, got {model.scored_loops}")
    arguments.boolean("truncated", model.truncated)


class LoopingNetwork(TransformerNetwork):
    """Shared by both: a number of loops that may change, and answers after the last of them."""

    before: tuple[str, ...] = ()  # stages before the loops
    after: tuple[str, ...] = ()

    def __init__(
        self, model: AlgoFormer | Looped, inputs: int, outputs: int, length: int, generator: torch.Generator
    ) -> None:
        super().__init__(model, inputs, outputs, length, generator)
        self.scored_loops, self.truncated = model.scored_loops, model.truncated
        self.training_needs = TrainingNeeds(n_scored_outputs=model.scored_loops)
        for part in self.modules():
            if isinstance(part, Attention):
                part.relative = part.kind == "softmax"  # loops make much of rounding (docs/training.md)
        self.run_loops(model.loops)

    def run_loops(self, loops: int) -> None:
        """Sets the number of loops, whatever it was trained with."""
        arguments.integer("loops", loops, 1, MOST_LAYERS)
        self.loops = loops
        self.name_stages((*self.before, *(f"loop {t + 1}" for t in range(loops)), *self.after))

    def answers(
        self, tokens: Float[Tensor, "*batch length inputs"], noise: Tensor | None = None
    ) -> Float[Tensor, "scored *batch length outputs"]:
        stream, given = self.begin((self.embedded(tokens),))
        found = []
        for t in range(self.loops):
            scored = t >= self.loops - self.scored_loops
            with torch.no_grad() if self.truncated and not scored else contextlib.nullcontext():
                stream = self.loop(t, stream, given)
            if scored:
                found.append(self.answer(self.end(stream)))
        return torch.stack(found)

    @abstractmethod
    def begin(self, stream: Stream) -> tuple[Stream, Tensor]:
        """The input of the first loop, and what injection adds to the others."""

    @abstractmethod
    def loop(self, t: int, stream: Stream, given: Tensor) -> Stream: ...

    @abstractmethod
    def end(self, stream: Stream) -> Stream:
        """The input of the head, given the output of a loop."""

    def through(self, blocks: slice, stream: Stream) -> Stream:
        for block in self.blocks[blocks]:
            stream = block(*stream)
        return stream


class AlgoFormerNetwork(LoopingNetwork):
    """Stages: "embedding", "pre", "loop 1" … "loop T", "post", and with norm "before" also "norm"."""

    before, after = ("pre",), ("post",)

    def __init__(self, model: AlgoFormer, inputs: int, outputs: int, length: int, generator: torch.Generator) -> None:
        super().__init__(model, inputs, outputs, length, generator)
        self.injection = model.injection
        self.loop_norm = Norm(model.width) if model.loop_norm else None
        self.borders = model.pre, model.pre + model.layers

    def passes(
        self, stream: Stream, asked: slice | None = None, edits: Edits = NO_EDITS
    ) -> Iterator[tuple[str, Stream]]:
        stream, given = self.begin(stream)
        stream = self._edited("pre", stream, edits)
        yield "pre", stream
        for t in range(self.loops):
            stream = self._edited(f"loop {t + 1}", self.loop(t, stream, given), edits)
            yield f"loop {t + 1}", stream
        yield "post", self._edited("post", self.end(stream), edits)

    def begin(self, stream: Stream) -> tuple[Stream, Tensor]:
        prompt, stream = stream[0], self.through(slice(0, self.borders[0]), stream)
        return stream, prompt if self.injection == "prompt" else added(*stream)

    def loop(self, t: int, stream: Stream, given: Tensor) -> Stream:
        if self.injection != "none" and not (t == 0 and self.injection == "pre"):
            stream = (added(*stream) + given,)
        stream = self.through(slice(*self.borders), stream)
        return stream if self.loop_norm is None else (self.loop_norm(added(*stream)),)

    def end(self, stream: Stream) -> Stream:
        return self.through(slice(self.borders[1], None), stream)


class LoopedNetwork(LoopingNetwork):
    """Stages: "embedding", "loop 1" … "loop T"."""

    def __init__(self, model: Looped, inputs: int, outputs: int, length: int, generator: torch.Generator) -> None:
        super().__init__(model, inputs, outputs, length, generator)
        self.loop_norm, self.norm = self.norm, nn.Identity()
        self.normed = False
        self.run_loops(model.loops)

    def passes(
        self, stream: Stream, asked: slice | None = None, edits: Edits = NO_EDITS
    ) -> Iterator[tuple[str, Stream]]:
        stream, given = self.begin(stream)
        for t in range(self.loops):
            stream = self._edited(f"loop {t + 1}", self.loop(t, stream, given), edits)
            yield f"loop {t + 1}", stream

    def begin(self, stream: Stream) -> tuple[Stream, Tensor]:
        return (torch.zeros_like(stream[0]),), stream[0]

    def loop(self, t: int, stream: Stream, given: Tensor) -> Stream:
        return (self.loop_norm(added(*self.through(slice(None), (added(*stream) + given,)))),)

    def end(self, stream: Stream) -> Stream:
        return stream

"""What every model provides: a value that describes it, and the network that it builds.

A network built of `Linear` and `Norm` also runs as a population: given parameters with a leading axis of members,
through `torch.func.functional_call`, and tokens [members, batch, length, inputs], each member is computed with its
own.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from algoscope import arguments
from algoscope.models import late
from algoscope.spelling import nearest

MOST_LAYERS = 10_000  # parts of a network, one after the other: more would take minutes just to build


class Place(NamedTuple):
    """Coordinates of a stream, and what they hold."""

    where: slice
    holds: str


class Network(nn.Module, ABC):
    """A network over token vectors that can show its state after each stage.

    `stages` names the stages in order. `run` returns the outputs and the states that were asked for, and no others.

    A bias that changes no answer, such as one that a softmax or a mean takes out again, is marked as `idle`, and
    training leaves it at zero: all that is left of its gradient is rounding, and AdamW, for which every gradient is of
    size 1, would follow that at full speed, until the numbers that matter are lost beside it (docs/training.md).
    """

    stages: tuple[str, ...]
    blocks: nn.ModuleList  # of one form: what is compiled for one serves all
    ends: tuple[str, ...] = ()  # its methods before and after the blocks, each compiled as a whole
    places: Mapping[str, Place] = MappingProxyType({})  # of its stream, by name, where they are known
    noise: tuple[int, ...] = ()  # shape of the uniform numbers that a sequence takes in training; without them it tests
    paced: bool = False  # whether it takes `progress`, too, in training: how much of that is over, from 0 to 1
    scored: int = 1  # how many answers training counts: more than one where a network answers again and again
    side_by_side: bool = True  # whether parameters may carry a leading axis of members; if not, members take turns
    once: bool = False  # whether a pass uses each of its parameters once: gradients of weights may then come late
    selective: bool = False  # whether `run` takes `asked`, the tokens that answer, and spares itself the others

    @abstractmethod
    def run(
        self, tokens: Float[Tensor, "*batch length inputs"], keep: Collection[str] = ()
    ) -> tuple[Float[Tensor, "*batch length outputs"], dict[str, Float[Tensor, "*batch length width"]]]: ...

    def forward(
        self, tokens: Float[Tensor, "*batch length inputs"], every: bool = False, **given: Any
    ) -> Float[Tensor, "*scored answers outputs"]:
        """`given` is `noise` and `progress`, for a network that takes them, in training, or `asked`. With `every`, all
        answers that count.
        """
        return self.answers(tokens, **given) if every else self.run(tokens, **given)[0]

    def answers(
        self, tokens: Float[Tensor, "*batch length inputs"], noise: Tensor | None = None
    ) -> Float[Tensor, "scored *batch length outputs"]:
        """Those that count in training, one above the other, the last one last; `noise` for a network that takes it."""
        return self(tokens, **({} if noise is None else {"noise": noise}))[None]

    def check_stages(self, keep: Collection[str]) -> None:
        unknown = [name for name in keep if name not in self.stages]
        if unknown:
            meant = nearest(unknown[0], self.stages)
            raise ValueError(f"stages must be among {list(self.stages)}, got {unknown}{meant}")

    @property
    def parameter_count(self) -> int:
        return sum(parameter.numel() for parameter in self.parameters())


class Model(ABC):
    """Describes a network up to what the task decides. Concrete models are frozen dataclasses."""

    family: ClassVar[str | None] = None  # of the tasks that it can be trained on (`Task.family`), if not all
    version: ClassVar[int] = 1  # changes where the same description builds another network: results on file tell it

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if "__post_init__" in cls.__dict__:
            cls.__post_init__ = arguments.checking(cls.__post_init__)

    @abstractmethod
    def build(self, inputs: int, outputs: int, length: int, generator: torch.Generator) -> Network:
        """A fresh network for at most `length` tokens of `inputs` coordinates; all draws come from `generator`."""


class Linear(nn.Linear):
    """A linear map, for one network or for each member of a population, in the precision of its weights.

    `stacked` says how many independent maps it holds, one above the other. One that is `exact` stays in 32 bits, and
    with AdamW, also inside a block.
    """

    idle: slice | None = None  # the part of its bias that changes no answer: see `Network`

    def __init__(self, inputs: int, outputs: int, stacked: int = 1, exact: bool = False) -> None:
        super().__init__(inputs, outputs)
        self.stacked, self.exact = stacked, exact
        self.late = False  # whether the gradients of its parameters come when the backward pass is over

    def reset_parameters(self) -> None:
        """Left to `draw_linear`: torch would draw from the global random state."""

    def forward(self, input: Tensor, norm: "Norm | None" = None) -> Tensor:
        """With a norm: the map of the normalized input."""
        return biased(*self.terms(input, norm))

    def terms(self, input: Tensor, norm: "Norm | None" = None) -> tuple[Tensor, ...]:
        """What `biased` makes the map of: on a GPU product and bias, which are added where the map is used."""
        if self.weight.ndim == 2 and not input.is_cuda:
            input, weight, bias = self._after(norm, input)
            return (functional.linear(input.to(weight.dtype), weight, bias),)
        return self.product(input, norm)

    def product(self, input: Tensor, norm: "Norm | None" = None) -> tuple[Tensor, Tensor]:
        """The map without its bias, and the bias that is to be added."""
        input, weight, bias = self._after(norm, input)
        if self.late:
            product = late.product(input.to(weight.dtype).flatten(0, -2), weight, bias)
            return product.unflatten(0, input.shape[:-1]), bias.detach()
        return products(input.to(weight.dtype), weight), bias.to(weight.dtype)

    def relative(self, input: Tensor, norm: "Norm | None" = None) -> tuple[Tensor, Tensor]:
        """The map of what each token has beyond the first, and that of the first, with the bias: their sum is the map.
        What all tokens of a sequence have in common is then rounded by itself, and not to 16 bits. The first has no
        gradient: that of the sum through it is zero, and would be the difference of two large numbers. Who drops the
        second term must not depend on a vector that is common to all tokens.
        """
        input, weight, bias = self._after(norm, input)
        first = input[..., :1, :].detach()
        product = products((input - first).to(weight.dtype), weight)
        return product, biased(products(first, weight.to(first.dtype)), bias.to(first.dtype))

    def _after(self, norm: "Norm | None", input: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Input, weight and bias, of which only the weight is rounded yet. In a population scale and shift of the norm
        move into the weights: these are fewer than the tokens, and torch has no norm with a scale for each member:
        W(s·x + t) + b = (W·s)x + (Wt + b).
        """
        dtype = self.weight.dtype
        if norm is None or self.weight.ndim == 2:
            return norm(input) if norm is not None else input, self.weight, self.bias
        scale, shift = norm.weight.unsqueeze(-2), norm.bias.unsqueeze(-2)
        bias = self.bias + (self.weight * shift).sum(-1)
        return norm.normalize(input), (self.weight * scale).to(dtype), bias


def biased(product: Tensor, bias: Tensor | None = None) -> Tensor:
    """The sum of the terms of a linear map."""
    if bias is None:
        return product
    bias = bias.view(-1, *[1] * (product.ndim - 2), product.shape[-1])
    # Expanded to sequences first: its gradient is then summed within each and over them, in two short passes.
    return product + bias.expand(*product.shape[:-2], 1, product.shape[-1])


def products(input: Tensor, weight: Tensor) -> Tensor:
    """Of a linear map without a bias; in a population each member has its own weight."""
    if weight.ndim == 2:
        return functional.linear(input, weight)
    return cast(Tensor, Products.apply(input.flatten(1, -2), weight)).unflatten(1, input.shape[1:-1])


class Products(torch.autograd.Function):
    """One product a member. bmm's own gradient of the weights would come out transposed, and be copied."""

    @staticmethod
    def forward(ctx, input: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(input, weight)
        return torch.bmm(input, weight.mT)

    @staticmethod
    def backward(ctx, above: Tensor) -> tuple[Tensor, Tensor]:  # pyright: ignore[reportIncompatibleMethodOverride]
        input, weight = ctx.saved_tensors
        return torch.bmm(above, weight), torch.bmm(above.mT, input)


class Norm(nn.LayerNorm):
    """LayerNorm, for one network or for each member of a population."""

    idle: slice | None = None  # as that of `Linear`

    def forward(self, input: Tensor) -> Tensor:
        if self.weight.ndim == 1:
            return super().forward(input)
        scale, shift = (part[:, None, None] for part in (self.weight, self.bias))
        return self.normalize(input) * scale + shift

    def normalize(self, input: Tensor) -> Tensor:
        """Without scale and shift."""
        return functional.layer_norm(input, self.normalized_shape, eps=self.eps)


@torch.no_grad()
def draw_normal(parameter: Tensor, deviation: float, generator: torch.Generator) -> None:
    parameter.copy_(torch.randn(parameter.shape, generator=generator) * deviation)


def draw_linear(layer: nn.Linear, generator: torch.Generator, deviation: float | None = None) -> None:
    """Normal weights, by default of variance 1/inputs, and biases of zero."""
    draw_normal(layer.weight, deviation or 1 / math.sqrt(layer.in_features), generator)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)

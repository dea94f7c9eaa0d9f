"""The parts that networks are built of.

A network built of `Linear` and `Norm` also runs as a population: given parameters with a leading axis of members,
through `torch.func.functional_call`, and tokens [members, batch, length, inputs], each member is computed with its
own.
"""

import math
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from algoscope.models.kernels import deferred_grads

MOST_LAYERS = 10_000  # parts of a network, one after the other: more would take minutes just to build


class Linear(nn.Linear):
    """A linear map, for one network or for each member of a population, in the precision of its weights.

    `stacked` says how many independent maps it holds, one above the other. One that is `exact` stays in 32 bits, and
    with AdamW, also inside a block.
    """

    idle: slice | None = None  # the part of its bias that changes no answer: see `Network`

    def __init__(self, inputs: int, outputs: int, stacked: int = 1, exact: bool = False) -> None:
        super().__init__(inputs, outputs)
        self.stacked, self.exact = stacked, exact
        self.deferred_grads = False  # whether the gradients of its parameters are computed last (`TrainingNeeds`)

    def reset_parameters(self) -> None:
        """Left to `draw_linear`: torch would draw from the global random state."""

    def forward(self, input: Tensor, norm: "Norm | None" = None) -> Tensor:
        """With a norm: the map of the normalized input."""
        return biased(*self.terms(input, norm))

    def terms(self, input: Tensor, norm: "Norm | None" = None) -> tuple[Tensor, ...]:
        """The terms that `biased` sums: on a GPU product and bias, which are added where the map is used."""
        if self.weight.ndim == 2 and not input.is_cuda:
            input, weight, bias = self._after(norm, input)
            return (functional.linear(input.to(weight.dtype), weight, bias),)
        return self.product(input, norm)

    def product(self, input: Tensor, norm: "Norm | None" = None) -> tuple[Tensor, Tensor]:
        """The map without its bias, and the bias that is to be added."""
        input, weight, bias = self._after(norm, input)
        if self.deferred_grads:
            product = deferred_grads.product(input.to(weight.dtype).flatten(0, -2), weight, bias)
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
        """Input, weight and bias after the norm; only the weight is rounded. In a population scale and shift of the
        norm are folded into the weights, which are fewer than the tokens: W(s·x + t) + b = (W·s)x + (Wt + b). Torch has
        no norm with a scale for each member.
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
    """One product a member. The gradient of the weights that bmm itself gives is transposed, and would be copied."""

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
    if parameter.is_meta:  # it has a shape alone, and to draw for it would load the compiler, which takes seconds
        return
    parameter.copy_(torch.randn(parameter.shape, generator=generator) * deviation)


def draw_linear(layer: nn.Linear, generator: torch.Generator, deviation: float | None = None) -> None:
    """Normal weights, by default of variance 1/inputs, and biases of zero."""
    draw_normal(layer.weight, deviation or 1 / math.sqrt(layer.in_features), generator)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)

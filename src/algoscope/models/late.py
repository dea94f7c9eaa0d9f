"""Gradients of weights on a GPU, all at once when the backward pass is over.

Nothing on the way back waits for them, only the optimizer does, and those of one small layer do not fill a GPU: the
products of all layers together take half the time, and give the gradients of the biases, which are sums over the same
numbers, for little. So a layer only says what is to be multiplied, and `cut` does it. Nobody may look at such a
gradient before, which is so where a pass uses each parameter once (`Network.once`); and what was said must stay, so
compiled programs must not write into a buffer twice (`training/engine.py`).
"""

import importlib
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import torch
from jaxtyping import Float
from torch import Tensor

MOST = 64  # products of one launch
TILE = (128, 128, 64)  # outputs and inputs of a tile, and tokens at a time
WARPS, STAGES = 4, 3


class Waiting(NamedTuple):
    """aboveᵀ·input is to be written to `weight`, and the sums of `above` over tokens to `bias`."""

    above: Float[Tensor, "tokens outputs"]
    input: Float[Tensor, "tokens inputs"]
    weight: Float[Tensor, "outputs inputs"]
    bias: Float[Tensor, "outputs"]


_waiting: list[Waiting] = []


def product(
    input: Float[Tensor, "tokens inputs"], weight: Float[Tensor, "outputs inputs"], bias: Float[Tensor, "outputs"]
) -> Float[Tensor, "tokens outputs"]:
    """Of a linear map, without its bias, but with its gradient: add it where it has none."""
    return cast(Tensor, Product.apply(input, weight, bias))


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(input, weight)
        return input @ weight.mT

    @staticmethod
    def backward(ctx, above: Tensor) -> tuple[Tensor, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        input, weight = ctx.saved_tensors
        return above @ weight, *_promise(above, input)


@torch.library.custom_op("algoscope::late_gradients", mutates_args=())
def _promise(above: Tensor, input: Tensor) -> tuple[Tensor, Tensor]:
    """Of weight and bias; they are there when `finish` has been called."""
    _waiting.append(Waiting(above.contiguous(), input.contiguous(), *_gradients(above, input)))
    return _waiting[-1].weight, _waiting[-1].bias


@_promise.register_fake
def _gradients(above: Tensor, input: Tensor) -> tuple[Tensor, Tensor]:
    outputs, inputs = above.shape[-1], input.shape[-1]
    return above.new_empty(outputs, inputs), above.new_empty(outputs)


def cut(rows: Float[Tensor, "members numbers"], sizes: Sequence[int]) -> Sequence[Tensor]:
    """Parts of rows of parameters, whose gradients are put together when all of them are there."""
    return cast(Sequence[Tensor], Cut.apply(rows, sizes)) if rows.is_cuda else rows.split(list(sizes), dim=1)


class Cut(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows: Tensor, sizes: Sequence[int]) -> tuple[Tensor, ...]:
        return rows.split(list(sizes), dim=1)

    @staticmethod
    def backward(ctx, *above: Tensor) -> tuple[Tensor, None]:
        finish()
        return torch.cat(above, dim=1), None


def finish() -> None:
    """All that is waiting."""
    while _waiting:
        multiply(_waiting[:MOST])
        del _waiting[:MOST]


def multiply(products: Sequence[Waiting]) -> None:
    """In one launch. The kernel finds tensors by their distance from the first, and its product by its first tile."""
    base, tiles, starts = products[0].above, 0, []
    for each in products:
        starts.append(tiles)
        tiles += -(-each.weight.shape[0] // TILE[0]) * -(-each.weight.shape[1] // TILE[1])
    places = [tuple((part.data_ptr() - base.data_ptr()) // base.element_size() for part in parts)
              for parts in zip(*products, strict=True)]  # fmt: skip
    sizes = zip(*((len(each.above), *each.weight.shape) for each in products), strict=True)
    _kernels().products[(tiles,)](
        base, *places, tuple(starts), *sizes, len(products), *TILE, num_warps=WARPS, num_stages=STAGES
    )


def _kernels() -> Any:
    """Imported on first use: triton comes with PyTorch for GPUs only."""
    return importlib.import_module("algoscope.models.late_kernels")

"""Gradients of weights on a GPU, all at once when the backward pass is over.

Nothing on the way back waits for them, only the optimizer does, and those of one small layer do not fill a GPU: the
products of all layers together take two thirds of the time, and give the gradients of the biases, which are sums over
the same numbers, for little. So a layer promises its gradients, tensors that are still empty, and says what is to be
multiplied; `Cut`, through which all gradients go at the end, keeps the promises.

Nobody may look at such a gradient before. That is so where a pass uses each parameter once (`Network.once`), and `Cut`
refuses gradients that are not those which were promised. What is to be multiplied must stay as it is until then, so
compiled programs must not write into a buffer twice (`training/engine.py`).
"""

import importlib
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import torch
from jaxtyping import Float
from torch import Tensor

MOST = 64  # products of one launch: a kernel takes 4 KB of arguments, these have seven numbers each
TILE = (128, 128, 64)  # outputs and inputs of a tile, and tokens at a time
WARPS, STAGES = 4, 3


class Waiting(NamedTuple):
    """aboveᵀ·input is to be written to `weight`, and the sums of `above` over tokens to `bias`.

    `above` is the gradient of what a layer has given, `input` what it was given.
    """

    above: Float[Tensor, "tokens outputs"]
    input: Float[Tensor, "tokens inputs"]
    weight: Float[Tensor, "outputs inputs"]
    bias: Float[Tensor, "outputs"]


_waiting: defaultdict[torch.device, list[Waiting]] = defaultdict(list)


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
    """The gradients of weight and bias, still empty."""
    promised = Waiting(above.contiguous(), input.contiguous(), *_empty(above, input))
    _waiting[above.device].append(promised)
    return promised.weight, promised.bias


@_promise.register_fake
def _empty(above: Tensor, input: Tensor) -> tuple[Tensor, Tensor]:
    outputs, inputs = above.shape[-1], input.shape[-1]
    return above.new_empty(outputs, inputs), above.new_empty(outputs)


class Cut(torch.autograd.Function):
    """A row of parameters cut into parts of given sizes; gradients are put together when all that wait are there."""

    @staticmethod
    def forward(ctx, rows: Float[Tensor, "members numbers"], sizes: Sequence[int]) -> tuple[Tensor, ...]:
        _waiting.pop(rows.device, None)  # of a pass that has failed
        return rows.split(list(sizes), dim=1)

    @staticmethod
    def backward(ctx, *above: Tensor) -> tuple[Tensor, None]:
        promised = _waiting.pop(above[0].device, [])
        given = {part.data_ptr() for part in above}
        if not all(each.weight.data_ptr() in given and each.bias.data_ptr() in given for each in promised):
            raise RuntimeError("a gradient was used before it was there: a network with `once` used a weight twice")
        for start in range(0, len(promised), MOST):
            multiply(promised[start : start + MOST])
        return torch.cat(above, dim=1), None


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

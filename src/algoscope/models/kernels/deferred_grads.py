"""Deferred gradients of weights on a GPU: all are computed at once, when the backward pass is over.

Only the optimizer needs these gradients, and those of one small layer do not fill a GPU. The products of all layers
together take two thirds of the time, and yield the gradients of the biases, sums over the same numbers, almost for
free. So in the backward pass a layer returns empty tensors and queues the product that fills them; `Cut`, through which
all gradients pass at the end, runs the queue.

Nothing may read such a gradient before. That holds where a pass uses each parameter once
(`TrainingNeeds.deferred_weight_grads`), and `Cut` refuses gradients other than those in the queue. The factors of a
queued product must not be overwritten, so compiled programs must not reuse buffers (`own_buffers`).
"""

import contextlib
import importlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

import torch
from jaxtyping import Float
from torch import Tensor

MOST = 64  # products of one launch: a kernel takes 4 KB of arguments, these have seven numbers each
TILE = (128, 128, 64)  # outputs and inputs of a tile, and tokens at a time
WARPS, STAGES = 4, 3


class Deferred(NamedTuple):
    """A queued product: aboveᵀ·input goes to `weight`, and the sums of `above` over tokens to `bias`.

    `input` is the input of a layer and `above` the gradient of its output.
    """

    above: Float[Tensor, "tokens outputs"]
    input: Float[Tensor, "tokens inputs"]
    weight: Float[Tensor, "outputs inputs"]
    bias: Float[Tensor, "outputs"]


_queue: defaultdict[torch.device, list[Deferred]] = defaultdict(list)


def product(
    input: Float[Tensor, "tokens inputs"], weight: Float[Tensor, "outputs inputs"], bias: Float[Tensor, "outputs"]
) -> Float[Tensor, "tokens outputs"]:
    """A linear map without its bias, but with the gradient of the bias: add a detached bias to it."""
    return cast(Tensor, Product.apply(input, weight, bias))


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(input, weight)
        return input @ weight.mT

    @staticmethod
    def backward(ctx, above: Tensor) -> tuple[Tensor, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        input, weight = ctx.saved_tensors
        return above @ weight, *_defer(above, input)


@torch.library.custom_op("algoscope::deferred_weight_grads", mutates_args=())
def _defer(above: Tensor, input: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of weight and bias, still empty."""
    deferred = Deferred(above.contiguous(), input.contiguous(), *_empty(above, input))
    _queue[above.device].append(deferred)
    return deferred.weight, deferred.bias


@_defer.register_fake
def _empty(above: Tensor, input: Tensor) -> tuple[Tensor, Tensor]:
    outputs, inputs = above.shape[-1], input.shape[-1]
    return above.new_empty(outputs, inputs), above.new_empty(outputs)


class Cut(torch.autograd.Function):
    """A row of parameters cut into parts of given sizes; its backward pass first runs all queued products."""

    @staticmethod
    def forward(ctx, rows: Float[Tensor, "members numbers"], sizes: Sequence[int]) -> tuple[Tensor, ...]:
        _queue.pop(rows.device, None)  # of a pass that has failed
        return rows.split(list(sizes), dim=1)

    @staticmethod
    def backward(ctx, *above: Tensor) -> tuple[Tensor, None]:
        queued = _queue.pop(above[0].device, [])
        given = {part.data_ptr() for part in above}
        if not all(each.weight.data_ptr() in given and each.bias.data_ptr() in given for each in queued):
            raise RuntimeError("a deferred gradient was read too early: a pass used a weight twice")
        for start in range(0, len(queued), MOST):
            multiply(queued[start : start + MOST])
        return torch.cat(above, dim=1), None


def multiply(products: Sequence[Deferred]) -> None:
    """Runs products in one launch.

    The kernel finds tensors by their distance from the first, and its product by its first tile.
    """
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


@contextlib.contextmanager
def own_buffers() -> Iterator[None]:
    """What is compiled within it gives each result a buffer of its own, so that factors of queued products survive."""
    from torch._inductor import config  # it takes seconds

    with config.patch(allow_buffer_reuse=False, inplace_buffers=False):
        yield


def _kernels() -> Any:
    """Imported on first use: triton comes with PyTorch for GPUs only."""
    return importlib.import_module("algoscope.models.kernels.deferred_grads_kernels")

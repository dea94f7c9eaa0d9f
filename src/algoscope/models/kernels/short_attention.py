"""Softmax attention for short sequences of 16-bit numbers on a GPU.

A head of a short sequence is little work: general kernels spend their time on copies of queries, keys and values, on
tiles that are mostly padding, and on waiting. Here one kernel makes the forward pass and one the backward pass, in
small tiles, and both read and write queries, keys and values as the linear layer around them lays them out. They also
add the bias of that layer, which for a population would be one more pass over memory.
"""

import importlib
import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

LONGEST = 256  # beyond it, kernels that prefetch are faster
HEAD_WIDTHS = (16, 32, 64)
TILE = 32  # tokens; with these warps the fastest at 81 tokens and heads of 32 (docs/log.md)
FORWARD_WARPS, BACKWARD_WARPS = 1, 1


def fits(weight: Tensor, length: int, head_width: int) -> bool:
    return weight.is_cuda and weight.dtype == torch.bfloat16 and length <= LONGEST and head_width in HEAD_WIDTHS


def attend(
    parts: Float[Tensor, "sequences length 3 heads width"], bias: Float[Tensor, "members 3 heads width"], reach: int
) -> Float[Tensor, "sequences length heads width"]:
    """What scaled_dot_product_attention computes of parts + bias, in the layout of the linear layers around it. Each
    member has a bias, or each sequence.

    A token sees itself and the `reach` − 1 tokens before it; 0: all tokens.
    """
    return _attend(parts.contiguous(), bias.contiguous(), reach)[0]


@torch.library.custom_op("algoscope::short_attention", mutates_args=())
def _attend(parts: Tensor, bias: Tensor, reach: int) -> tuple[Tensor, Tensor]:
    mixed, sums = _results(parts, bias, reach)
    _kernels().attention_forward[_grid(parts)](
        parts, bias, mixed, sums, *_sizes(parts, bias, reach), num_warps=FORWARD_WARPS
    )
    return mixed, sums


@_attend.register_fake
def _results(parts: Tensor, bias: Tensor, reach: int) -> tuple[Tensor, Tensor]:
    """What each token has gathered, and the logarithm of what its softmax was divided by."""
    sequences, length, _, heads, width = parts.shape
    mixed = parts.new_empty(sequences, length, heads, width)
    return mixed, parts.new_empty(sequences, heads, length, dtype=torch.float32)


@torch.library.custom_op("algoscope::short_attention_backward", mutates_args=())
def _attend_backward(
    parts: Tensor, bias: Tensor, means: Tensor, sums: Tensor, above: Tensor, reach: int
) -> tuple[Tensor, Tensor]:
    gradient, tile_sums = _gradients(parts, bias, means, sums, above, reach)
    tensors, sizes = (parts, bias, means, sums, above, gradient, tile_sums), _sizes(parts, bias, reach)
    _kernels().attention_backward[_grid(parts)](*tensors, *sizes, num_warps=BACKWARD_WARPS)
    return gradient, tile_sums


@_attend_backward.register_fake
def _gradients(
    parts: Tensor, bias: Tensor, means: Tensor, sums: Tensor, above: Tensor, reach: int
) -> tuple[Tensor, Tensor]:
    """The gradient of the parts, and its sums over each tile of tokens."""
    sequences, _, *split = parts.shape
    return torch.empty_like(parts), parts.new_empty(sequences, _grid(parts)[1], *split, dtype=torch.float32)


def _remember(ctx, inputs: tuple[Tensor, Tensor, int], output: tuple[Tensor, Tensor]) -> None:
    parts, bias, ctx.reach = inputs
    ctx.save_for_backward(parts, bias, *output)


def _differentiate(ctx, above: Tensor, _: Tensor) -> tuple[Tensor, Tensor, None]:
    parts, bias, mixed, sums = ctx.saved_tensors
    gradient, tile_sums = _attend_backward(parts, bias, means(mixed, above), sums, above.contiguous(), ctx.reach)
    return gradient, tile_sums.view(len(bias), -1, *bias.shape[1:]).sum(1).to(bias.dtype), None


def means(
    mixed: Float[Tensor, "sequences length heads width"], above: Float[Tensor, "sequences length heads width"]
) -> Float[Tensor, "sequences heads length"]:
    """Of the gradients of a token's weights: what they have in common, and the softmax takes away."""
    return (above.float() * mixed.float()).sum(-1).transpose(1, 2).contiguous()


_attend.register_autograd(_differentiate, setup_context=_remember)


def _kernels() -> Any:
    """Imported on first use: triton comes with PyTorch for GPUs only."""
    return importlib.import_module("algoscope.models.kernels.short_attention_kernels")


def _grid(parts: Tensor) -> tuple[int, int]:
    """A block of threads for each tile of each head of each sequence."""
    return parts.shape[0] * parts.shape[3], -(-parts.shape[1] // TILE)


def _sizes(parts: Tensor, bias: Tensor, reach: int) -> tuple[int, int, float, int, int, int, int, bool]:
    """Tokens of a sequence, sequences of a member, scale of the scores, heads, width, tokens of a tile; how many tokens
    a token sees, and whether these may be fewer than there are before it.
    """
    sequences, length, _, heads, width = parts.shape
    scale = 1 / (math.log(2) * math.sqrt(width))
    return length, sequences // len(bias), scale, heads, width, TILE, reach, 0 < reach < length

"""Softmax attention for short sequences of 16-bit numbers on a GPU.

With at most `LONGEST` tokens a whole head fits into one block of threads. So one kernel makes the forward pass and
one the backward pass, which computes the weights again instead of storing anything, and both read and write queries,
keys and values as the linear layer lays them out. General kernels tile over the sequence, keep statistics, and need
copies of all three.
"""

import importlib
import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

LONGEST = 128
HEAD_WIDTHS = (16, 32, 64)
WARPS = 4  # fastest of 2, 4 and 8 at 81 tokens and heads of 32 (docs/log.md)


def fits(parts: Float[Tensor, "sequences length 3 heads width"]) -> bool:
    short = parts.shape[1] <= LONGEST and parts.shape[-1] in HEAD_WIDTHS
    return parts.is_cuda and parts.dtype == torch.bfloat16 and short


def attend(
    parts: Float[Tensor, "sequences length 3 heads width"], causal: bool
) -> Float[Tensor, "sequences length heads width"]:
    """What scaled_dot_product_attention computes, in the layout of the linear layers around it."""
    return _attend(parts.contiguous(), causal)


@torch.library.custom_op("algoscope::short_attention", mutates_args=())
def _attend(parts: Tensor, causal: bool) -> Tensor:
    mixed = torch.empty_like(parts[:, :, 0], memory_format=torch.contiguous_format)
    _kernels().forward[_grid(parts)](parts, mixed, *_sizes(parts), CAUSAL=causal, num_warps=WARPS)
    return mixed


@torch.library.custom_op("algoscope::short_attention_backward", mutates_args=())
def _attend_backward(parts: Tensor, above: Tensor, causal: bool) -> Tensor:
    gradient = torch.empty_like(parts)
    _kernels().backward[_grid(parts)](parts, above, gradient, *_sizes(parts), CAUSAL=causal, num_warps=WARPS)
    return gradient


def _kernels() -> Any:
    """Imported on first use: triton comes with PyTorch for GPUs only."""
    return importlib.import_module("algoscope.models.short_attention_kernels")


def _grid(parts: Tensor) -> tuple[int]:
    return (parts.shape[0] * parts.shape[3],)  # one block of threads for each head of each sequence


def _sizes(parts: Tensor) -> tuple[int, float, int, int, int]:
    """Length, scale, heads, width, and the power of two that holds the length."""
    _, length, _, heads, width = parts.shape
    return length, 1 / math.sqrt(width), heads, width, max(16, 1 << (length - 1).bit_length())


@_attend.register_fake
def _(parts: Tensor, causal: bool) -> Tensor:
    sequences, length, _, heads, width = parts.shape
    return parts.new_empty(sequences, length, heads, width)


@_attend_backward.register_fake
def _(parts: Tensor, above: Tensor, causal: bool) -> Tensor:
    return torch.empty_like(parts)


def _remember(ctx, inputs: tuple[Tensor, bool], output: Tensor) -> None:
    parts, ctx.causal = inputs
    ctx.save_for_backward(parts)


def _differentiate(ctx, above: Tensor) -> tuple[Tensor, None]:
    (parts,) = ctx.saved_tensors
    return _attend_backward(parts, above.contiguous(), ctx.causal), None


_attend.register_autograd(_differentiate, setup_context=_remember)

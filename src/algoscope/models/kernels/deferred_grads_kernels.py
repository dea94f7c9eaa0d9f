"""The kernel of deferred_grads.py. Triton comes with PyTorch for GPUs, so this file is imported there only."""

import triton
import triton.language as tl


@triton.jit
def load(base, first, columns, tokens, width, DEPTH: tl.constexpr):
    """A block of tokens, beginning with the first, and some of their columns."""
    rows = (first + tl.arange(0, DEPTH)).to(tl.int64)
    inside = (rows[:, None] < tokens) & (columns[None, :] < width)
    return tl.load(base + rows[:, None] * width + columns[None, :], mask=inside, other=0.0)


@triton.jit
def products(
    base, aboves, inputs, weights, biases, starts, tokens, rows, columns,
    COUNT: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """One tile of one of the products aboveᵀ·input; tiles at its left edge also sum `above`."""
    tile = tl.program_id(0)
    above, input, weight, bias = aboves[0], inputs[0].to(tl.int64), weights[0].to(tl.int64), biases[0].to(tl.int64)
    above, start, length, m, n = above.to(tl.int64), starts[0], tokens[0], rows[0], columns[0]
    for i in tl.static_range(1, COUNT):
        here = tile >= starts[i]
        above, input = tl.where(here, aboves[i], above), tl.where(here, inputs[i], input)
        weight, bias = tl.where(here, weights[i], weight), tl.where(here, biases[i], bias)
        start, length = tl.where(here, starts[i], start), tl.where(here, tokens[i], length)
        m, n = tl.where(here, rows[i], m), tl.where(here, columns[i], n)
    across = tl.cdiv(n, WIDTH)
    down, right = (tile - start) // across, (tile - start) % across
    own, other = down * HEIGHT + tl.arange(0, HEIGHT), right * WIDTH + tl.arange(0, WIDTH)
    result = tl.zeros([HEIGHT, WIDTH], tl.float32)
    if right == 0:
        total = tl.zeros([HEIGHT], tl.float32)
        for first in range(0, length, DEPTH):
            a = load(base + above, first, own, length, m, DEPTH)
            result = tl.dot(tl.trans(a), load(base + input, first, other, length, n, DEPTH), result)
            total += tl.sum(a.to(tl.float32), axis=0)
        tl.store(base + bias + own, total.to(base.dtype.element_ty), mask=own < m)
    else:
        for first in range(0, length, DEPTH):
            a = load(base + above, first, own, length, m, DEPTH)
            result = tl.dot(tl.trans(a), load(base + input, first, other, length, n, DEPTH), result)
    place = base + weight + own[:, None] * n + other[None, :]
    tl.store(place, result.to(base.dtype.element_ty), mask=(own[:, None] < m) & (other[None, :] < n))

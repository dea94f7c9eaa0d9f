"""The kernels of short_attention.py. Triton comes with PyTorch for GPUs, so this file is imported there only."""

import triton
import triton.language as tl


@triton.jit
def load(base, rows, columns, length, stride):
    return tl.load(base + rows[:, None] * stride + columns[None, :], mask=rows[:, None] < length, other=0.0)


@triton.jit
def weights(q, k, rows, length, scale, CAUSAL: tl.constexpr):
    scores = tl.dot(q, tl.trans(k)) * scale
    visible = rows[None, :] < length
    if CAUSAL:
        visible = visible & (rows[None, :] <= rows[:, None])
    scores = tl.where(visible, scores, float("-inf"))
    exponentials = tl.exp(scores - tl.max(scores, axis=1)[:, None])
    return exponentials / tl.sum(exponentials, axis=1)[:, None]


@triton.jit
def forward(
    parts, mixed, length, scale,
    HEADS: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    sequence, head = tl.program_id(0) // HEADS, tl.program_id(0) % HEADS
    rows, columns, stride = tl.arange(0, BLOCK), tl.arange(0, WIDTH), HEADS * WIDTH
    base = parts + sequence.to(tl.int64) * length * 3 * stride + head * WIDTH
    q = load(base, rows, columns, length, 3 * stride)
    k = load(base + stride, rows, columns, length, 3 * stride)
    v = load(base + 2 * stride, rows, columns, length, 3 * stride)
    p = weights(q, k, rows, length, scale, CAUSAL)
    result = tl.dot(p.to(v.dtype), v)
    place = mixed + sequence.to(tl.int64) * length * stride + head * WIDTH
    place = place + rows[:, None] * stride + columns[None, :]
    tl.store(place, result.to(v.dtype), mask=rows[:, None] < length)


@triton.jit
def backward(
    parts, above, gradient, length, scale,
    HEADS: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    sequence, head = tl.program_id(0) // HEADS, tl.program_id(0) % HEADS
    rows, columns, stride = tl.arange(0, BLOCK), tl.arange(0, WIDTH), HEADS * WIDTH
    start = sequence.to(tl.int64) * length * 3 * stride + head * WIDTH
    base = parts + start
    q = load(base, rows, columns, length, 3 * stride)
    k = load(base + stride, rows, columns, length, 3 * stride)
    v = load(base + 2 * stride, rows, columns, length, 3 * stride)
    d = load(above + sequence.to(tl.int64) * length * stride + head * WIDTH, rows, columns, length, stride)
    p = weights(q, k, rows, length, scale, CAUSAL)
    dv = tl.dot(tl.trans(p.to(v.dtype)), d)
    dp = tl.dot(d, tl.trans(v))
    ds = (p * (dp - tl.sum(p * dp, axis=1)[:, None]) * scale).to(v.dtype)
    dq = tl.dot(ds, k)
    dk = tl.dot(tl.trans(ds), q)
    place = gradient + start + rows[:, None] * (3 * stride) + columns[None, :]
    inside = rows[:, None] < length
    tl.store(place, dq.to(v.dtype), mask=inside)
    tl.store(place + stride, dk.to(v.dtype), mask=inside)
    tl.store(place + 2 * stride, dv.to(v.dtype), mask=inside)

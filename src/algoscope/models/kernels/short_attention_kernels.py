"""The kernels of short_attention.py. Triton comes with PyTorch for GPUs, so this file is imported there only.

A block of threads owns one tile of tokens of one head of one sequence. Scores are counted in units of log 2, for exp2.
A token sees itself and the REACH − 1 tokens before it, or all tokens where REACH is 0.
"""

import triton
import triton.language as tl

LOG_2 = tl.constexpr(0.6931471805599453)


@triton.jit
def load(base, rows, columns, length, stride):
    return tl.load(base + rows[:, None] * stride + columns[None, :], mask=rows[:, None] < length, other=0.0)


@triton.jit
def load_biased(base, bias, rows, columns, length, stride):
    """A bias in 32 bits is added before anything is rounded."""
    biased = load(base, rows, columns, length, stride) + tl.load(bias + columns)[None, :]
    return biased.to(base.dtype.element_ty)


@triton.jit
def store(base, values, rows, columns, length, stride):
    place = base + rows[:, None] * stride + columns[None, :]
    tl.store(place, values.to(base.dtype.element_ty), mask=rows[:, None] < length)


@triton.jit
def visible(queries, keys, length, REACH: tl.constexpr, WINDOW: tl.constexpr):
    """What queries beyond the last token see is never used, and no other query sees a key behind itself."""
    if WINDOW:
        return (keys <= queries) & (queries - keys < REACH)
    return keys <= queries if REACH > 0 else (keys < length) & (queries >= 0)


@triton.jit
def only_seen(p, queries, keys, length, diagonal, REACH: tl.constexpr, WINDOW: tl.constexpr):
    """Weights of what is visible. Tiles beside the diagonal are, where all that lies before a token is."""
    if WINDOW or REACH == 0 or diagonal:
        p = tl.where(visible(queries, keys, length, REACH, WINDOW), p, 0.0)
    return p


@triton.jit
def first_seen(tile, TILE: tl.constexpr, REACH: tl.constexpr):
    """The first tile of keys that some query of a tile sees."""
    return tl.maximum(tile * TILE - REACH + 1, 0) // TILE if REACH > 0 else 0


@triton.jit
def end_of_seeing(tile, tiles, TILE: tl.constexpr, REACH: tl.constexpr):
    """The first tile of queries, after that of the keys, that sees none of them any more."""
    return tl.minimum(((tile + 1) * TILE + REACH - 2) // TILE + 1, tiles) if REACH > 0 else tiles


@triton.jit
def places(length, sequences, HEADS: tl.constexpr, WIDTH: tl.constexpr):
    """Where a head begins in tensors of one part, in those of three, and in the biases of its member."""
    sequence, head = (tl.program_id(0) // HEADS).to(tl.int64), tl.program_id(0) % HEADS
    one = sequence * length * HEADS * WIDTH + head * WIDTH
    three = 3 * sequence * length * HEADS * WIDTH + head * WIDTH
    return one, three, 3 * (sequence // sequences) * HEADS * WIDTH + head * WIDTH


@triton.jit
def attention_forward(
    parts, bias, mixed, sums, length, sequences, scale,
    HEADS: tl.constexpr, WIDTH: tl.constexpr, TILE: tl.constexpr, REACH: tl.constexpr, WINDOW: tl.constexpr,
):  # fmt: skip
    """A tile of queries meets one tile of keys after another, with the softmax renewed on the way."""
    tile, tiles = tl.program_id(1), tl.num_programs(1)
    local, columns, stride = tl.arange(0, TILE), tl.arange(0, WIDTH), HEADS * WIDTH
    one, three, shift = places(length, sequences, HEADS, WIDTH)
    base, shift = parts + three, bias + shift
    rows = tile * TILE + local
    q = load_biased(base, shift, rows, columns, length, 3 * stride)
    largest = tl.full([TILE], -1e30, tl.float32)
    total = tl.zeros([TILE], tl.float32)
    result = tl.zeros([TILE, WIDTH], tl.float32)
    for other in range(first_seen(tile, TILE, REACH), tile + 1 if REACH > 0 else tiles):
        keys = other * TILE + local
        k = load_biased(base + stride, shift + stride, keys, columns, length, 3 * stride)
        v = load_biased(base + 2 * stride, shift + 2 * stride, keys, columns, length, 3 * stride)
        scores = tl.dot(q, tl.trans(k)) * scale
        scores = tl.where(visible(rows[:, None], keys[None, :], length, REACH, WINDOW), scores, -1e30)
        larger = tl.maximum(largest, tl.max(scores, axis=1))
        p = tl.exp2(scores - larger[:, None])
        shrink = tl.exp2(largest - larger)
        total = total * shrink + tl.sum(p, axis=1)
        result = result * shrink[:, None] + tl.dot(p.to(v.dtype), v)
        largest = larger
    store(mixed + one, result / total[:, None], rows, columns, length, stride)
    tl.store(sums + tl.program_id(0) * length + rows, largest + tl.log2(total), mask=rows < length)


@triton.jit
def attention_backward(
    parts, bias, means, sums, above, gradient, tile_sums, length, sequences, scale,
    HEADS: tl.constexpr, WIDTH: tl.constexpr, TILE: tl.constexpr, REACH: tl.constexpr, WINDOW: tl.constexpr,
):  # fmt: skip
    """Gradients of a tile's queries, then of its keys and values, and their sums over the tile, for the bias.

    The weights are computed twice, so that no two blocks add to one number: the result does not depend on their order.
    """
    tile, tiles = tl.program_id(1), tl.num_programs(1)
    local, columns, stride = tl.arange(0, TILE), tl.arange(0, WIDTH), HEADS * WIDTH
    one, three, shift = places(length, sequences, HEADS, WIDTH)
    base, place, shift = parts + three, gradient + three, bias + shift
    above, means, sums = above + one, means + tl.program_id(0) * length, sums + tl.program_id(0) * length
    rows = tile * TILE + local
    q = load_biased(base, shift, rows, columns, length, 3 * stride)
    d = load(above, rows, columns, length, stride)
    mean = tl.load(means + rows, mask=rows < length, other=0.0)
    norm = tl.load(sums + rows, mask=rows < length, other=float("inf"))
    dq = tl.zeros([TILE, WIDTH], tl.float32)
    for other in range(first_seen(tile, TILE, REACH), tile + 1 if REACH > 0 else tiles):
        keys = other * TILE + local
        k = load_biased(base + stride, shift + stride, keys, columns, length, 3 * stride)
        v = load_biased(base + 2 * stride, shift + 2 * stride, keys, columns, length, 3 * stride)
        p = tl.exp2(tl.dot(q, tl.trans(k)) * scale - norm[:, None])
        p = only_seen(p, rows[:, None], keys[None, :], length, other == tile, REACH, WINDOW)
        ds = p * (tl.dot(d, tl.trans(v)) - mean[:, None])
        dq += tl.dot(ds.to(q.dtype), k)
    tile_sums += 3 * stride * (tl.program_id(0) // HEADS * tiles + tile) + tl.program_id(0) % HEADS * WIDTH + columns
    dq = dq * (scale * LOG_2)
    store(place, dq, rows, columns, length, 3 * stride)
    tl.store(tile_sums, tl.sum(dq, axis=0))
    k = load_biased(base + stride, shift + stride, rows, columns, length, 3 * stride)
    v = load_biased(base + 2 * stride, shift + 2 * stride, rows, columns, length, 3 * stride)
    dk, dv = tl.zeros([TILE, WIDTH], tl.float32), tl.zeros([TILE, WIDTH], tl.float32)
    for other in range(tile if REACH > 0 else 0, end_of_seeing(tile, tiles, TILE, REACH)):
        queries = other * TILE + local
        q = load_biased(base, shift, queries, columns, length, 3 * stride)
        d = load(above, queries, columns, length, stride)
        mean = tl.load(means + queries, mask=queries < length, other=0.0)
        norm = tl.load(sums + queries, mask=queries < length, other=float("inf"))
        p = tl.exp2(tl.dot(k, tl.trans(q)) * scale - norm[None, :])
        p = only_seen(p, queries[None, :], rows[:, None], length, other == tile, REACH, WINDOW)
        dv += tl.dot(p.to(v.dtype), d)
        ds = p * (tl.dot(v, tl.trans(d)) - mean[None, :])
        dk += tl.dot(ds.to(q.dtype), q)
    dk = dk * (scale * LOG_2)
    store(place + stride, dk, rows, columns, length, 3 * stride)
    store(place + 2 * stride, dv, rows, columns, length, 3 * stride)
    tl.store(tile_sums + stride, tl.sum(dk, axis=0))
    tl.store(tile_sums + 2 * stride, tl.sum(dv, axis=0))

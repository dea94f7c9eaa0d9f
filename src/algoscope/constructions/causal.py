"""Iterative Newton for every prefix at once: a causal transformer, which both papers leave open.

In the encoder of Theorem 1 all tokens share one S, so each need only hold M x. In a decoder every prefix t has its own
S_t and M_t, and what token i holds is made with M_i: token t cannot use it. So a token holds its own S and M, of d²
numbers each, and multiplies matrices by itself, with d³ products of two entries in a bilinear MLP. Attention, ReLU/n,
only brings an example together, at the token of its y, and sums over the examples seen.

Width 4d² + 5d + 14, d³ + O(d²) units in an MLP, 2k + 4 layers for k steps; exact.
"""

import itertools
from collections.abc import Iterable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from algoscope import arguments
from algoscope.constructions.anatomy import name_places
from algoscope.constructions.newton import check_sizes
from algoscope.constructions.stream import Stream, clear, of_places, one, write_head
from algoscope.models import Transformer
from algoscope.models.transformer import Mlp, TransformerNetwork
from algoscope.tasks import LinearRegression


class Product(NamedTuple):
    """Coordinate `to` of the stream is changed by factor times the product of two others."""

    to: int
    left: int
    right: int
    factor: float = 1.0


def causal_newton(dim: int, examples: int, steps: int, alpha: float) -> TransformerNetwork:
    """k steps of Iterative Newton from M_0 = αS_t on every prefix t of the examples, in float64.

    Layer 1 brings examples together, layer 2 sums and starts; then a step takes two layers, M ← 2M − M(SM), and two
    more the prediction x·M Xᵀy. The place `prediction` holds step m after layer 2m + 4.
    """
    check_sizes(dim, examples, steps)
    arguments.number("alpha", alpha, strict=True)
    task, square = LinearRegression(dim=dim, examples=examples), dim * dim
    stream = _stream(dim)
    layers = [*_layers(dim, stream, steps, alpha)]
    units, heads = max(map(len, layers)), 2
    size = max(-(-stream.width // heads), square + dim)  # of a head: one carries x xᵀ and x y together
    model = Transformer(
        layers=len(layers), heads=heads, width=heads * size, mlp_ratio=units / (heads * size),
        activation="bilinear", attention="relu", mask="causal", norm="none", positions="given",
    )  # fmt: skip
    network = model.build(task.inputs, task.outputs, task.length, torch.Generator()).double().eval()
    clear(network)
    network.give_positions(_positions(task, stream, heads * size))
    name_places(network, stream.places, whole=False)
    with torch.no_grad():
        network.read_in.weight[stream["token"]] = one(dim)
        network.read_out.weight[:, stream["prediction"]] = 1.0
    first, second, *_ = network.blocks
    found, seen = {"place": one(3)}, {"label": one(1)}
    write_head(first, 0, stream, {"gather": one(3)}, found, {"token": one(dim)}, {"x": one(dim)})
    write_head(first, 1, stream, {"own": one(3)}, found, {"token": one(dim)[:1]}, {"y": one(1)})
    both = one(square + dim)
    carried, put = ({"outer": both[:, :square], "xy": both[:, square:]}, {"s": both[:square], "b": both[square:]})
    write_head(second, 0, stream, {"count": one(1)}, seen, carried, put)
    for block, products in zip(network.blocks, layers, strict=True):
        _write_products(block, products)
    return network


def _stream(dim: int) -> Stream:
    square = dim * dim
    return Stream(
        token=(dim, "the token as it is given"),
        x=(dim, "x, at its token and at that of its y"),
        y=(1, "y, at its token"),
        outer=(square, "x xᵀ"),
        xy=(dim, "x y"),
        s=(square, "S, the sum of x xᵀ over the examples seen"),
        b=(dim, "Xᵀy"),
        m=(square, "M"),
        sm=(square, "S M, for one layer"),
        w=(dim, "M Xᵀy, for one layer"),
        prediction=(1, "the prediction, which is read out"),
        one=(1, "1"),
        place=(3, "the place j of a token, as (j, j², 1)"),
        gather=(3, "what to ask to find x"),
        own=(3, "what a y asks to find itself"),
        count=(1, "at the tokens of x: how many tokens are seen"),
        label=(1, "1 at the tokens of y"),
    )


def _layers(dim: int, stream: Stream, steps: int, alpha: float) -> Iterable[list[Product]]:
    """What the MLP of each layer multiplies."""
    where = {name: range(stream[name].start, stream[name].stop) for name in stream.places}
    unit, entries = where["one"][0], list(itertools.product(range(dim), repeat=2))

    def entry(name: str, a: int, b: int) -> int:
        return where[name][a * dim + b]

    def cleared(name: str) -> list[Product]:
        return [Product(k, k, unit, -1.0) for k in where[name]]

    def product(to: str, left: str, right: str, factor: float = 1.0) -> list[Product]:
        triples = itertools.product(range(dim), repeat=3)
        return [Product(entry(to, a, c), entry(left, a, b), entry(right, b, c), factor) for a, b, c in triples]

    outer = [Product(entry("outer", a, b), where["x"][a], where["x"][b]) for a, b in entries]
    yield outer + [Product(where["xy"][a], where["x"][a], where["y"][0]) for a in range(dim)]
    yield [Product(where["m"][k], where["s"][k], unit, alpha) for k in range(dim * dim)]
    for _ in range(steps + 1):
        weights = [Product(where["w"][a], entry("m", a, b), where["b"][b]) for a, b in entries]
        yield product("sm", "s", "m") + weights
        predicted = cleared("prediction") + [Product(where["prediction"][0], w, x) for w, x in _pairs(where)]
        doubled = [Product(k, k, unit, 1.0) for k in where["m"]]
        yield product("m", "m", "sm", -1.0) + doubled + predicted + cleared("sm") + cleared("w")


def _pairs(where: dict[str, range]) -> Iterable[tuple[int, int]]:
    return zip(where["w"], where["x"], strict=True)


@torch.no_grad()
def _write_products(block: torch.nn.Module, products: list[Product]) -> None:
    mlp = block.get_submodule("mlp")
    assert isinstance(mlp, Mlp)
    unit = torch.arange(len(products))
    to, left, right = (torch.tensor([p[k] for p in products]) for k in range(3))
    hidden = mlp.down.in_features
    mlp.up.weight[unit, left] = 1.0
    mlp.up.weight[hidden + unit, right] = 1.0
    mlp.down.weight[to, unit] = torch.tensor([p.factor for p in products], dtype=torch.float64)


def _positions(task: LinearRegression, stream: Stream, width: int) -> Float[Tensor, "length width"]:
    """Attention divides by the tokens seen, i + 1 at token i, so what is asked is that many times as large."""
    i = torch.arange(task.length, dtype=torch.float64)
    positions = torch.zeros(task.length, width, dtype=torch.float64)
    wanted = i - i % 2  # x itself, or the x before a y

    def ask(j: Tensor) -> Tensor:
        """1 − (j − k)² as a product with (k, k², 1)."""
        return (i + 1)[:, None] * torch.stack([2 * j, -torch.ones_like(j), 1 - j.square()], dim=1)

    positions[:, stream["one"]] = 1.0
    positions[:, stream["place"]] = of_places(i)
    positions[:, stream["gather"]] = ask(wanted)
    positions[1::2, stream["own"]] = ask(i)[1::2]
    positions[::2, stream["count"]] = (i + 1)[::2, None]
    positions[1::2, stream["label"]] = 1.0
    return positions

"""What each part of a constructed network does, read from its weights."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from algoscope.contracts import Place
from algoscope.models import Network
from algoscope.models.algoformer import AlgoFormerNetwork
from algoscope.models.transformer import Attention, Block, Mlp, TransformerNetwork

ACTIVATIONS = {"relu": "ReLU", "bilinear": "products"}


@dataclass(frozen=True)
class Anatomy:
    """Its places (name, coordinates, content, writers), and its parts (layer, part, what it does)."""

    places: tuple[tuple[str, str, str, str], ...]
    parts: tuple[tuple[str, str, str], ...]

    def __str__(self) -> str:
        return "\n\n".join(_aligned(rows) for rows in (self.places, self.parts))


@torch.no_grad()
def anatomy(network: Network) -> Anatomy:
    """Of a network whose places are named, as those of the constructions are."""
    if not isinstance(network, TransformerNetwork) or not network.places:
        raise ValueError("network must be one whose places have names, such as constructions.newton gives")
    names = _names(network)
    parts = [(name, *row) for name, block in zip(names, network.blocks, strict=True) for row in _parts(network, block)]
    writers: dict[str, list[str]] = {name: [] for name in network.places}
    sources = {"read-in": network.read_in.weight, "positions": network.positions}
    for writer, matrix in sources.items():
        for place in _touched(network, matrix.T if matrix is not None and writer == "positions" else matrix):
            writers[place].append(writer)
    for name, block in zip(names, network.blocks, strict=True):
        assert isinstance(block, Block)
        mlp = [block.mlp.down.weight] if isinstance(block.mlp, Mlp) else []
        for place in dict.fromkeys(n for w in (block.attention.output.weight, *mlp) for n in _touched(network, w)):
            writers[place].append(name)
    places = [
        (name, f"{place.where.start}–{place.where.stop - 1}", place.content, _together(writers[name]))
        for name, place in network.places.items()
    ]
    return Anatomy(tuple(places), tuple(parts))


def name_places(network: TransformerNetwork, places: Mapping[str, Place], whole: bool = True) -> None:
    """From now on it prints as its anatomy. `whole`: it takes prompts of its full length alone."""
    network.places, network.whole, network.describe = places, whole, anatomy


def _names(network: TransformerNetwork) -> list[str]:
    """Of its blocks."""
    if not isinstance(network, AlgoFormerNetwork):
        return [f"layer {k + 1}" for k in range(len(network.blocks))]
    begin, end = network.borders
    looped = [f"loop, layer {k + 1}" if end - begin > 1 else "loop" for k in range(end - begin)]
    return [
        *(f"pre {k + 1}" for k in range(begin)),
        *looped,
        *(f"post {k + 1}" for k in range(len(network.blocks) - end)),
    ]


def _parts(network: TransformerNetwork, block: object) -> Iterator[tuple[str, str]]:
    assert isinstance(block, Block)
    attention = block.attention
    width = attention.output.in_features
    size = width // attention.heads
    for head in range(attention.heads):
        own = slice(head * size, (head + 1) * size)
        query, key, value = (attention.queries_keys_values.weight[k * width : (k + 1) * width][own] for k in range(3))
        to = attention.output.weight[:, own]
        if put := _touched(network, to):
            asks, answers = (" and ".join(_signed(network, matrix)) for matrix in (query, key))
            carried = f"{_factor(network, attention, to @ value)}{' and '.join(_touched(network, value.T))}"
            yield f"head {head + 1}", f"{asks} asks {answers}, carries {carried} to {' and '.join(put)}"
    if isinstance(block.mlp, Mlp):
        changed = [f"{target} by {', '.join(sources)}" for target, sources in _changes(network, block.mlp) if sources]
        if changed:
            yield "MLP", f"changes {'; '.join(changed)} ({ACTIVATIONS.get(block.mlp.activation, block.mlp.activation)})"


def _signed(network: TransformerNetwork, matrix: Tensor) -> list[str]:
    """The places that it reads, with a minus where all their weights have one."""
    found = []
    for name in _touched(network, matrix.T):
        read = matrix[:, network.places[name].where]
        found.append(f"−{name}" if bool((read <= 0).all()) else name)
    return found


def _factor(network: TransformerNetwork, attention: Attention, moved: Tensor) -> str:
    """The sign of what is carried, and what it is multiplied by where that is one number: what attention divides by is
    undone. That of a softmax, e^C/2c, is left out.
    """
    entries = moved[moved != 0]
    sign = "−" if float(entries.sum()) < 0 else ""
    if attention.kind != "relu" or attention.mask != "full" or not torch.allclose(entries, entries[0], rtol=1e-9):
        return sign
    number = float(entries[0].abs()) / network.length
    return sign if math.isclose(number, 1.0) else f"{sign}{number:g} "


def _changes(network: TransformerNetwork, mlp: Mlp) -> Iterator[tuple[str, list[str]]]:
    """What each place is changed by: other places, or products of two of them."""
    for target, place in network.places.items():
        used = mlp.down.weight[place.where].abs().sum(0) > 0
        if mlp.activation != "bilinear":
            yield target, _touched(network, mlp.up.weight[used].T)
            continue
        left, right = (half[used] for half in mlp.up.weight.chunk(2))
        pairs = [
            (_touched(network, a[:, None]), _touched(network, b[:, None])) for a, b in zip(left, right, strict=True)
        ]
        yield target, list(dict.fromkeys(f"{'+'.join(a)}·{'+'.join(b)}" for a, b in pairs))


def _touched(network: Network, rows: Tensor | None) -> list[str]:
    """The places in whose rows a matrix is not zero."""
    if rows is None:
        return []
    return [name for name, place in network.places.items() if bool((rows[place.where] != 0).any())]


def _together(writers: Sequence[str]) -> str:
    """layer 1, layer 2, layer 3 as "layers 1–3"."""
    numbers = [int(name.removeprefix("layer ")) for name in writers if name.startswith("layer ")]
    others = [name for name in writers if not name.startswith("layer ")]
    if not numbers:
        return ", ".join(others)
    whole = numbers == list(range(numbers[0], numbers[-1] + 1))
    numbered = f"{numbers[0]}–{numbers[-1]}" if whole and len(numbers) > 1 else ", ".join(map(str, numbers))
    return ", ".join([*others, f"layer{'s' if len(numbers) > 1 else ''} {numbered}"])


def _aligned(rows: Iterable[tuple[str, ...]]) -> str:
    table = list(rows)
    widths = [max(len(row[k]) for row in table) for k in range(len(table[0]))]
    return "\n".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in table
    )

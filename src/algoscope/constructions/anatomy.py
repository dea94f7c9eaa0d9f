"""What each part of a network that was written by hand does, read from its weights."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from torch import Tensor

from algoscope.models import Network
from algoscope.models.transformer import Block, Mlp, TransformerNetwork


@dataclass(frozen=True)
class Anatomy:
    """Its places (name, coordinates, what it holds, who writes it), and its parts (layer, part, what it does)."""

    places: tuple[tuple[str, str, str, str], ...]
    parts: tuple[tuple[str, str, str], ...]

    def __str__(self) -> str:
        return "\n\n".join(_aligned(rows) for rows in (self.places, self.parts))


def anatomy(network: Network) -> Anatomy:
    """Of a network whose places are named, as those of this room are."""
    if not isinstance(network, TransformerNetwork) or not network.places:
        raise ValueError("network must be one whose places have names, such as constructions.newton gives")
    parts = [(f"layer {i + 1}", *row) for i, block in enumerate(network.blocks) for row in _parts(network, block)]
    writers: dict[str, list[str]] = {name: [] for name in network.places}
    for name in _touched(network, network.read_in.weight):
        writers[name].append("read-in")
    for name in _touched(network, network.positions.T if network.positions is not None else None):
        writers[name].append("positions")
    for i, block in enumerate(network.blocks):
        assert isinstance(block, Block)
        mlp = [block.mlp.down.weight] if isinstance(block.mlp, Mlp) else []
        for name in dict.fromkeys(n for w in (block.attention.output.weight, *mlp) for n in _touched(network, w)):
            writers[name].append(str(i + 1))
    places = [
        (name, f"{place.where.start}–{place.where.stop - 1}", place.holds, _spans(writers[name]))
        for name, place in network.places.items()
    ]
    return Anatomy(tuple(places), tuple(parts))


def _parts(network: TransformerNetwork, block: object) -> Iterator[tuple[str, str]]:
    assert isinstance(block, Block)
    attention = block.attention
    width = attention.output.in_features
    size = width // attention.heads
    for head in range(attention.heads):
        own = slice(head * size, (head + 1) * size)
        asks, answers, carries = (
            _touched(network, attention.queries_keys_values.weight[k * width : (k + 1) * width][own].T)
            for k in range(3)
        )
        to = _touched(network, attention.output.weight[:, own])
        if to:
            words = " and ".join
            yield f"head {head + 1}", f"{words(asks)} asks {words(answers)}, carries {words(carries)} to {words(to)}"
    if isinstance(block.mlp, Mlp):
        down, up = block.mlp.down.weight, block.mlp.up.weight
        told = []
        for target, place in network.places.items():
            sources = _touched(network, up[down[place.where].abs().sum(0) > 0].T)
            if sources:
                told.append(f"{target} by {', '.join(sources)}")
        if told:
            yield "MLP", f"changes {'; '.join(told)}"


def _touched(network: Network, rows: Tensor | None) -> list[str]:
    """The places in whose rows a matrix is not zero."""
    if rows is None:
        return []
    return [name for name, place in network.places.items() if bool((rows[place.where] != 0).any())]


def _spans(writers: Iterable[str]) -> str:
    """1, 2, 3, 5 as "layers 1–3, 5"."""
    names = list(writers)
    layers = [int(name) for name in names if name.isdigit()]
    runs: list[list[int]] = []
    for layer in layers:
        if runs and runs[-1][-1] == layer - 1:
            runs[-1].append(layer)
        else:
            runs.append([layer])
    told = ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)
    word = "layer" if len(layers) == 1 else "layers"
    return ", ".join([*(name for name in names if not name.isdigit()), *([f"{word} {told}"] if told else [])])


def _aligned(rows: Iterable[tuple[str, ...]]) -> str:
    table = list(rows)
    widths = [max(len(row[k]) for row in table) for k in range(len(table[0]))]
    return "\n".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in table
    )

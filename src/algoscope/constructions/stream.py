"""A stream with named places, and weights written by those names."""

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor, nn

from algoscope.contracts import Place
from algoscope.models.transformer import Attention, Block, Mlp, TransformerNetwork

Row = Mapping[str, Tensor]  # by place: a matrix from that place, or to it


class Stream:
    """Places of a residual stream, one after the other: the width and the content of each."""

    def __init__(self, **places: tuple[int, str]) -> None:
        self.places: dict[str, Place] = {}
        self.width = 0
        for name, (width, content) in places.items():
            self.places[name] = Place(slice(self.width, self.width + width), content)
            self.width += width

    def __getitem__(self, name: str) -> slice:
        return self.places[name].where

    def size(self, name: str) -> int:
        return self[name].stop - self[name].start


def one(size: int) -> Tensor:
    return torch.eye(size, dtype=torch.float64)


def match_places(offset: float, less: float = 0.0) -> Float[Tensor, "3 3"]:
    """What to ask, given (i, i², 1), so that (j, j², 1) answers with 1 − (i + offset − j)², less something."""
    return torch.tensor(
        [[2.0, 0.0, 2 * offset], [0.0, 0.0, -1.0], [-2 * offset, -1.0, 1 - offset**2 - less]], dtype=torch.float64
    )


def of_places(i: Float[Tensor, "tokens"]) -> Float[Tensor, "tokens 3"]:
    """(i, i², 1), by which tokens ask for each other."""
    return torch.stack([i, i.square(), torch.ones_like(i)], dim=1)


@torch.no_grad()
def clear(network: TransformerNetwork) -> None:
    """All weights to zero: a block then does nothing."""
    for parameter in network.parameters():
        parameter.zero_()


@torch.no_grad()
def write_head(block: nn.Module, head: int, stream: Stream, query: Row, key: Row, value: Row, output: Row) -> None:
    """One head of a block: what it asks for, what it is asked by, what it carries, and where it puts that."""
    assert isinstance(block, Block)
    attention: Attention = block.attention
    width = attention.output.in_features
    size = width // attention.heads
    own = slice(head * size, (head + 1) * size)
    for k, row in enumerate((query, key, value)):
        part = attention.queries_keys_values.weight[k * width : (k + 1) * width][own]
        for place, matrix in row.items():
            part[: matrix.shape[0], stream[place]] = matrix * (size**0.5 if k == 0 else 1.0)  # undoes 1/√size
    for place, matrix in output.items():
        attention.output.weight[stream[place], own][:, : matrix.shape[1]] = matrix


@torch.no_grad()
def write_linear_mlp(block: nn.Module, stream: Stream, changes: Mapping[tuple[str, str], float]) -> None:
    """An MLP that adds factor times one place to another, exactly: a = ReLU(a) − ReLU(−a). Keys are (to, from)."""
    assert isinstance(block, Block)
    assert isinstance(block.mlp, Mlp)
    up, down = block.mlp.up.weight, block.mlp.down.weight
    for source in dict.fromkeys(source for (_, source), factor in changes.items() if factor):
        size = stream.size(source)
        for sign in (1.0, -1.0):
            rows = _free(block.mlp, size)
            up[rows, stream[source]] = sign * one(size)
            for target in (target for target, other in changes if other == source):
                down[stream[target], rows] = sign * changes[target, source] * one(size)


@torch.no_grad()
def write_leaky_mlp(block: nn.Module, stream: Stream, sources: Row, target: str, slope: float) -> None:
    """An MLP that adds leaky ReLU(Σ W source) to the first coordinates of a place; W may read only the first, too."""
    assert isinstance(block, Block)
    assert isinstance(block.mlp, Mlp)
    size = len(next(iter(sources.values())))
    for sign, factor in ((1.0, 1.0), (-1.0, -slope)):
        write_units(
            block, stream, {source: sign * matrix for source, matrix in sources.items()}, {target: factor * one(size)}
        )


@torch.no_grad()
def write_units(block: nn.Module, stream: Stream, given: Row, put: Row) -> None:
    """Units ReLU(Σ W given) of an MLP, and the places that they are put to."""
    assert isinstance(block, Block)
    assert isinstance(block.mlp, Mlp)
    rows = _free(block.mlp, len(next(iter(given.values()))))
    for place, matrix in given.items():
        block.mlp.up.weight[rows, stream[place]][:, : matrix.shape[1]] = matrix
    for place, matrix in put.items():
        block.mlp.down.weight[stream[place], rows][: len(matrix)] = matrix


def _free(mlp: Mlp, count: int) -> slice:
    """The first units that do nothing yet."""
    used = int((mlp.down.weight != 0).any(0).sum())
    return slice(used, used + count)

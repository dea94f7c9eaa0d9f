"""Theorem 1 of Fu et al.: a transformer that runs Iterative Newton, written by hand and exact.

Full attention with ReLU/n. Every token j of an x carries u_j = M_k x_j. Since M_{k+1} = 2M_k − M_k S M_k,

    u_j ← 2u_j − Σ_i u_i (x_i·u_j),

which is attention: u_j asks, x_i answers, u_i is carried; a score s of either sign takes two heads, s = ReLU(s) −
ReLU(−s). The prediction Σ_i y_i (x_i·u_j) is attention too. The test point is asked about but never answers: only
tokens of examples hold a key.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from algoscope import arguments
from algoscope.constructions.stream import Stream, clear, write_head, write_linear_mlp
from algoscope.models import Transformer
from algoscope.models.transformer import TransformerNetwork
from algoscope.tasks import LinearRegression

HEADS = 4


def newton(dim: int, examples: int, steps: int, alpha: float) -> TransformerNetwork:
    """k steps of Iterative Newton from M_0 = αS in k + 3 layers, predicting y of the last x, in float64.

    Layer 1 brings each example together, layer 2 starts, layers 3 to k + 2 make the steps, and the last predicts. Each
    of these also predicts from what it finds: the place `prediction` holds step m after layer m + 3.
    """
    arguments.integer("dim", dim, 1)
    arguments.integer("examples", examples, 1)
    arguments.integer("steps", steps, 0)
    arguments.number("alpha", alpha, strict=True)
    task = LinearRegression(dim=dim, examples=examples)
    stream = Stream(
        token=dim, x=dim, key=dim, y=1, u=dim, change=dim, fresh=1, prediction=1, place=3, point=3, example=3
    )
    size = max(-(-stream.width // HEADS), dim, 3)  # of a head
    model = Transformer(
        layers=steps + 3, heads=HEADS, width=HEADS * size, mlp_ratio=(4 * dim + 4) / (HEADS * size),
        activation="relu", attention="relu", mask="full", norm="none", positions="given",
    )  # fmt: skip
    network = model.build(task.inputs, task.outputs, task.length, torch.Generator()).double()
    clear(network)
    with torch.no_grad():
        network.read_in.weight[stream["token"]] = torch.eye(dim, dtype=torch.float64)
        network.read_out.weight[:, stream["prediction"]] = 1.0
    network.give_positions(_positions(task, stream, HEADS * size))
    count = float(task.length)  # what the attention divides by
    first, start, *others = network.blocks
    _gather(first, stream, dim, count)
    _start(start, stream, count, alpha)
    for block in others:
        _step(block, stream, count)
    return network.eval()


def _positions(task: LinearRegression, stream: Stream, width: int) -> Float[Tensor, "length width"]:
    """Places as (i, i², 1); the same at the tokens of x alone in `point`, and at those of examples in `example`."""
    positions = torch.zeros(task.length, width, dtype=torch.float64)
    i = torch.arange(task.length, dtype=torch.float64)
    place = torch.stack([i, i.square(), torch.ones_like(i)], dim=1)
    positions[:, stream["place"]] = place
    positions[::2, stream["point"]] = place[::2]
    positions[:-1:2, stream["example"]] = place[:-1:2]
    return positions


def _match(offset: float) -> Float[Tensor, "3 3"]:
    """What to ask, given (i, i², 1), so that (j, j², 1) answers with 1 − (i + offset − j)²."""
    return torch.tensor(
        [[2.0, 0.0, 2 * offset], [0.0, 0.0, -1.0], [-2 * offset, -1.0, 1 - offset**2]], dtype=torch.float64
    )


def _gather(block: torch.nn.Module, stream: Stream, dim: int, count: float) -> None:
    """Each x into its place; x of an example into `key`; the y that follows an example into `y`."""
    same, one = torch.eye(3, dtype=torch.float64), torch.eye(dim, dtype=torch.float64)
    for head, asker, offset, target, taken in (
        (0, "point", 0.0, "x", one),
        (1, "example", 0.0, "key", one),
        (2, "example", 1.0, "y", one[:1]),
    ):
        ask, carry = {asker: _match(offset)}, {"token": taken}
        write_head(block, head, stream, ask, {"place": same}, carry, {target: count * torch.eye(len(taken)).double()})


def _sum_over_examples(
    block: torch.nn.Module, heads: tuple[int, int], stream: Stream, asker: str, carried: str, target: str, factor: float
) -> None:
    """target_j += factor · Σ_i carried_i (key_i · asker_j), by two heads."""
    keys = torch.eye(stream.size("key"), dtype=torch.float64)
    values = torch.eye(stream.size(carried), dtype=torch.float64)
    for head, sign in zip(heads, (1.0, -1.0), strict=True):
        write_head(block, head, stream, {asker: sign * keys}, {"key": keys}, {carried: values},
                   {target: sign * factor * values})  # fmt: skip


def _start(block: torch.nn.Module, stream: Stream, count: float, alpha: float) -> None:
    """u_j = αS x_j."""
    _sum_over_examples(block, (0, 1), stream, "x", "key", "u", alpha * count)


def _step(block: torch.nn.Module, stream: Stream, count: float) -> None:
    """A step of Newton for u, and the prediction of the u that it finds."""
    _sum_over_examples(block, (0, 1), stream, "u", "u", "change", -count)
    _sum_over_examples(block, (2, 3), stream, "u", "y", "fresh", count)
    changes = {("u", "u"): 1.0, ("u", "change"): 1.0, ("change", "change"): -1.0}
    changes |= {("prediction", "prediction"): -1.0, ("prediction", "fresh"): 1.0, ("fresh", "fresh"): -1.0}
    write_linear_mlp(block, stream, changes)

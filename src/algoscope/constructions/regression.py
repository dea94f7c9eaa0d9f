"""What transformers that regress have in common: full attention with ReLU/n over the tokens x, y, x, y, …, x.

The first layer brings each example together at the token of its x. A token asks for the one `offset` places on by the
score 1 − (i + offset − j)², which ReLU leaves at that place alone. Then every token j of an x can sum over examples,

    Σ_i v_i (x_i · a_j),

which is attention: a_j asks, x_i answers, v_i is carried. A score s of either sign takes two heads, s = ReLU(s) −
ReLU(−s). (Equation 20 of Fu et al. adds the two, which gives |s|; the second head must carry −v.) The test point asks
but never answers: only tokens of examples hold a key.
"""

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from algoscope.constructions.anatomy import name_places
from algoscope.constructions.stream import Stream, clear, match_places, of_places, one, write_head, write_linear_mlp
from algoscope.models import Transformer
from algoscope.tasks import LinearRegression

HEADS = 4
SILENT = 2.0  # taken from the score of who should not ask: more than any score is


class Regression:
    """A network in float64 whose first layer gathers the examples and whose others are blank, and how to fill these."""

    def __init__(self, dim: int, examples: int, layers: int, **places: tuple[int, str]) -> None:
        task = LinearRegression(dim=dim, examples=examples)
        self.length = task.length
        self.stream = stream = Stream(
            token=(dim, "the token as it is given"),
            x=(dim, "x, at its token"),
            key=(dim, "x of an example, at its token"),
            y=(1, "y of an example, at the token of its x"),
            **places,
            fresh=(1, "the prediction that attention has just made"),
            prediction=(1, "the prediction, which is read out"),
            place=(3, "the place i of a token, as (i, i², 1)"),
            point=(1, "1 at the tokens of x"),
            example=(1, "1 at the tokens of x of examples"),
        )
        size = max(-(-stream.width // HEADS), dim, 3)  # of a head
        hidden = 2 * sum(stream.size(name) for name in ("x", *places, "fresh", "prediction"))  # what an MLP may read
        model = Transformer(
            layers=layers, heads=HEADS, width=HEADS * size, mlp_ratio=hidden / (HEADS * size),
            activation="relu", attention="relu", mask="full", norm="none", positions="given",
        )  # fmt: skip
        self.network = model.build(task.inputs, task.outputs, task.length, torch.Generator()).double().eval()
        clear(self.network)
        with torch.no_grad():
            self.network.read_in.weight[stream["token"]] = one(dim)
            self.network.read_out.weight[:, stream["prediction"]] = 1.0
        self.network.give_positions(_positions(task, stream, HEADS * size))
        name_places(self.network, stream.places)
        self._gather()

    def _gather(self) -> None:
        for head, (query, offset, target) in enumerate(
            (("point", 0.0, "x"), ("example", 0.0, "key"), ("example", 1.0, "y"))
        ):
            taken = one(self.stream.size("token"))[: self.stream.size(target)]
            ask = {"place": match_places(offset, SILENT), query: SILENT * one(3)[:, 2:]}
            put = {target: self.length * one(len(taken))}  # attention divides by the number of tokens
            write_head(self.network.blocks[0], head, self.stream, ask, {"place": one(3)}, {"token": taken}, put)

    def sum_over_examples(
        self, layer: int, heads: tuple[int, int], query: str, carried: str, target: str, factor: float = 1.0
    ) -> None:
        """target_j += factor · Σ_i carried_i (x_i · query_j)."""
        keys, values = one(self.stream.size("key")), one(self.stream.size(carried))
        for head, sign in zip(heads, (1.0, -1.0), strict=True):
            ask, put = {query: sign * keys}, {target: sign * factor * self.length * values}
            write_head(self.network.blocks[layer], head, self.stream, ask, {"key": keys}, {carried: values}, put)

    def predict(self, layer: int, query: str) -> dict[tuple[str, str], float]:
        """The prediction Σ_i y_i (x_i · query_j), with heads 2 and 3; what the MLP of the layer must add for it."""
        self.sum_over_examples(layer, (2, 3), query, "y", "fresh")
        return {("prediction", "prediction"): -1.0, ("prediction", "fresh"): 1.0, ("fresh", "fresh"): -1.0}

    def mlp(self, layer: int, changes: Mapping[tuple[str, str], float]) -> None:
        write_linear_mlp(self.network.blocks[layer], self.stream, changes)


def _positions(task: LinearRegression, stream: Stream, width: int) -> Float[Tensor, "length width"]:
    positions = torch.zeros(task.length, width, dtype=torch.float64)
    i = torch.arange(task.length, dtype=torch.float64)
    positions[:, stream["place"]] = of_places(i)
    positions[::2, stream["point"]] = 1.0
    positions[:-1:2, stream["example"]] = 1.0
    return positions

"""What looped transformers that regress have in common (Gao et al., Appendix A.1): attention with softmax.

A softmax spreads one unit of attention over the tokens. A blank token with a score of C takes nearly all of it, and
what is left to token i is e^−C exp(score): values e^C times as large then come back as Σ_i v_i exp(score_i). With
scores ±c s_i, two heads whose difference is taken give

    Σ_i v_i (exp(c s_i) − exp(−c s_i)) = 2c Σ_i v_i s_i + O(c³),

a sum over examples as exact as c is small, until rounding, of size ε/c, takes over. A large C makes the rest, of
size N e^−C, vanish. What the blank token itself holds comes back e^C times as large: it must stay zero to the last bit,
which the proofs leave open, so it attends to itself alone. Copies are made by scores T(1 − (i + offset − j)²); tokens
that should not copy attend to the blank one. (The theorems speak of increasing the temperature: it is to be lowered.
Lemma A.3 has no T at all, and its scores of 1 against ε copy nothing sharply.)
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from algoscope import arguments
from algoscope.constructions.anatomy import name_places
from algoscope.constructions.stream import (
    Row,
    Stream,
    clear,
    match_places,
    of_places,
    one,
    write_head,
    write_leaky_mlp,
    write_linear_mlp,
)
from algoscope.models import AlgoFormer
from algoscope.models.algoformer import AlgoFormerNetwork
from algoscope.tasks import Task

Matrix: TypeAlias = Tensor | Sequence[Sequence[float]]
SHARP = 60.0  # T: how much closer the right token is than any other; e^−60 is far below rounding
ASIDE = 1000.0  # extra score of the blank token where a token must not read others: their shares are exactly zero
MOST = 600.0
SMALL, LARGE = 6e-6, 40.0  # c, for scores of size 1, and C: about the best in float64 (ε^⅓)


class LoopConstruction(ABC):
    """A network in float64 whose first layer gathers the examples and whose others are blank, and how to fill these.

    Layers count from the first of `pre`. Every token but the blank one is a point, unless `gather` says otherwise.
    """

    mask: Literal["full", "causal"] = "full"
    silent: str  # the place that marks tokens that no query reads

    def __init__(
        self,
        task: Task,
        pre: int,
        post: int,
        loops: int,
        small: float,
        large: float,
        heads: int = 2,
        **places: tuple[int, str],
    ) -> None:
        arguments.integer("loops", loops, 1)
        arguments.number("small", small, strict=True)
        arguments.number("large", large, strict=True)
        if large > MOST:
            raise ValueError(f"large must be at most {MOST}, beyond which e^C is too large a number, got {large}")
        self.small, self.large = small, large
        self.stream = stream = Stream(
            token=(task.inputs, "the token as it is given"),
            **places,
            place=(3, "the place i of a token, as (i, i², 1)"),
            point=(1, "1 at every token that takes part"),
            blank=(1, "1 at the blank token"),
            all=(1, "1 everywhere"),
        )
        widest = max(stream.size(name) for name in ("token", *places))
        size = max(-(-stream.width // heads), 2 * widest + 4)  # of a head
        hidden = max(2 * sum(stream.size(name) for name in places), 4 * widest)  # what an MLP may need
        model = AlgoFormer(
            layers=1, pre=pre, post=post, loops=loops, heads=heads, width=heads * size,
            mlp_ratio=hidden / (heads * size), activation="relu", attention="softmax", mask=self.mask, norm="none",
            positions="given", sink=True,
        )  # fmt: skip
        self.network: AlgoFormerNetwork = model.build(task.inputs, task.outputs, task.length, torch.Generator())
        self.network.double().eval()
        clear(self.network)
        with torch.no_grad():
            self.network.read_in.weight[stream["token"]] = one(task.inputs)
        self.positions = torch.zeros(task.length + 1, heads * size, dtype=torch.float64)  # the blank token comes first
        i = torch.arange(task.length, dtype=torch.float64)
        self.positions[1:, stream["place"]] = of_places(i)
        self.positions[1:, stream["point"]] = 1.0
        self.positions[0, stream["blank"]] = 1.0
        self.positions[:, stream["all"]] = 1.0
        name_places(self.network, stream.places, whole=self.mask == "full")
        self.gather()
        self.network.give_positions(self.positions)

    @abstractmethod
    def gather(self) -> None:
        """Fills the first layer and the position vectors."""

    def copy(
        self, head: int, target: str, queries: Mapping[str, float], offset: float = 0.0, wanted: str = "place"
    ) -> None:
        """The place `target` of tokens with one of the flags `queries` receives the token at the wanted place."""
        taken = one(self.stream.size("token"))[: self.stream.size(target)]
        aside = ASIDE * one(4)[:, 3:]  # to the blank token, for all others
        ask = {name: ((name == "all") - queries.get(name, 0.0)) * aside for name in ("all", *queries)}
        ask[wanted] = SHARP * torch.nn.functional.pad(match_places(offset), (0, 0, 0, 1))
        answer = {"place": one(4)[:, :3], "blank": one(4)[:, 3:]}
        put = {target: one(len(taken))}
        write_head(self.network.blocks[0], head, self.stream, ask, answer, {"token": taken}, put)

    def sum_over_examples(
        self,
        layer: int,
        query: str,
        carried: str,
        target: str,
        factor: float = 1.0,
        size: float = 1.0,
        answerer: str = "x",
    ) -> None:
        """target_j += factor · Σ_i carried_i (x_i · query_j), by both heads, where these scores are of some size."""
        dim, values, small = self.stream.size(query), one(self.stream.size(carried)), self.small / size
        same, lift = one(dim + 1)[:, :dim], one(dim + 1)[:, dim:]
        for head, sign in enumerate((1.0, -1.0)):
            ask = {"all": (1 + ASIDE) * lift, "point": -ASIDE * lift}
            ask[query] = ask.get(query, 0.0) + sign * small * same
            answer = {answerer: same, "blank": self.large * lift, self.silent: -SHARP * lift}
            carry, put = {carried: math.exp(self.large) * values}, {target: sign * factor / (2 * small) * values}
            write_head(self.network.blocks[layer], head, self.stream, ask, answer, carry, put)

    def mlp(self, layer: int, changes: Mapping[tuple[str, str], float]) -> None:
        write_linear_mlp(self.network.blocks[layer], self.stream, changes)

    def leaky_layer(self, layer: int, sources: Row, target: str, slope: float) -> None:
        """target = leaky ReLU(Σ W source), exactly: it is ReLU(a) − slope·ReLU(−a). What was there is taken away."""
        changes = {(target, target): -1.0} if target in sources else {}
        write_linear_mlp(self.network.blocks[layer], self.stream, changes)
        write_leaky_mlp(self.network.blocks[layer], self.stream, sources, target, slope)

    def read(self, place: str) -> None:
        """The place from which predictions are read."""
        with torch.no_grad():
            self.network.read_out.weight[:, self.stream[place]] = one(self.stream.size(place))


def checked_matrices(given: Sequence[Matrix]) -> list[Tensor]:
    """The weights of a representation, which must fit each other."""
    matrices = [torch.as_tensor(w, dtype=torch.float64) for w in given]
    if not matrices or any(w.ndim != 2 or 0 in w.shape or not w.isfinite().all() for w in matrices):
        raise ValueError("matrices must be at least one matrix of finite numbers, the weights of a representation")
    widths = [matrices[0].shape[1], *(len(w) for w in matrices)]
    if any(w.shape[1] != width for w, width in zip(matrices, widths, strict=False)):
        raise ValueError(f"matrices must fit each other, got {[list(w.shape) for w in matrices]}")
    return matrices

"""The disentangled transformer over graphs (Ye et al. 2026, Definition 4.1; after Friedman et al. 2023).

Nothing is ever added to its stream, only appended, so that every block of n columns keeps its meaning:

    h_0 = [I, A],   S_l = (1/n) ReLU(h_{l−1} W_l h_{l−1}ᵀ),   h_l = [h_{l−1}, S_l h_{l−1}],   Z = the sum of the blocks.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from algoscope import arguments
from algoscope.contracts import NO_EDITS, Edits, Model, Network, Place
from algoscope.models.network import MOST_LAYERS, draw_normal


@dataclass(frozen=True)
class Disentangled(Model):
    """The disentangled transformer, for graphs (Ye et al. 2025).

    `layers` layers, each of a single matrix W_l of 2^l n rows and columns, drawn with deviation `spread`.

    It predicts that two nodes are connected with probability 1 − (1 − ε) exp(−αZ), where α is the `sharpness` and ε the
    `floor`; its outputs are the logits of that. The paper leaves α, ε and the spread open. These reproduce its figures.
    """

    family = "graphs"

    layers: int = 1  # attention layers
    sharpness: float = 5.0  # α: how fast a count becomes certainty
    floor: float = 1e-3  # ε: chance of a pair that is not connected
    spread: float = 0.1  # standard deviation of fresh weights

    mask = "full"  # every node sees every other

    def __post_init__(self) -> None:
        arguments.integer("layers", self.layers, 1, MOST_LAYERS)
        arguments.number("sharpness", self.sharpness, strict=True)
        arguments.number("floor", self.floor, strict=True)
        if self.floor >= 0.5:
            raise ValueError(f"floor must be less than 0.5, as the chance of unrelated nodes, got {self.floor!r}")
        arguments.number("spread", self.spread)

    def build(self, inputs: int, outputs: int, length: int, generator: torch.Generator) -> "DisentangledNetwork":
        if not inputs == outputs == length:
            raise ValueError(
                "Disentangled takes a graph, as many tokens of as many coordinates and answers, got "
                f"length {length}, inputs {inputs}, outputs {outputs}"
            )
        return DisentangledNetwork(self, length, generator)


class DisentangledNetwork(Network):
    """Stages: "embedding", which is h_0, and "layer 1" … "layer L", each twice as wide as the one before.

    `places` names the blocks of the last: "I", "A", "S1 I", "S1 A", "S2 I", …, "S2 S1 A".
    """

    append_only = True

    def __init__(self, model: Disentangled, nodes: int, generator: torch.Generator) -> None:
        super().__init__()
        self.length = nodes
        self.read_in = ReadIn(nodes)
        self.blocks = nn.ModuleList(Scores(2 ** (i + 1) * nodes) for i in range(model.layers))
        self.read_out = ReadOut(nodes, model)
        for block in self.blocks:
            draw_normal(block.get_parameter("weight"), model.spread, generator)
        self.stages = ("embedding", *(f"layer {i + 1}" for i in range(model.layers)))
        names = ["I", "A"]
        for i in range(model.layers):
            names += [f"S{i + 1} {name}" for name in names]
        self.places = {
            name: Place(slice(k * nodes, (k + 1) * nodes), f"{name}, one column a node") for k, name in enumerate(names)
        }

    def run(
        self, tokens: Float[Tensor, "*batch nodes nodes"], keep: Collection[str] = (), edits: Edits = NO_EDITS
    ) -> tuple[Float[Tensor, "*batch nodes nodes"], dict[str, Float[Tensor, "*batch nodes _"]]]:
        if tokens.shape[-2:] != (self.length, self.length):
            raise ValueError(
                f"tokens must be {self.length} of {self.length} coordinates, the nodes it was built for, "
                f"got {list(tokens.shape[-2:])}"
            )
        self.check_stages(keep)
        state = self.read_in(tokens)
        state = edits["embedding"](state) if "embedding" in edits else state
        kept, total = {"embedding": state} if "embedding" in keep else {}, self.read_out.total(state)
        for name, block in zip(self.stages[1:], self.blocks, strict=True):
            scores = block(state)
            total = total + scores @ total  # the sum of the blocks of what follows: the widest stream is never made
            if name != self.stages[-1] or name in keep or edits:
                state = torch.cat([state, scores @ state], dim=-1)
            if name in edits:
                state = edits[name](state)
                total = self.read_out.total(state)
            if name in keep:
                kept[name] = state
        return self.read_out(total), kept


class ReadIn(nn.Module):
    """Each node's own name beside its neighbors."""

    def __init__(self, nodes: int) -> None:
        super().__init__()
        self.in_features, self.out_features = nodes, 2 * nodes

    def forward(self, tokens: Float[Tensor, "*batch nodes nodes"]) -> Float[Tensor, "*batch nodes _"]:
        names = torch.eye(self.in_features, dtype=tokens.dtype, device=tokens.device)
        return torch.cat([names.expand_as(tokens), tokens], dim=-1)


class Scores(nn.Module):
    """Attention without a softmax: (1/n) ReLU(h W hᵀ), for one network or for each member of a population."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, width))

    def forward(self, stream: Float[Tensor, "*batch nodes width"]) -> Float[Tensor, "*batch nodes nodes"]:
        state, weight = stream.to(self.weight.dtype), self.weight
        one = weight.ndim == 2
        product = state @ weight if one else torch.bmm(state.flatten(1, -2), weight).view_as(state)
        return (product @ state.mT).relu().to(stream.dtype) / stream.shape[-2]


class ReadOut(nn.Module):
    """The sum of the blocks, and the logit of what it stands for. Nothing here is trained."""

    def __init__(self, nodes: int, model: Disentangled) -> None:
        super().__init__()
        self.in_features, self.out_features = 2 ** (model.layers + 1) * nodes, nodes
        self.sharpness, self.floor = model.sharpness, -math.log1p(-model.floor)

    def forward(self, state: Float[Tensor, "*batch nodes width"]) -> Float[Tensor, "*batch nodes nodes"]:
        """Of any stage, or of what is summed already."""
        return self.logits(self.total(state))

    def total(self, state: Float[Tensor, "*batch nodes width"]) -> Float[Tensor, "*batch nodes nodes"]:
        return state.unflatten(-1, (-1, self.out_features)).sum(-2)

    def logits(self, total: Float[Tensor, "*batch nodes nodes"]) -> Float[Tensor, "*batch nodes nodes"]:
        """With s = αZ − log(1 − ε) the probability is 1 − e^−s, whose logit is s + log(1 − e^−s).

        On graphs Z is never negative; elsewhere it counts as 0.
        """
        s = self.sharpness * total.clamp(min=0) + self.floor
        return s + torch.log(-torch.expm1(-s))

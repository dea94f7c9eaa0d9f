"""The recurrent network: a stack of LSTM layers."""

from collections.abc import Collection
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from algoscope import arguments
from algoscope.contracts import NO_EDITS, Edits, Model, Network, TrainingNeeds
from algoscope.models.network import MOST_LAYERS, Linear, draw_linear, draw_normal

FORWARD = (
    2.5  # gain of fresh weights from layer to layer: at 1, nothing of the input reaches a tenth layer (docs/log.md)
)


@dataclass(frozen=True)
class Recurrent(Model):
    """An LSTM of any depth (Hochreiter and Schmidhuber 1997).

    Linear embedding, `layers` layers, linear head.

    The defaults are the network of Fu et al., 5.3 million parameters.
    """

    layers: int = 10  # LSTM layers
    width: int = 256  # of a state

    def __post_init__(self) -> None:
        arguments.integer("layers", self.layers, 1, MOST_LAYERS)
        arguments.integer("width", self.width, 1)

    def build(self, inputs: int, outputs: int, length: int, generator: torch.Generator) -> "RecurrentNetwork":
        return RecurrentNetwork(self, inputs, outputs, generator)


class Lstm(nn.LSTM):
    """torch's LSTM, whose weights are left to the generator: torch would draw from the global random state."""

    def reset_parameters(self) -> None:
        pass


class RecurrentNetwork(Network):
    """Stages: "embedding", "layer 1" … "layer L". Any length."""

    training_needs = TrainingNeeds(batches_members=False)  # torch's LSTM takes the weights of one network

    def __init__(self, model: Recurrent, inputs: int, outputs: int, generator: torch.Generator) -> None:
        super().__init__()
        self.read_in = Linear(inputs, model.width)
        self.layers = nn.ModuleList(Lstm(model.width, model.width, batch_first=True) for _ in range(model.layers))
        self.read_out = Linear(model.width, outputs)
        self.blocks = nn.ModuleList()  # cuDNN brings its own program for an LSTM
        draw_linear(self.read_in, generator)
        for layer in self.layers:
            for name, parameter in layer.named_parameters():
                spread = {"weight_ih_l0": FORWARD, "weight_hh_l0": 1.0}.get(name, 0.0)
                draw_normal(parameter, spread * model.width**-0.5, generator)
        draw_linear(self.read_out, generator)
        self.stages = ("embedding", *(f"layer {i + 1}" for i in range(model.layers)))

    def run(
        self, tokens: Float[Tensor, "batch length inputs"], keep: Collection[str] = (), edits: Edits = NO_EDITS
    ) -> tuple[Float[Tensor, "batch length outputs"], dict[str, Float[Tensor, "batch length width"]]]:
        self.check_stages(keep)
        state = self.read_in(tokens)
        if not keep and not edits:  # one call for all layers: a GPU then works on several of them at once
            return self.read_out(self._last(state)), {}
        state = edits.get("embedding", _same)(state)
        kept = {"embedding": state} if "embedding" in keep else {}
        for name, layer in zip(self.stages[1:], self.layers, strict=True):
            state, _ = layer(state)
            state = edits.get(name, _same)(state)
            if name in keep:
                kept[name] = state
        return self.read_out(state), kept

    def _last(self, state: Float[Tensor, "batch length width"]) -> Float[Tensor, "batch length width"]:
        """The outputs of the last layer alone."""
        weights: list[Tensor] = [weight for layer in self.layers for weight in layer.parameters()]
        fresh = state.new_zeros(len(self.layers), state.shape[0], state.shape[2])
        return torch.lstm(state, (fresh, fresh), weights, True, len(self.layers), 0.0, self.training, False, True)[0]


def _same(state: Tensor) -> Tensor:
    return state

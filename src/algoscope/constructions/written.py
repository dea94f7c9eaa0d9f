"""A construction as a model: it can be trained further, saved and loaded like any other."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from algoscope import arguments
from algoscope.constructions.causal import causal_newton
from algoscope.constructions.connectivity import connectivity
from algoscope.constructions.decoder import decoder_gradient_descent
from algoscope.constructions.looped import gradient_descent, looped_newton, representation_regression
from algoscope.constructions.moments import moments, recursion
from algoscope.constructions.newton import newton
from algoscope.constructions.series import autoregression
from algoscope.constructions.sums import sum_of_tokens
from algoscope.constructions.thought import chain_of_thought
from algoscope.models import Model, Network
from algoscope.models.disentangled import DisentangledNetwork
from algoscope.models.transformer import TransformerNetwork

WRITTEN: dict[str, Callable[..., TransformerNetwork | DisentangledNetwork]] = {
    function.__name__: function
    for function in (
        sum_of_tokens,
        newton,
        moments,
        recursion,
        gradient_descent,
        representation_regression,
        autoregression,
        chain_of_thought,
        looped_newton,
        decoder_gradient_descent,
        causal_newton,
        connectivity,
    )
}


@dataclass(frozen=True)
class Written(Model):
    """The network that a function of this room writes, given its name and its arguments in order.

    `Written("causal_newton", (3, 10, 6, 1e-3))` begins where `causal_newton(3, 10, 6, 1e-3)` is. Matrices may be given
    as tensors and are kept as nested tuples, so that a configuration can hold them. Train it with precision "fp64":
    what is exact by small differences is lost in 32 bits.
    """

    function: str
    given: tuple[Any, ...]

    def __post_init__(self) -> None:
        arguments.choice("function", self.function, WRITTEN)
        object.__setattr__(self, "given", _nested(self.given))

    def build(self, inputs: int, outputs: int, length: int, generator: torch.Generator) -> Network:
        network = WRITTEN[self.function](*self.given)
        own = (network.read_in.in_features, network.read_out.out_features, network.length)
        if own != (inputs, outputs, length):
            asked = (inputs, outputs, length)
            raise ValueError(f"{self.function} as given takes tokens, outputs and length {own}, the task has {asked}")
        return network


def _nested(value: Any) -> Any:
    """Tensors and sequences as nested tuples, which compare, hash and serialize."""
    if isinstance(value, torch.Tensor):
        value = value.tolist()
    if isinstance(value, Mapping):
        raise ValueError(f"given must be the function's arguments in order, not by name, got {dict(value)}")
    return tuple(_nested(part) for part in value) if isinstance(value, list | tuple) else value

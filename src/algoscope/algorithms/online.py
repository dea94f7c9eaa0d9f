"""Methods that see each example once."""

from dataclasses import dataclass
from typing import Literal

import torch

from algoscope import arguments
from algoscope.algorithms.least_squares import SOLVED, prefixes, weights_trace
from algoscope.contracts import Algorithm, Symmetry
from algoscope.symmetries import (
    AddQueries,
    AddTargets,
    ExchangeSpectrum,
    FlipExamples,
    MixExamples,
    PermuteExamples,
    RotateInputs,
    ScaleInputs,
)
from algoscope.trace import Prompts, Trace


@dataclass(frozen=True)
class OnlineGradientDescent(Algorithm):
    """w ← w − η(w·x − y)x, once for each example in its order, from w = 0.

    Widrow and Hoff 1960; with η = 1/‖x‖² ("1/norm") it is one sweep of `Kaczmarz`, which makes no error on the example
    just seen. `rate` is that or a number. Its steps are the examples themselves, so there is one stage, labeled 0: at
    position t it has made t steps.
    """

    aliases = ("online-gd",)

    rate: Literal["1/norm"] | float = "1/norm"

    def __post_init__(self) -> None:
        arguments.number_or_choice("rate", self.rate, ["1/norm"])

    def keeps(self, symmetry: Symmetry) -> bool | None:
        match symmetry:
            case AddTargets() | AddQueries() | FlipExamples() | RotateInputs():
                return True
            case PermuteExamples() | MixExamples() | ExchangeSpectrum():
                return False
            case ScaleInputs():
                return self.rate == "1/norm"
        return None

    def trace(self, prompts: Prompts) -> Trace:
        x, y = prompts.x.double(), prompts.target_columns.double()
        norms = x.square().sum(-1)
        rates = 1 / torch.where(norms > 0, norms, 1.0) if self.rate == "1/norm" else torch.full_like(norms, self.rate)
        w = torch.zeros(prompts.batch, prompts.dim, y.shape[2], dtype=torch.float64, device=x.device)
        after = [w]
        for t in range(prompts.positions - 1):
            error = torch.einsum("bdm,bd->bm", w, x[:, t]) - y[:, t]
            w = w - rates[:, t, None, None] * x[:, t, :, None] * error[:, None, :]
            after.append(w)
        weights = torch.stack(after, dim=1)
        seen = prefixes(x)
        targets = torch.nn.functional.pad(y[:, :-1], (0, 0, 0, seen.shape[2] - y.shape[1] + 1))[:, None]
        gradient, origin = (seen.mT @ (seen @ weights - targets), seen.mT @ targets)
        converged = gradient.flatten(2).norm(dim=2) <= SOLVED * origin.flatten(2).norm(dim=2)
        return weights_trace(self.name, [0], prompts, weights[None], converged[None])

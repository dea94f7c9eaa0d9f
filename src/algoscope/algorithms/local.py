"""Averages of the targets over the examples that are like the query: regression without weights on x."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from algoscope import arguments
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
class KernelSmoother(Algorithm):
    """Σ_i a_i y_i over the examples seen, a = softmax(q·x_i / T) for the query q; zero before the first example.

    Nadaraya 1964 and Watson 1964: softmax attention with the inputs as keys and the targets as values. `temperature` is
    T, "sqrt(dim)" as in transformers or a number. `kernel` "gaussian" takes −‖q − x_i‖²/2T in place of q·x_i / T, which
    is the same where all inputs have one norm. It has no weights on x. One stage, labeled 0.
    """

    aliases = ("nadaraya-watson",)

    temperature: Literal["sqrt(dim)"] | float = "sqrt(dim)"
    kernel: Literal["softmax", "gaussian"] = "softmax"

    def __post_init__(self) -> None:
        arguments.number_or_choice("temperature", self.temperature, ["sqrt(dim)"])
        arguments.choice("kernel", self.kernel, ["softmax", "gaussian"])

    def keeps(self, symmetry: Symmetry) -> bool | None:
        return False if isinstance(symmetry, ScaleInputs) else _keeps(symmetry)

    def trace(self, prompts: Prompts) -> Trace:
        x = prompts.x.double()
        scores = x[:, 1:] @ x[:, :-1].mT
        if self.kernel == "gaussian":
            scores = scores - x[:, None, :-1].square().sum(-1) / 2  # ‖q‖² is the same for all, so softmax drops it
        temperature = prompts.dim**0.5 if isinstance(self.temperature, str) else self.temperature
        shares = torch.where(_seen(prompts), scores / temperature, -torch.inf).softmax(-1)
        return _averages(self.name, shares, prompts)


@dataclass(frozen=True)
class NearestNeighbors(Algorithm):
    """The mean target of the k examples whose inputs are nearest to the query; zero before the first example.

    Fix and Hodges 1951. `count` is k; so long as fewer are seen, it is the mean of all of them. Of examples that are
    equally near, the earlier ones count. It has no weights on x. One stage, labeled 0.
    """

    aliases = ("knn",)

    count: int = 3

    def __post_init__(self) -> None:
        arguments.size("count", self.count)

    def keeps(self, symmetry: Symmetry) -> bool | None:
        return True if isinstance(symmetry, ScaleInputs) else _keeps(symmetry)

    def trace(self, prompts: Prompts) -> Trace:
        x, seen = prompts.x.double(), _seen(prompts)
        exact = "donot_use_mm_for_euclid_dist"  # equal inputs are at distance zero
        distances = torch.cdist(x[:, 1:], x[:, :-1], compute_mode=exact)
        ranks = torch.where(seen, distances, torch.inf).argsort(dim=-1, stable=True).argsort(dim=-1)
        chosen = (seen & (ranks < self.count)).double()
        return _averages(self.name, chosen / chosen.sum(-1, keepdim=True), prompts)


def _keeps(symmetry: Symmetry) -> bool | None:
    """What averages keep, whatever likeness is."""
    match symmetry:
        case AddTargets() | PermuteExamples() | RotateInputs():
            return True
        case AddQueries() | FlipExamples() | MixExamples() | ExchangeSpectrum():
            return False
    return None


def _seen(prompts: Prompts) -> Bool[Tensor, "examples examples"]:
    """Whether the query at t = 1..examples has seen each of the examples."""
    examples = prompts.positions - 1
    return torch.ones(examples, examples, dtype=torch.bool, device=prompts.x.device).tril()


def _averages(name: str, shares: Float[Tensor, "batch examples examples"], prompts: Prompts) -> Trace:
    means = shares @ prompts.target_columns[:, :-1].double()
    values = torch.nn.functional.pad(means, (0, 0, 1, 0))
    return Trace(name, values.reshape(1, *prompts.y.shape), (0,), prompts)

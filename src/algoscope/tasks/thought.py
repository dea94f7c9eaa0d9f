"""Chain of thought made by a network: every intermediate state is a token (Li et al. 2023; Gao et al. 2024)."""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from algoscope import arguments, randomness
from algoscope.contracts import Algorithm, Task
from algoscope.tasks.candidates import on_features, spanning, steady_rate
from algoscope.tasks.regression import in_use
from algoscope.tasks.representation import SLOPE, keeps_scale
from algoscope.trace import Prompts


@dataclass(frozen=True)
class ChainOfThought(Task):
    """Chain of thought: every state of a network, one after the other.

    Chains x, s¹, …, s^L with s^l = leaky ReLU(W_l s^{l−1}) and x ~ N(0, I), of one network of `depth` L per prompt.

    A prompt holds `examples` + 1 chains. Every state but the last of a chain answers with the next one, so a prompt
    asks for L predictions a chain; x and y of prompts hold a state and the next. Weights keep the scale of a state.
    """

    dim: int = 20  # size of a state
    examples: int = 40  # chains before the one asked about
    depth: int = 6  # steps of a chain
    slope: float = SLOPE  # of the leaky ReLU

    def __post_init__(self) -> None:
        arguments.size("dim", self.dim)
        arguments.size("examples", self.examples, 0)
        arguments.integer("depth", self.depth, 1, 10_000)
        arguments.scale("slope", self.slope, strict=True)

    def algorithms(self) -> list[Algorithm]:
        return on_features(self, self.noise, self.dim, steady_rate(self))

    def spanning(self) -> list[Algorithm]:
        return spanning(self)

    @property
    def spread(self) -> float:
        """The deviation of a weight."""
        return keeps_scale(self.slope, self.dim)

    @property
    def power(self) -> float:
        return 1.0

    @property
    def length(self) -> int:
        return (self.examples + 1) * (self.depth + 1) - 1

    @property
    def inputs(self) -> int:
        return self.dim

    @property
    def outputs(self) -> int:
        return self.dim

    @property
    def answers(self) -> tuple[int, ...]:
        return tuple(token for token in range(self.length) if token % (self.depth + 1) != self.depth)

    def draw(
        self,
        batch: int,
        generators: Sequence[torch.Generator],
        dtype: torch.dtype = torch.float64,
        dims: Tensor | None = None,
    ) -> tuple[Float[Tensor, "batch points dim"], Float[Tensor, "batch points *target"]]:
        normal = functools.partial(randomness.normal, generators, batch, dtype=dtype)
        states, scale = [in_use(normal(self.examples + 1, self.dim), dims)], self.spread
        scale = scale if dims is None else scale * (self.dim / dims.clamp(max=self.dim)).to(dtype).sqrt()
        for _ in range(self.depth):
            reached = states[-1] @ (normal(self.dim, self.dim) * scale)
            states.append(functional.leaky_relu(in_use(reached, dims), self.slope))
        x, y = (torch.stack(part, dim=2).flatten(1, 2) for part in (states[:-1], states[1:]))
        return x, y if self.dim > 1 else y[..., 0]

    def encode(
        self, x: Float[Tensor, "batch points dim"], y: Float[Tensor, "batch points *target"]
    ) -> Float[Tensor, "batch length inputs"]:
        """The chains one after the other; the last state of all is left out."""
        x, y = (part.reshape(len(x), self.examples + 1, self.depth, self.dim) for part in (x, y))
        return torch.cat([x, y[:, :, -1:]], dim=2).flatten(1, 2)[:, :-1]

    def decode(self, tokens: Float[Tensor, "batch length inputs"]) -> Prompts:
        chains = functional.pad(tokens, (0, 0, 0, 1)).unflatten(1, (self.examples + 1, self.depth + 1))
        x, y = (part.flatten(1, 2) for part in (chains[:, :, :-1], chains[:, :, 1:]))
        return Prompts(x, y if self.dim > 1 else y[..., 0], self.noise, self.power)

    def problems(self, prompts: Prompts) -> list[Prompts]:
        """The linear regressions that the layers of the network are: from a state to the next, activation undone."""
        x = prompts.x.unflatten(1, (-1, self.depth))
        y = prompts.target_columns.unflatten(1, (-1, self.depth))
        y = torch.where(y > 0, y, y / self.slope)
        return [Prompts(x[:, :, k], y[:, :, k]) for k in range(self.depth)]

    def solved(
        self, values: Sequence[Float[Tensor, "*stages batch chains dim"]]
    ) -> Float[Tensor, "*stages batch points dim"]:
        """States, given what goes into the activation of each layer."""
        return functional.leaky_relu(torch.stack(list(values), dim=-2).flatten(-3, -2), self.slope)

    def expected(
        self, means: Sequence[Float[Tensor, "batch chains dim"]], deviations: Sequence[Float[Tensor, "batch chains"]]
    ) -> Float[Tensor, "batch points dim"]:
        """States to be expected where what goes into the activation of each layer is normal, given its mean and
        deviation.
        """
        mean = torch.stack(list(means), dim=-2).flatten(-3, -2)
        deviation = torch.stack(list(deviations), dim=-1).flatten(-2)[..., None]
        ratio = mean / deviation.clamp(min=torch.finfo(mean.dtype).tiny)
        density = torch.exp(-ratio.square() / 2) / math.sqrt(2 * math.pi)
        positive = mean * torch.special.ndtr(ratio) + deviation * density  # E[max(z, 0)]
        return self.slope * mean + (1 - self.slope) * positive

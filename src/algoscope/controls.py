"""Models whose answer is known: the instrument's word counts only after it has named these.

A planted model runs an algorithm on the prompts that it is shown, so many steps a layer, and writes the prediction into
its stream together with noise, among distractors, under a random rotation. A null model holds nothing to be found: it
is untrained, or it runs its algorithm on labels that were shuffled between sequences.
"""

import hashlib
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from algoscope import arguments
from algoscope.algorithms import Algorithm, Ridge
from algoscope.randomness import stream
from algoscope.tasks import LinearRegression
from algoscope.trace import Prompts, Stage, Trace

VISIBLE = 0.01  # normalized squared distance from the end of an algorithm


@dataclass(frozen=True)
class Planted:
    """A function from tokens to the states of its layers; each layer holds one step of an algorithm.

    The state of an answering token is a rotation of (prediction + noise, distractors). `noise` is a standard deviation
    in units of the targets'; the distractors are as large as the targets and independent of them. Noise and distractors
    depend on `seed` and on the batch of tokens alone, so this is a function. With `shuffled` labels it is a null.
    """

    task: LinearRegression
    algorithm: Algorithm
    noise: float = 0.0
    width: int = 32
    seed: int = 0
    shuffled: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.task, LinearRegression):
            raise ValueError(f"task must be a LinearRegression, got {arguments.shown(self.task)}")
        if not isinstance(self.algorithm, Algorithm):
            raise ValueError(f"algorithm must be one such as Newton(steps=24), got {arguments.shown(self.algorithm)}")
        arguments.number("noise", self.noise)
        arguments.integer("width", self.width, 1, 10_000)
        arguments.integer("seed", self.seed, 0)
        arguments.boolean("shuffled", self.shuffled)
        if self.task.targets > 1:
            raise ValueError(f"task must have one target, got {self.task.targets}")

    @property
    def layers(self) -> dict[str, Stage]:
        """The step that each layer holds."""
        steps = self._trace(self.task.sample(1, seed=0)).stages
        return {f"layer {k + 1}": step for k, step in enumerate(steps)}

    def __call__(self, tokens: Float[Tensor, "batch length inputs"]) -> dict[str, Float[Tensor, "batch length width"]]:
        if not isinstance(tokens, Tensor) or tokens.shape[1:] != (self.task.length, self.task.inputs):
            wanted = f"[batch, {self.task.length}, {self.task.inputs}]"
            raise ValueError(
                f"tokens must be a tensor {wanted}, as task.encode makes them, got {type(tokens).__name__}"
            )
        arguments.real("tokens", tokens)
        tokens = (
            tokens.detach().cpu() if tokens.dtype in (torch.float32, torch.float64) else tokens.detach().cpu().float()
        )
        trace = self._trace(self._prompts(tokens.double()))
        digest = hashlib.sha256(tokens.numpy().tobytes()).digest()
        generator = stream(f"planted {int.from_bytes(digest[:6], 'big')}", self.seed)
        unit, batch, length = self.task.power**0.5, *tokens.shape[:2]
        rotation, _ = torch.linalg.qr(_normal(stream("rotation", self.seed), self.width, self.width))
        states = {}
        for k, values in enumerate(trace.values):
            state = unit * _normal(generator, batch, length, self.width)
            state[:, ::2, 0] = values + self.noise * state[:, ::2, 0]  # at the tokens of x
            states[f"layer {k + 1}"] = state @ rotation
        return states

    def _prompts(self, tokens: Float[Tensor, "batch length inputs"]) -> Prompts:
        """What `LinearRegression.encode` encoded; the last target, which no token holds, is 0."""
        x, y = tokens[:, ::2, : self.task.dim], tokens[:, 1::2, 0]
        y = torch.nn.functional.pad(y.roll(1, 0) if self.shuffled else y, (0, 1))
        return Prompts(x, y, self.task.noise, self.task.power)

    def _trace(self, prompts: Prompts) -> Trace:
        return self.algorithm.trace(prompts)

    def before_saturation(self) -> dict[str, bool]:
        """Whether what a layer holds still differs visibly from where its iteration ends."""
        prompts = self.task.sample(200, seed=0)
        trace, end = self._trace(prompts), Ridge().trace(prompts)  # without noise: ordinary least squares
        off = (trace.values - end.values).square().flatten(1).mean(1) / prompts.normalizer()
        closed = len(trace) == 1  # a closed form does not iterate
        return dict(zip(self.layers, ((off > VISIBLE) | closed).tolist(), strict=True))


def _normal(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=torch.float64)

"""Planted models: a known algorithm, written into the states of a model.

A planted model runs an algorithm on the prompts that it is shown, one step a stage, and writes what that has computed
into states that the task's reader reads: values among distractors, under a random rotation; or the look-ups of an
index. A null model holds nothing to be found: it is untrained, or it runs its algorithm on targets, or where tokens
show none on inputs, that were shuffled between sequences.
"""

import hashlib
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from algoscope import arguments
from algoscope.algorithms import Algorithm
from algoscope.contracts import Reader, Task
from algoscope.randomness import stream
from algoscope.reading.readers import reader_of
from algoscope.trace import Prompts, Stage, Trace

VISIBLE = 0.01  # normalized squared distance from the end of an algorithm, or share of labels that differ from it


@dataclass(frozen=True)
class Planted:
    """A function from tokens to the states of its stages, each of which holds one step of an algorithm.

    `noise` is a standard deviation in units of the targets', or of look-ups the share that reads a random point. Noise
    and distractors depend on `seed` and on the batch of tokens alone, so this is a function. With `shuffled` targets,
    or inputs, it is a null.
    """

    algorithm: Algorithm
    task: Task
    noise: float = 0.0
    seed: int = 0
    shuffled: bool = False
    reader: Reader | None = None  # whose states it writes; by default the task's own

    def __post_init__(self) -> None:
        if not isinstance(self.algorithm, Algorithm):
            raise ValueError(f"algorithm must be one such as Newton(steps=24), got {arguments.shown(self.algorithm)}")
        if not isinstance(self.task, Task) or self.task.family != self.algorithm.family:
            family = self.algorithm.family
            raise ValueError(f"task must be one of the family {family!r}, got {arguments.shown(self.task)}")
        arguments.number("noise", self.noise)
        arguments.integer("seed", self.seed, 0)
        arguments.boolean("shuffled", self.shuffled)

    @property
    def stages(self) -> dict[str, Stage]:
        """The step that each stage holds."""
        one = self.task.sample(1, seed=0)
        steps = self.algorithm.trace(one).stages
        return dict(zip(self._states(self.algorithm.trace(one), stream("names", 0)), steps, strict=True))

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
        prompts = self.task.decode(tokens.double())
        trace = self.algorithm.trace(_shuffled(prompts) if self.shuffled else prompts)
        digest = hashlib.sha256(tokens.numpy().tobytes()).digest()
        return self._states(trace, stream(f"planted {int.from_bytes(digest[:6], 'big')}", self.seed))

    def _states(self, trace: Trace, drawn: torch.Generator) -> dict[str, Tensor]:
        reader, fixed = self.reader or reader_of(self.task), stream("rotation", self.seed)
        states = reader.write(trace.values, self.task, self.noise, fixed, drawn)
        if states is None:
            raise ValueError(f"the reader of {type(self.task).__name__} must have a method write, to plant algorithms")
        return states

    def before_saturation(self) -> dict[str, bool]:
        """Whether what a stage holds still differs visibly from where its iteration ends, and can tell algorithms
        apart.
        """
        return dict(zip(self.stages, before_saturation(self.algorithm, self.task), strict=True))


def before_saturation(algorithm: Algorithm, task: Task) -> list[bool]:
    """Of each step of an algorithm: whether it still differs visibly from where the iteration ends."""
    prompts = task.sample(200, seed=0)
    trace = algorithm.trace(prompts)
    forms, measure = [each for each in task.algorithms() if each.closed_form], task.measure
    at = torch.arange(prompts.positions) >= task.first - prompts.before
    if len(trace) == 1 or not forms:  # a closed form does not iterate
        return [True] * len(trace) if measure is None else measure.informative(trace, at).tolist()
    end = forms[-1].trace(prompts).values[-1]  # that for noise, if there is noise
    if task.labels:
        off = (trace.values != end).double().flatten(1).mean(1)
    else:
        off = (trace.values - end).square().flatten(1).mean(1) / prompts.normalizer()
    return (off > VISIBLE).tolist()


def _shuffled(prompts: Prompts) -> Prompts:
    """With the targets of another sequence, or the inputs where tokens show no targets."""
    if bool(prompts.y.any()):
        return replace(prompts, y=prompts.y.roll(1, 0))
    return replace(prompts, x=prompts.x.roll(1, 0))

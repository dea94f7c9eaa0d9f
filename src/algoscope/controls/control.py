"""One control: a task, a model whose answer is known, and the list of algorithms that it is compared with."""

import hashlib
import json
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, TypeAlias

from torch import Tensor, nn

from algoscope import arguments, runs
from algoscope.contracts import Algorithm, Model, Show, Task
from algoscope.controls.planted import Planted, before_saturation
from algoscope.randomness import stream
from algoscope.trace import Stage

Kind: TypeAlias = Literal["listed", "unlisted", "null", "by hand"]
KINDS: tuple[Kind, ...] = ("listed", "unlisted", "null", "by hand")
NUMBERS = "tensor"  # what the description of one begins with
# Of networks written by hand: step k of the algorithm is at the stage of this word with the number a·k + b.
STAGES = {
    "newton": ("layer", 1, 3),
    "causal_newton": ("layer", 2, 4),
    "gradient_descent": ("loop", 1, 0),
    "representation_regression": ("loop", 1, 0),
    "connectivity": ("layer", 1, 0),
}


@dataclass(frozen=True)
class Control:
    """A model whose answer is known, and what it is compared with.

    `kind` is "listed", a planted `algorithm` whose steps are on the list of the task; "unlisted", one whose steps are
    not; "null", where there is nothing to find: an algorithm on shuffled prompts, or an untrained `network`; or "by
    hand", a network whose weights are written so that it runs the algorithm. The `group` is what sort of that it is,
    and of a network by hand the function that writes it. Planted states have `noise`. `seed` is that of the prompts,
    and of whatever else is random. With `left_out`, all algorithms of that method are taken off the list.
    """

    task: Task
    kind: Kind
    group: str
    seed: int
    algorithm: Algorithm | None = None
    noise: float = 0.0
    network: Model | None = None
    left_out: str = ""

    def __post_init__(self) -> None:
        arguments.choice("kind", self.kind, KINDS)
        if self.algorithm is None and (self.kind != "null" or self.network is None):
            raise ValueError("algorithm must be given, unless the control is an untrained network")

    @property
    def family(self) -> str:
        """Of its task."""
        return self.task.family

    @property
    def compared(self) -> list[Algorithm]:
        """The list."""
        return [each for each in self.task.algorithms() if each.method != self.left_out]

    def model(self) -> Show | nn.Module:
        """From tokens to the states of its stages."""
        if self.network is not None:
            task, drawn = self.task, stream("untrained", self.seed)
            return self.network.build(task.inputs, task.outputs, task.length, drawn)
        assert self.algorithm is not None
        return Planted(self.algorithm, self.task, self.noise, self.seed, shuffled=self.kind == "null")

    @cached_property
    def steps(self) -> dict[str, Stage]:
        """The step of the algorithm that each of some stages holds; those of a null hold none."""
        if self.algorithm is None or self.kind == "null":
            return {}
        if self.network is None:
            return Planted(self.algorithm, self.task, self.noise, self.seed).stages
        (word, times, plus), own = STAGES[self.group], self.algorithm.trace(self.task.sample(1, seed=0)).stages
        return {f"{word} {times * step + plus}": step for step in own if isinstance(step, int)}

    def before_saturation(self) -> dict[str, bool]:
        """Of the same stages: whether what they hold still differs visibly from where the iteration ends."""
        assert self.algorithm is not None
        return dict(zip(self.steps, before_saturation(self.algorithm, self.task), strict=True))

    def line(self) -> str:
        """All of it in one line of JSON, from which `read` makes it again if its fields are plain."""
        known = {each.name: runs.plain(getattr(self, each.name)) for each in fields(self)}
        return json.dumps(known, default=_described, ensure_ascii=False)

    @staticmethod
    def read(line: str) -> "Control":
        """The control of a line."""
        if f'"{NUMBERS} [' in line:
            raise ValueError("line must be of a control with plain fields; this one only describes its tensors")
        known: dict[str, Any] = json.loads(line)
        parts = {name: value for name, value in known.items() if isinstance(value, dict)}
        return Control(**(known | {name: runs.revive(value, Task, Algorithm, Model) for name, value in parts.items()}))


def _described(value: object) -> str:
    """Of numbers that an algorithm was given: enough to tell them from others."""
    if not isinstance(value, Tensor):
        raise ValueError(f"a control must hold plain values and tensors, got {arguments.shown(value)}")
    digest = hashlib.sha256(value.detach().cpu().double().numpy().tobytes()).hexdigest()[:12]
    return f"{NUMBERS} {list(value.shape)} {digest}"

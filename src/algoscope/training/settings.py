"""The dials of a training run, as values."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from algoscope import arguments
from algoscope.tasks import Task

PRECISIONS = ("auto", "bf16", "tf32", "fp32", "fp64")
SCHEDULES = ("cosine", "constant")
OPTIMIZERS = ("muon", "adamw")


@dataclass(frozen=True)
class Curriculum:
    """Easier prompts first (Garg et al. 2022): a dimension and two points more every `interval` steps.

    Coordinates not yet in use are zero and positions not yet in use are left out of the loss, so shapes never change.
    """

    dims: int = 5
    points: int = 11
    interval: int = 250

    def __post_init__(self) -> None:
        arguments.integer("dims", self.dims, 1)
        arguments.integer("points", self.points, 1)
        arguments.integer("interval", self.interval, 1)

    def in_use(self, step: Int[Tensor, ""]) -> tuple[Int[Tensor, ""], Int[Tensor, ""]]:
        """Dimensions and points at a step; they may exceed what the task has."""
        rises = step // self.interval
        return self.dims + rises, self.points + 2 * rises


@dataclass(frozen=True)
class Settings:
    """How to train: the optimizer, with warm-up, clipping of each member's gradient, and a cosine or constant rate.

    The defaults train the networks of the papers in the fewest steps that we found (docs/log.md).
    """

    steps: int
    batch: int = 64
    optimizer: Literal["muon", "adamw"] = "muon"
    warmup: int = 500  # steps of linear rise of the learning rate
    schedule: Literal["cosine", "constant"] = "cosine"
    clip: float = 1.0  # largest norm of a gradient
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.95, 0.99)  # how much of the moments a step keeps
    precision: Literal["auto", "bf16", "tf32", "fp32", "fp64"] = "auto"  # bf16 on a GPU, fp32 on a CPU
    compile: bool | None = None  # many operations into few; None: on a GPU only, since it takes time to begin with
    curriculum: Curriculum | None = Curriculum()
    log_every: int = 100  # steps; the host looks at the device only then
    checkpoint_every: int = 1000

    def __post_init__(self) -> None:
        arguments.integer("steps", self.steps, 1)
        arguments.integer("batch", self.batch, 1)
        arguments.integer("warmup", self.warmup, 0)
        arguments.choice("optimizer", self.optimizer, OPTIMIZERS)
        arguments.choice("schedule", self.schedule, SCHEDULES)
        arguments.number("clip", self.clip, strict=True)
        arguments.number("weight_decay", self.weight_decay)
        arguments.choice("precision", self.precision, PRECISIONS)
        arguments.integer("log_every", self.log_every, 1)
        arguments.integer("checkpoint_every", self.checkpoint_every, 1)
        if self.checkpoint_every % self.log_every:
            raise ValueError(f"checkpoint_every must be a multiple of log_every = {self.log_every}")

    def on(self, device: torch.device) -> "Settings":
        """With what "auto" precision and no choice of compilation stand for on a device."""
        on_gpu = device.type == "cuda"
        precision = ("bf16" if on_gpu else "fp32") if self.precision == "auto" else self.precision
        return replace(self, precision=precision, compile=on_gpu if self.compile is None else self.compile)

    @property
    def dtype(self) -> torch.dtype:
        return torch.float64 if self.precision == "fp64" else torch.float32

    def rate(self, step: Int[Tensor, "*steps"]) -> Float[Tensor, "*steps"]:
        """The learning rate at a step, as a share of its peak."""
        progress = step.double()
        rise = ((progress + 1) / max(self.warmup, 1)).clamp(max=1.0)
        if self.schedule == "constant":
            return rise
        left = ((progress - self.warmup) / max(self.steps - self.warmup, 1)).clamp(0, 1)
        return rise * (1 + torch.cos(torch.pi * left)) / 2


@dataclass(frozen=True)
class Member:
    """One model of a population: what it is trained on, from which seed, how fast."""

    task: Task
    seed: int = 0
    learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        arguments.integer("seed", self.seed, 0)
        arguments.number("learning_rate", self.learning_rate, strict=True)


def check_members(members: Sequence[Member]) -> None:
    """Members share one program, so their tokens must have one shape."""
    if not members:
        raise ValueError("members must hold at least one member")
    shapes = {(m.task.length, m.task.inputs, m.task.outputs) for m in members}
    if len(shapes) > 1:
        raise ValueError(f"members must have tasks of one shape (length, inputs, outputs), got {sorted(shapes)}")

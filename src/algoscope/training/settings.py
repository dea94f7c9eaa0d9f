"""The settings of a training run, as values."""

import math
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from algoscope import arguments
from algoscope.tasks import Task

PRECISIONS = ("auto", "bf16", "tf32", "fp32", "fp64")
SCHEDULES = ("cosine", "constant")
OPTIMIZERS = ("muon", "adamw", "sgd")
LONGEST_RUN = 10**8  # steps: each has numbers of its own, such as its learning rate
LONGEST = 250  # steps between two rises of the curriculum, unless more are asked for


@dataclass(frozen=True)
class Curriculum:
    """Easier prompts first (Garg et al. 2022): a dimension and two points more every `interval` steps.

    Coordinates not yet in use are zero and positions not yet in use are left out of the loss, so shapes never change.
    Without an interval: 250 steps, or fewer, so that a quarter of a run reaches the whole task.
    """

    dims: int = 5
    points: int = 11
    interval: int | None = None

    @arguments.checking
    def __post_init__(self) -> None:
        arguments.integer("dims", self.dims, 1)
        arguments.integer("points", self.points, 1)
        if self.interval is not None:
            arguments.integer("interval", self.interval, 1)

    def within(self, steps: int, task: Task) -> "Curriculum":
        """With an interval that reaches the whole task in so many steps."""
        rises = max(task.inputs - self.dims, math.ceil((task.positions - self.points) / 2), 0)
        interval = self.interval or max(min(LONGEST, steps // (4 * max(rises, 1))), 1)
        if rises * interval >= steps:
            raise ValueError(
                f"curriculum must reach the whole task before the end: it takes {rises} times {interval} steps, and "
                f"steps is {steps}; raise steps, or lower interval"
            )
        return replace(self, interval=interval)

    def in_use(self, step: Int[Tensor, ""]) -> tuple[Int[Tensor, ""], Int[Tensor, ""]]:
        """Dimensions and points at a step; they may exceed what the task has."""
        rises = step // (self.interval or LONGEST)
        return self.dims + rises, self.points + 2 * rises


@dataclass(frozen=True)
class Settings:
    """How to train: the optimizer, with warm-up, clipping of each member's gradient, and a cosine or constant rate.

    The defaults train the networks of the papers in the fewest steps that we found (docs/log.md).
    """

    steps: int  # of training
    batch: int = 64  # prompts of a step
    optimizer: Literal["muon", "adamw", "sgd"] = "muon"  # sgd: plain, without momentum
    warmup: int | None = None  # steps of linear rise of the learning rate; None: a tenth of all, at most 500
    schedule: Literal["cosine", "constant"] = "cosine"  # of the learning rate, after its rise
    clip: float = 1.0  # largest norm of a gradient
    weight_decay: float = 0.0  # of every parameter
    betas: tuple[float, float] = (0.95, 0.99)  # how much of the moments a step keeps
    precision: Literal["auto", "bf16", "tf32", "fp32", "fp64"] = "auto"  # bf16 on a GPU, fp32 on a CPU
    compile: bool | None = None  # torch.compile; None: on a GPU only, since compiling takes time
    curriculum: Curriculum | None = Curriculum()  # easier prompts first, on tasks that have them
    log_every: int = 100  # steps between metrics; the host waits for the device only then
    checkpoint_every: int = 1000  # steps; a run that is killed resumes from the last one
    checkpoint_steps: tuple[int, ...] = ()  # steps whose weights are saved for later analysis

    @arguments.checking
    def __post_init__(self) -> None:
        arguments.integer("steps", self.steps, 1, LONGEST_RUN)
        arguments.size("batch", self.batch)
        if self.warmup is not None:
            arguments.integer("warmup", self.warmup, 0)
            if self.warmup >= self.steps:
                raise ValueError(f"warmup must be less than steps = {self.steps}, got {self.warmup}")
        arguments.choice("optimizer", self.optimizer, OPTIMIZERS)
        arguments.choice("schedule", self.schedule, SCHEDULES)
        arguments.number("clip", self.clip, strict=True)
        arguments.number("weight_decay", self.weight_decay)
        two = isinstance(self.betas, tuple | list) and len(self.betas) == 2
        if not two or not all(isinstance(beta, int | float) and 0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas must be two numbers from 0 up to but not 1, got {arguments.shown(self.betas)}")
        arguments.choice("precision", self.precision, PRECISIONS)
        if not any(self.compile is known for known in (None, True, False)):
            raise ValueError(f"compile must be True, False or None, got {arguments.shown(self.compile)}")
        if not isinstance(self.curriculum, Curriculum | None):
            raise ValueError(f"curriculum must be a Curriculum or None, got {arguments.shown(self.curriculum)}")
        arguments.size("log_every", self.log_every)
        arguments.integer("checkpoint_every", self.checkpoint_every, 1)
        if self.checkpoint_every % self.log_every:
            raise ValueError(f"checkpoint_every must be a multiple of log_every = {self.log_every}")
        if not isinstance(self.checkpoint_steps, tuple | list):
            raise ValueError(f"checkpoint_steps must be a tuple of steps, got {arguments.shown(self.checkpoint_steps)}")
        for step in self.checkpoint_steps:
            arguments.integer("checkpoint_steps", step, 1)
            if step > self.steps:
                raise ValueError(f"checkpoint_steps must be at most steps = {self.steps}, got {step}")

    def on(self, device: torch.device, task: Task) -> "Settings":
        """With defaults that depend on the device and the task filled in."""
        on_gpu = device.type == "cuda"
        return replace(
            self,
            warmup=min(self.steps // 10, 500) if self.warmup is None else self.warmup,
            precision=("bf16" if on_gpu else "fp32") if self.precision == "auto" else self.precision,
            compile=on_gpu if self.compile is None else self.compile,
            curriculum=self.curriculum.within(self.steps, task) if self.curriculum and task.gradual else None,
        )

    @property
    def dtype(self) -> torch.dtype:
        return torch.float64 if self.precision == "fp64" else torch.float32

    def rate(self, step: Int[Tensor, "*steps"]) -> Float[Tensor, "*steps"]:
        """The learning rate at a step, as a share of its peak."""
        progress, warmup = step.double(), self.warmup or 0
        rise = ((progress + 1) / max(warmup, 1)).clamp(max=1.0)
        if self.schedule == "constant":
            return rise
        left = ((progress - warmup) / max(self.steps - warmup, 1)).clamp(0, 1)
        return rise * (1 + torch.cos(torch.pi * left)) / 2


@dataclass(frozen=True)
class Member:
    """One model of a population: its task, seed and learning rate."""

    task: Task
    seed: int = 0
    learning_rate: float = 1e-3

    @arguments.checking
    def __post_init__(self) -> None:
        if not isinstance(self.task, Task):
            raise ValueError(f"task must be one such as LinearRegression(dim=5), got {arguments.shown(self.task)}")
        arguments.integer("seed", self.seed, 0)
        arguments.number("learning_rate", self.learning_rate, strict=True)

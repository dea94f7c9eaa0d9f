"""The dials of a training run, as values."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from algoscope import arguments
from algoscope.models import Model, Network
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
    compile: bool | None = None  # many operations into few; None: on a GPU only, since it takes time to begin with
    curriculum: Curriculum | None = Curriculum()  # easier prompts first, on tasks that have them
    log_every: int = 100  # steps; the host looks at the device only then
    checkpoint_every: int = 1000  # steps; a run that is stopped or killed resumes there
    keep: tuple[int, ...] = ()  # steps after which the weights are kept as well

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
        if not isinstance(self.keep, tuple | list):
            raise ValueError(f"keep must be a tuple of steps, got {arguments.shown(self.keep)}")
        for step in self.keep:
            arguments.integer("keep", step, 1)
            if step > self.steps:
                raise ValueError(f"keep must name steps up to steps = {self.steps}, got {step}")

    def on(self, device: torch.device, task: Task) -> "Settings":
        """With all that was left open filled in."""
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
    """One model of a population: what it is trained on, from which seed, how fast."""

    task: Task
    seed: int = 0
    learning_rate: float = 1e-3

    @arguments.checking
    def __post_init__(self) -> None:
        if not isinstance(self.task, Task):
            raise ValueError(f"task must be one such as LinearRegression(dim=5), got {arguments.shown(self.task)}")
        arguments.integer("seed", self.seed, 0)
        arguments.number("learning_rate", self.learning_rate, strict=True)


def check_members(members: Sequence[Member], model: Model) -> None:
    """Members share one program, so their prompts and tokens must have one form, and one that the model takes."""
    if not members:
        raise ValueError("members must hold at least one member")
    for member in members:
        if model.family not in (None, member.task.family):
            kind = type(model).__name__
            raise ValueError(f"{kind} needs a task of the family {model.family!r}, got one of {member.task.family!r}")
    forms, tasks = set(), dict.fromkeys(member.task for member in members)
    for task in tasks if len(tasks) > 1 else ():
        one = task.sample(1, seed=0)
        forms.add((type(task).__name__, task.length, task.inputs, task.outputs, *one.x.shape, *one.y.shape))
    if len(forms) > 1:
        raise ValueError(f"members must have tasks of one kind and shape, got {[member.task for member in members]}")


def outline(model: Model, task: Task) -> Network:
    """The network of a model for a task without its numbers: its parameters have shapes, and take no memory.

    A model that cannot be built so, as it may need its numbers, is built whole.
    """
    sizes = task.inputs, task.outputs, task.length
    try:
        with torch.device("meta"):
            return model.build(*sizes, torch.Generator())
    except Exception as problem:
        if "overflow" in f"{type(problem).__name__} {problem}".lower():
            raise ValueError(f"{model} is too large: it has more parameters than can be counted") from None
    return model.build(*sizes, torch.Generator())


def check_memory(model: Model, members: Sequence[Member], batch: int, device: torch.device) -> None:
    """Refuses what cannot fit: weights, gradients and two moments of each parameter, and the tokens of a batch."""
    have, task = memory(device), members[0].task
    parameters = len(members) * outline(model, task).parameter_count
    tokens = len(members) * batch * task.length * (task.inputs + task.outputs)
    need = 4 * (4 * parameters + tokens)
    if have is not None and need > have:
        gib = f"{need / 2**30:.3g} GiB, and this {device.type} has {have / 2**30:.3g}"
        raise ValueError(f"too large: {parameters:.3g} parameters and {tokens:.3g} numbers a batch take {gib}")


def memory(device: torch.device) -> int | None:
    """All that a device has, in bytes, where that is known."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None

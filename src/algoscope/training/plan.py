"""What to train, checked once: members that one program can train, and settings with all filled in."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from algoscope import arguments, runs
from algoscope.models import Model, Network
from algoscope.tasks import Task
from algoscope.training.settings import Member, Settings


@dataclass(frozen=True)
class Plan:
    """Members of one model, to be trained side by side; `settings` are those for this device and task."""

    model: Model
    members: tuple[Member, ...]
    settings: Settings
    device: torch.device

    @staticmethod
    def of(model: Model, members: Sequence[Member], settings: Settings, device: torch.device) -> "Plan":
        _check_members(model, members)
        if not isinstance(settings, Settings):
            raise ValueError(f"settings must be Settings(steps=…), got {arguments.shown(settings)}")
        _check_memory(model, members, settings.batch, device)
        return Plan(model, tuple(members), settings.on(device, members[0].task), device)

    @property
    def task(self) -> Task:
        """That of the first member; tokens and answers of all have its shape."""
        return self.members[0].task

    @property
    def config(self) -> dict[str, object]:
        return {name: runs.plain(getattr(self, name)) for name in runs.PARTS}


def _check_members(model: Model, members: Sequence[Member]) -> None:
    """Members share one program, so their prompts and tokens must have one form, and one that the model takes."""
    if not isinstance(model, Model):
        raise ValueError(f"model must be one such as Transformer(layers=2), got {arguments.shown(model)}")
    if not isinstance(members, Sequence) or not all(isinstance(member, Member) for member in members):
        raise ValueError(f"members must be a list such as [Member(task, seed=0)], got {arguments.shown(members)}")
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


def _check_memory(model: Model, members: Sequence[Member], batch: int, device: torch.device) -> None:
    """Refuses what cannot fit: weights, gradients and two moments of each parameter, and the tokens of a batch."""
    have, task = _memory(device), members[0].task
    parameters = len(members) * outline(model, task).parameter_count
    tokens = len(members) * batch * task.length * (task.inputs + task.outputs)
    need = 4 * (4 * parameters + tokens)
    if have is not None and need > have:
        gib = f"{need / 2**30:.3g} GiB, and this {device.type} has {have / 2**30:.3g}"
        raise ValueError(f"too large: {parameters:.3g} parameters and {tokens:.3g} numbers a batch take {gib}")


def _memory(device: torch.device) -> int | None:
    """All that a device has, in bytes, where that is known."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None

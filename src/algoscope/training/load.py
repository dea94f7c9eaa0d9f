"""From a run folder back to what was trained."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from algoscope import arguments, documents, runs
from algoscope.models import Model, Network
from algoscope.tasks import Task
from algoscope.training.layout import Layout
from algoscope.training.plan import outline
from algoscope.training.settings import Curriculum, Member, Settings

NAMED = (Model, Task, Curriculum, Member, Settings)  # what a configuration may name, and what extends it
KINDS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)  # that weights are stored in
Record: TypeAlias = dict[str, int | float | None]  # a line of the metrics; None where a number is not finite


@dataclass(frozen=True)
class Configuration:
    """The model, members and settings of a run folder."""

    model: Model
    members: tuple[Member, ...]
    settings: Settings

    @staticmethod
    def read(path: Path | str) -> "Configuration":
        """Of a run folder, or of a run that ships with the project, by its name."""
        folder = _folder(path)
        config = folder.read_config()
        try:
            found = Configuration(*(runs.revive(config.parts[name], *NAMED) for name in runs.PARTS))
            found.check(config.version)
        except ValueError as problem:
            raise runs.RunError(f"{folder.config} cannot be used: {problem}") from None
        except RecursionError:
            raise runs.RunError(f"{folder.config} is damaged: it is nested too deeply") from None
        return found

    def check(self, version: int | None) -> None:
        """A file may name any class anywhere, and a class may build another network today."""
        parts: list[tuple[str, object, type]] = [("model", self.model, Model), ("settings", self.settings, Settings)]
        parts += [("a member", member, Member) for member in self.members]
        for name, part, kind in parts:
            if not isinstance(part, kind):
                raise ValueError(f"{name} must be a {kind.__name__}, got {type(part).__name__}")
        if not self.members:
            raise ValueError("members must hold at least one member")
        if version not in (None, self.model.version):
            now = f"{type(self.model).__name__} is at version {self.model.version}"
            raise ValueError(f"it was trained with version {version} of its model, and {now}")

    def of_member(self, member: int) -> Member:
        """One of them, by its number."""
        arguments.integer("member", member, 0)
        if member >= len(self.members):
            raise ValueError(f"member must be between 0 and {len(self.members) - 1}, got {member}")
        return self.members[member]


def load(path: Path | str, member: int = 0, device: torch.device | str = "cpu", step: int | None = None) -> Network:
    """The network of a finished run, in 32 bits; of a population, that of one member.

    With `step`, as it was after one of its `checkpoint_steps`, or at the last checkpoint: also where a run has not
    finished, or diverged later. `path` is its folder, or the name of one that ships with the project:
    "icl-linear-regression".
    """
    return load_member(path, Configuration.read(path), member, device, step)


def load_member(
    path: Path | str,
    found: Configuration,
    member: int = 0,
    device: torch.device | str = "cpu",
    step: int | None = None,
) -> Network:
    """The same where the configuration has been read."""
    folder, task, chosen = _folder(path), found.of_member(member).task, arguments.device(device)
    if step is not None:
        arguments.integer("step", step, 0)
    stored = _final(folder, found) if step is None else _after(folder, found, step)
    diverged = stored.stopped[member]
    if diverged >= 0 and (step is None or diverged < step):
        raise runs.RunError(f"member {member} of {path} diverged at step {diverged} (loss is not finite)")
    own = {name: tensor[member] if len(found.members) > 1 else tensor for name, tensor in stored.tensors.items()}
    if not all(bool(tensor.isfinite().all()) for tensor in own.values()):
        raise runs.RunError(f"member {member} of {path} diverged: its weights in {stored.file} are not finite")
    network = found.model.build(task.inputs, task.outputs, task.length, torch.Generator())
    network.load_state_dict(own, strict=False)  # buffers are not trained
    return network.to(chosen).eval()


def verify(folder: runs.Folder) -> list[Record]:
    """What a finished run ended with; a RunError if one of its files is damaged, or they do not fit together."""
    found = Configuration.read(folder.path)
    _final(folder, found)
    for step in found.settings.checkpoint_steps:
        if folder.at_step(step).exists():
            _check_shapes(folder.at_step(step), found, folder.read_tensors(folder.at_step(step)))
    folder.read_metrics()
    return _summary(folder, found)


class Stored(NamedTuple):
    """Saved weights, with a leading axis of members if there are several; the step at which each diverged, or −1."""

    file: Path
    tensors: dict[str, Tensor]
    stopped: Sequence[int]


def _folder(path: Path | str) -> runs.Folder:
    arguments.path("path", path)
    return runs.Folder(runs.located(path))


def _final(folder: runs.Folder, found: Configuration) -> Stored:
    if not folder.finished:
        raise runs.RunError(f"{folder.path} is not finished: run the same training again, and it resumes")
    stopped = [int(record["stopped_at"] or 0) for record in _summary(folder, found)]
    tensors = folder.read_tensors(folder.model)
    _check_shapes(folder.model, found, tensors)
    return Stored(folder.model, tensors, stopped)


def _summary(folder: runs.Folder, found: Configuration) -> list[Record]:
    final = folder.read_json(folder.summary, documents.SUMMARY)["final"]
    if len(final) != len(found.members):
        raise runs.RunError(f"{folder.summary} is damaged: it is not about {len(found.members)} members")
    return final


def _check_shapes(file: Path, found: Configuration, tensors: Mapping[str, Tensor]) -> None:
    """Against a network that takes no memory: a configuration may describe one of any size."""
    members = (len(found.members),) if len(found.members) > 1 else ()
    try:
        network = outline(found.model, found.of_member(0).task)
    except (ValueError, RuntimeError) as problem:
        raise runs.RunError(f"the configuration beside {file} cannot be used: {problem}") from None
    for name, wanted in network.named_parameters():
        shape = [*members, *wanted.shape]
        if name not in tensors or list(tensors[name].shape) != shape or tensors[name].dtype not in KINDS:
            own = tensors.get(name)
            has = "is missing" if own is None else f"is {list(own.shape)} {own.dtype} instead of {shape}"
            raise runs.RunError(f"{file} does not fit its configuration: {name} {has}")


def _state(folder: runs.Folder, found: Configuration) -> dict[str, Tensor]:
    """The last checkpoint."""
    state, members = folder.read_tensors(folder.state), len(found.members)
    size = Layout(outline(found.model, found.members[0].task), False, False).size
    wanted = {"parameters": [members, size], "step": [], "stopped_at": [members]}
    for name, shape in wanted.items():
        has = list(state[name].shape) if name in state else "missing"
        if has != shape or state[name].dtype not in (KINDS if name == "parameters" else (torch.int64,)):
            kind = state[name].dtype if name in state else ""
            message = f"{name} is {has} {kind} instead of {shape}"
            raise runs.RunError(f"{folder.state} does not fit its configuration: {message}")
    return state


def _after(folder: runs.Folder, found: Configuration, step: int) -> Stored:
    """After one of the `checkpoint_steps`, or at the last checkpoint."""
    state = _state(folder, found) if folder.state.exists() else {}
    stopped = state["stopped_at"].tolist() if state else [-1] * len(found.members)
    last = int(state["step"]) if state else -1
    if step in found.settings.checkpoint_steps and folder.at_step(step).exists():
        tensors = folder.read_tensors(folder.at_step(step))
        _check_shapes(folder.at_step(step), found, tensors)
        return Stored(folder.at_step(step), tensors, stopped)
    if state and step == last:
        layout = Layout(outline(found.model, found.members[0].task), False, False)
        return Stored(folder.state, layout.full(state["parameters"]), stopped)
    saved = [str(each) for each in found.settings.checkpoint_steps if folder.at_step(each).exists()]
    known = " or ".join(filter(None, (", ".join(saved), f"{last} of the last checkpoint" if state else "")))
    raise ValueError(f"step must be one whose weights were saved, {known or 'none'}, got {step!r}")

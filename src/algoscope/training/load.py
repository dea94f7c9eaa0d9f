"""From a run folder back to what was trained."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from algoscope import runs
from algoscope.models import Model, Network
from algoscope.tasks import Task
from algoscope.training.layout import Layout
from algoscope.training.settings import Curriculum, Member, Settings


def kinds() -> dict[str, type]:
    """What a configuration may name: also the tasks and models of others, once they are imported."""
    found, known = [Model, Task], [Curriculum, Member, Settings]
    while found:
        known.append(found.pop())
        found += known[-1].__subclasses__()
    return {kind.__name__: kind for kind in known}


@dataclass(frozen=True)
class Configuration:
    """What a run folder says that it trained."""

    model: Model
    members: tuple[Member, ...]
    settings: Settings

    @staticmethod
    def read(path: Path | str) -> "Configuration":
        found = runs.read_json(runs.Folder(runs.located(path)).config)
        missing = [name for name in ("model", "members", "settings") if name not in found]
        if missing:
            raise runs.RunError(f"the configuration in {path} lacks {', '.join(missing)}")
        return Configuration(*(runs.revive(found[name], kinds()) for name in ("model", "members", "settings")))


def load(path: Path | str, member: int = 0, device: torch.device | str = "cpu", step: int | None = None) -> Network:
    """The network of a finished run, in 32 bits; of a population, that of one member.

    With `step`, as it was after one of the steps that were kept, or at the last checkpoint: also where a run has not
    finished, or was lost later. `path` is its folder, or the name of one that ships with the project:
    "icl-linear-regression".
    """
    folder, found = runs.Folder(runs.located(path)), Configuration.read(path)
    if not 0 <= member < len(found.members):
        raise ValueError(f"member must be between 0 and {len(found.members) - 1}, got {member!r}")
    task = found.members[member].task
    network = found.model.build(task.inputs, task.outputs, task.length, torch.Generator())
    stored = _final(folder, found) if step is None else _after(folder, found, step, network)
    lost = stored.stopped[member]
    if lost >= 0 and (step is None or lost < step):
        raise runs.RunError(f"member {member} of {path} has not learned: its loss was not finite at step {lost}")
    own = {name: tensor[member] if len(found.members) > 1 else tensor for name, tensor in stored.tensors.items()}
    for name, wanted in network.named_parameters():
        if name not in own or own[name].shape != wanted.shape:
            shape = f"is {list(own[name].shape)} instead of {list(wanted.shape)}" if name in own else "is missing"
            raise runs.RunError(f"{stored.file} does not fit its configuration: {name} {shape}")
    if not all(bool(tensor.isfinite().all()) for tensor in own.values()):
        raise runs.RunError(f"member {member} of {path} has not learned: its weights in {stored.file} are not finite")
    network.load_state_dict(own, strict=False)  # buffers are not trained
    return network.to(device).eval()


class Stored(NamedTuple):
    """Weights on a disk: of several members, with a leading axis; and at which step each was lost, or −1."""

    file: Path
    tensors: dict[str, Tensor]
    stopped: Sequence[int]


def _final(folder: runs.Folder, found: Configuration) -> Stored:
    if not folder.finished:
        raise runs.RunError(f"{folder.path} is not finished: train with the same arguments again, and it goes on")
    stopped = [record["stopped_at"] for record in runs.read_json(folder.summary, ["final"])["final"]]
    if len(stopped) != len(found.members):
        raise runs.RunError(f"{folder.summary} is damaged: it is not about {len(found.members)} members")
    return Stored(folder.model, runs.read_tensors(folder.model)[0], stopped)


def _after(folder: runs.Folder, found: Configuration, step: int, network: Network) -> Stored:
    """After a step that was kept, or at the last checkpoint."""
    state = runs.read_tensors(folder.state)[0] if folder.state.exists() else {}
    stopped, last = state["stopped_at"].tolist() if state else [-1] * len(found.members), int(state.get("step", -1))
    if step in found.settings.keep and folder.kept(step).exists():
        return Stored(folder.kept(step), runs.read_tensors(folder.kept(step))[0], stopped)
    if state and step == last:
        layout, rows = Layout(network, False, False), state["parameters"]
        if rows.shape != (len(found.members), len(layout.row(network))):
            raise runs.RunError(f"{folder.state} does not fit its configuration: parameters are {list(rows.shape)}")
        return Stored(folder.state, layout.full(rows), stopped)
    kept = [str(each) for each in found.settings.keep if folder.kept(each).exists()]
    known = " or ".join(filter(None, (", ".join(kept), f"{last} of the last checkpoint" if state else "")))
    raise ValueError(f"step must be one that was kept, {known or 'none'}, got {step!r}")

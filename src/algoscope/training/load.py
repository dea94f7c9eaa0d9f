"""From a run folder back to what was trained."""

from dataclasses import dataclass
from pathlib import Path

import torch

from algoscope import runs
from algoscope.models import Model, Network
from algoscope.tasks import Task
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
    """The network of a finished run, in 32 bits; of a population, that of one member; with `step`, as it was after one
    of the steps that were kept.

    `path` is its folder, or the name of one that ships with the project: "icl-linear-regression".
    """
    folder, found = runs.Folder(runs.located(path)), Configuration.read(path)
    if not 0 <= member < len(found.members):
        raise ValueError(f"member must be between 0 and {len(found.members) - 1}, got {member!r}")
    if not folder.model.exists():
        raise runs.RunError(f"{path} is not finished: train with the same arguments again, and it goes on")
    stopped = runs.read_json(folder.summary)["final"][member]["stopped_at"]
    if stopped >= 0:
        raise runs.RunError(f"member {member} of {path} has not learned: its loss was not finite at step {stopped}")
    if step is not None and step not in found.settings.keep:
        known = ", ".join(map(str, found.settings.keep)) or "none"
        raise ValueError(f"step must be one that was kept, {known}, got {step!r}")
    file = folder.model if step is None else folder.kept(step)
    tensors, _ = runs.read_tensors(file)
    task = found.members[member].task
    network = found.model.build(task.inputs, task.outputs, task.length, torch.Generator())
    own = {name: tensor[member] if len(found.members) > 1 else tensor for name, tensor in tensors.items()}
    for name, wanted in network.named_parameters():
        if name not in own or own[name].shape != wanted.shape:
            shape = f"is {list(own[name].shape)} instead of {list(wanted.shape)}" if name in own else "is missing"
            raise runs.RunError(f"{file} does not fit its configuration: {name} {shape}")
    network.load_state_dict(own, strict=False)  # buffers are not trained
    return network.to(device).eval()

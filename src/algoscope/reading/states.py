"""The states of a model after each of its stages, at the tokens that answer."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from algoscope import arguments
from algoscope.contracts import Show, States, Task
from algoscope.models import Network
from algoscope.reading.wrapped import Wrapped, wrap
from algoscope.trace import Prompts

NORMS = ("none", "each", "last")
SEEN = 8  # prompts that are tried
DIFFERENT, ROUNDING = 1e-4, 1e-6  # least change of a coordinate, of its spread and of the largest of all


def open_model(
    model: nn.Module | Show | Wrapped,
    task: Task,
    stages: Sequence[str] | None = None,
    norm: Literal["none", "each", "last"] = "none",
) -> States:
    """Makes the stages of a model visible.

    `model` and `stages` are as in `wrap`. A token must not see the target that it asks for: compare a model with full
    attention at the last position only.
    """
    if not isinstance(task, Task):
        raise ValueError(f"task must be a task of algoscope.tasks, got {type(task).__name__}")
    arguments.choice("norm", norm, NORMS)
    found = wrap(model, stages)
    if norm == "last":
        return _with_norm(found, task)
    names = found.stages or _shown_by(found, task)
    show = functools.partial(_states, found, names)
    return States(task, found.model, show, names, found.device, found.dtype, norm)


def check_answers_unseen(states: States, prompts: Prompts, at: Bool[Tensor, "positions"]) -> None:
    """No state may depend on the target that it is asked for: it would be read as whatever knows the answer.

    Targets from some position on are exchanged, at the last and in the middle of those that are compared; where tokens
    show none, nothing is checked. A function may draw noise for each batch of tokens, so it is only asked where tokens
    show the last target. A module that answers the same tokens differently is not checked either.
    """
    few = replace(prompts, x=prompts.x[:SEEN], y=prompts.y[:SEEN])
    asked = at.nonzero()[:, 0].tolist()
    for position in dict.fromkeys((asked[-1], asked[len(asked) // 2])):
        y = few.y.clone()
        y[:, position:] = few.y[:, position:].roll(1, 0)
        other = replace(few, y=y)
        tokens = (states.task.encode(each.x, each.y) for each in (few, other))
        if torch.equal(*tokens) or not (isinstance(states.model, nn.Module) or position == few.positions - 1):
            continue
        before, after = (states.of(each, position) for each in (few, other))
        changed = [stage for stage in before if _differ(before[stage], after[stage])]
        again = states.of(few, position) if changed else before
        if changed and not _differ(before[changed[0]], again[changed[0]]):
            raise ValueError(
                f"stage {changed[0]!r} sees the target that it is asked for, that of position {position}: tokens must "
                f"not show it, and a model with full attention is compared at the last position alone, "
                f"positions={few.positions - 1}"
            )


def _differ(one: Tensor, other: Tensor) -> bool:
    """Whether some coordinate changes by more than rounding, in units of its own spread over prompts."""
    change, rounding = (one - other).abs().amax((0, 1)), ROUNDING * float(one.abs().max())
    return bool(((change > DIFFERENT * one.flatten(0, 1).std(0)) & (change > rounding)).any())


def _with_norm(found: Wrapped, task: Task) -> States:
    """The last stage as the final norm of the network leaves it."""
    network, names = found.model, found.stages
    if not isinstance(network, Network):
        raise ValueError("norm='last' needs a network with a stage 'norm'; name the stages that you want to be read")
    if "norm" not in network.stages or names[-1] != network.stages[-2]:
        raise ValueError(
            f"norm='last' needs the last stage of a network with a final norm, among {list(network.stages)}"
        )

    def show(tokens: Tensor) -> dict[str, Tensor]:
        shown = network.run(tokens, {*names, "norm"})[1]
        return shown | {names[-1]: shown["norm"]}

    return States(task, network, show, names, found.device, found.dtype, "last")


def _states(found: Wrapped, names: Sequence[str], tokens: Tensor) -> Mapping[str, Tensor]:
    return found.run(tokens, names)[1]


def _shown_by(found: Wrapped, task: Task) -> tuple[str, ...]:
    """The stages of a function, which it names itself."""
    if isinstance(found.model, nn.Module):
        some = ", ".join(name for name, _ in found.model.named_modules() if name)
        raise ValueError(f"stages must name the submodules to read, among: {some}")
    prompts = task.sample(1, seed=0, dtype=torch.float32)
    with torch.no_grad():
        shown = found.run(task.encode(prompts.x, prompts.y))[1]
    if not isinstance(shown, Mapping) or not shown:
        raise ValueError(f"the model must show its states as tensors by name, got {type(shown).__name__}")
    return tuple(shown)

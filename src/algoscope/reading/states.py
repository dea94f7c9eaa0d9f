"""The states of a model after each of its stages: of our networks, of any torch module, or of a function."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from algoscope import arguments
from algoscope.models import Network
from algoscope.models.transformer import Block, added
from algoscope.spelling import nearest
from algoscope.tasks import Task
from algoscope.trace import Prompts

NORMS = ("none", "each", "last")
Show = Callable[[Tensor], Mapping[str, Tensor]]  # tokens [batch, length, inputs] to states [batch, length, width]


@dataclass(frozen=True)
class States:
    """What the stages of a model hold at the tokens that answer.

    `norm` says how they are seen: "none" as they are, all alike; "each" after a LayerNorm without weights, all alike;
    "last" as they are, but the last one after the model's own final norm, which is how Fu et al. read theirs.
    """

    task: Task
    show: Show
    stages: tuple[str, ...]
    device: torch.device
    dtype: torch.dtype
    norm: str = "none"

    @torch.no_grad()
    def of(self, prompts: Prompts, position: int | None = None) -> dict[str, Float[Tensor, "batch points width"]]:
        """The states in float64, on the CPU, at all positions or at one."""
        tokens = self.task.encode(prompts.x, prompts.y).to(self.device, self.dtype)
        shown = called(self.show, tokens)
        if not isinstance(shown, Mapping) or not all(isinstance(state, Tensor) for state in shown.values()):
            raise ValueError(f"the model must show its states as tensors by name, got {type(shown).__name__}")
        missing = [stage for stage in self.stages if stage not in shown]
        if missing:
            raise ValueError(f"the model did not show its stages {missing}; it showed {list(shown)}")
        at = slice(None) if position is None else slice(position, position + 1)
        return {stage: self._seen(stage, shown[stage], tokens.shape[:2])[:, at].cpu().double() for stage in self.stages}

    def _seen(self, stage: str, state: Tensor, tokens: tuple[int, ...]) -> Tensor:
        if state.ndim != 3 or state.shape[:2] != tokens:
            want = f"[{tokens[0]}, {tokens[1]}, width], one state a token"
            raise ValueError(f"the state of stage {stage!r} must be {want}, got {list(state.shape)}")
        arguments.finite(f"the state of stage {stage!r}", state)
        state = self.task.at_answers(state)
        return functional.layer_norm(state.double(), state.shape[-1:]) if self.norm == "each" else state


def open_model(
    model: nn.Module | Show,
    task: Task,
    stages: Sequence[str] | None = None,
    norm: Literal["none", "each", "last"] = "none",
) -> States:
    """Makes the stages of a model visible.

    `model` is one of our networks, any torch module that takes tokens [batch, length, inputs] (then `stages` names its
    submodules whose outputs are the states, or of several calls the last; it is read as in evaluation), or a function
    from tokens, in 32 bits on the CPU, to the states by name. A token must not see the target that it asks for: compare
    a model with full attention at the last position only.
    """
    if not isinstance(task, Task):
        raise ValueError(f"task must be a task of algoscope.tasks, got {type(task).__name__}")
    arguments.choice("norm", norm, NORMS)
    if stages is not None and (
        not isinstance(stages, tuple | list) or not all(isinstance(stage, str) for stage in stages)
    ):
        raise ValueError(f"stages must be a list of names, got {arguments.shown(stages)}")
    if isinstance(model, Network):
        return _of_network(model, task, stages, norm)
    if norm == "last":
        raise ValueError("norm='last' needs a network with a stage 'norm'; name the stages that you want to be read")
    if isinstance(model, nn.Module):
        parameter = next(model.parameters(), torch.empty(0))
        return States(task, *_hooked(model, stages), parameter.device, parameter.dtype, norm)
    if not callable(model):
        raise ValueError(f"model must be a torch module or a function of tokens, got {type(model).__name__}")
    with torch.no_grad():
        shown = called(model, _example(task)) if not stages else dict.fromkeys(stages)
    if not isinstance(shown, Mapping) or not shown:
        raise ValueError(f"the model must show its states as tensors by name, got {type(shown).__name__}")
    names = tuple(shown)
    return States(task, model, names, torch.device("cpu"), torch.float32, norm)


def _of_network(model: Network, task: Task, stages: Sequence[str] | None, norm: str) -> States:
    parameter = next(model.parameters())
    names = tuple(stages or (stage for stage in model.stages if stage != "norm"))
    model.check_stages(names)
    if norm != "last":
        return States(task, lambda tokens: model.run(tokens, names)[1], names, parameter.device, parameter.dtype, norm)
    if "norm" not in model.stages or names[-1] != model.stages[-2]:
        raise ValueError(f"norm='last' needs the last stage of a network with a final norm, among {list(model.stages)}")

    def show(tokens: Tensor) -> dict[str, Tensor]:
        shown = model.run(tokens, {*names, "norm"})[1]
        return shown | {names[-1]: shown["norm"]}

    return States(task, show, names, parameter.device, parameter.dtype, norm)


def _hooked(model: nn.Module, stages: Sequence[str] | None) -> tuple[Show, tuple[str, ...]]:
    """Reads the outputs of the named submodules; of several outputs, the first."""
    known = dict(model.named_modules())
    if not stages:
        some = ", ".join(name for name in known if name)
        raise ValueError(f"stages must name the submodules to read, among: {some}")
    unknown = [stage for stage in stages if stage not in known]
    if unknown:
        meant = nearest(unknown[0], known)
        raise ValueError(f"stages must name submodules of the model; it has none called {unknown}{meant}")

    def show(tokens: Tensor) -> dict[str, Tensor]:
        shown: dict[str, Tensor] = {}

        def keep(name: str) -> Callable[..., None]:
            def hook(module: nn.Module, _: object, output: object) -> None:
                if isinstance(module, Block) and isinstance(output, tuple):
                    output = added(*output)
                first = output[0] if isinstance(output, tuple | list) else output
                if not isinstance(first, Tensor):
                    raise ValueError(f"the submodule {name!r} returns {type(first).__name__}, not a tensor")
                shown[name] = first.clone()  # a later layer may write into it

            return hook

        handles = [known[name].register_forward_hook(keep(name)) for name in stages]
        training = [module for module in known.values() if module.training]
        model.eval()  # no dropout, and no statistics changed
        try:
            model(tokens)
        finally:
            for handle in handles:
                handle.remove()
            for module in training:
                module.training = True
        return shown

    return show, tuple(stages)


def called(model: Callable[[Tensor], Any], tokens: Tensor) -> Any:
    """What a model returns, or a ValueError that says why it cannot take these tokens."""
    try:
        return model(tokens)
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as problem:  # torch's word for shapes that do not fit
        reason = str(problem).splitlines()[0]
        raise ValueError(f"the model cannot take the tokens {list(tokens.shape)} of this task: {reason}") from None


def _example(task: Task) -> Tensor:
    prompts = task.sample(1, seed=0, dtype=torch.float32)
    return task.encode(prompts.x, prompts.y)

"""Any model in one form: the states after its stages, its outputs, and what becomes of them when states are edited."""

import functools
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from algoscope import arguments
from algoscope.contracts import NO_EDITS, Edits, Show
from algoscope.models import Network
from algoscope.models.transformer import Block, added
from algoscope.spelling import nearest

FIRST = ("logits", "last_hidden_state")  # how HuggingFace's models call their outputs


@runtime_checkable
class Run(Protocol):
    """One pass: the outputs, if the model shows any, and the states of the stages in `keep`."""

    def __call__(
        self, tokens: Tensor, keep: Collection[str] = (), edits: Edits = NO_EDITS
    ) -> tuple[Tensor | None, Mapping[str, Tensor]]: ...


@dataclass(frozen=True)
class Wrapped:
    """What `identify`, `probe`, `patch` and `predict` take: made by `wrap`."""

    model: object
    stages: tuple[str, ...]
    run: Run
    device: torch.device
    dtype: torch.dtype

    def __repr__(self) -> str:
        return f"Wrapped({type(self.model).__name__}, {len(self.stages)} stages)"


def wrap(
    model: nn.Module | Show | Wrapped,
    stages: Sequence[str] | None = None,
    call: Callable[[Any, Tensor], object] | None = None,
    answer: Callable[[Any], Tensor] | None = None,
) -> Wrapped:
    """A model in the form that everything here takes.

    `model` is one of our networks, any torch module, or a function from tokens [batch, length, inputs] to the states by
    name. Of a module, `stages` names the submodules whose outputs are the states, of several outputs the first; by
    default those of its longest list of layers. `call(model, tokens)` says how it takes tokens, by default
    `model(tokens)`, and `answer` how outputs [batch, length, outputs] are made: of a module from what it returns, by
    default that itself or its `logits`, and of a function, which shows no outputs otherwise, from the tokens.
    """
    if stages is not None and (
        not isinstance(stages, tuple | list) or not all(isinstance(stage, str) for stage in stages)
    ):
        raise ValueError(f"stages must be a list of names, got {arguments.shown(stages)}")
    if isinstance(model, Wrapped | Network) and (call or answer):
        raise ValueError("call and answer must be left out for a network of algoscope, and for what is wrapped already")
    if isinstance(model, Wrapped):
        return replace(model, stages=_among(stages, model.stages)) if stages else model
    if isinstance(model, Network):
        parameter = next(model.parameters())
        known = tuple(stages or (stage for stage in model.stages if stage != "norm"))
        model.check_stages(known)
        return Wrapped(model, known, _of_network(model), parameter.device, parameter.dtype)
    if isinstance(model, nn.Module):
        parameter = next(model.parameters(), torch.empty(0))
        chosen = _submodules(model, stages)
        return Wrapped(model, chosen, _of_module(model, call, answer), parameter.device, parameter.dtype)
    if not callable(model):
        raise ValueError(f"model must be a torch module or a function of tokens, got {type(model).__name__}")
    if call is not None:
        raise ValueError("call must be left out for a function: it is called with the tokens")
    return Wrapped(model, tuple(stages or ()), _of_function(model, answer), torch.device("cpu"), torch.float32)


def called(model: Callable[..., Any], tokens: Tensor, *given: object) -> Any:
    """What a model returns, or a ValueError that says why it cannot take these tokens."""
    try:
        return model(tokens, *given)
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as problem:  # what torch raises for shapes that do not fit
        reason = str(problem).splitlines()[0]
        raise ValueError(f"the model cannot take the tokens {list(tokens.shape)} of this task: {reason}") from None


def _of_network(network: Network) -> Run:
    def run(tokens: Tensor, keep: Collection[str] = (), edits: Edits = NO_EDITS) -> tuple[Tensor, dict[str, Tensor]]:
        given: dict[str, Any] = {"edits": edits} if edits else {}
        if edits and "edits" not in inspect.signature(network.run).parameters:
            raise ValueError(f"{type(network).__name__} has no states of tokens that could be patched")
        network.check_stages(edits)
        return called(functools.partial(network.run, keep=keep, **given), tokens)

    return run


def _of_function(function: Show, answer: Callable[[Tensor], Tensor] | None) -> Run:
    def run(
        tokens: Tensor, keep: Collection[str] = (), edits: Edits = NO_EDITS
    ) -> tuple[Tensor | None, Mapping[str, Tensor]]:
        if edits:
            raise ValueError("model must be a torch module, so that its states can be patched, got a function")
        outputs = None if answer is None or keep else called(answer, tokens)
        return outputs, called(function, tokens) if keep or answer is None else {}

    return run


def _of_module(
    model: nn.Module, call: Callable[[Any, Tensor], object] | None, answer: Callable[[Any], Tensor] | None
) -> Run:
    """Reads, and edits, the outputs of submodules; the model is called as in evaluation."""
    known = dict(model.named_modules())

    def run(
        tokens: Tensor, keep: Collection[str] = (), edits: Edits = NO_EDITS
    ) -> tuple[Tensor | None, dict[str, Tensor]]:
        shown: dict[str, Tensor] = {}

        def hook_of(name: str) -> Callable[..., object]:
            def hook(module: nn.Module, _: object, output: object) -> object:
                state, rest = _first(name, module, output)
                changed = edits[name](state) if name in edits else state
                shown[name] = changed.clone()  # a later layer may write into it
                return _again(output, changed, rest) if name in edits else None

            return hook

        handles = [known[name].register_forward_hook(hook_of(name)) for name in {*keep, *edits}]
        training = [module for module in known.values() if module.training]
        model.eval()  # no dropout, and no statistics changed
        try:
            returned = called(model, tokens) if call is None else called(functools.partial(call, model), tokens)
        finally:
            for handle in handles:
                handle.remove()
            for module in training:
                module.training = True
        return _outputs(returned) if answer is None else answer(returned), shown

    return run


def _outputs(returned: Any) -> Any:
    """What a module returns, or the logits in it."""
    known = (getattr(returned, name, None) for name in FIRST)
    return returned if isinstance(returned, Tensor) else next((part for part in known if part is not None), returned)


def _first(name: str, module: nn.Module, output: object) -> tuple[Tensor, tuple[object, ...]]:
    """The state in what a submodule returns, and what comes after it."""
    if isinstance(module, Block) and isinstance(output, tuple):
        return added(*output), ()
    first, *rest = output if isinstance(output, tuple | list) else (output,)
    if not isinstance(first, Tensor):
        raise ValueError(f"the submodule {name!r} returns {type(first).__name__}, not a tensor")
    return first, tuple(rest)


def _again(output: object, state: Tensor, rest: tuple[object, ...]) -> object:
    """What a submodule returns, with another state."""
    return (state, *rest) if isinstance(output, tuple | list) else state


def _submodules(model: nn.Module, stages: Sequence[str] | None) -> tuple[str, ...]:
    known = dict(model.named_modules())
    if stages is None:
        lists = {name: len(part) for name, part in known.items() if isinstance(part, nn.ModuleList | nn.Sequential)}
        longest = max(lists, key=lambda name: lists[name], default=None)
        return () if longest is None else tuple(
            f"{longest}.{name}".removeprefix(".") for name, _ in known[longest].named_children()
        )  # fmt: skip
    return _among(stages, known)


def _among(stages: Sequence[str], known: Collection[str]) -> tuple[str, ...]:
    unknown = [stage for stage in stages if stage not in known]
    if unknown:
        meant = nearest(unknown[0], known)
        raise ValueError(f"stages must name submodules of the model; it has none called {unknown}{meant}")
    return tuple(stages)

"""What the checks of all contracts share."""

import contextlib
import inspect
import json
from collections.abc import Collection, Iterator
from dataclasses import is_dataclass
from typing import Any

import torch
from torch import Tensor

from algoscope import registry, runs
from algoscope.contracts import Algorithm, Model, Symmetry, Task


class ContractError(AssertionError):
    """A task, an algorithm, a model or a symmetry does not keep its contract."""


def check_class(value: Any, base: type) -> None:
    """That it is a value, which a configuration can hold and give back."""
    if not isinstance(value, base):
        raise ContractError(f"{type(value).__name__} must extend {base.__name__}")
    own = is_dataclass(value) and "__dataclass_params__" in vars(type(value))
    require(own, value, "class", "must be decorated with @dataclass(frozen=True), or its fields are none")
    frozen = vars(type(value))["__dataclass_params__"].frozen
    require(frozen, value, "class", "must be frozen: @dataclass(frozen=True)")
    require(not inspect.isabstract(type(value)), value, "class", "must implement all methods")
    if base in (Algorithm, Symmetry):
        return
    with checking(value, "class"):
        hash(value)
        held = json.loads(json.dumps(runs.plain(value)))
        same = runs.revive(held, Task, Model) == value
        require(same, value, "class", "must be the same again when it is made of its own fields")
        require(registry.loaded(held["kind"], base) is type(value), value, "class", "must be found by its name")


@contextlib.contextmanager
def checking(of: object, part: str) -> Iterator[None]:
    """Whatever goes wrong within is of this part."""
    try:
        yield
    except ContractError:
        raise
    except Exception as problem:  # whatever the code of a user raises
        reason = (str(problem).splitlines() or [""])[0]
        raise ContractError(f"{type(of).__name__}.{part} fails with {type(problem).__name__}: {reason}") from problem


def require(kept: bool, of: object, part: str, contract: str) -> None:
    if not kept:
        raise ContractError(f"{type(of).__name__}.{part} {contract}")


def close(a: Tensor, b: Tensor, tolerance: float) -> bool:
    return a.shape == b.shape and torch.allclose(a.double(), b.to(a.device).double(), rtol=tolerance, atol=tolerance)


def shape_of(tensor: Tensor) -> Collection[int]:
    return list(tensor.shape)

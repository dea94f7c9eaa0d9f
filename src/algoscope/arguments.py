"""Checks of what callers pass in. Each raises a ValueError of one line: the argument, what it got, what is allowed."""

import itertools
import math
import operator
from collections.abc import Collection, Iterable, Sequence
from typing import SupportsIndex, TypeAlias

import torch
from torch import Tensor

from algoscope.spelling import nearest

MOST = 2**31 - 1  # of things that are counted one by one, such as prompts
Steps: TypeAlias = int | Sequence[int]  # an int K means 0..K, a list means just these steps


def integer(name: str, value: object, minimum: int, maximum: int | None = None) -> None:
    """Python's integers and those of numpy."""
    if not isinstance(value, SupportsIndex) or isinstance(value, bool | Tensor) or operator.index(value) < minimum:
        raise ValueError(f"{name} must be an integer >= {minimum}, got {value!r}")
    if maximum is not None and operator.index(value) > maximum:
        raise ValueError(f"{name} must be an integer <= {maximum}, got {value!r}")


def number(name: str, value: object, minimum: float = 0.0, *, strict: bool = False) -> None:
    allowed = f"a finite number {'>' if strict else '>='} {minimum:g}"
    wrong = isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < minimum
    if wrong or (strict and value == minimum):
        raise ValueError(f"{name} must be {allowed}, got {value!r}")


def boolean(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {value!r}")


def choice(name: str, value: object, allowed: Collection[str], *, otherwise: str = "") -> None:
    if not isinstance(value, str) or value not in allowed:
        names = ", ".join(repr(option) for option in allowed) + (f" or {otherwise}" if otherwise else "")
        raise ValueError(f"{name} must be one of {names}, got {value!r}{nearest(value, allowed)}")


def number_or_choice(name: str, value: object, allowed: Collection[str]) -> None:
    """A name out of `allowed`, or a positive number."""
    if isinstance(value, str) or not isinstance(value, int | float):
        choice(name, value, allowed, otherwise="a positive number")
    else:
        number(name, value, strict=True)


def finite(name: str, value: Tensor) -> None:
    if not bool(torch.isfinite(value).all()):
        raise ValueError(f"{name} must hold finite numbers only, got NaN or infinity")


def matrix(name: str, value: object, dim: int, otherwise: str) -> Tensor:
    """The value as a dim x dim matrix in float64."""
    want = f"{name} must be {otherwise} or a {dim} x {dim} matrix (dim = {dim})"
    try:
        result = torch.as_tensor(value, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"{want}, got {value!r}") from None
    if tuple(result.shape) != (dim, dim):
        raise ValueError(f"{want}, got shape {list(result.shape)}")
    finite(name, result)
    return result


def device(value: "torch.device | str | None") -> torch.device:
    """A device that this machine has; None is a GPU if there is one."""
    if value is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(value)
        torch.empty(0, device=found)
    except (
        RuntimeError,
        AssertionError,
        NotImplementedError,
        TypeError,
    ):  # torch raises any of these for what it was not built for
        raise ValueError(f"device must be one that this machine has, such as 'cpu', got {str(value)!r}") from None
    return found


def steps(value: object) -> None:
    """An integer K for the steps 0..K, or a list of the steps to keep."""
    listed = list(value) if isinstance(value, Iterable) else [value]
    kept = [operator.index(k) for k in listed if isinstance(k, SupportsIndex) and not isinstance(k, bool)]
    rising = all(earlier < later for earlier, later in itertools.pairwise(kept))
    if not kept or len(kept) < len(listed) or kept[0] < 0 or not rising:
        raise ValueError(f"steps must be an integer >= 0 or an increasing list of such integers, got {value!r}")


def steps_to_keep(value: Steps) -> tuple[int, ...]:
    return tuple(int(step) for step in value) if isinstance(value, Iterable) else tuple(range(int(value) + 1))

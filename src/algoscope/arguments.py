"""Checks of what callers pass in. Each raises a ValueError of one line: the argument, what it got, what is allowed."""

import functools
import itertools
import math
import operator
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any, SupportsIndex, TypeAlias

import torch
from torch import Tensor

from algoscope.spelling import nearest

LARGEST = 2**63 - 1  # integer that a tensor holds
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
MOST = 10**6  # of whatever a prompt, a batch or a network has several of
Steps: TypeAlias = int | Sequence[int]  # an int K means 0..K, a list means just these steps


def shown(value: object) -> str:
    """A value in a message: in one line, and not too long."""
    try:
        text = " ".join(repr(value).split())
    except RecursionError:
        text = f"{type(value).__name__} that is nested too deeply"
    return text if len(text) <= 200 else f"{text[:200]}…"


def integer(name: str, value: object, minimum: int, maximum: int = LARGEST) -> None:
    """Python's integers and those of numpy."""
    found = _index(value)
    if found is None or found < minimum:
        raise ValueError(f"{name} must be an integer >= {minimum}, got {shown(value)}")
    if found > maximum:
        raise ValueError(f"{name} must be an integer <= {maximum}, got {shown(value)}")


def plain_integers(of: Any) -> None:
    """Turns those of numpy, in the fields of a dataclass, into Python's."""
    for field in fields(of):
        value = getattr(of, field.name)
        if not isinstance(value, int) and (found := _index(value)) is not None:
            object.__setattr__(of, field.name, found)


def checking(post_init: Callable[[Any], None]) -> Callable[[Any], None]:
    """A `__post_init__` whose fields have Python's integers."""

    @functools.wraps(post_init)
    def checked(self: Any) -> None:
        plain_integers(self)
        post_init(self)

    return checked


def size(name: str, value: object, minimum: int = 1) -> None:
    """How many of something there are, each of which takes time and memory."""
    integer(name, value, minimum, MOST)


def _index(value: object) -> int | None:
    """None if it is no integer; booleans and arrays are none."""
    if not isinstance(value, SupportsIndex) or isinstance(value, bool | type | Tensor) or hasattr(value, "__len__"):
        return None
    try:
        return operator.index(value)
    except TypeError:  # as arrays of numpy say
        return None


def number(
    name: str, value: object, minimum: float = 0.0, *, strict: bool = False, maximum: float = sys.float_info.max
) -> None:
    allowed = f"a finite number {'>' if strict else '>='} {minimum:g}"
    real = value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    real = math.nan if isinstance(real, int) and abs(real) > LARGEST else real
    if not minimum <= real <= maximum or (strict and real == minimum):
        raise ValueError(f"{name} must be {allowed}, got {shown(value)}")


def scale(name: str, value: object, minimum: float = 0.0, *, strict: bool = False) -> None:
    """A number whose square, and the square of that, can be had."""
    number(name, value, minimum, strict=strict, maximum=1e75)


def less(low: object, high: object) -> None:
    """That there is an interval between two numbers."""
    for name, value in (("low", low), ("high", high)):
        number(name, value, -sys.float_info.max)
    if not low < high:  # pyright: ignore[reportOperatorIssue] - they are numbers
        raise ValueError(f"low must be less than high, got {shown(low)} and {shown(high)}")


def path(name: str, value: object) -> None:
    """A path as a string or a Path, of characters that a file can have in its name."""
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    odd = not isinstance(text, str) or "\0" in text or text != text.encode(errors="replace").decode()
    if odd or any(len(part.encode()) > 255 for part in re.split(r"[/\\]", str(text))):
        raise ValueError(f"{name} must be a path, got {shown(value)}")


def boolean(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {shown(value)}")


def choice(name: str, value: object, allowed: Collection[str], *, alternative: str = "") -> None:
    if not isinstance(value, str) or value not in allowed:
        names = ", ".join(repr(option) for option in allowed) + (f" or {alternative}" if alternative else "")
        raise ValueError(f"{name} must be one of {names}, got {shown(value)}{nearest(value, allowed)}")


def number_or_choice(name: str, value: object, allowed: Collection[str]) -> None:
    """A name out of `allowed`, or a positive number."""
    if isinstance(value, str) or not isinstance(value, int | float):
        choice(name, value, allowed, alternative="a positive number")
    else:
        number(name, value, strict=True)


def real(name: str, value: object, *, whole: bool = False) -> None:
    """A tensor of floating-point numbers, or of integers where they are allowed, that are finite and in memory."""
    if not isinstance(value, Tensor):
        raise ValueError(f"{name} must be a torch.Tensor, got {type(value).__name__}")
    numbers = value.dtype in FLOATS or (whole and not value.is_complex() and value.dtype != torch.bool)
    if not numbers or not in_memory(value):
        kind = (
            f"{str(value.dtype).removeprefix('torch.')}, {str(value.layout).removeprefix('torch.')} on {value.device}"
        )
        raise ValueError(f"{name} must hold floating-point numbers, got {kind}")
    finite(name, value)


def in_memory(value: Tensor) -> bool:
    """Whether it has numbers, one for each of its places."""
    return value.device.type != "meta" and value.layout == torch.strided


def finite(name: str, value: Tensor) -> None:
    if value.device.type == "meta":
        raise ValueError(f"{name} must hold numbers, got a tensor without memory (device meta)")
    if not bool(torch.isfinite(value).all()):
        raise ValueError(f"{name} must hold finite numbers only, got NaN or infinity")


def matrix(name: str, value: object, dim: int, alternative: str) -> Tensor:
    """The value as a dim x dim matrix in float64."""
    want = f"{name} must be {alternative} or a {dim} x {dim} matrix (dim = {dim})"
    try:
        result = torch.as_tensor(value, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise ValueError(f"{want}, got {shown(value)}") from None
    if tuple(result.shape) != (dim, dim):
        raise ValueError(f"{want}, got shape {list(result.shape)}")
    real(name, result)
    return result


def device(value: "torch.device | str | None") -> torch.device:
    """A device that this machine has; None is a GPU if there is one."""
    if value is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(value)
        torch.empty(1, device=found).cpu()
    except Exception:  # torch raises many kinds for what it was not built for
        raise ValueError(f"device must be one that this machine has, such as 'cpu', got {shown(value)}") from None
    return found


def steps(value: object) -> None:
    """An integer K for the steps 0..K, or a list of the steps to keep."""
    listed: list[object] = [value]
    if (
        isinstance(value, Iterable)
        and not isinstance(value, type | Tensor | Iterator)
        and getattr(value, "ndim", 1) == 1
    ):
        listed = list(itertools.islice(value, MOST + 2))
    kept = [found for found in map(_index, listed) if found is not None]
    if len(listed) > MOST or (len(listed) == 1 and listed[0] is value and max(kept, default=0) > MOST):
        raise ValueError(f"steps must be at most {MOST}, got {shown(value)}")
    rising = all(earlier < later for earlier, later in itertools.pairwise(kept))
    if not kept or len(kept) < len(listed) or kept[0] < 0 or not rising:
        raise ValueError(f"steps must be an integer >= 0 or an increasing list of such integers, got {shown(value)}")


def steps_to_keep(value: Steps) -> tuple[int, ...]:
    return tuple(int(step) for step in value) if isinstance(value, Iterable) else tuple(range(int(value) + 1))

"""Checks of what callers pass in. Each raises a ValueError of one line: the argument, what it got, what is allowed."""

import itertools
import math
from collections.abc import Collection, Sequence
from typing import TypeAlias

import torch
from torch import Tensor

Steps: TypeAlias = int | Sequence[int]  # an int K means 0..K, a list means just these steps


def integer(name: str, value: object, minimum: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
        raise ValueError(f"{name} must be an integer >= {minimum}, got {value!r}")


def number(name: str, value: object, minimum: float = 0.0, *, strict: bool = False) -> None:
    allowed = f"a finite number {'>' if strict else '>='} {minimum:g}"
    wrong = isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < minimum
    if wrong or (strict and value == minimum):
        raise ValueError(f"{name} must be {allowed}, got {value!r}")


def choice(name: str, value: object, allowed: Collection[str], *, otherwise: str = "") -> None:
    if value not in allowed:
        names = ", ".join(repr(option) for option in allowed)
        raise ValueError(f"{name} must be one of {names}{' or ' + otherwise if otherwise else ''}, got {value!r}")


def number_or_choice(name: str, value: object, allowed: Collection[str]) -> None:
    """A name out of `allowed`, or a positive number."""
    if isinstance(value, str) or not isinstance(value, int | float):
        choice(name, value, allowed, otherwise="a positive number")
    else:
        number(name, value, strict=True)


def finite(name: str, value: Tensor) -> None:
    if not bool(torch.isfinite(value).all()):
        raise ValueError(f"{name} must hold finite numbers only, got NaN or infinity")


def steps(value: object) -> None:
    if isinstance(value, int):
        return integer("steps", value, 0)
    problem = ValueError(f"steps must be an integer >= 0 or an increasing list of such integers, got {value!r}")
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) == 0:
        raise problem
    if any(not isinstance(step, int) or isinstance(step, bool) or step < 0 for step in value):
        raise problem
    if any(later <= earlier for earlier, later in itertools.pairwise(value)):
        raise problem


def steps_to_keep(value: Steps) -> tuple[int, ...]:
    return tuple(range(value + 1)) if isinstance(value, int) else tuple(value)

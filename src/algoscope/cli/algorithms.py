"""From what is typed to algorithms: newton,gd:rate=0.02,my.Lasso"""

import ast
import re
from collections.abc import Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from typing import Any

from algoscope import registry
from algoscope.algorithms import Algorithm
from algoscope.tasks import Task

STEPS = 24  # of an algorithm that the task does not list, unless some are typed


def typed_algorithms(text: str, task: Task) -> list[Algorithm]:
    """A comma between two, colons before their parameters; commas and colons within brackets are part of a value.

    Where a task lists an algorithm on features alone, it is on these here as well.
    """
    parts = [part.strip() for part in _split(text, ",")]
    if not all(parts):
        raise ValueError(f"algorithms must be names such as newton,gd:rate=0.02, got {text!r}")
    return [_algorithm(part, task) for part in parts]


def _algorithm(text: str, task: Task) -> Algorithm:
    name, *settings = _split(text, ":")
    kind, listed = _kind(name, task), task.algorithms()
    known = {field.name: field for field in fields(kind) if field.init} if is_dataclass(kind) else {}
    given = dict(_setting(setting, name, list(known)) for setting in settings)
    own: Any = next((each for each in listed if type(each) is kind), None)
    around: Any = next((each for each in listed if type(getattr(each, "algorithm", None)) is kind), None)
    like = own or (around and around.algorithm)
    for field in kind.stage_fields:
        if field in known and field not in given and known[field].default is MISSING:
            given[field] = _stages(field, like, listed)
    lacking = [field for field, each in known.items() if field not in given and _needed(each)]
    if lacking:
        raise ValueError(f"{name} needs a value of {' and of '.join(lacking)}, as in {name}:{lacking[0]}=…")
    made = kind(**given)
    return replace(around, algorithm=made) if own is None and around is not None else made


def _kind(name: str, task: Task) -> type[Algorithm]:
    """Of the family of the task: those of others are not even told."""
    kind = registry.meant("algorithms", name)
    if kind is not None and issubclass(kind, Algorithm) and kind.family == task.family:
        return kind
    known = {word: each for word, each in registry.classes("algorithms").items() if each.family == task.family}
    of = f" of the family {task.family}, as the task" if kind else ""
    problem = registry.unknown(f"algorithm{of}", name, known)
    raise ValueError("; ".join([problem, *registry.broken("algorithms")]))


def _setting(text: str, name: str, known: Sequence[str]) -> tuple[str, Any]:
    field, equals, value = text.partition("=")
    if not equals or field not in known:
        wanted = " or ".join(f"{each}=…" for each in known) or "none"
        raise ValueError(f"parameters of {name} are {wanted}, got {text!r}")
    try:
        return field, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return field, value  # a word, such as best


def _stages(field: str, like: Any, listed: Sequence[Algorithm]) -> Any:
    """Which steps to make, or how many look-ups: as the task lists it, or else as many as another on its list."""
    if like is not None:
        return getattr(like, field)
    counts = [count for each in listed if isinstance(count := getattr(each, field, None), int)]
    return max(counts, default=STEPS)


def _needed(field: Any) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _split(text: str, at: str) -> list[str]:
    return re.split(rf"{at}(?![^\[(]*[\])])", text)

"""What every algorithm provides."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import ClassVar

from algoscope.trace import Prompts, Trace


class Algorithm(ABC):
    """A known procedure. Concrete algorithms are frozen dataclasses whose fields are the method's parameters."""

    family: ClassVar[str] = "regression"  # whose prompts it makes sense of: see `Task.family`

    def __init_subclass__(cls, **options: object) -> None:
        """What every `trace` checks, so that none has to: that it is given prompts."""
        super().__init_subclass__(**options)
        if "trace" in cls.__dict__:
            cls.trace = _given_prompts(cls.trace)

    @abstractmethod
    def trace(self, prompts: Prompts) -> Trace:
        """Every kept step at every prefix t = 0..examples, in one batched float64 pass."""

    @property
    def name(self) -> str:
        """The class, and those parameters other than steps and look-ups that are not at their defaults."""
        told = []
        for field in fields(self) if is_dataclass(self) else ():
            value = getattr(self, field.name)
            shown = value if isinstance(value, str | int | float | None) else "…"
            if field.name not in ("steps", "lookups") and shown != field.default:
                told.append(f"{field.name}={shown}")
        return f"{type(self).__name__}({', '.join(told)})" if told else type(self).__name__


def _given_prompts(trace: Callable[..., Trace]) -> Callable[..., Trace]:
    @functools.wraps(trace)
    def checked(self: Algorithm, prompts: Prompts) -> Trace:
        if not isinstance(prompts, Prompts):
            raise ValueError(f"prompts must be Prompts, such as task.sample gives, got {type(prompts).__name__}")
        return trace(self, prompts)

    return checked

"""What every algorithm provides."""

from abc import ABC, abstractmethod
from dataclasses import fields, is_dataclass
from typing import ClassVar

from algoscope.trace import Prompts, Trace


class Algorithm(ABC):
    """A known procedure. Concrete algorithms are frozen dataclasses whose fields are the method's parameters."""

    family: ClassVar[str] = "regression"  # whose prompts it makes sense of: see `Task.family`

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

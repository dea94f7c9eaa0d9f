"""A known procedure, whose trace a model is compared with."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from algoscope import arguments
from algoscope.contracts.symmetry import Symmetry
from algoscope.trace import Prompts, Trace


class Memory(ABC):
    """Where a model counts the items of a stream."""

    @property
    @abstractmethod
    def reads(self) -> int:
        """How many cells each item reads."""

    @abstractmethod
    def shared(self, prompts: Prompts) -> Float[Tensor, "reads batch points points"]:
        """What read m of item t finds of item s: how much item s has written where item t reads, before t, by sign."""


class Algorithm(ABC):
    """A known procedure. Concrete algorithms are frozen dataclasses whose fields are the method's parameters."""

    family: ClassVar[str] = "regression"  # whose prompts it makes sense of: see `Task.family`
    aliases: ClassVar[tuple[str, ...]] = ()  # short names, to type; a class that extends it does not inherit them
    stage_fields: ClassVar[tuple[str, ...]] = ("steps", "lookups")  # parameters that only say which steps to keep

    def __init_subclass__(cls, **options: object) -> None:
        """What every `trace` checks, so that none has to: that it is given prompts."""
        super().__init_subclass__(**options)
        if "__post_init__" in cls.__dict__:
            cls.__post_init__ = arguments.checking(cls.__post_init__)
        if "trace" in cls.__dict__:
            cls.trace = _given_prompts(cls.trace)

    @abstractmethod
    def trace(self, prompts: Prompts) -> Trace:
        """Every kept step at every prefix t = 0..examples, in one batched float64 pass."""

    @property
    def closed_form(self) -> bool:
        """Whether it is the solution itself: steps of others that have converged to it go by its name."""
        return False

    def keeps(self, symmetry: Symmetry) -> bool | None:
        """Whether its answers obey the law of a symmetry, at every step: on all prompts, or not on some. None: unknown.

        It is what theory promises of the method, which may depend on its rate or its start, for people to read and for
        tests to check (`testing.check_algorithm`). No verdict rests on it: how far an algorithm breaks a law is always
        measured, by running it on the changed prompts (`symmetries.relative_defect`).
        """
        return None

    @property
    def method(self) -> str:
        """What people call it, whatever its rate or its start: algorithms of one method are one family."""
        return type(self).__name__

    def on_memory(self, memory: Memory) -> "Algorithm":
        """The same algorithm with the memory of a model in the place of its own, if it has one."""
        return self

    @property
    def name(self) -> str:
        """The class, and those parameters that are not at their defaults, but none that says which steps to keep."""
        shown = []
        for field in fields(self) if is_dataclass(self) else ():
            value = getattr(self, field.name)
            if field.name not in self.stage_fields and value != field.default:
                shown.append(f"{field.name}={value if isinstance(value, str | int | float | None) else '…'}")
        return f"{type(self).__name__}({', '.join(shown)})" if shown else type(self).__name__


def _given_prompts(trace: Callable[..., Trace]) -> Callable[..., Trace]:
    @functools.wraps(trace)
    def checked(self: Algorithm, prompts: Prompts) -> Trace:
        if not isinstance(prompts, Prompts):
            raise ValueError(f"prompts must be Prompts, such as task.sample gives, got {type(prompts).__name__}")
        if self.family == "regression" and prompts.before:
            raise ValueError(f"prompts must ask about every point, as those of a regression, for {self.name}")
        return trace(self, prompts)

    return checked

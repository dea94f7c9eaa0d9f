"""Changes of a prompt whose effect on the answer is known: a law that some algorithms keep and others break."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import ClassVar

import torch
from jaxtyping import Shaped
from torch import Tensor

from algoscope.trace import Prompts

Answers = Shaped[Tensor, "stages batch points *target"]  # as the values of a trace


@dataclass(frozen=True, eq=False)
class Change:
    """Prompts that a procedure is to answer, and by how much its answers to them, in this order, break the law.

    The defect has a row a stage and a column a prompt: [stages, batch, ...], zero where the law holds. It covers those
    positions alone at which the law says something.
    """

    prompts: tuple[Prompts, ...]
    defect: Callable[[Sequence[Answers]], Shaped[Tensor, "stages batch *rest"]]


class Symmetry(ABC):
    """A law about answers. Concrete symmetries are frozen dataclasses, and a task lists those that make sense for it.

    An algorithm says which it keeps (`Algorithm.keeps`). Closeness tells how alike two procedures are on the prompts
    of a task; a law that one breaks and the other keeps tells them apart however close they are.
    """

    in_distribution: ClassVar[bool] = True  # whether changed prompts are distributed as those of the task

    @abstractmethod
    def change(self, prompts: Prompts, generator: torch.Generator) -> Change:
        """The changed prompts; all randomness comes from the generator."""

    @property
    def name(self) -> str:
        """The class in words, and its parameters: "add targets"."""
        words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in type(self).__name__).strip()
        given = [f"{field.name}={getattr(self, field.name)}" for field in fields(self)]  # pyright: ignore
        return f"{words} ({', '.join(given)})" if given else words

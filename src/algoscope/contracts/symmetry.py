"""Changes of a prompt whose effect on the answer is known: a law that some algorithms keep and others break."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from algoscope.trace import Prompts

Answers = Shaped[Tensor, "stages batch points *target"]  # as the values of a trace
Side = Shaped[Tensor, "stages batch *rest"]


@dataclass(frozen=True, eq=False)
class Change:
    """Prompts that a procedure is to answer, and a law about its answers to them.

    `law` takes the answers to each of the prompts, in this order, and returns what it found and what it expected: two
    tensors that are equal where the law is kept. They have a row a stage and a column a prompt, and cover those answers
    alone that the law is about. `labels` says that answers are equal or not, instead of near or far.
    """

    prompts: tuple[Prompts, ...]
    law: Callable[[Sequence[Answers]], tuple[Side, Side]]
    labels: bool = False

    def defect(self, answers: Sequence[Answers]) -> Float[Tensor, "stages batch *rest"]:
        """By how much the answers break the law: zero where they keep it; of labels, 1 where they break it."""
        found, expected = self.law(answers)
        return (found != expected).double() if self.labels else found.double() - expected.double()

    def relative_defect(self, answers: Sequence[Answers]) -> Float[Tensor, "stages"]:
        """The root mean square of the defect, in units of that of both sides of the law; of labels, the share broken.

        Sides that have nothing in common give √2, and answers that are zero give zero.
        """
        square = self.defect(answers).square().flatten(1).mean(1)
        if self.labels:
            return square
        size = torch.stack([side.double().square().flatten(1).mean(1) for side in self.law(answers)]).mean(0)
        return (square / torch.where(size > 0, size, 1.0)).sqrt()


class Symmetry(ABC):
    """A law about answers. Concrete symmetries are frozen dataclasses, and a task lists those that make sense for it.

    An algorithm says which it keeps (`Algorithm.keeps`). Closeness tells how alike two procedures are on the prompts
    of a task; a law that one breaks and the other keeps tells them apart however close they are.
    """

    family: ClassVar[str] = "regression"  # whose prompts it can change: see `Task.family`
    in_distribution: ClassVar[bool] = True  # whether changed prompts are distributed as those of a task that lists it

    @abstractmethod
    def change(self, prompts: Prompts, generator: torch.Generator) -> Change:
        """The changed prompts; all randomness comes from the generator, which is on the CPU."""

    @property
    def name(self) -> str:
        """The class in words, and its parameters: "add targets"."""
        words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in type(self).__name__).strip()
        own = fields(self) if is_dataclass(self) else ()
        given = [f"{field.name}={getattr(self, field.name)}" for field in own]
        return f"{words} ({', '.join(given)})" if given else words

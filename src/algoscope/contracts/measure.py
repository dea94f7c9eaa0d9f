"""How alike two traces are."""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from algoscope.trace import Trace


class Scale:
    """What the numbers of a comparison mean."""

    name: ClassVar[str]
    larger_is_closer: ClassVar[bool] = True
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    resolution: ClassVar[float] = 1e-12  # smaller differences are rounding
    floor: ClassVar[float] = 0.0  # smaller differences between methods do not count where neither is all of a stage

    def bar(self, null: float) -> float | None:
        """How like a step a stage must be to count as that step; `null` is how like it the null is. None: no bar."""
        return None

    def passes(self, similarity: float, null: float) -> bool:
        """Whether the similarity is at the bar or beyond."""
        bar = self.bar(null)
        return bar is None or (similarity >= bar if self.larger_is_closer else similarity <= bar)


class Measure(Scale, ABC):
    """`per_sequence[b, i, j]` compares stage i of one trace with stage j of another on sequence b."""

    @abstractmethod
    def per_sequence(self, a: Trace, b: Trace, at: Bool[Tensor, "positions"]) -> Float[Tensor, "batch a b"]: ...

    @abstractmethod
    def null(self, like: Trace) -> Trace:
        """What has used none of the examples, on the same prompts: one stage, or one for each of `like`."""

    def below(self, a: Trace, b: Trace, at: Bool[Tensor, "positions"]) -> Float[Tensor, "batch a #b"] | None:
        """Where a similarity is a ratio of two means, what each sequence adds to the lower one; values are then the
        influence of a sequence on the ratio, around it. None where it is a plain mean of the values.
        """
        return None

    def informative(self, trace: Trace, at: Bool[Tensor, "positions"]) -> Bool[Tensor, "stages"]:
        """Which stages of a model can tell algorithms apart; by default all."""
        return torch.ones(len(trace), dtype=torch.bool)

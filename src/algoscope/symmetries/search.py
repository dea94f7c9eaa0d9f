"""Laws of searches. They are about reads: which points a search looks at, by their numbers in the prompt."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from algoscope import arguments, randomness
from algoscope.contracts import Answers, Change, Symmetry
from algoscope.trace import Prompts


@dataclass(frozen=True)
class FreshValues(Symmetry):
    """Points and queries on a line get fresh values between `low` and `high`, in the same order; equal ones stay equal.

    A search that only compares reads the same points as before, for as long as there is something left to read: the law
    is about the first ⌊log₂(n + 1)⌋ look-ups among n points. If `whole`, values are whole numbers, all different.

    In distribution where points and queries are drawn alike and uniformly, so that values tell nothing of the order.
    """

    low: float = -1.0
    high: float = 1.0
    whole: bool = False

    family = "search"

    def __post_init__(self) -> None:
        arguments.less(self.low, self.high)
        arguments.boolean("whole", self.whole)

    def change(self, prompts: Prompts, generator: torch.Generator) -> Change:
        if prompts.dim != 1 or not prompts.before:
            raise ValueError("prompts must be those of a search among points with one coordinate")
        values, count = prompts.x[..., 0], prompts.before
        ordered, order = values.sort(-1)
        ranks = torch.nn.functional.pad((ordered.diff(dim=-1) > 0).long().cumsum(-1), (1, 0))
        drawn = self._drawn(prompts, generator).to(values)
        needed = torch.arange(drawn.shape[1], device=values.device) <= ranks[:, -1:]  # one for each distinct value
        fresh = torch.where(needed, drawn, torch.inf).sort(-1).values.gather(-1, ranks)
        x = torch.empty_like(values).scatter(-1, order, fresh)
        distances = (x[:, count:, None] - x[:, None, :count]).abs()
        nearest = (distances == distances.amin(-1, keepdim=True)).to(torch.uint8).argmax(-1)  # the first of several
        looked_up = (count + 1).bit_length() - 1

        def law(answers: Sequence[Answers]) -> tuple[Tensor, Tensor]:
            covered = torch.arange(len(answers[0]), device=answers[0].device)[:, None, None] < looked_up
            return torch.where(covered, answers[1], answers[0]), answers[0]

        return Change((prompts, replace(prompts, x=x[..., None], y=nearest.to(prompts.y))), law, labels=True)

    def _drawn(self, prompts: Prompts, generator: torch.Generator) -> Float[Tensor, "batch values"]:
        """In random order."""
        if self.whole:
            universe = int(self.high - self.low) + 1
            shuffled = randomness.uniform([generator], prompts.batch, universe, dtype=torch.float64).argsort(-1)
            return self.low + shuffled[:, : prompts.x.shape[1]].double()
        chances = randomness.uniform([generator], *prompts.x.shape[:2], dtype=torch.float64)
        return self.low + (self.high - self.low) * chances

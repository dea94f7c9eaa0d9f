"""Algorithms of regression on tasks that are regressions only once something else is known."""

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from algoscope.algorithms.algorithm import Algorithm
from algoscope.trace import Prompts, Trace


@runtime_checkable
class Reduction(Protocol):
    """A task that can be turned into regressions, one or several, and their answers into its own."""

    def problems(self, prompts: Prompts) -> Sequence[Prompts]: ...

    def solved(self, values: Sequence[Float[Tensor, "..."]]) -> Float[Tensor, "..."]: ...


@dataclass(frozen=True)
class OnFeatures(Algorithm):
    """An `algorithm` on the regressions that a `task` is to someone who knows its features: Φ(x) in place of x.

    It has no weights on x itself. `called` is what the features are called.
    """

    algorithm: Algorithm
    task: Reduction
    called: str = "features"

    @property
    def name(self) -> str:
        return f"{self.algorithm.name} on {self.called}"

    def trace(self, prompts: Prompts) -> Trace:
        parts = [self.algorithm.trace(problem) for problem in _problems(self.task, prompts)]
        values = self.task.solved([part.values for part in parts])
        values = values.reshape(len(parts[0]), *prompts.y.shape)
        return Trace(self.name, values, parts[0].stages, prompts, note=parts[0].note)


_reduced: weakref.WeakKeyDictionary[Prompts, dict[object, Sequence[Prompts]]] = weakref.WeakKeyDictionary()


def _problems(task: Reduction, prompts: Prompts) -> Sequence[Prompts]:
    """Made once for as long as the prompts live: all algorithms on them then share one decomposition."""
    key = (task, prompts.x._version, prompts.y._version)  # counts changes in place
    known = _reduced.setdefault(prompts, {})
    if key not in known:
        known[key] = task.problems(prompts)
    return known[key]

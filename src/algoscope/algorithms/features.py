"""Algorithms of regression on tasks that are regressions only once something else is known."""

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from algoscope import arguments
from algoscope.contracts import Algorithm
from algoscope.trace import Prompts, Trace


@runtime_checkable
class Reduction(Protocol):
    """A task that can be turned into regressions, one or several, and their answers into its own."""

    def problems(self, prompts: Prompts) -> Sequence[Prompts]: ...

    def solved(self, values: Sequence[Float[Tensor, "..."]]) -> Float[Tensor, "..."]: ...


@dataclass(frozen=True)
class OnFeatures(Algorithm):
    """An `algorithm` on the regressions that a `task` is to someone who knows its features: Φ(x) in place of x.

    It has no weights on x itself. `called` is what the features are called. Which symmetries it keeps is not known
    without the features: most laws about x are not laws about Φ(x).
    """

    algorithm: Algorithm
    task: Reduction
    called: str = "features"

    def __post_init__(self) -> None:
        if not isinstance(self.algorithm, Algorithm):
            raise ValueError(f"algorithm must be one such as Newton(steps=24), got {arguments.shown(self.algorithm)}")
        if not hasattr(self.task, "problems"):
            got = arguments.shown(self.task)
            raise ValueError(f"task must be one on features, such as RepresentationRegression, got {got}")

    @property
    def name(self) -> str:
        return f"{self.algorithm.name} on {self.called}"

    @property
    def method(self) -> str:
        return f"{self.algorithm.method} on {self.called}"

    @property
    def closed_form(self) -> bool:
        return self.algorithm.closed_form

    def trace(self, prompts: Prompts) -> Trace:
        if prompts.dim != getattr(self.task, "dim", prompts.dim):
            raise ValueError(f"prompts must be of the task {type(self.task).__name__}, got ones of dim {prompts.dim}")
        values, stages_and_notes = [], []
        for problem in _problems(self.task, prompts):
            part = self.algorithm.trace(problem)
            values.append(part.values)
            stages_and_notes.append((part.stages, part.note))  # and not its weights, which would fill the memory
        stages, note = stages_and_notes[0]
        return Trace(
            self.name, self.task.solved(values).reshape(len(stages), *prompts.y.shape), stages, prompts, note=note
        )


_reduced: weakref.WeakKeyDictionary[Prompts, dict[object, Sequence[Prompts]]] = weakref.WeakKeyDictionary()


def _problems(task: Reduction, prompts: Prompts) -> Sequence[Prompts]:
    """Made once for as long as the prompts live: all algorithms on them then share one decomposition."""
    key = (task, prompts.x._version, prompts.y._version)  # counts changes in place
    known = _reduced.setdefault(prompts, {})
    if key not in known:
        known[key] = task.problems(prompts)
    return known[key]

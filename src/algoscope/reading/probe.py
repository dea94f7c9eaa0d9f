"""Linear probes: the best linear prediction of the targets from each stage of a model."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from algoscope import arguments, contracts
from algoscope.contracts import Show, States, Task
from algoscope.reading.moments import LinearMap, Moments, solve
from algoscope.reading.states import open_model
from algoscope.trace import Prompts, Trace

CHUNK = 100  # prompts in flight at once
VALIDATION = 5  # one chunk in so many chooses the ridge penalties
FEWEST = 2 * VALIDATION  # prompts to fit on


def ignored(_: int) -> None:
    """In place of a bar: progress that nothing shows."""


@dataclass(frozen=True, eq=False)
class FittedProbe(contracts.Reading):
    """The states of a model, and for each stage a linear map to the targets."""

    states: States
    maps: Mapping[str, LinearMap]

    def trace(self, prompts: Prompts) -> Trace:
        """What each stage predicts, on prompts that the probes should not have seen."""
        return Trace("the model", self.read(prompts).reshape(-1, *prompts.y.shape), self.states.stages, prompts)

    def read(
        self, prompts: Prompts, done: Callable[[int], None] = ignored
    ) -> Float[Tensor, "stages batch points targets"]:
        """The same as coordinates: of a label that is one of many, each label has one."""
        parts = []
        for chunk in chunks(prompts):
            states = self.states.of(chunk)
            parts.append(torch.stack([self.maps[stage](states[stage]) for stage in self.states.stages]))
            done(chunk.batch)
        return torch.cat(parts, 1)


def probe(
    model: nn.Module | Show,
    task: Task,
    prompts: Prompts,
    seed: int = 1,
    stages: Sequence[str] | None = None,
    fit_on: int = 1000,
    norm: Literal["none", "each", "last"] = "none",
) -> Trace:
    """The trace of a model: what the best linear probe of each stage predicts.

    The probes are ridge regressions in closed form, fitted to the targets of `fit_on` prompts that are drawn with
    `seed` and never occur among those of `task.sample`. `stages` and `norm`: see `open_model`.
    """
    states = open_model(model, task, stages, norm)
    check_prompts(prompts, task)
    return fit(states, fitting_prompts(task, fit_on, seed)).trace(prompts)


def fitting_prompts(task: Task, fit_on: int, seed: int) -> Prompts:
    """Prompts for probes, which no comparison sees."""
    arguments.integer("fit_on", fit_on, FEWEST, 2**31)
    return task.sample(fit_on, seed, purpose="read-out")


def fit(
    states: States,
    prompts: Prompts,
    weights: Float[Tensor, "positions"] | None = None,
    done: Callable[[int], None] = ignored,
) -> FittedProbe:
    """Probes of the targets in one pass over the prompts. Each position has a weight, by default the same."""
    weights = torch.ones(prompts.positions, dtype=torch.float64) if weights is None else weights
    at, root = weights > 0, weights[weights > 0].sqrt()[:, None]
    train, validation = ({stage: Moments() for stage in states.stages} for _ in range(2))
    size = min(prompts.batch // VALIDATION, CHUNK)
    for k, chunk in enumerate(chunks(prompts, size)):
        part, wanted = train if k % VALIDATION else validation, targets_of(states.task, chunk)[:, at]
        rows = root.expand(chunk.batch, -1, 1).flatten(0, 1)
        for stage, state in states.of(chunk).items():
            part[stage].add(state[:, at].flatten(0, 1), wanted.flatten(0, 1), rows)
        done(chunk.batch)
    return FittedProbe(states, {stage: solve(train[stage], validation[stage]) for stage in states.stages})


def check_prompts(prompts: object, task: Task) -> None:
    if not isinstance(prompts, Prompts):
        raise ValueError(f"prompts must be Prompts, such as task.sample gives, got {type(prompts).__name__}")
    own = task.sample(1, seed=0)
    for name in ("x", "y"):
        got, want = (list(getattr(given, name).shape[1:]) for given in (prompts, own))
        if got != want:
            raise ValueError(f"prompts must be of the task: {name} of a prompt is {got}, in the task {want}")


def chunks(prompts: Prompts, size: int = CHUNK) -> Iterator[Prompts]:
    """The prompts, few at a time: what is computed of them must not fill the memory."""
    starts = list(range(0, max(prompts.batch - 1, 1), min(size, CHUNK)))  # no chunk of one: its null would be itself
    for start, stop in zip(starts, [*starts[1:], prompts.batch], strict=True):
        part = slice(start, stop)
        yield replace(prompts, x=prompts.x[part], y=prompts.y[part])


def targets_of(task: Task, prompts: Prompts) -> Float[Tensor, "batch points targets"]:
    """What a probe is fitted to: the targets, or a vector with a 1 in the place of a label that is one of many."""
    if task.answer == "choice":
        return functional.one_hot(prompts.y.long(), task.outputs).double().cpu()
    return prompts.target_columns.double().cpu()

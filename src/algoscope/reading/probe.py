"""Read-outs: the best linear prediction of the targets, and of any other columns, from each stage of a model."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from algoscope import arguments
from algoscope.reading.moments import LinearMap, Moments, solve
from algoscope.reading.states import Show, States, open_model
from algoscope.tasks import Task
from algoscope.trace import Prompts, Trace

CHUNK = 100  # prompts in flight at once
VALIDATION = 5  # one chunk in so many chooses the ridge penalties
FEWEST = 2 * VALIDATION  # prompts to fit on
Columns = Float[Tensor, "batch points columns targets"]


def nobody(_: int) -> None:
    """Hears of prompts that are done, and says nothing."""


@dataclass(frozen=True, eq=False)
class Read:
    """What was read on some prompts: the trace of the stages, and how well the columns are read.

    The gain of a column on a sequence is what is left unread of its null minus what is left unread of the column,
    relative to the column's variance: the mean gain is the held-out R² above the null's. NaN where a column is zero.
    """

    trace: Trace
    gains: Float[Tensor, "batch stages columns"]


@dataclass(frozen=True, eq=False)
class Part:
    """Sums over some prompts: of the states of each stage with all that is to be read, and of the columns."""

    stages: Mapping[str, Moments]
    columns: Moments


@dataclass(frozen=True, eq=False)
class Reading:
    """The states of a model, and for each stage a linear map to the targets, to columns, and to the columns' nulls.

    Columns are what else may be read: the steps of algorithms, each with as many coordinates as the target. The null of
    a column is the same column of another sequence. The maps were fitted to the positions `at` of two parts of the
    prompts, to the sums `parts`; the second part chose the penalties.
    """

    states: States
    maps: Mapping[str, LinearMap]
    parts: tuple["Part", "Part"]
    targets: int
    at: Bool[Tensor, "positions"]

    def trace(self, prompts: Prompts) -> Trace:
        """What each stage predicts, on prompts that the read-outs should not have seen."""
        return self.of_targets().read(prompts, None).trace

    def read(self, prompts: Prompts, columns: Columns | None, done: Callable[[int], None] = nobody) -> Read:
        """Targets and columns; `done` hears of each chunk."""
        predicted, gained = [], []
        for chunk, own in chunks(prompts, columns):
            states, wanted = self.states.of(chunk), _wanted(chunk, own)
            values, gains = [], []
            for stage in self.states.stages:  # one at a time: many columns of many coordinates fill the memory
                read = self.maps[stage](states[stage])
                values.append(read[..., : self.targets].clone())
                unread = self._by_column((read - wanted)[:, self.at]).square().sum((1, -1))
                column, null = unread.chunk(2, dim=-1)
                gains.append(null - column)
            predicted.append(torch.stack(values, dim=1))
            gained.append(torch.stack(gains, dim=1))
            done(chunk.batch)
        values = torch.cat(predicted).movedim(1, 0).reshape(-1, *prompts.y.shape)
        trace, gains = Trace("the model", values, self.states.stages, prompts), torch.cat(gained)
        if columns is not None:
            power = columns[:, self.at].square().sum((1, 3)).mean(0)
            gains = gains / torch.where(power > 0, power, torch.nan)
        return Read(trace, gains)

    def scales(self) -> Float[Tensor, "stages columns"]:
        """The factor that brings each column closest to the read-out of each stage."""
        products = sum(self._explained_by_columns(part).products for part in self.parts)
        power = sum(part.columns.squares.diagonal() for part in self.parts)
        assert isinstance(products, Tensor)
        assert isinstance(power, Tensor)
        return torch.where(power > 0, products.mT / power.clamp(min=1e-300), 1.0)

    def by_columns(self) -> LinearMap:
        """All columns together to the read-outs of the stages: what of them is a mixture of known steps.

        Without a shift, since a single step that is scaled to a read-out has none either.
        """
        train, validation = (self._explained_by_columns(part) for part in self.parts)
        spread = (train.squares.diagonal() / train.rows).sqrt()
        unit = torch.where(spread > 0, 1 / spread.clamp(min=1e-300), 0.0)
        found = solve(train.scaled(unit), validation.scaled(unit))
        return LinearMap(unit[:, None] * found.weights, found.shift)

    def _explained_by_columns(self, part: "Part") -> Moments:
        """Sums over a part, with the columns as features and the read-outs of the stages as targets, about zero."""
        sums, columns = Moments(), part.columns
        sums.rows, sums.features, sums.squares = columns.rows, torch.zeros_like(columns.features), columns.squares
        products, powers = [], []
        for stage in self.states.stages:
            own, linear = part.stages[stage], self.maps[stage].of(self.targets)
            read = torch.einsum("wm,wcm->c", linear.weights, self._by_column(own.products))
            products.append((read + (linear.shift * self._by_column(own.targets)).sum(-1)).chunk(2)[0])
            powers.append(own.power_of(linear).sum())
        sums.products, sums.power = torch.stack(products, 1), torch.stack(powers)
        sums.targets = torch.zeros_like(sums.power)
        return sums

    def of_targets(self) -> "Reading":
        """Without the columns."""
        return replace(self, maps={stage: linear.of(self.targets) for stage, linear in self.maps.items()})

    def _by_column(self, wanted: Tensor) -> Float[Tensor, "*rest columns_and_nulls targets"]:
        columns = (wanted.shape[-1] - self.targets) // self.targets
        return wanted[..., self.targets :].unflatten(-1, (columns, self.targets))


def probe(
    model: nn.Module | Show,
    task: Task,
    prompts: Prompts,
    seed: int = 1,
    stages: Sequence[str] | None = None,
    fit_on: int = 1000,
    norm: Literal["none", "each", "last"] = "none",
) -> Trace:
    """The trace of a model: what the best linear read-out of each stage predicts.

    The read-outs are ridge regressions in closed form, fitted to the targets of `fit_on` prompts that are drawn with
    `seed` and never occur among those of `task.sample`. `stages` and `norm`: see `open_model`.
    """
    states = open_model(model, task, stages, norm)
    check_prompts(prompts, task)
    return fit(states, fitting_prompts(task, fit_on, seed)).trace(prompts)


def fitting_prompts(task: Task, fit_on: int, seed: int) -> Prompts:
    """Prompts for read-outs, which no comparison sees."""
    arguments.integer("fit_on", fit_on, FEWEST)
    return task.sample(fit_on, seed, purpose="read-out")


def fit(
    states: States,
    prompts: Prompts,
    columns: Columns | None = None,
    at: Bool[Tensor, "positions"] | None = None,
    done: Callable[[int], None] = nobody,
) -> Reading:
    """Read-outs of the targets and of the columns at some positions, by default all, in one pass over the prompts."""
    at = torch.ones(prompts.positions, dtype=torch.bool) if at is None else at
    train, validation = (Part({stage: Moments() for stage in states.stages}, Moments()) for _ in range(2))
    for k, (chunk, own) in enumerate(chunks(prompts, columns, prompts.batch // VALIDATION)):
        part, wanted = train if k % VALIDATION else validation, _wanted(chunk, own)[:, at].flatten(0, 1)
        for stage, state in states.of(chunk).items():
            part.stages[stage].add(state[:, at].flatten(0, 1), wanted)
        if own is not None:
            features = own[:, at].movedim(2, 3).flatten(0, 2)
            part.columns.add(features, features[:, :0])
        done(chunk.batch)
    maps = {stage: solve(train.stages[stage], validation.stages[stage]) for stage in states.stages}
    return Reading(states, maps, (train, validation), prompts.target_columns.shape[2], at)


def check_prompts(prompts: object, task: Task) -> None:
    if not isinstance(prompts, Prompts):
        raise ValueError(f"prompts must be Prompts, such as task.sample gives, got {type(prompts).__name__}")
    own = task.sample(1, seed=0)
    for name in ("x", "y"):
        got, want = (list(getattr(given, name).shape[1:]) for given in (prompts, own))
        if got != want:
            raise ValueError(f"prompts must be of the task: {name} of a prompt is {got}, in the task {want}")


def chunks(
    prompts: Prompts, columns: Columns | None = None, size: int = CHUNK
) -> Iterator[tuple[Prompts, Columns | None]]:
    """The prompts and their columns, few at a time: what is computed of them must not fill the memory."""
    starts = list(range(0, max(prompts.batch - 1, 1), min(size, CHUNK)))  # no chunk of one: its null would be itself
    for start, stop in zip(starts, [*starts[1:], prompts.batch], strict=True):
        part = slice(start, stop)
        chunk = replace(prompts, x=prompts.x[part], y=prompts.y[part])
        yield chunk, None if columns is None else columns[part]


def _wanted(prompts: Prompts, columns: Columns | None) -> Float[Tensor, "batch points targets_columns_nulls"]:
    targets = prompts.target_columns.double().cpu()
    if columns is None:
        return targets
    extra = columns.flatten(2)
    return torch.cat([targets, extra, extra.roll(1, 0)], dim=-1)

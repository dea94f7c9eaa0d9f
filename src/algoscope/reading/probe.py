"""Linear probes: the best linear prediction of the targets, and of any other columns, from each stage of a model."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Bool, Float
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
VARIES = 1e-12  # of a column's largest variance: directions with less are taken to be constant
Columns = Float[Tensor, "batch points columns targets"]


def ignored(_: int) -> None:
    """In place of a bar: progress that nothing shows."""


@dataclass(frozen=True, eq=False)
class Part:
    """Some prompts: sums of the states of each stage with all that is to be read, and of the columns; these, too."""

    stages: Mapping[str, Moments]
    columns: Moments
    shown: list[Columns]


@dataclass(frozen=True, eq=False)
class Calibration:
    """What brings each column closest to the probe of a stage, whose targets it has: column @ weights + shift.

    Of a target with one coordinate it is a factor alone. A probe of several also mixes and shifts them.
    `nothing` is the shift of a column that is zero throughout.
    """

    weights: Float[Tensor, "columns targets targets"]
    shift: Float[Tensor, "columns targets"]
    nothing: Float[Tensor, "targets"]

    def __call__(self, values: Float[Tensor, "columns batch points *target"]) -> Tensor:
        """Of columns in the order of a trace, which has the shape of the targets."""
        if len(self.nothing) == 1:
            return values * self.weights.reshape(-1, *[1] * (values.ndim - 1))
        return torch.baddbmm(self.shift[:, None], values.flatten(1, 2), self.weights).reshape(values.shape)

    def of(self, part: slice) -> "Calibration":
        """Of some columns."""
        return Calibration(self.weights[part], self.shift[part], self.nothing)


@dataclass(frozen=True, eq=False)
class FittedProbe(contracts.Reading):
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
        """What each stage predicts, on prompts that the probes should not have seen."""
        return Trace("the model", self.read_targets(prompts).reshape(-1, *prompts.y.shape), self.states.stages, prompts)

    def read_targets(self, prompts: Prompts) -> Float[Tensor, "stages batch points targets"]:
        """The same as coordinates: of a label that is one of many, each label has one."""
        probe = self.of_targets()
        return torch.cat([probe.read(chunk)[0] for chunk in chunks(prompts)], 1)

    def read(
        self, prompts: Prompts, columns: Columns | None = None
    ) -> tuple[Float[Tensor, "stages batch points targets"], Float[Tensor, "batch stages columns"]]:
        """What each stage predicts, and of each column what is left unread of its null, minus what is left of itself,
        in squares: above zero where the column can be read.
        """
        states, wanted = self.states.of(prompts), _wanted(self.states.task, prompts, columns)
        values, gains = [], []
        for stage in self.states.stages:  # one at a time: many columns of many coordinates fill the memory
            read = self.maps[stage](states[stage])
            values.append(read[..., : self.targets].clone())
            unread = self._by_column((read - wanted)[:, self.at]).square().sum((1, -1))
            column, null = unread.chunk(2, dim=-1)
            gains.append(null - column)
        return torch.stack(values), torch.stack(gains, dim=1)

    def calibrations(self) -> list[Calibration]:
        """Of the columns, for each stage."""
        if self.targets > 1:
            squares = sum((_squares(shown[:, self.at]) for part in self.parts for shown in part.shown), torch.zeros(()))
            return [self._affine(stage, squares) for stage in self.states.stages]
        products = sum(self._explained_by_columns(part).products for part in self.parts)
        power = sum(part.columns.squares.diagonal() for part in self.parts)
        assert isinstance(products, Tensor)
        assert isinstance(power, Tensor)
        factors = torch.where(power > 0, products.mT / power.clamp(min=1e-300), 1.0)
        none = torch.zeros(len(power), 1, dtype=torch.float64)
        return [Calibration(own[:, None, None], none, none[0]) for own in factors]

    def mixtures(
        self, calibrations: Sequence[Calibration]
    ) -> Callable[[Columns], Float[Tensor, "stages batch points targets"]]:
        """All columns together as close as they come to the probes: what of these is a mixture of known steps.

        Each column is calibrated as if it were alone, and there is no further shift: a mixture may do no more to a
        column than is done to a single one.
        """
        if self.targets == 1:  # factors change no mixture, so the columns are the same for all stages
            train, validation = (self._explained_by_columns(part) for part in self.parts)
            mixture = _mixture(train, validation)
            return lambda columns: mixture(columns.movedim(2, 3)).movedim(3, 0)
        found = []
        for stage, calibrate in zip(self.states.stages, calibrations, strict=True):
            train, validation = (self._explained_by_calibrated(part, stage, calibrate) for part in self.parts)
            found.append((calibrate, _mixture(train, validation)))
        return lambda columns: torch.stack(
            [mix(calibrate(columns.movedim(2, 0)).movedim(0, 3))[..., 0] for calibrate, mix in found]
        )

    def _affine(self, stage: str, squares: Float[Tensor, "columns targets targets"]) -> Calibration:
        """By least squares about the means, on all prompts; directions in which a column never varies are left out."""
        linear, sums = self.maps[stage].of(self.targets), self.parts[0].stages[stage] + self.parts[1].stages[stage]
        read = (sums.features @ linear.weights) / sums.rows + linear.shift
        means = self._by_column(sums.targets).chunk(2)[0] / sums.rows
        products = self._read_with_columns(sums, linear) / sums.rows - means[:, :, None] * read
        covariance = squares / sums.rows - means[:, :, None] * means[:, None, :]
        weights = torch.linalg.pinv(covariance, rtol=VARIES, hermitian=True) @ products
        return Calibration(weights, read - (means[:, None] @ weights)[:, 0], read)

    def _read_with_columns(self, sums: Moments, linear: LinearMap) -> Float[Tensor, "columns targets targets"]:
        """Sums of products: the coordinates of each column, and of a probe."""
        with_states = torch.einsum("wr,wcm->cmr", linear.weights, self._by_column(sums.products))
        return (with_states + self._by_column(sums.targets)[..., None] * linear.shift).chunk(2)[0]

    def _explained_by_calibrated(self, part: "Part", stage: str, calibrate: Calibration) -> Moments:
        """Sums over a part, with the columns calibrated to a stage as features and its probe as target."""
        own, linear = part.stages[stage], self.maps[stage].of(self.targets)
        sums = Moments()
        for shown in part.shown:
            features = calibrate(shown[:, self.at].movedim(2, 0)).movedim(0, 3).flatten(0, 2)
            sums.add(features, features[:, :0])
        read = own.features @ linear.weights + own.rows * linear.shift
        products = (self._read_with_columns(own, linear) * calibrate.weights).sum((1, 2)) + calibrate.shift @ read
        sums.features, sums.products = torch.zeros_like(sums.features), products[:, None]  # about zero
        sums.power = own.power_of(linear).sum()[None]
        sums.targets = torch.zeros_like(sums.power)
        return sums

    def _explained_by_columns(self, part: "Part") -> Moments:
        """Sums over a part, with the columns as features and the probes of the stages as targets, about zero."""
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

    def of_targets(self) -> "FittedProbe":
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
    columns: Callable[[int], Iterable[tuple[Prompts, Columns | None]]] | None = None,
    at: Bool[Tensor, "positions"] | None = None,
    done: Callable[[int], None] = ignored,
) -> FittedProbe:
    """Probes of the targets and of columns at some positions, by default all, in one pass over the prompts.

    `columns` gives the prompts and their columns in chunks of a size.
    """
    at, task = torch.ones(prompts.positions, dtype=torch.bool) if at is None else at, states.task
    train, validation = (Part({stage: Moments() for stage in states.stages}, Moments(), []) for _ in range(2))
    size = min(prompts.batch // VALIDATION, CHUNK)
    parts = ((chunk, None) for chunk in chunks(prompts, size)) if columns is None else columns(size)
    for k, (chunk, own) in enumerate(parts):
        part, wanted = train if k % VALIDATION else validation, _wanted(task, chunk, own)[:, at].flatten(0, 1)
        for stage, state in states.of(chunk).items():
            part.stages[stage].add(state[:, at].flatten(0, 1), wanted)
        if own is not None:
            features = own[:, at].movedim(2, 3).flatten(0, 2)
            part.columns.add(features, features[:, :0])
            if own.shape[-1] > 1:
                part.shown.append(own)
        done(chunk.batch)
    maps = {stage: solve(train.stages[stage], validation.stages[stage]) for stage in states.stages}
    return FittedProbe(states, maps, (train, validation), targets_of(task, prompts).shape[2], at)


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


def _wanted(
    task: Task, prompts: Prompts, columns: Columns | None
) -> Float[Tensor, "batch points targets_columns_nulls"]:
    targets = targets_of(task, prompts)
    if columns is None:
        return targets
    extra = columns.flatten(2)
    return torch.cat([targets, extra, extra.roll(1, 0)], dim=-1)


def _squares(columns: Columns) -> Float[Tensor, "columns targets targets"]:
    """Sums of the products of each column's coordinates."""
    rows = columns.flatten(0, 1).movedim(0, 2)
    return rows @ rows.mT


def _mixture(train: Moments, validation: Moments) -> LinearMap:
    """Of features that are brought to one size first."""
    spread = (train.squares.diagonal() / train.rows).sqrt()
    unit = torch.where(spread > 0, 1 / spread.clamp(min=1e-300), 0.0)
    found = solve(train.scaled(unit), validation.scaled(unit))
    return LinearMap(unit[:, None] * found.weights, found.shift)

"""What speaks for which step: the stages of one model against every step of the algorithms.

Of any reader and any measure, the traces themselves are compared. Where a linear probe reads numbers, each step is
brought to the size of the probe first, and their errors are compared. Then the closest step is put to the test: what it
misses of the stage is compared with mixtures of all known steps, and with its neighbors, prompt by prompt.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from algoscope.contracts import Measure, Reading
from algoscope.matching import MEASURES, Agreement, ErrorSimilarity, Match
from algoscope.matching.calibration import BLOCKS, Calibration, blocks
from algoscope.matching.compare import Positions
from algoscope.matching.measures import centered_by_position
from algoscope.matching.mixtures import NONE, Misfit, Mixture, step_spread
from algoscope.matching.statistics import Estimate
from algoscope.reading.induced import induced_weights, queries_for
from algoscope.reading.probe import CHUNK, FittedProbe, ignored
from algoscope.steps import Columns, Steps, first
from algoscope.trace import Prompts, Stage, Trace

QUERIES, FEWEST_WEIGHED = 2000, 12  # prompts with other queries to ask for weights, and prompts to weigh at least
TOLERATED = 0.05  # of the misfit of labels
AT_ONCE = 64  # steps whose distances are taken at once: bounds the memory
RESAMPLES = 1000
RESAMPLED = 1000  # values that are resampled at most: of more prompts, the means of blocks of them are, in less room
Done = Callable[[int], None]


@dataclass(frozen=True)
class Setting:
    """Prompts, positions and measure of a comparison."""

    fitting: Prompts
    sample: Prompts
    at: Bool[Tensor, "positions"]
    measure: Measure
    positions: Positions
    first: int
    seed: int

    def match(
        self,
        names: tuple[str, str],
        stages: tuple[tuple[Stage, ...], tuple[Stage, ...]],
        kind: str,
        values: Tensor,
        null: Tensor,
        confidence: float,
        below: Tensor | None = None,
    ) -> Match:
        scale = {**MEASURES, self.measure.name: self.measure}[kind]
        return Match(*names, *stages, scale, self.positions, self.first, values, null, confidence, RESAMPLES, self.seed,
                     below)  # fmt: skip


class Evidence(ABC):
    """`matches` by kind and algorithm; the first kind decides."""

    trace: Trace
    matches: Mapping[str, Mapping[str, Match]]
    linearity: Sequence[float]
    steps: Steps
    setting: Setting

    @property
    @abstractmethod
    def parameters(self) -> int:
        """How many numbers bring a step to a stage."""

    @abstractmethod
    def stage_rows(self, stage: int) -> Float[Tensor, "batch rows"]:
        """A stage as numbers."""

    @abstractmethod
    def step_rows(self, stage: int, columns: Sequence[int]) -> Float[Tensor, "batch rows columns"]:
        """Some steps, by their places in the list, as they are compared with a stage."""

    @abstractmethod
    def answers(self, prompts: Prompts) -> Float[Tensor, "stages batch points *target"]:
        """What the stages are read as on other prompts."""

    @abstractmethod
    def brought(self, stage: int, values: Tensor, place: int) -> Tensor:
        """What a step computes on other prompts, by its place in the list, as it is compared with a stage."""

    @abstractmethod
    def mixture(self, stage: int) -> Mixture:
        """Of all known steps, for one stage."""

    @abstractmethod
    def again(self, steps: Steps, setting: Setting, confidence: float) -> "Evidence":
        """The same model, read in the same way, on other prompts."""

    def misfit(self, stage: int, closest: int, confidence: float, resamples: int) -> Misfit:
        """What a step, by its place in the list, misses of a stage."""
        rows, rivals, seed = self.stage_rows(stage), self.steps.rivals(closest), self.setting.seed
        own = self.step_rows(stage, [closest])
        missed, power = rows - own[..., 0], float(rows.square().sum())
        distances = self._distances(stage, own, rivals)
        apart = min(distances.values())
        other = min(distances[k] for k in (-1, *self.steps.of_other_methods(closest, rivals)))
        gain, systematic = self.mixture(stage).adds(missed, power, apart, confidence, resamples, seed, self.parameters)
        between, spread = self.steps.neighbors(closest), NONE
        if between is not None:
            before, after = self.step_rows(stage, between).unbind(-1)
            spread = step_spread(missed, after - before, confidence, resamples, seed)
        value, low, high = (part * apart / max(other, 1e-300) for part in systematic[:3])
        method = Estimate(value, low, high, systematic.n)
        return Misfit(gain, systematic, spread, method, TOLERATED if self.steps.task.labels else 0.0)

    def _distances(self, stage: int, own: Float[Tensor, "batch rows 1"], rivals: Sequence[int]) -> dict[int, float]:
        """Squared distances of a step to some others, by their places, and to nothing, which is at -1."""
        found = {-1: float(own.square().sum())}
        for start in range(0, len(rivals), AT_ONCE):
            some = rivals[start : start + AT_ONCE]
            off = (self.step_rows(stage, some) - own).square().sum((0, 1))
            found |= dict(zip(some, off.tolist(), strict=True))
        return found


class TraceEvidence(Evidence):
    """Traces against traces, by any measure.

    `prompt` is what a linear probe reads from the tokens themselves. A stage that is no more like a step than that
    shows no algorithm: the probe alone makes that step of the prompt. So it is a null as well.
    """

    def __init__(
        self, reading: Reading, steps: Steps, setting: Setting, confidence: float, prompt: Trace | None = None
    ) -> None:
        self.setting, self.steps, self.reading, measure = setting, steps, reading, setting.measure
        self.trace = reading.trace(setting.sample)
        self.linearity, found = [math.nan] * len(self.trace), {}
        self.numbers: tuple[int, tuple[Tensor, Tensor]] = (-1, (torch.zeros(0), torch.zeros(0)))
        for name, other in steps.traces().items():
            values = measure.per_sequence(self.trace, other, setting.at)
            null = measure.per_sequence(self.trace, measure.null(other), setting.at)
            if prompt is not None:
                read = measure.per_sequence(prompt, other, setting.at)
                null = torch.where(read.mean(0) > null.mean(0), read, null)
            below = measure.below(self.trace, other, setting.at)
            labels = (self.trace.name, name), (self.trace.stages, other.stages)
            found[name] = setting.match(*labels, measure.name, values, null, confidence, below)
        self.matches = {measure.name: found}

    @property
    def parameters(self) -> int:
        return 1

    def stage_rows(self, stage: int) -> Float[Tensor, "batch rows"]:
        return self._numbers(stage)[0]

    def step_rows(self, stage: int, columns: Sequence[int]) -> Float[Tensor, "batch rows columns"]:
        """Each brought to the size of the stage by one factor."""
        rows, every = self._numbers(stage)
        found = every[:, :, list(columns)]
        factors = (found * rows[:, :, None]).sum((0, 1)) / found.square().sum((0, 1)).clamp(min=1e-300)
        return factors * found

    def answers(self, prompts: Prompts) -> Float[Tensor, "stages batch points *target"]:
        return self.reading.trace(prompts).values

    def brought(self, stage: int, values: Tensor, place: int) -> Tensor:
        return values

    def again(self, steps: Steps, setting: Setting, confidence: float) -> Evidence:
        return TraceEvidence(self.reading, steps, setting, confidence)

    def mixture(self, stage: int) -> Mixture:
        _, every = self._numbers(stage)
        return Mixture(lambda: self._parts(every), blocks(len(every)))

    def _numbers(self, stage: int) -> tuple[Float[Tensor, "batch rows"], Float[Tensor, "batch rows columns"]]:
        """A stage and the steps as numbers, kept while that stage is looked at."""
        if self.numbers[0] != stage:
            self.numbers = stage, self._as_numbers(stage)
        return self.numbers[1]

    def _as_numbers(self, stage: int) -> tuple[Float[Tensor, "batch rows"], Float[Tensor, "batch rows columns"]]:
        """A label that is one of many stands for a vector with a 1 in its place."""
        kept, at, measure = self.steps.kept, self.setting.at, self.setting.measure
        few = replace(self.setting.sample, x=self.setting.sample.x[: len(kept)], y=self.setting.sample.y[: len(kept)])
        values, columns = self.trace.values[:, : len(kept)], kept.movedim(2, 0)
        columns = columns if few.y.ndim == 3 else columns[..., 0]
        if isinstance(measure, Agreement) and few.before:
            counted = measure.mixed(replace(self.trace, values=values, prompts=few), at)[stage]
            numbers = [functional.one_hot(each.long().clamp(max=few.before), few.before + 1)[..., :-1].double()
                       * counted[..., None] for each in (values[stage], *columns)]  # fmt: skip
            flat = torch.stack([(each - each.mean((0, 1))).flatten(1) for each in numbers])
        else:
            flat = centered_by_position(torch.cat([values[stage : stage + 1].double().cpu(), columns.double()]), at)
        return flat[0], flat[1:].movedim(0, -1)

    def _parts(self, columns: Float[Tensor, "batch rows columns"]) -> Iterator[tuple[slice, Tensor]]:
        for start in range(0, len(columns), CHUNK):
            part = slice(start, min(start + CHUNK, len(columns)))
            yield part, columns[part]


class ProbeEvidence(Evidence):
    """Linear probes of numbers against calibrated steps, by errors.

    All that is compared is gathered chunk by chunk, so that memory hardly grows with the number of prompts; steps are
    calibrated and mixed on the first `steps.KEPT` of them.
    """

    def __init__(
        self, probe: FittedProbe, steps: Steps, setting: Setting, confidence: float, weights: bool, done: Done = ignored
    ) -> None:
        self.setting, self.steps, self.probe = setting, steps, probe
        self.weights = steps.weights
        self.read = self.probe.read(setting.sample, done)
        self.kept, self.block = steps.kept, blocks(len(steps.kept))
        self.calibrated = Calibration(self.read[:, : len(self.kept)], self.kept, self.block, self.weights)
        self.trace = Trace(
            "the model", self.read.reshape(-1, *setting.sample.y.shape), probe.states.stages, setting.sample
        )
        self.matches = self._matches(confidence)
        self.linearity = [math.nan] * len(self.trace)
        if weights:
            self.matches["weights"], self.linearity = self._weighed(confidence)

    @property
    def parameters(self) -> int:
        targets = self.read.shape[-1]
        return int((self.weights > 0).sum()) if targets == 1 else targets * (targets + 1)

    def stage_rows(self, stage: int) -> Float[Tensor, "batch rows"]:
        return self.steps.rows(self.read[stage, : len(self.kept), :, None])[..., 0]

    def step_rows(self, stage: int, columns: Sequence[int]) -> Float[Tensor, "batch rows columns"]:
        own, places = self.kept[:, :, list(columns)], list(columns)
        parts = [self.calibrated(stage, own[self.block == k], k, places) for k in range(BLOCKS)]
        return self.steps.rows(torch.cat(parts))

    def answers(self, prompts: Prompts) -> Float[Tensor, "stages batch points *target"]:
        own = first(self.setting.sample, prompts.batch)
        read = self.read[:, : prompts.batch] if own.same_as(prompts) else self.probe.read(prompts)
        return read.reshape(-1, *prompts.y.shape)

    def brought(self, stage: int, values: Tensor, place: int) -> Tensor:
        columns = values.reshape(*values.shape[:3], -1).movedim(0, 2)
        return self.calibrated(stage, columns, part=[place]).movedim(2, 0).reshape(values.shape)

    def again(self, steps: Steps, setting: Setting, confidence: float) -> Evidence:
        return ProbeEvidence(self.probe, steps, setting, confidence, weights=False)

    def mixture(self, stage: int) -> Mixture:
        """Of one target, factors change no mixture, so that one serves all stages, and all models."""
        if self.read.shape[-1] == 1:
            return self.steps.mixture
        return Mixture(lambda: self.steps.features(lambda part: self._brought(stage, part)), self.block)

    def _brought(self, stage: int, part: slice) -> Columns:
        """Steps of several targets, each calibrated as if it were alone: a mixture may do no more to it than that."""
        inside = self.block[part]
        return torch.cat([self.calibrated(stage, self.kept[part][inside == k], k) for k in inside.unique().tolist()])

    def _matches(self, confidence: float) -> dict[str, Mapping[str, Match]]:
        """One pass over the prompts. At a single position similarities are over the whole batch, in one chunk."""
        at, sample, count = self.setting.at, self.setting.sample, len(self.steps.pairs)
        whole, few = int(at.sum()) == 1, -(-sample.batch // RESAMPLED)
        size = sample.batch if whole else max(CHUNK - CHUNK % few, few)
        found: dict[str, list[Tensor]] = {
            name: [] for name in ("errors", "distance", "errors of null", "distance of null")
        }
        start = 0
        for chunk, own in self.steps.chunks(size):
            parts = self._compared(chunk, own[:, :, :count], slice(start, start + chunk.batch))
            start += chunk.batch
            for name, values in parts.items():
                found.setdefault(name, []).append(in_blocks(values, few))
        joined = {name: torch.cat(parts) for name, parts in found.items()}
        return {
            kind: self._matched(kind, joined[kind], joined[f"{kind} of null"], confidence, joined.get(f"{kind} below"))
            for kind in ("errors", "distance")
        }

    def _compared(self, chunk: Prompts, own: Columns, place: slice) -> dict[str, Tensor]:
        """Each stage against every step, which is calibrated to it, as is the null."""
        at, unit = self.weights > 0, self.setting.sample.normalizer()
        root = self.weights[at].sqrt()[:, None]
        target = chunk.target_columns.double()[:, at] * root
        seen = Prompts(chunk.x[:, at], target.reshape(chunk.batch, -1, *chunk.y.shape[2:]), chunk.noise, unit)
        every, shape = torch.ones_like(at[at]), (-1, *seen.y.shape)
        found: dict[str, list[Tensor]] = {}
        for s, value in enumerate(self.read[:, place][:, :, at] * root):
            brought, nothing = self._in_its_block(s, own, place)
            steps = (brought[:, at] * root[..., None]).movedim(2, 0)
            stage = Trace("stage", value.reshape(shape), (0,), seen)
            null = (nothing[:, None] * root).expand(chunk.batch, -1, -1)
            others = {"": Trace("steps", steps.reshape(shape), tuple(range(len(steps))), seen)}
            others[" of null"] = Trace("null", null.reshape(shape), (0,), seen)
            for (suffix, other), kind in ((o, k) for o in others.items() for k in ("errors", "distance")):
                found.setdefault(kind + suffix, []).append(MEASURES[kind].per_sequence(stage, other, every))
            below = ErrorSimilarity().below(stage, others[""], every)
            if below is not None:
                found.setdefault("errors below", []).append(below)
        return {name: torch.cat(parts, 1) for name, parts in found.items()}

    def _in_its_block(self, stage: int, own: Columns, place: slice) -> tuple[Columns, Float[Tensor, "batch targets"]]:
        """Steps, and the null, calibrated on other prompts than their own."""
        count, kept = own.shape[2], len(self.block)
        inside = functional.pad(self.block, (0, max(place.stop - kept, 0)), value=BLOCKS)[place]
        brought, nothing = torch.empty_like(own), torch.empty(len(own), own.shape[-1], dtype=torch.float64)
        for k in inside.unique().tolist():
            brought[inside == k] = self.calibrated(stage, own[inside == k], k, list(range(count)))
            nothing[inside == k] = self.calibrated.nothing(stage, k)
        return brought, nothing

    def _matched(
        self, kind: str, values: Tensor, null: Tensor, confidence: float, below: Tensor | None
    ) -> dict[str, Match]:
        """By algorithm."""
        found = {}
        for name, stages in self.steps.algorithms.items():
            own = list(self.steps.places(name))
            labels = (self.trace.name, name), (self.trace.stages, stages)
            lower = None if below is None else below[..., own]
            found[name] = self.setting.match(*labels, kind, values[..., own], null, confidence, lower)
        return found

    def _weighed(self, confidence: float) -> tuple[dict[str, Match], list[float]]:
        """Cosines of the weights that the stages induce and those of the algorithms, on a few prompts at two positions.

        And for each stage how linear its predictions are in the query (the median over the prompts).
        """
        sample, seen = self.setting.sample, self.setting.at.nonzero()[:, 0].tolist()
        asked = tuple(dict.fromkeys((sample.dim if sample.dim in seen else seen[len(seen) // 2], seen[-1])))
        count = max(FEWEST_WEIGHED, QUERIES // (len(asked) * queries_for(sample.dim)))
        few = replace(sample, x=sample.x[:count], y=sample.y[:count])
        induced = induced_weights(self.probe, few, asked, self.setting.seed)
        found = {}
        for algorithm in self.steps.compared:
            other = algorithm.trace(few)
            if other.weights is None:
                continue
            parts = [_cosines(induced.trace.weights, other.weights, position) for position in asked]
            values = torch.stack(parts).mean(0)
            null = torch.zeros_like(values[..., :1])
            labels = (induced.trace.name, other.name), (induced.trace.stages, other.stages)
            found[other.name] = self.setting.match(*labels, "weights", values, null, confidence)
        return found, induced.linearity.flatten(1).nanmedian(1).values.tolist()


def in_blocks(values: Float[Tensor, "batch *rest"], block: int) -> Float[Tensor, "blocks *rest"]:
    """Means over so many prompts; what is left in the end is left out."""
    return values if block == 1 else values[: len(values) // block * block].unflatten(0, (-1, block)).mean(1)


def _cosines(a: Tensor | None, b: Tensor, position: int) -> Float[Tensor, "batch a b"]:
    """Of weight vectors [stage, batch, position, dim, ...] at one position; zero where one of them is zero."""
    assert a is not None
    units = [part[:, :, position].flatten(2).double() for part in (a, b)]
    units = [unit / unit.norm(dim=-1, keepdim=True).clamp(min=1e-150) for unit in units]
    return torch.einsum("ibd,jbd->bij", *units)

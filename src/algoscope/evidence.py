"""What speaks for which step: the stages of one model against every step of the algorithms.

There are two ways to gather it. Of any reader and any measure, the traces themselves are compared. Where a linear probe
reads numbers and errors are compared, both sides are calibrated first, and the states are asked twice:

1. **Errors.** The best linear probe of the stage makes errors; so does the algorithm. How alike are they? A probe
   that is fitted to y stretches what it reads, and noise in a stage shrinks it again. So each step is first scaled to
   the probe, by one number fitted on other prompts; where the target has several coordinates, which a probe also
   mixes and shifts, by a linear map with a shift. An exact planted step then comes back as that step.
2. **Decodability.** How much of the step itself can be read linearly from the stage, on prompts that the probe never
   saw, above what can be read of another sequence's?
"""

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from algoscope.contracts import Measure, Reading, States
from algoscope.matching import MEASURES, Decodability, Match, judge
from algoscope.matching.bootstrap import ratio_interval, resampling
from algoscope.matching.compare import Positions
from algoscope.matching.mixtures import ROUNDING, Side, mixture_gain
from algoscope.reading.induced import induced_weights, queries_for
from algoscope.reading.probe import CHUNK, fit
from algoscope.steps import Columns, Steps
from algoscope.trace import Prompts, Stage, Trace

QUERIES, FEWEST_WEIGHED = 2000, 12  # prompts with other queries to ask for weights, and prompts to weigh at least
RESAMPLED = 1000  # values that are resampled at most: of more prompts, the means of blocks of them are, in less room
Gain = tuple[float, float, float]
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

    def judge(
        self,
        names: tuple[str, str],
        stages: tuple[tuple[Stage, ...], tuple[Stage, ...]],
        kind: str,
        values: Tensor,
        null: Tensor,
        confidence: float,
    ) -> Match:
        scales = {**MEASURES, self.measure.name: self.measure, Decodability.name: Decodability()}
        return judge(names, stages, scales[kind], values, null, self.positions, self.first, confidence, seed=self.seed)


class Evidence(ABC):
    """`matches` by kind and algorithm; the `deciding` kinds have to agree, and the first orders what they keep."""

    trace: Trace
    matches: Mapping[str, Mapping[str, Match]]
    deciding: tuple[str, ...]
    linearity: Sequence[float]
    steps: Steps

    @abstractmethod
    def gain(self, stage: int, closest: int, confidence: float, resamples: int) -> Gain:
        """Of what a step misses of a stage, the share that a mixture of all steps explains; with its CI."""


class TraceEvidence(Evidence):
    """Traces against traces, by any measure.

    `prompt` is what a linear probe reads from the tokens themselves. A stage that is no more like a step than that
    shows no algorithm: the probe alone makes that step of the prompt. So it is a null as well.
    """

    def __init__(
        self, reading: Reading, steps: Steps, setting: Setting, confidence: float, prompt: Trace | None = None
    ) -> None:
        self.setting, self.steps, measure = setting, steps, setting.measure
        self.fitted, self.trace = reading.trace(setting.fitting), reading.trace(setting.sample)
        self.linearity, self.deciding = [math.nan] * len(self.trace), (measure.name,)
        found = {}
        for name, other in steps.traces().items():
            values = measure.per_sequence(self.trace, other, setting.at)
            null = measure.per_sequence(self.trace, measure.null(other), setting.at)
            if prompt is not None:
                read = measure.per_sequence(prompt, other, setting.at)
                null = torch.where(read.mean(0) > null.mean(0), read, null)
            found[name] = setting.judge(
                (self.trace.name, name), (self.trace.stages, other.stages), measure.name, values, null, confidence
            )
        self.matches = {measure.name: found}

    def gain(self, stage: int, closest: int, confidence: float, resamples: int) -> Gain:
        fitted, judged = (
            Side(trace, stage, self.steps.whole(part)) for part, trace in enumerate((self.fitted, self.trace))
        )
        given = self.setting
        return mixture_gain(given.measure, fitted, judged, closest, given.at, confidence, resamples, given.seed)


class ProbeEvidence(Evidence):
    """Linear probes of numbers against calibrated steps, by errors, and how well the steps can be decoded.

    All that is compared is gathered chunk by chunk, so that memory hardly grows with the number of prompts.
    """

    deciding = ("errors", Decodability.name)

    def __init__(
        self, states: States, steps: Steps, setting: Setting, confidence: float, weights: bool, done: Done
    ) -> None:
        self.setting, self.steps = setting, steps
        self.probe = fit(states, setting.fitting, functools.partial(steps.chunks, 0), setting.at, done)
        self.fitted = self.probe.calibrations()
        gathered = self._gathered(done)
        self.trace = Trace(
            "the model", gathered.read.reshape(-1, *setting.sample.y.shape), states.stages, setting.sample
        )
        self.distances, self.mixed, self.power = gathered.distance, gathered.mixed, gathered.power.mean(0)
        self.matches = {
            "errors": self._matched("errors", gathered.errors, gathered.errors_of_null, confidence),
            "distance": self._matched("distance", gathered.distance, gathered.distance_of_null, confidence),
            Decodability.name: self._matched(
                Decodability.name, gathered.gains, torch.zeros_like(gathered.gains[..., :1]), confidence
            ),
        }
        self.linearity = [math.nan] * len(self.trace)
        if weights:
            self.matches["weights"], self.linearity = self._weighed(confidence)

    def gain(self, stage: int, closest: int, confidence: float, resamples: int) -> Gain:
        alone, mixed = self.distances[:, stage, closest], self.mixed[:, stage]
        if float(alone.mean()) <= ROUNDING * float(self.power[stage]):
            return 0.0, 0.0, 0.0
        draws = resampling(len(alone), resamples, self.setting.seed)
        share, low, high = ratio_interval((alone - mixed)[:, None], alone[:, None], draws, confidence)
        return float(share), float(low), float(high)

    def _gathered(self, done: Done) -> "Gathered":
        """One pass over the prompts. At a single position similarities are over the whole batch, in one chunk."""
        at, sample = self.setting.at, self.setting.sample
        whole, block = int(at.sum()) == 1, -(-sample.batch // RESAMPLED)
        parts, mixture = [], self.probe.mixtures(self.fitted)
        size = sample.batch if whole else max(CHUNK - CHUNK % block, block)
        for chunk, own in self.steps.chunks(1, size):
            read, gains = self.probe.read(chunk, own)
            parts.append(self._compared(chunk, own, read, gains, mixture(own)).in_blocks(block))
            done(chunk.batch)
        return Gathered.joined(parts)

    def _compared(self, chunk: Prompts, own: Columns, read: Tensor, gains: Tensor, mixed: Tensor) -> "Gathered":
        """Each stage against every step, which is calibrated to it, as is the null."""
        at, unit = self.setting.at, self.setting.sample.normalizer()
        seen = Prompts(chunk.x[:, at], chunk.y[:, at], chunk.noise, unit)
        every, columns = torch.ones_like(at[at]), own[:, :, : len(self.steps.pairs)].movedim(2, 0)[:, :, at]
        shape, places = (-1, *seen.y.shape), tuple(range(len(columns)))
        found: dict[str, list[Tensor]] = {name: [] for name in ("errors", "distance", "nulls", "distances_of_null")}
        for value, calibrate in zip(read[:, :, at], self.fitted, strict=True):
            stage = Trace("stage", value.reshape(shape), (0,), seen)
            steps = calibrate.of(slice(len(columns)))(columns.reshape(len(columns), *seen.y.shape))
            steps, null = Trace("steps", steps, places, seen), MEASURES["errors"].null(stage)
            null = replace(null, values=null.values + calibrate.nothing)
            for name, kind, other in (
                ("errors", "errors", steps),
                ("distance", "distance", steps),
                ("nulls", "errors", null),
                ("distances_of_null", "distance", null),
            ):
                found[name].append(MEASURES[kind].per_sequence(stage, other, every))
        off = (read - mixed)[:, :, at].square().flatten(2).mean(2) / unit
        power = own[:, :, : len(columns)][:, at].square().sum((1, 3))
        joined = {name: torch.cat(each, 1) for name, each in found.items()}
        return Gathered(
            read=read,
            errors=joined["errors"],
            errors_of_null=joined["nulls"],
            distance=joined["distance"],
            distance_of_null=joined["distances_of_null"],
            gains=gains[..., : len(columns)],
            mixed=off.mT,
            power=read[:, :, at].square().flatten(2).mean(2).mT / unit,
            columns=power,
        )

    def _matched(self, kind: str, values: Tensor, null: Tensor, confidence: float) -> dict[str, Match]:
        """By algorithm."""
        parts = values.split([len(stages) for stages in self.steps.algorithms.values()], dim=-1)
        pairs = zip(self.steps.algorithms.items(), parts, strict=True)
        return {
            name: self.setting.judge((self.trace.name, name), (self.trace.stages, stages), kind, part, null, confidence)
            for (name, stages), part in pairs
        }

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
            parts = [_cosines(induced.trace.weights, other.weights, position) for position in asked]
            values = torch.stack(parts).mean(0)
            null = torch.zeros_like(values[..., :1])
            found[other.name] = self.setting.judge(
                (induced.trace.name, other.name),
                (induced.trace.stages, other.stages),
                "weights",
                values,
                null,
                confidence,
            )
        return found, induced.linearity.flatten(1).nanmedian(1).values.tolist()


def _cosines(a: Tensor | None, b: Tensor | None, position: int) -> Float[Tensor, "batch a b"]:
    """Of weight vectors [stage, batch, position, dim, ...] at one position; zero where one of them is zero."""
    if a is None or b is None:
        raise ValueError("algorithms must have weights, so that they can be compared with those that a model induces")
    units = [part[:, :, position].flatten(2).double() for part in (a, b)]
    units = [unit / unit.norm(dim=-1, keepdim=True).clamp(min=1e-150) for unit in units]
    return torch.einsum("ibd,jbd->bij", *units)


@dataclass(frozen=True, eq=False)
class Gathered:
    """What is known of some prompts, one value a prompt, or a block of them, and stage; `read` is by prompt."""

    read: Float[Tensor, "stages batch points targets"]
    errors: Float[Tensor, "batch stages columns"]
    errors_of_null: Float[Tensor, "batch stages 1"]
    distance: Float[Tensor, "batch stages columns"]
    distance_of_null: Float[Tensor, "batch stages 1"]
    gains: Float[Tensor, "batch stages columns"]  # in squares, and once all are joined relative to those of a column
    mixed: Float[Tensor, "batch stages"]  # squared distance of a stage from the mixture
    power: Float[Tensor, "batch stages"]  # of a stage
    columns: Float[Tensor, "batch columns"]  # squares of each

    def in_blocks(self, block: int) -> "Gathered":
        """Means over so many prompts; what is left in the end is left out."""
        if block == 1:
            return self
        count = len(self.errors) // block * block
        means = {
            field.name: getattr(self, field.name)[:count].unflatten(0, (-1, block)).mean(1)
            for field in fields(self)
            if field.name != "read"
        }
        return replace(self, **means)

    @staticmethod
    def joined(parts: "Sequence[Gathered]") -> "Gathered":
        """One after the other."""
        both = {
            field.name: torch.cat([getattr(part, field.name) for part in parts], int(field.name == "read"))
            for field in fields(Gathered)
        }
        power = both["columns"].mean(0)
        both["gains"] = both["gains"] / torch.where(power > 0, power, torch.nan)
        return Gathered(**both)

"""How the stages of a model become a trace: linear probes, the logit lens, what an index reads, a sketch counts."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn
from torch.nn import functional

from algoscope import arguments
from algoscope.contracts import Memory, Reader, Reading, States, Task
from algoscope.matching.lookups import of_points
from algoscope.models import Network
from algoscope.reading.predict import predict
from algoscope.reading.probe import FittedProbe, check_prompts, chunks, fit
from algoscope.reading.states import open_model
from algoscope.reading.views import increments, with_products
from algoscope.trace import Prompts, Trace

MODEL = "the model"
ANSWERS = "answers"  # the stage after the last: what the model itself says
LOOKUP, WRITE, READ = "look-up", "write", "read"  # what stages of an index and of a sketch begin with


@dataclass(frozen=True)
class LinearProbe(Reader):
    """The best linear prediction of the targets from each stage (Alain and Bengio 2016), by ridge regression in closed
    form. Where answers are labels it is binarized: 1 above one half, or the label with the largest prediction; and what
    a network says itself is a last stage, "answers".

    Of `increments` it reads what each stage adds to the one before, and the first as it is: a stream that keeps earlier
    steps holds them all. Where a state `contains_weights` w instead of predictions x·w, it is read with its products
    with x.

    `width` is that of the states which it writes for planted models: a random rotation of the values and of distractors
    as large as the targets.
    """

    width: int = 32
    increments: bool = False
    contains_weights: bool = False

    def __post_init__(self) -> None:
        arguments.integer("width", self.width, 1)
        arguments.boolean("increments", self.increments)
        arguments.boolean("contains_weights", self.contains_weights)

    def applies(self, states: States) -> bool:
        return True

    def seen(self, states: States, prompts: Prompts, weights: Float[Tensor, "positions"] | None = None) -> States:
        """The states as they are read; what that needs is fitted on prompts that no comparison sees, at positions that
        have `weights`, by default the same.
        """
        if self.increments:
            if states.norm != "none":
                raise ValueError(
                    f"increments are differences of states as they are: norm must be 'none', got {states.norm!r}"
                )
            states = replace(states, view=increments)
        return replace(states, view=with_products(states, prompts, weights)) if self.contains_weights else states

    def fit(self, states: States, prompts: Prompts) -> Reading:
        probe = fit(self.seen(states, prompts), prompts)
        return BinarizedProbe(probe.states, probe) if states.task.labels else probe

    def write(
        self,
        values: Shaped[Tensor, "stages batch points *target"],
        task: Task,
        noise: float,
        fixed: torch.Generator,
        drawn: torch.Generator,
    ) -> dict[str, Float[Tensor, "batch length width"]]:
        if task.answer == "choice":
            values = functional.one_hot(values.long(), task.outputs).double()
        columns = values.reshape(*values.shape[:3], -1)
        own, unit = columns.shape[-1], task.power**0.5
        width = self.width if own == 1 else own + self.width
        rotation, _ = torch.linalg.qr(_normal(fixed, width, width))
        at, states = list(task.answering), {}
        for k, value in enumerate(columns):
            state = unit * _normal(drawn, value.shape[0], task.length, width)
            state[:, at, :own] = value + noise * state[:, at, :own]
            states[f"layer {k + 1}"] = state @ rotation
        return states


@dataclass(frozen=True, eq=False)
class BinarizedProbe(Reading):
    """A linear probe of labels."""

    states: States
    probe: FittedProbe

    def trace(self, prompts: Prompts) -> Trace:
        task, model = self.states.task, self.states.model
        read, stages = self.probe.read(prompts), self.states.stages
        values = (
            read.argmax(-1).double() if task.answer == "choice" else (read.reshape(-1, *prompts.y.shape) > 0.5).double()
        )
        if isinstance(model, Network):
            own = _labels(predict(model, task, prompts)[None], task)
            values, stages = torch.cat([values, own.to(values)]), (*stages, ANSWERS)
        return Trace(MODEL, values, stages, prompts)


@dataclass(frozen=True)
class LogitLens(Reader):
    """What the model would answer after each stage: its own final norm and head, applied early (nostalgebraist 2020).

    It reads networks with a head `read_out` and, if they have one, a final `norm`. Before the last stage a head sees
    what it was never trained on, unless the network only ever appends to its stream: with `append_only` it applies to
    such networks alone.
    """

    append_only: bool = False

    def applies(self, states: States) -> bool:
        model = states.model
        return isinstance(model, Network) and (model.append_only if self.append_only else has_head(model, states))

    def fit(self, states: States, prompts: Prompts) -> Reading:
        return LensReading(states)


@dataclass(frozen=True, eq=False)
class LensReading(Reading):
    """The logit lens on one network."""

    states: States

    @torch.no_grad()
    def trace(self, prompts: Prompts) -> Trace:
        task, network = self.states.task, self.states.model
        assert isinstance(network, Network)
        known, like = dict(network.named_modules()), next(network.parameters())
        norm, head, parts = known.get("norm", nn.Identity()), known["read_out"], []
        for chunk in chunks(prompts):
            states = self.states.of(chunk)
            logits = [task.predictions(head(norm(state.to(like)))) for state in states.values()]
            parts.append(_labels(torch.stack(logits), task).double().cpu())
        return Trace(MODEL, torch.cat(parts, 1).reshape(-1, *prompts.y.shape), self.states.stages, prompts)


def has_head(network: Network, states: States) -> bool:
    """Whether its own head can be applied to all of its stages."""
    head = dict(network.named_modules()).get("read_out")
    width = getattr(head, "in_features", None)
    if not isinstance(head, nn.Module) or width is None or getattr(head, "out_features", 0) != states.task.outputs:
        return False
    try:
        shown = states.of(states.task.sample(1, seed=0))
    except ValueError:  # its stages are not states of tokens
        return False
    return all(state.shape[-1] == width for state in shown.values())


@dataclass(frozen=True)
class LookupReader(Reader):
    """What an index reads: stage m is the number of the point that look-up m reads.

    It reads models with stages "look-up 1", "look-up 2", …, each of which weighs the points [queries, points]; what
    lies behind the points are slots, which are left out. Of planted reads, a share `noise` is of random points.
    """

    def applies(self, states: States) -> bool:
        return any(stage.startswith(LOOKUP) for stage in states.stages)

    def fit(self, states: States, prompts: Prompts) -> Reading:
        return LookupReading(replace(states, stages=tuple(s for s in states.stages if s.startswith(LOOKUP))))

    def write(
        self,
        values: Shaped[Tensor, "stages batch points"],
        task: Task,
        noise: float,
        fixed: torch.Generator,
        drawn: torch.Generator,
    ) -> dict[str, Float[Tensor, "batch length width"]]:
        states = {}
        for m, reads in enumerate(values.long()):
            lost = torch.rand(reads.shape, generator=drawn) < noise
            reads = torch.where(lost, torch.randint(task.outputs, reads.shape, generator=drawn), reads)
            weights = torch.zeros(len(reads), task.length, task.outputs)
            weights[:, list(task.answering)] = functional.one_hot(reads, task.outputs).float()
            states[f"{LOOKUP} {m + 1}"] = weights
        return states


@dataclass(frozen=True, eq=False)
class LookupReading(Reading):
    """The look-ups of one model."""

    states: States

    def trace(self, prompts: Prompts) -> Trace:
        parts = []
        for chunk in chunks(prompts):
            shown = self.states.shown(chunk)
            reads = [shown[stage][:, -chunk.positions :].argmax(-1) for stage in self.states.stages]
            parts.append(torch.stack(reads).double().cpu())
        return of_points(Trace(MODEL, torch.cat(parts, 1), self.states.stages, prompts))


@dataclass(frozen=True)
class CounterReader(Reader):
    """What a sketch counts: stage m is the mean of the counters that its first m reads find.

    It reads models with a stage "write", what each item adds to the cells [items, cells], and stages "read 1", …, how
    each item weighs the cells. What the model says itself is a last stage, "answers".
    """

    def applies(self, states: States) -> bool:
        return {WRITE, f"{READ} 1"} <= set(states.stages)

    def fit(self, states: States, prompts: Prompts) -> Reading:
        return CounterReading(states)


@dataclass(frozen=True, eq=False)
class CounterReading(Reading, Memory):
    """The memory of one model."""

    states: States

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(stage for stage in self.states.stages if stage.startswith(f"{READ} "))

    @property
    def reads(self) -> int:
        return len(self.names)

    def memory(self) -> Memory:
        return self

    def trace(self, prompts: Prompts) -> Trace:
        task, model, parts = self.states.task, self.states.model, []
        for chunk in chunks(prompts):
            shown = self.states.shown(chunk)
            written = shown[WRITE].double()
            memory = written.cumsum(1) - written  # before the item itself is counted
            found = torch.stack([(shown[name].double() * memory).sum(-1) for name in self.names]).cpu()
            parts.append(found.cumsum(0) / torch.arange(1, len(found) + 1)[:, None, None])
        values, stages = torch.cat(parts, 1), self.names
        if isinstance(model, Network):
            values, stages = torch.cat([values, predict(model, task, prompts)[None].to(values)]), (*stages, ANSWERS)
        return Trace(MODEL, values, stages, prompts)

    def shared(self, prompts: Prompts) -> Float[Tensor, "reads batch points points"]:
        parts = []
        for chunk in chunks(prompts):
            shown = self.states.shown(chunk)
            signs = shown[WRITE].double().sign()
            parts.append(torch.stack([shown[name].double() @ signs.mT for name in self.names]).tril(-1).cpu())
        return torch.cat(parts, 1)


READERS: dict[str, Reader] = {  # of tasks that name none, by the kind of their answers
    "number": LinearProbe(),
    "chance": LinearProbe(),
    "choice": LogitLens() | LinearProbe(),
}


def reader_of(task: Task) -> Reader:
    """The task's own, or one for answers of its kind."""
    return task.reader or READERS[task.answer]


def logit_lens(model: Network, task: Task, prompts: Prompts, stages: list[str] | None = None) -> Trace:
    """What a network would answer after each of its stages: its own final norm and head, applied early.

    Answers that are labels are binarized: 1 where the logit is positive, or the label with the largest logit.
    """
    if not isinstance(model, Network):
        raise ValueError(f"model must be a network of algoscope.models, got {type(model).__name__}")
    states, reader = open_model(model, task, stages), LogitLens()
    check_prompts(prompts, task)
    if not model.append_only and not has_head(model, states):
        raise ValueError(f"{type(model).__name__} has no head that reads all of its stages {list(states.stages)}")
    return reader.fit(states, prompts).trace(prompts)


def _labels(logits: Float[Tensor, "stages batch points *answer"], task: Task) -> Tensor:
    """Labels of logits; numbers are left alone."""
    if task.answer == "choice":
        return logits.argmax(-1).double()
    return (logits > 0).double() if task.answer == "chance" else logits


def _normal(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=torch.float64)

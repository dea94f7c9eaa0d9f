"""Training, from a task and a model to a run folder.

Asked to stop (Ctrl-C, or SIGTERM, as a cluster sends it), it writes a checkpoint first and resumes there the next
time; killed, it resumes from the last checkpoint.
"""

import math
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from algoscope import arguments, documents, runs, stopping
from algoscope.models import Model
from algoscope.progress import Bar
from algoscope.spelling import nearest
from algoscope.tasks import Task
from algoscope.training.engine import prepare
from algoscope.training.load import Record, verify
from algoscope.training.plan import Plan
from algoscope.training.population import Population
from algoscope.training.settings import Curriculum, Member, Settings

MOST_MEMBERS = 10_000
Progress = Callable[[list[Record]], None]  # called with what was just logged, a record for each member


class Diverged(ValueError):
    """The loss of every member is not finite; the last good checkpoint is in the run folder."""


@dataclass(frozen=True)
class Run:
    """A finished run: where it is, the last line of each member's metrics, and how long it took.

    `seconds` counts every attempt up to its last checkpoint, and what was compiled for it.
    """

    path: Path
    final: list[Record]
    seconds: float

    def learning(self, member: int = 0, most: int = 60) -> list[Record]:
        """A member's learning curve: at most `most` records of its metrics, evenly spread, the last among them."""
        arguments.path("path", self.path)
        arguments.integer("member", member, 0, len(self.final) - 1)
        arguments.integer("most", most, 1)
        own = [record for record in runs.Folder(Path(self.path)).read_metrics() if record["member"] == member]
        if not own:
            raise runs.RunError(f"{self.path} has no metrics of member {member}")
        every = math.ceil(len(own) / most)
        return own[(len(own) - 1) % every :: every]


def train(
    task: Task | Sequence[Task],
    model: Model,
    steps: int | None = None,
    seed: int | Sequence[int] = 0,
    learning_rate: float | Sequence[float] = 1e-3,
    out: Path | str = "runs",
    device: torch.device | str | None = None,
    progress: Progress | bool | None = None,
    settings: Settings | None = None,
    **options: Any,
) -> Run:
    """Trains a model on a task, or a population: lists of tasks, seeds or learning rates make one member for each
    entry.

    How to train is set by `settings`, or by `steps` and other `options`, which are the fields of `Settings`. A finished
    run is not run again; an interrupted one resumes, bit for bit. `progress` shows a bar if it is True, or None and
    this is a terminal; or it is called with what was logged.
    """
    given = options if steps is None else {"steps": steps, **options}
    if settings is not None and given:
        raise ValueError(f"settings must be given alone, got {', '.join(given)} beside them")
    if settings is None:
        _check_names(given)
        settings = Settings(**{"steps": steps, **options})
    lists = [v if isinstance(v, Sequence) and not isinstance(v, str) else [v] for v in (task, seed, learning_rate)]
    sizes = {len(entries) for entries in lists} - {1}
    if max(sizes, default=1) > MOST_MEMBERS:
        raise ValueError(f"members must be at most {MOST_MEMBERS}, got {max(sizes)}")
    if len(sizes) > 1 or 0 in sizes:
        raise ValueError(
            f"task, seed and learning_rate must be single or lists of one length, got lengths {sorted(sizes)}"
        )
    count = max(sizes, default=1)
    members = [Member(*entry) for entry in zip(*(list(e) * (count // len(e)) for e in lists), strict=True)]
    return train_population(model, members, settings, out, device, progress)


def _check_names(settings: Iterable[str]) -> None:
    """That they are fields of `Settings`; for another name the message suggests the nearest."""
    known = [field.name for field in fields(Settings)]
    for name in settings:
        if name in (field.name for field in fields(Curriculum)):
            raise ValueError(f"{name} is part of the curriculum: curriculum=Curriculum({name}=…)")
        if name not in known:
            raise ValueError(f"train takes no {name!r}; settings are {', '.join(known)}{nearest(name, known)}")


def train_population(
    model: Model,
    members: Sequence[Member],
    settings: Settings,
    out: Path | str = "runs",
    device: torch.device | str | None = None,
    progress: Progress | bool | None = None,
) -> Run:
    """Trains the members side by side, in one folder."""
    arguments.path("out", out)
    if not callable(progress) and not any(progress is known for known in (None, True, False)):
        raise ValueError(f"progress must be True, False, None or a function, got {arguments.shown(progress)}")
    plan = Plan.of(model, members, settings, arguments.device(device))
    folder = runs.home(Path(out), f"{type(plan.task).__name__} {type(model).__name__}", plan.config)
    with folder.writing(plan.config, model.version) as writer:
        clock = _Clock(writer)
        if not folder.finished:
            population = Population(plan)
            _check_device(writer, plan.device)
            _train_loop(writer, population, prepare(population), clock, progress)
        try:
            final = verify(folder)
        except runs.RunError as problem:
            again = f"delete {folder.summary} and run the same command: it resumes from the last checkpoint"
            raise runs.RunError(f"{problem}; {again} (or delete {folder.path} to start again)") from None
    return Run(folder.path, final, clock.total)


class _Clock:
    """How long a run has taken, without its interruptions; in a file of its own, since the others are reproducible."""

    def __init__(self, writer: runs.Writer) -> None:
        self.writer, self.began, file = writer, time.monotonic(), writer.folder.clock
        known = file.exists()
        self.before: float = writer.folder.read_json(file, documents.CLOCK)["seconds"] if known else 0.0
        self.total = self.before

    def write(self) -> None:
        self.total = round(self.before + time.monotonic() - self.began, 1)
        self.writer.json(self.writer.folder.clock, {"seconds": self.total})


def _check_device(writer: runs.Writer, device: torch.device) -> None:
    """Records where a run starts. It resumes only where random numbers are made the same way, and warns where sums may
    be rounded in another way.
    """
    folder, now = writer.folder, runs.provenance(device)
    threads = torch.get_num_threads() if device.type == "cpu" else 0
    if not folder.environment.exists():
        writer.json(folder.environment, now | {"threads": threads})
    then = folder.read_json(folder.environment, documents.ENVIRONMENT)
    started = str(then["device"]).partition(" ")[0]
    if started != device.type:
        raise runs.RunError(f"{folder.path} started on {started}; cannot resume on {device.type}")
    other = [
        f"{name} {then[name]}, now {new}"
        for name, new in (("torch", now["torch"]), ("threads", threads))
        if then.get(name, new) != new
    ]
    if other:
        warnings.warn(f"{folder.path} started with {'; '.join(other)}: it may end with other bits", stacklevel=2)


def _train_loop(
    writer: runs.Writer,
    population: Population,
    advance: Callable[[], None],
    clock: _Clock,
    progress: Progress | bool | None,
) -> None:
    """The loop: steps, metrics every `log_every` of them, a checkpoint every `checkpoint_every`."""
    settings, folder = population.settings, writer.folder
    _restore(writer, population)
    done = int(population.state.step)
    show = progress if callable(progress) else _bar(settings.steps, done, progress)
    with stopping.graceful_stop() as signal_received:
        for step in range(done + 1, settings.steps + 1):
            advance()
            if step % settings.log_every == 0 or step == settings.steps:
                records = _metrics(population, step)
                writer.more_metrics(records)
                show(records)
                _freeze_diverged(population, folder)
            if step in settings.checkpoint_steps:
                _freeze_diverged(population, folder)
                writer.tensors(folder.at_step(step), _named_weights(population))
            if step % settings.checkpoint_every == 0 or step == settings.steps:
                _checkpoint(writer, population, clock)
            if (number := signal_received()) is not None:
                _checkpoint(writer, population, clock)
                stopping.stop(number, f"{folder.path} after step {step}")
    writer.tensors(folder.model, _named_weights(population))
    ended = {"steps": settings.steps, "final": _metrics(population, settings.steps)}
    writer.json(folder.summary, {**ended, runs.METRICS: writer.checksum})


def _bar(steps: int, done: int, wanted: bool | None) -> Progress:
    """A bar that shows the loss and the error of the members that still train."""
    if not (sys.stderr.isatty() if wanted is None else wanted):
        return lambda records: None
    bar = Bar(steps, done)

    def show(records: list[Record]) -> None:
        left = [record for record in records if record["stopped_at"] == -1]
        numbers = [f"{name} {_range([record[name] or 0 for record in left])}" for name in ("loss", "error") if left]
        stopped = len(records) - len(left)
        bar.show(int(records[0]["step"] or 0), *numbers, *([f"{stopped} of {len(records)} stopped"] if stopped else []))

    return show


def _range(numbers: list[float]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:.2g}" if low == high else f"{low:.2g}–{high:.2g}"


def _metrics(population: Population, step: int) -> list[Record]:
    """A record for each member: means over the steps since the last one. Only here does the host wait for the device.

    The error is at the last of the `points` in use, over E[y²] of the whole task: while a curriculum leaves coordinates
    out, it is small for that reason alone.
    """
    state, slots = population.state, population.settings.log_every
    count = (step - 1) % slots + 1  # steps since the last records
    columns = (state.losses[:count].mean(0), state.errors[:count].mean(0), state.stopped_at)
    losses, errors, stopped = (column.tolist() for column in columns)
    points = int(population.in_use()[1])
    return [
        {
            "step": step, "member": i, "points": points, "loss": finite(losses[i]), "error": finite(errors[i]),
            "stopped_at": stopped[i],
        }
        for i in range(len(losses))
    ]  # fmt: skip


def finite(number: float) -> float | None:
    """None for what JSON cannot hold, NaN and infinity."""
    return number if math.isfinite(number) else None


def _freeze_diverged(population: Population, folder: runs.Folder) -> None:
    """Raises `Diverged` where no member is left."""
    population.state.freeze_diverged()
    stopped = population.state.stopped_at.tolist()
    if all(step >= 0 for step in stopped):
        checkpoint = "there is no checkpoint yet"
        if folder.state.exists():
            good = int(folder.read_tensors(folder.state)["step"])
            checkpoint = f"the last good checkpoint is {folder.state}: ag.load({str(folder.path)!r}, step={good})"
        advice = "lower learning_rate, or raise warmup"
        raise Diverged(f"diverged at step {min(stopped)} (loss is not finite): {advice}; {checkpoint}")


def _checkpoint(writer: runs.Writer, population: Population, clock: _Clock) -> None:
    _freeze_diverged(population, writer.folder)
    draws = {_generator(i): generator.get_state() for i, generator in enumerate(population.generators)}
    writer.tensors(writer.folder.state, {**population.state.tensors(), **draws})
    clock.write()


def _restore(writer: runs.Writer, population: Population) -> None:
    """Restores the last checkpoint, and drops the metrics after it."""
    folder = writer.folder
    if not folder.state.exists():
        writer.metrics([])
        return
    try:
        tensors, checksum = folder.read_state()
    except runs.RunError as problem:
        raise runs.RunError(f"{problem}; delete it to start again from step 0") from None
    draws = {_generator(i): generator.get_state() for i, generator in enumerate(population.generators)}
    for name, tensor in (population.state.tensors() | draws).items():
        if name not in tensors or tensors[name].shape != tensor.shape or tensors[name].dtype != tensor.dtype:
            raise runs.RunError(f"{folder.state} does not fit its configuration: {name} is missing or of another shape")
    step, stopped = int(tensors["step"]), tensors["stopped_at"]
    alive = tensors["parameters"][stopped < 0]
    if not 0 <= step <= population.settings.steps or bool((stopped > step).any()) or not bool(alive.isfinite().all()):
        raise runs.RunError(
            f"{folder.state} is damaged: it cannot be what a run of {population.settings.steps} steps left"
        )
    records = _earlier_metrics(folder, step, checksum)
    population.state.restore(tensors)
    try:
        for i, generator in enumerate(population.generators):
            generator.set_state(tensors[_generator(i)])
    except RuntimeError:
        raise runs.RunError(f"{folder.state} is damaged: its random numbers are of no generator") from None
    writer.metrics(records)


def _earlier_metrics(folder: runs.Folder, step: int, checksum: str | None) -> list[dict[str, Any]]:
    """Those up to a checkpoint. Without them a run resumes with a warning."""
    if not folder.metrics.exists():
        warnings.warn(f"{folder.metrics} is missing: the run resumes without its earlier metrics", stacklevel=2)
        return []
    try:
        return folder.read_metrics(step, checksum)
    except runs.RunError as problem:
        raise runs.RunError(f"{problem}; delete it to resume without the earlier metrics") from None


def _generator(member: int) -> str:
    """The name of a member's random state in a checkpoint."""
    return f"generator {member}"


def _named_weights(population: Population) -> dict[str, Tensor]:
    """The weights by name in full precision; those of several members carry a leading axis."""
    return {name: tensor.detach() for name, tensor in population.layout.full(population.state.parameters).items()}

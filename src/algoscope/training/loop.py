"""Training, from a task and a model to a run folder.

Told to stop (Ctrl-C, or SIGTERM, as a cluster sends it), it writes a checkpoint first and goes on from there the next
time; killed, it goes on from the last checkpoint.
"""

import contextlib
import functools
import json
import math
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from algoscope import arguments, runs
from algoscope.models import Model
from algoscope.progress import Bar
from algoscope.tasks import Task
from algoscope.training.engine import prepare
from algoscope.training.population import Population
from algoscope.training.settings import Member, Settings, check_members

Record = dict[str, int | float | None]  # a line of the metrics; None where a number is not finite
Progress = Callable[[list[Record]], None]  # called with what was just logged, a record for each member


class Diverged(ValueError):
    """The loss was not finite; the last good checkpoint is in the run folder."""


@dataclass(frozen=True)
class Run:
    """A finished run: where it is, the last line of each member's metrics, and how long it took.

    `seconds` counts every attempt up to its last checkpoint, and what was compiled for it.
    """

    path: Path
    final: list[Record]
    seconds: float

    def learning(self, member: int = 0, most: int = 60) -> list[Record]:
        """How a member learned: lines of its metrics, at most so many and evenly spread, the last among them."""
        lines = runs.Folder(self.path).metrics.read_text().splitlines()
        own = [record for record in map(json.loads, lines) if record["member"] == member]
        every = math.ceil(len(own) / most)
        return own[(len(own) - 1) % every :: every]


def train(
    task: Task | Sequence[Task],
    model: Model,
    steps: int,
    seed: int | Sequence[int] = 0,
    learning_rate: float | Sequence[float] = 1e-3,
    out: Path | str = "runs",
    device: torch.device | str | None = None,
    progress: Progress | bool | None = None,
    **settings: Any,
) -> Run:
    """Trains a model on a task, or a population: lists of tasks, seeds or learning rates make one member for each
    entry.

    Other keywords are those of `Settings`. A finished run is not run again; an interrupted one goes on, bit for bit.
    `progress` shows a bar if it is True, or None and this is a terminal; or it is called with what was logged.
    """
    lists = [v if isinstance(v, Sequence) and not isinstance(v, str) else [v] for v in (task, seed, learning_rate)]
    sizes = {len(entries) for entries in lists} - {1}
    if len(sizes) > 1 or 0 in sizes:
        raise ValueError(
            f"task, seed and learning_rate must be single or lists of one length, got lengths {sorted(sizes)}"
        )
    count = max(sizes, default=1)
    members = [Member(*entry) for entry in zip(*(list(e) * (count // len(e)) for e in lists), strict=True)]
    return train_population(model, members, Settings(steps=steps, **settings), out, device, progress)


def train_population(
    model: Model,
    members: Sequence[Member],
    settings: Settings,
    out: Path | str = "runs",
    device: torch.device | str | None = None,
    progress: Progress | bool | None = None,
) -> Run:
    """Trains the members side by side, in one folder."""
    if not isinstance(model, Model):
        raise ValueError(f"model must be one such as Transformer(layers=2), got {model!r}")
    check_members(members, model)
    chosen = arguments.device(device)
    settings = settings.on(chosen, members[0].task)
    config = {"model": runs.plain(model), "members": runs.plain(list(members)), "settings": runs.plain(settings)}
    kinds = f"{type(members[0].task).__name__} {type(model).__name__}"
    folder = runs.Folder(Path(out) / runs.identity(kinds, config))
    with folder.writing():
        if not folder.finished:
            clock = _Clock(folder)
            population = Population(model, members, settings, chosen)
            runs.write_json(folder.config, config)
            _check_device(folder, chosen)
            _go_on(folder, population, prepare(population), clock, progress)
        final, seconds = runs.read_json(folder.summary, ["final"])["final"], _Clock(folder).before
    return Run(folder.path, final, seconds)


class _Clock:
    """How long a run has taken, without its interruptions; in a file of its own: the others depend on no clock."""

    def __init__(self, folder: runs.Folder) -> None:
        self.file, self.began = folder.clock, time.monotonic()
        self.before: float = runs.read_json(self.file, ["seconds"])["seconds"] if self.file.exists() else 0.0

    def write(self) -> None:
        runs.write_json(self.file, {"seconds": round(self.before + time.monotonic() - self.began, 1)})


def _check_device(folder: runs.Folder, device: torch.device) -> None:
    """Notes where a run begins; it goes on only where random numbers are made the same way, and says so where sums may
    be rounded in another way.
    """
    now = runs.provenance(device) | {"threads": torch.get_num_threads() if device.type == "cpu" else 0}
    if not folder.environment.exists():
        runs.write_json(folder.environment, now)
    then = runs.read_json(folder.environment, ["device"])
    begun = str(then["device"]).partition(" ")[0]
    if begun != device.type:
        raise runs.RunError(f"{folder.path} was begun on {begun} and cannot go on on {device.type}")
    other = [
        f"{name} {then[name]}, now {now[name]}"
        for name in ("torch", "threads")
        if then.get(name, now[name]) != now[name]
    ]
    if other:
        warnings.warn(f"{folder.path} was begun with {'; '.join(other)}: it may end with other bits", stacklevel=2)


def _go_on(
    folder: runs.Folder,
    population: Population,
    advance: Callable[[], None],
    clock: _Clock,
    progress: Progress | bool | None,
) -> None:
    """The loop: steps, a look at the device every `log_every` of them, a checkpoint every `checkpoint_every`."""
    settings = population.settings
    _restore(folder, population)
    done = int(population.state.step)
    show = progress if callable(progress) else _bar(settings.steps, done, progress)
    with _listening() as stop_if_told:
        for step in range(done + 1, settings.steps + 1):
            advance()
            if step % settings.log_every == 0 or step == settings.steps:
                records = _look(population, step)
                runs.append_text(folder.metrics, "".join(json.dumps(record) + "\n" for record in records))
                show(records)
                _stop_if_lost(population, folder)
            if step in settings.keep:
                _stop_if_lost(population, folder)
                runs.write_tensors(folder.kept(step), _named_weights(population))
            if step % settings.checkpoint_every == 0 or step == settings.steps:
                _checkpoint(folder, population, clock)
            stop_if_told(functools.partial(_checkpoint, folder, population, clock), f"{folder.path} after step {step}")
    runs.write_tensors(folder.model, _named_weights(population))
    runs.write_json(folder.summary, {"steps": settings.steps, "final": _look(population, settings.steps)})


@contextlib.contextmanager
def _listening() -> Iterator[Callable[[Callable[[], None], str], None]]:
    """A function that does a last thing and stops the program, if it was told to stop; told twice, it stops at once."""
    told: list[int] = []

    def hear(number: int, _: object) -> None:
        if told:
            raise KeyboardInterrupt
        told.append(number)

    def stop_if_told(last: Callable[[], None], where: str) -> None:
        if told:
            last()
            raise KeyboardInterrupt(where) if told[0] == signal.SIGINT else SystemExit(128 + told[0])

    alone = threading.current_thread() is not threading.main_thread()  # only the main thread hears signals
    before = {} if alone else {number: signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop_if_told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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


def _look(population: Population, step: int) -> list[Record]:
    """What the latest steps did, for each member; the only time that the host waits for the device.

    The error is at the last of the `points` in use, over E[y²] of the whole task: while a curriculum leaves coordinates
    out, it is small for that reason alone.
    """
    state, slots = population.state, population.settings.log_every
    seen = (step - 1) % slots + 1  # steps since the last look
    columns = (state.losses[:seen].mean(0), state.errors[:seen].mean(0), state.stopped_at)
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
    """None where JSON has no word for a number."""
    return number if math.isfinite(number) else None


def _stop_if_lost(population: Population, folder: runs.Folder) -> None:
    population.state.stop_lost()
    stopped = population.state.stopped_at.tolist()
    if all(step >= 0 for step in stopped):
        kept = "there is no checkpoint yet"
        if folder.state.exists():
            good = int(runs.read_tensors(folder.state)[0]["step"])
            kept = f"the last good checkpoint is {folder.state}: ag.load({str(folder.path)!r}, step={good})"
        advice = "lower learning_rate, or raise warmup"
        raise Diverged(f"the loss was not finite at step {min(stopped)}: {advice}; {kept}")


def _checkpoint(folder: runs.Folder, population: Population, clock: _Clock) -> None:
    _stop_if_lost(population, folder)
    draws = {_generator(i): generator.get_state() for i, generator in enumerate(population.generators)}
    runs.write_tensors(folder.state, {**population.state.tensors(), **draws})
    clock.write()


def _restore(folder: runs.Folder, population: Population) -> None:
    """Puts the population where the last checkpoint left it, and forgets the metrics after that."""
    if not folder.state.exists():
        runs.write_text(folder.metrics, "")
        return
    tensors, _ = runs.read_tensors(folder.state)
    draws = {_generator(i): generator.get_state() for i, generator in enumerate(population.generators)}
    for name, tensor in (population.state.tensors() | draws).items():
        if name not in tensors or tensors[name].shape != tensor.shape:
            raise runs.RunError(f"{folder.state} does not fit its configuration: {name} is missing or of another shape")
    population.state.restore(tensors)
    for i, generator in enumerate(population.generators):
        generator.set_state(tensors[_generator(i)])
    lines = folder.metrics.read_text().splitlines() if folder.metrics.exists() else []
    try:
        kept = [line for line in lines if line.endswith("}") and json.loads(line)["step"] <= int(population.state.step)]
    except (json.JSONDecodeError, KeyError, TypeError):
        raise runs.RunError(f"{folder.metrics} is damaged: it has a line that is no record") from None
    runs.write_text(folder.metrics, "".join(line + "\n" for line in kept))


def _generator(member: int) -> str:
    """What the state of a member's random numbers is called in a checkpoint."""
    return f"generator {member}"


def _named_weights(population: Population) -> dict[str, Tensor]:
    """The weights by name in full precision; those of several members carry a leading axis."""
    return {name: tensor.detach() for name, tensor in population.layout.full(population.state.parameters).items()}

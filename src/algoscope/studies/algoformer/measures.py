"""What is measured of every model: its error by the number of examples, and by that of loops far beyond training."""

import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from algoscope.matching.bootstrap import interval, ratio_interval
from algoscope.models import Network
from algoscope.models.algoformer import LoopingNetwork
from algoscope.studies.algoformer import loops, references
from algoscope.studies.algoformer.errors import (
    WORST,
    PerExample,
    bounded,
    curve,
    draws_of,
    part_means,
    per_example,
    spread,
    summary,
)
from algoscope.studies.algoformer.names import FOLLOWED, HURTS, MOST, PAGED, TWICE
from algoscope.studies.study import Training
from algoscope.tasks import Task
from algoscope.trace import Prompts

CHUNK = 100  # prompts in flight at once


@dataclass(frozen=True)
class Sizes:
    """How many prompts for errors, beside known methods, for loops and for the instrument; up to how many loops."""

    tested: int
    prompts: int
    looped: int
    compared: int
    loops: int

    def of(self, task: Task) -> "Sizes":
        """Fewer prompts where each asks for many coordinates, and the fewer, the more often it asks."""
        if task.outputs == 1:
            return self
        compared = min(self.compared, max(self.compared * 40 // task.positions, 10))
        return Sizes(self.tested // 4, self.prompts // 8, max(self.looped // 4, 20), compared, self.loops)


SIZES = {
    "smoke": Sizes(80, 40, 20, 40, 12),
    "laptop": Sizes(4000, 500, 120, 400, 200),
    "paper": Sizes(4000, 500, 480, 300, 200),
}


def measure(training: Training, network: Network, scale: str) -> dict[str, Any]:
    task, sizes = training.task, SIZES[scale].of(training.task)
    prompts = task.sample(sizes.tested, seed=0)
    errors = per_example(answers(network, task, prompts), prompts, task)
    numbers: dict[str, Any] = {
        "task": type(task).__name__,
        "dim": task.inputs,
        **_errors(errors, sizes),
        "ahead": ahead(errors[: sizes.prompts], task, scale),
        "parameters": network.parameter_count,
        "steps": training.settings.steps,
    }
    if isinstance(network, LoopingNetwork):
        trained, few = network.loops, first(prompts, sizes.looped)
        kept = grid(trained, sizes.loops)
        found = after_loops(network, task, few, kept)
        numbers |= {"trained": trained, "by_loop": by_loop(found, few, task, kept, trained)}
        if training.name in FOLLOWED:
            paged = training.name in PAGED and training.seeds == (0,)
            beside = far(network, task, sizes, kept)
            if training.seeds != (0,):
                del beside["answers"]  # one is enough to be drawn
            numbers |= loops.followed(network, task, sizes.compared, paged) | beside
    return numbers


def far(network: LoopingNetwork, task: Task, sizes: Sizes, kept: Sequence[int]) -> dict[str, Any]:
    """The network's own answers after all numbers of loops, beside the algorithms and the closed forms."""
    instrument = loops.instrument_of(task, sizes.compared)
    prompts = loops.compared_answers(instrument)
    found = after_loops(network, task, prompts, kept)
    return {
        "answers": loops.answered(found, prompts, instrument, kept),
        "fixed_point": loops.fixed_point(found, prompts, instrument, kept, network.loops),
    }


def first(prompts: Prompts, count: int) -> Prompts:
    return replace(prompts, x=prompts.x[:count], y=prompts.y[:count])


@torch.no_grad()
def answers(network: Network, task: Task, prompts: Prompts) -> Float[Tensor, "prompts points *target"]:
    """What the network's own read-out says."""
    return torch.cat([task.read(network(tokens)).double().cpu() for tokens in encoded(network, task, prompts)])


def encoded(network: Network, task: Task, prompts: Prompts) -> Iterator[Tensor]:
    parameter = next(network.parameters())
    return (task.encode(part.x, part.y).to(parameter) for part in chunks(prompts, CHUNK))


def chunks(prompts: Prompts, size: int) -> Iterator[Prompts]:
    for x, y in zip(prompts.x.split(size), prompts.y.split(size), strict=True):
        yield replace(prompts, x=x, y=y)


@torch.no_grad()
def after_loops(
    network: LoopingNetwork, task: Task, prompts: Prompts, kept: Sequence[int]
) -> Float[Tensor, "kept prompts points *target"]:
    """Its answers after some numbers of loops, in one pass. Of a loop nothing stays but what the next one is given."""
    parts = []
    for tokens in encoded(network, task, prompts):
        stream, given = network.begin((network.embedded(tokens),))
        own = []
        for t in range(max(kept)):
            stream = network.loop(t, stream, given)
            if t + 1 in kept:
                own.append(task.read(network.answer(network.end(stream))).double().cpu())
        parts.append(torch.stack(own))
    return torch.cat(parts, dim=1)


def grid(trained: int, longest: int) -> tuple[int, ...]:
    """Loops to look at: all up to 24, those of training, the next ten and twice as many, and fewer and fewer others."""
    sparse = (28, 32, 40, 50, 64, 80, 100, 128, 160, 200)
    most = max(longest, 2 * trained)
    near = range(trained, trained + 11)
    return tuple(sorted({k for k in (*range(1, 25), *sparse, *near, 2 * trained, most) if k <= most}))


@functools.lru_cache(maxsize=2)
def known_errors(task: Task, scale: str) -> Mapping[str, PerExample]:
    """Of the known methods, on the first of the prompts that models are tested on."""
    sizes = SIZES[scale].of(task)
    prompts = first(task.sample(sizes.tested, seed=0), sizes.prompts)
    parts: dict[str, list[Tensor]] = {}
    for part in chunks(prompts, CHUNK if task.outputs == 1 else CHUNK // 5):  # weights of many coordinates fill memory
        for name, values in references.answers(task, part):
            parts.setdefault(name, []).append(per_example(values, part, task))
    return {name: torch.cat(found) for name, found in parts.items()}


def ahead(errors: PerExample, task: Task, scale: str) -> dict[str, Any]:
    """By how much each known method's error is above the model's, paired by prompt; above zero the model is better."""
    found, dim = {}, task.inputs
    views = {"last": slice(-1, None), "mean": slice(1, None), "few": slice(1, dim + 1)}
    for name, other in known_errors(task, scale).items():
        by = torch.stack([(other - errors)[:, view].mean(1) for view in views.values()], dim=1)
        low, high = (end.clamp(-WORST, WORST) for end in interval(by, draws_of(len(by)), 0.95))
        found[name] = {
            view: {"by": float(by[:, k].mean()), "low": float(low[k]), "high": float(high[k]), "n": len(by)}
            for k, view in enumerate(views)
        }
    return found


def known(task: Task, scale: str) -> dict[str, Any]:
    """The errors of the known methods by the number of examples."""
    found = known_errors(task, scale)
    curves = {name: curve(errors) for name, errors in found.items()}
    return {"task": type(task).__name__, "dim": task.inputs, "known": curves, "tuned": references.tuned(task).name}


def least(task: Task, scale: str) -> dict[str, Any]:
    """The least error that is possible, by the number of examples, on the prompts that models are tested on."""
    sizes = SIZES[scale].of(task)
    parts = chunks(task.sample(sizes.tested, seed=0), CHUNK)
    errors = torch.cat([per_example(references.least(task, part), part, task) for part in parts])
    return {"task": type(task).__name__, "dim": task.inputs, **_errors(errors, sizes)}


def _errors(errors: PerExample, sizes: Sizes) -> dict[str, Any]:
    """By the number of examples, also on the prompts that known methods are tested on, and summed up."""
    return {"errors": curve(errors), "beside": curve(errors[: sizes.prompts]), "summary": summary(errors)}


def by_loop(found: Tensor, prompts: Prompts, task: Task, kept: Sequence[int], trained: int) -> dict[str, Any]:
    """Errors after each loop, how far the answers move in a loop, and how errors rise beyond the loops of training."""
    errors = torch.stack([per_example(values, prompts, task) for values in found])
    views = {"last": errors[:, :, -1].mT, "mean": errors[:, :, 1:].mean(2).mT}
    moved = torch.cat([found[:1] * math.nan, found.diff(dim=0)]).square().flatten(1).mean(1) / prompts.normalizer()
    gaps = [None, *(b - a for a, b in itertools.pairwise(kept))]
    moves = [None if gap is None else float(move) / gap**2 for gap, move in zip(gaps, moved, strict=True)]
    ends = {TWICE: 2 * trained, MOST: max(kept)}
    return {
        "loop": list(kept),
        "n": prompts.batch,
        **spread(views["last"]),
        "mean": bounded(views["mean"].mean(0)),
        "moved": moves,
        "beyond": {
            end: {view: rise(values, kept.index(trained), kept.index(loop)) for view, values in views.items()}
            for end, loop in ends.items()
        },
        "leaves": {view: leaves(values, kept, trained) for view, values in views.items()},
    }


def rise(values: Float[Tensor, "prompts kept"], trained: int, end: int) -> dict[str, Any]:
    """The error at one place over that after the loops of training, and both over parts of the prompts.

    The parts are the same for all models, so that the rises of two can be compared prompts by prompts.
    """
    above, below = values[:, end : end + 1], values[:, trained : trained + 1]
    ratio, low, high = ratio_interval(above, below, draws_of(len(values)), 0.95)
    numbers = (min(float(part), WORST) for part in (ratio, low.clamp(min=0), high))
    parts = {name: part_means(part)[0].tolist() for name, part in (("parts", above), ("parts_trained", below))}
    return dict(zip(("ratio", "low", "high"), numbers, strict=True)) | {"n": len(values)} | parts


def leaves(values: Float[Tensor, "prompts kept"], kept: Sequence[int], trained: int) -> int | None:
    """The first loop beyond training whose error is more than a tenth above that of training, if there is one."""
    means = values.mean(0).tolist()
    bound = HURTS * means[kept.index(trained)]
    return next((loop for loop, mean in zip(kept, means, strict=True) if loop > trained and mean > bound), None)

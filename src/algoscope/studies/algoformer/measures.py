"""What is measured of every model: its error by the number of examples, and by that of loops far beyond training.

Errors are normalized by E[y²]. Of a chain of thought, the states of one chain count as one example.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from algoscope.contracts import Network, Task
from algoscope.matching.statistics import Estimate, means, ratios
from algoscope.models.algoformer import LoopingNetwork
from algoscope.reading import predict
from algoscope.reading.probe import chunks
from algoscope.studies.algoformer import loops, references
from algoscope.studies.algoformer.names import FOLLOWED, MOST, TWICE
from algoscope.studies.study import Training
from algoscope.trace import Prompts

CHUNK = 100  # prompts in flight at once
PARTS = 20  # of the prompts
WORST = 1e6  # an error that is not a number is as bad as any
PerExample = Float[Tensor, "prompts examples"]


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
    errors = per_example(predict(network, task, prompts), prompts, task)
    numbers: dict[str, Any] = {
        "dim": task.inputs,
        **_errors(errors, sizes),
        "ahead": ahead(errors[: sizes.prompts], task, scale),
    }
    if isinstance(network, LoopingNetwork):
        numbers |= {"trained": network.loops, "by_loop": by_loop(network, task, first(prompts, sizes.looped), sizes)}
        if training.name in FOLLOWED:
            numbers["loops"] = loops.followed(network, task, sizes.compared)
    return numbers


def per_example(values: Tensor, prompts: Prompts, task: Task) -> PerExample:
    """Normalized squared errors by the number of examples seen."""
    target = prompts.target_columns
    off = (values.reshape(target.shape).double() - target).square().mean(-1) / prompts.normalizer()
    examples = getattr(task, "examples", task.positions - 1)  # of which one may ask for several predictions
    return off.nan_to_num(WORST).clamp(max=WORST).reshape(len(off), examples + 1, -1).mean(-1)


def _errors(errors: PerExample, sizes: Sizes) -> dict[str, Any]:
    """By the number of examples on the prompts that known methods are tested on, and summed up on all."""
    return {"beside": curve(errors[: sizes.prompts]), "summary": summary(errors)}


def curve(errors: PerExample) -> dict[str, Any]:
    return {"t": list(range(errors.shape[1])), "n": len(errors), **spread(errors)}


def spread(values: Float[Tensor, "prompts cells"]) -> dict[str, tuple[float, ...]]:
    """Means with intervals."""
    errors = zip(*(bounded(each)[:3] for each in means(values)), strict=True)
    return dict(zip(("error", "low", "high"), errors, strict=True))


def bounded(found: Estimate, least: float = 0.0) -> Estimate:
    value, low, high = (min(max(number, least), WORST) for number in found[:3])
    return Estimate(value, low, high, found.n)


def summary(errors: PerExample) -> dict[str, Any]:
    """At the last number of examples, and on average from the first example on.

    The means over parts of the prompts, the same for all models, let two models be compared prompts by prompts.
    """
    found = {}
    for view, values in (("last", errors[:, -1:]), ("mean", errors[:, 1:].mean(1, keepdim=True))):
        value, low, high, n = bounded(means(values)[0])
        found[view] = {"n": n, "error": value, "low": low, "high": high, "parts": part_means(values)}
    return found


def part_means(values: Float[Tensor, "prompts 1"]) -> list[float]:
    return [float(part.mean()) for part in values.chunk(PARTS)]


def first(prompts: Prompts, count: int) -> Prompts:
    return replace(prompts, x=prompts.x[:count], y=prompts.y[:count])


@torch.no_grad()
def after_loops(
    network: LoopingNetwork, task: Task, prompts: Prompts, kept: Sequence[int]
) -> Float[Tensor, "kept prompts points *target"]:
    """Its answers after some numbers of loops, in one pass. Of a loop nothing stays but what the next one is given."""
    parts, parameter = [], next(network.parameters())
    for part in chunks(prompts, CHUNK):
        stream, given = network.begin((network.embedded(task.encode(part.x, part.y).to(parameter)),))
        own = []
        for t in range(max(kept)):
            stream = network.loop(t, stream, given)
            if t + 1 in kept:
                own.append(task.read(network.answer(network.end(stream))).double().cpu())
        parts.append(torch.stack(own))
    return torch.cat(parts, dim=1)


def grid(trained: int, longest: int) -> tuple[int, ...]:
    """Loops to measure: all up to 24, those of training, the next ten and twice as many, and fewer and fewer others."""
    sparse = (28, 32, 40, 50, 64, 80, 100, 128, 160, 200)
    most = max(longest, 2 * trained)
    near = range(trained, trained + 11)
    return tuple(sorted({k for k in (*range(1, 25), *sparse, *near, 2 * trained, most) if k <= most}))


def by_loop(network: LoopingNetwork, task: Task, prompts: Prompts, sizes: Sizes) -> dict[str, Any]:
    """Errors at the last number of examples after each loop, and how they rise beyond the loops of training."""
    kept = grid(network.loops, sizes.loops)
    found = after_loops(network, task, prompts, kept)
    errors = torch.stack([per_example(values, prompts, task)[:, -1] for values in found], dim=1)
    trained = errors[:, kept.index(network.loops), None]
    ends = {TWICE: 2 * network.loops, MOST: max(kept)}
    beyond = {end: {"last": rise(errors[:, kept.index(loop), None], trained)} for end, loop in ends.items()}
    return {"loop": list(kept), "n": prompts.batch, **spread(errors), "beyond": beyond}


def rise(above: Float[Tensor, "prompts 1"], trained: Float[Tensor, "prompts 1"]) -> dict[str, Any]:
    """An error over that after the loops of training, and both over parts of the prompts.

    The parts are the same for all models, so that the rises of two can be compared prompts by prompts.
    """
    ratio, low, high, n = bounded(ratios(above, trained)[0])
    parts = {"parts": part_means(above), "parts_trained": part_means(trained)}
    return {"ratio": ratio, "low": low, "high": high, "n": n, **parts}


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
    found: dict[str, Any] = {}
    for name, other in known_errors(task, scale).items():
        for view, most in (("mean", None), ("few", task.inputs + 1)):  # as many examples as dimensions
            value, low, high, n = bounded(means((other - errors)[:, 1:most].mean(1, keepdim=True))[0], -WORST)
            found.setdefault(name, {})[view] = {"by": value, "low": low, "high": high, "n": n}
    return found


def known(task: Task, scale: str) -> dict[str, Any]:
    """The errors of the known methods by the number of examples."""
    return {"known": {name: curve(errors) for name, errors in known_errors(task, scale).items()}}


def least(task: Task, scale: str) -> dict[str, Any]:
    """The least error that is possible, by the number of examples, on the prompts that models are tested on."""
    sizes = SIZES[scale].of(task)
    parts = chunks(task.sample(sizes.tested, seed=0), CHUNK)
    errors = torch.cat([per_example(references.least(task, part), part, task) for part in parts])
    return _errors(errors, sizes)

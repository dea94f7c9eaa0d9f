"""What is measured of a construction: its errors step by step and over c and C, its size, and its name."""

from collections.abc import Iterator, Sequence
from dataclasses import astuple
from typing import Any

from torch import Tensor

from algoscope.models.algoformer import AlgoFormerNetwork
from algoscope.models.transformer import Attention
from algoscope.studies.claim import Numbers
from algoscope.studies.constructions.controls import CONTROLS, named
from algoscope.studies.constructions.subjects import Comparison, Size, Subject

SIZES = {"smoke": Size(2, 4, 2, 16), "laptop": Size(5, 12, 8, 64), "paper": Size(20, 40, 20, 64)}
SEEDS = (0, 1, 2)  # of prompts
WORST = 1e6
FEW = Size(5, 12, 6, 16)  # at which c and C are varied, at most
PARTS = 8  # of a batch, over which errors vary
GRIDS = {
    "smoke": ((1e-2, 1e-3, 1e-5), (10.0, 40.0)),
    "laptop": (tuple(10.0**-k for k in range(1, 10)), (5.0, 10.0, 20.0, 40.0, 80.0)),
}  # of c and C
NAMED = {"smoke": (40, 40), "laptop": (1000, 1000), "paper": (1000, 1000)}  # prompts to compare and to fit


def measure(subject: Subject, scale: str) -> Numbers:
    """All about one construction."""
    size = SIZES[scale]
    first, *others = [subject.compared(size, seed) for seed in SEEDS]
    rows = [row for seed, found in zip(SEEDS, (first, *others), strict=True) for row in errors(found, seed)]
    numbers: dict[str, Any] = {"errors": rows, "size": sizes(subject, first, size)}
    if subject.softmax:
        numbers["grid"] = list(grid(subject, size, *GRIDS.get(scale, GRIDS["laptop"])))
    if subject.name in CONTROLS:
        numbers |= named(CONTROLS[subject.name], *NAMED[scale])
    return numbers


def relative(found: Tensor, exact: Tensor) -> float:
    return float((found - exact).norm() / exact.norm().clamp(min=1e-300))


def bounded(error: float) -> float:
    """An error that is not a number is as bad as any."""
    return error if error < WORST else WORST


def errors(found: Comparison, seed: int) -> Iterator[dict[str, Any]]:
    """Relative error over the batch after each step, and its range over parts of the batch, all in one unit."""
    for k, step in enumerate(found.steps):
        if not bool(found.exact[k].any()):
            continue  # nothing has been predicted yet, and there is no unit
        wrong, exact = (
            part.reshape(len(part), -1).square().sum(1) for part in (found.found[k] - found.exact[k], found.exact[k])
        )
        off = wrong / exact.mean()
        spread = [bounded(float(part.mean().sqrt())) for part in off.chunk(PARTS)]
        limits = {"low": min(spread), "high": max(spread)}
        yield {"seed": seed, "step": step, "error": bounded(float(off.mean().sqrt())), **limits, "n": len(off)}


def grid(subject: Subject, size: Size, smalls: Sequence[float], larges: Sequence[float]) -> Iterator[dict[str, Any]]:
    """The error after the last step for each c and C."""
    few = Size(*(min(own, most) for own, most in zip(astuple(size), astuple(FEW), strict=True)))
    for small in smalls:
        for large in larges:
            found = subject.compare(few, 0, small, large)
            yield {"c": small, "C": large, "error": bounded(relative(found.found[-1], found.exact[-1]))}


def sizes(subject: Subject, found: Comparison, size: Size) -> dict[str, Any]:
    """Of the network that was compared, which may be smaller than was asked for."""
    network = found.network
    attention = network.get_submodule("blocks.0.attention")
    assert isinstance(attention, Attention)
    layers = len(network.blocks)
    looped = network.borders[1] - network.borders[0] if isinstance(network, AlgoFormerNetwork) else 0
    before = network.borders[0] if isinstance(network, AlgoFormerNetwork) else layers
    stated = subject.stated(size) if subject.stated else None
    return {
        "dim": network.read_in.in_features, "examples": size.examples, "steps": max(found.steps),
        "before": before, "looped": looped, "after": layers - before - looped, "layers": layers,
        "heads": attention.heads, "width": network.read_out.in_features,
        "stated": stated.layers if stated else None, "stated_heads": stated.heads if stated else None,
    }  # fmt: skip

"""What is measured of a construction: its errors step by step and over c and C, its size, its table, and its name."""

from collections.abc import Iterator, Sequence
from typing import Any

from torch import Tensor

from algoscope import algorithms, constructions
from algoscope.algorithms import Algorithm
from algoscope.instrument import identify
from algoscope.models.algoformer import AlgoFormerNetwork
from algoscope.models.transformer import Attention, TransformerNetwork
from algoscope.studies.hand_written.subjects import DEFAULTS, SUBJECTS, Comparison, Size, Subject
from algoscope.studies.study import Numbers
from algoscope.tasks import LinearRegression
from algoscope.verdict import Verdict

SIZES = {"smoke": Size(2, 4, 2, 16), "laptop": Size(5, 12, 8, 64), "paper": Size(20, 40, 20, 64)}
SEEDS = (0, 1, 2)  # of prompts
PARTS = 8  # of a batch, over which errors vary
GRIDS = {
    "smoke": ((1e-2, 1e-3, 1e-5), (10.0, 40.0)),
    "laptop": (tuple(10.0**-k for k in range(1, 10)), (5.0, 10.0, 20.0, 40.0, 80.0)),
}  # of c and C
ANATOMY = Size(2, 3, 2, 1)
NAMED = {"smoke": (40, 40), "laptop": (1000, 1000), "paper": (2000, 2000)}  # prompts to compare and to fit


def measure(name: str, scale: str) -> Numbers:
    """All about one construction."""
    subject = next(subject for subject in SUBJECTS if subject.name == name)
    size = SIZES[scale]
    first, *others = [subject.compare(size, seed, *DEFAULTS) for seed in SEEDS]
    rows = [row for seed, found in zip(SEEDS, (first, *others), strict=True) for row in errors(found, seed)]
    numbers: dict[str, Any] = {"errors": rows, "size": sizes(subject, first.network, size)}
    if subject.softmax:
        numbers["grid"] = list(grid(subject, size, *GRIDS.get(scale, GRIDS["laptop"])))
    if name in EXPECTED:
        numbers |= named(name, scale)
    table = constructions.anatomy(subject.compare(ANATOMY, 0, *DEFAULTS).network)
    return {**numbers, "anatomy": {"places": table.places, "parts": table.parts}}


def relative(found: Tensor, exact: Tensor) -> float:
    return float((found - exact).norm() / exact.norm().clamp(min=1e-300))


def errors(found: Comparison, seed: int) -> Iterator[dict[str, Any]]:
    """Relative error over the batch after each step, and its range over parts of the batch, all in one unit."""
    for k, step in enumerate(found.steps):
        if not bool(found.exact[k].any()):
            continue  # nothing has been predicted yet, and there is no unit
        wrong, exact = (
            part.reshape(len(part), -1).square().sum(1) for part in (found.found[k] - found.exact[k], found.exact[k])
        )
        off = wrong / exact.mean()
        spread = [float(part.mean().sqrt()) for part in off.chunk(PARTS)]
        limits = {"low": min(spread), "high": max(spread)}
        yield {"seed": seed, "step": step, "error": float(off.mean().sqrt()), **limits, "n": len(off)}


def grid(subject: Subject, size: Size, smalls: Sequence[float], larges: Sequence[float]) -> Iterator[dict[str, Any]]:
    """The error after the last step for each c and C."""
    few = Size(min(size.dim, 5), min(size.examples, 12), min(size.steps, 6), min(size.batch, 16))
    for small in smalls:
        for large in larges:
            found = subject.compare(few, 0, small, large)
            yield {"c": small, "C": large, "error": min(relative(found.found[-1], found.exact[-1]), 1e6)}


def sizes(subject: Subject, network: TransformerNetwork, size: Size) -> dict[str, Any]:
    attention = network.get_submodule("blocks.0.attention")
    assert isinstance(attention, Attention)
    layers = len(network.blocks)
    looped = network.borders[1] - network.borders[0] if isinstance(network, AlgoFormerNetwork) else 0
    before = network.borders[0] if isinstance(network, AlgoFormerNetwork) else layers
    return {
        "dim": size.dim, "examples": size.examples, "steps": size.steps,
        "before": before, "looped": looped, "after": layers - before - looped, "layers": layers,
        "heads": attention.heads, "width": network.read_out.in_features,
        "stated": subject.stated(size) if subject.stated else None,
    }  # fmt: skip


RATE, ALPHA = 0.03, 1e-3  # small enough for nearly all prompts, and large enough for steps to differ
TASK = LinearRegression(dim=3, examples=10)
OTHERS: list[Algorithm] = [
    algorithms.ConjugateGradients(3),
    algorithms.OrdinaryLeastSquares(),
    algorithms.GradientDescentPlusPlus(8),
]
LISTED = [algorithms.GradientDescent(range(12), rate=RATE), algorithms.Newton(12, start=ALPHA), *OTHERS]
STEPS = 5
DESCENT, NEWTON = LISTED[0].name, LISTED[1].name
# name: the network, whether it answers everywhere, and which step of which algorithm each stage holds
EXPECTED: dict[str, tuple[Any, bool, dict[str, tuple[str, int]]]] = {
    "Newton": (
        lambda: constructions.newton(3, 10, STEPS, ALPHA), False,
        {f"layer {k + 3}": (NEWTON, k) for k in range(STEPS + 1)},
    ),
    "gradient descent": (
        lambda: constructions.gradient_descent(3, 10, STEPS, RATE), False,
        {**{f"loop {k}": (DESCENT, k) for k in range(1, STEPS + 1)}, "post": (DESCENT, STEPS)},
    ),
    "Newton, looped": (
        lambda: constructions.looped_newton(3, 10, STEPS, ALPHA), False, {"post": (NEWTON, STEPS)},
    ),
    "decoder": (
        lambda: constructions.decoder_gradient_descent(3, 10, STEPS, RATE), True,
        {"post": (DESCENT, STEPS)},
    ),
    "Newton, causal": (
        lambda: constructions.causal_newton(3, 10, STEPS, ALPHA), True,
        {f"layer {2 * k + 4}": (NEWTON, k) for k in range(STEPS + 1)},
    ),
}  # fmt: skip


QUIET = {"decoder": "pre", "Newton, causal": "layer 2"}  # a stage that holds no prediction; all would take long


def named(name: str, scale: str) -> dict[str, Any]:
    """What the instrument says about it, and whether that is so.

    The right step should be among those that it keeps, at best alone; it must never be certain of another.
    """
    build, everywhere, expected = EXPECTED[name]
    compared, fitted = NAMED[scale]
    positions = "all" if everywhere else TASK.examples
    network = build()
    stages = list(network.stages) if not everywhere else [QUIET[name], *expected]
    verdict: Verdict = identify(
        network, TASK, LISTED, compared, fitted, stages=stages, positions=positions, weights=False
    )
    found = {str(stage.stage): stage for stage in verdict.stages}
    kept = [stage for stage, step in expected.items() if step in found[stage].agreed]
    alone = [stage for stage in kept if len(found[stage].agreed) == 1]
    alarms = [stage for stage, said in found.items() if said.certain and stage not in alone]
    counts = {"kept": len(kept), "alone": len(alone), "expected": len(expected), "alarms": len(alarms)}
    record = verdict.record()
    return {"named": counts, "verdict": {key: record[key] for key in record if key not in ("controls", "provenance")}}

"""The constructions as controls of the instrument: here it is known which step each stage holds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from algoscope import algorithms, constructions
from algoscope.algorithms import Algorithm, OnFeatures
from algoscope.instrument import identify
from algoscope.models.transformer import TransformerNetwork
from algoscope.tasks import ChainOfThought, LinearRegression, RepresentationRegression
from algoscope.tasks.task import Task
from algoscope.verdict import Verdict

STEPS = 5
RATE, ALPHA = 0.03, 1e-3  # small enough for nearly all prompts, and large enough for steps to differ
DESCENT, NEWTON = algorithms.GradientDescent(range(12), rate=RATE), algorithms.Newton(12, start=ALPHA)
LISTED: list[Algorithm] = [
    DESCENT,
    NEWTON,
    algorithms.ConjugateGradients(3),
    algorithms.OrdinaryLeastSquares(),
    algorithms.GradientDescentPlusPlus(8),
]


@dataclass(frozen=True)
class Control:
    """A construction, its task, the algorithms to tell apart, and the step that each of some stages holds.

    `stages` are those shown to the instrument, by default all. Encoders answer at the last token alone.
    """

    build: Callable[[], TransformerNetwork]
    task: Task
    expected: Mapping[str, tuple[str, int]]
    listed: Sequence[Algorithm]
    everywhere: bool = False
    stages: tuple[str, ...] | None = None


def _on_features(task: RepresentationRegression | ChainOfThought, rate: float) -> tuple[str, list[Algorithm]]:
    """Gradient descent at a rate that suits the features, by name, and what else may be run on them."""
    descent = OnFeatures(algorithms.GradientDescent(range(12), rate=rate), task)
    others = [OnFeatures(each, task) for each in (algorithms.ConjugateGradients(3), algorithms.OrdinaryLeastSquares())]
    return descent.name, [descent, *others]


PLAIN = LinearRegression(dim=3, examples=10)
FEATURES = RepresentationRegression(dim=3, examples=10)
CHAINS = ChainOfThought(dim=3, examples=10, depth=2)
LOOPS = {f"loop {k}": k for k in range(1, STEPS + 1)} | {"post": STEPS}
SLOW, SLOWER = 0.007, 0.002  # small enough for all prompts
ON_FEATURES, ON_CHAINS = _on_features(FEATURES, SLOW), _on_features(CHAINS, SLOWER)
# The series is not among them: its tokens hold the latest values beside the step, and a read-out makes use of both.
CONTROLS: dict[str, Control] = {
    "Newton": Control(
        lambda: constructions.newton(3, 10, STEPS, ALPHA), PLAIN,
        {f"layer {k + 3}": (NEWTON.name, k) for k in range(STEPS + 1)}, LISTED,
    ),
    "gradient descent": Control(
        lambda: constructions.gradient_descent(3, 10, STEPS, RATE), PLAIN,
        {stage: (DESCENT.name, k) for stage, k in LOOPS.items()}, LISTED,
    ),
    "regression on features": Control(
        lambda: constructions.representation_regression(FEATURES.features.matrices(), 10, STEPS, SLOW), FEATURES,
        {stage: (ON_FEATURES[0], k) for stage, k in LOOPS.items()}, [*ON_FEATURES[1], DESCENT],
    ),
    "chains of thought": Control(
        lambda: constructions.chain_of_thought(3, 10, 2, STEPS, SLOWER), CHAINS,
        {"post": (ON_CHAINS[0], STEPS)}, ON_CHAINS[1], stages=("embedding", "post"),
    ),
    "Newton, looped": Control(
        lambda: constructions.looped_newton(3, 10, STEPS, ALPHA), PLAIN, {"post": (NEWTON.name, STEPS)}, LISTED,
    ),
    "decoder": Control(
        lambda: constructions.decoder_gradient_descent(3, 10, STEPS, RATE), PLAIN, {"post": (DESCENT.name, STEPS)},
        LISTED, True, ("pre", "post"),
    ),
    "Newton, causal": Control(
        lambda: constructions.causal_newton(3, 10, STEPS, ALPHA), PLAIN,
        {f"layer {2 * k + 4}": (NEWTON.name, k) for k in range(STEPS + 1)}, LISTED, True,
        ("layer 2", *(f"layer {2 * k + 4}" for k in range(STEPS + 1))),
    ),
}  # fmt: skip


def said(control: Control, compared: int, fitted: int) -> Verdict:
    """What the instrument says about a construction."""
    network, task = control.build(), control.task
    return identify(
        network, task, control.listed, compared, fitted, stages=control.stages or network.stages,
        positions="all" if control.everywhere else task.positions - 1, weights=False,
    )  # fmt: skip


def counted(control: Control, verdict: Verdict) -> dict[str, int]:
    """The right step should be among those that it keeps, at best alone; it must never be certain of another."""
    found = {str(stage.stage): stage for stage in verdict.stages}
    kept = [stage for stage, step in control.expected.items() if step in found[stage].agreed]
    alone = [stage for stage in kept if len(found[stage].agreed) == 1]
    alarms = [stage for stage, said in found.items() if said.certain and stage not in alone]
    return {"kept": len(kept), "alone": len(alone), "expected": len(control.expected), "alarms": len(alarms)}


def named(control: Control, compared: int, fitted: int) -> dict[str, Any]:
    """What the instrument says about it, and whether that is so."""
    verdict = said(control, compared, fitted)
    record = verdict.record()
    kept = {key: record[key] for key in record if key not in ("controls", "provenance")}
    return {"named": counted(control, verdict), "verdict": kept}

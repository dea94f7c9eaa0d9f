"""The constructions as controls of the instrument: here it is known which step each stage holds.

Whether a stage can be named depends on the prompts, so their sizes and the rates were chosen by what the algorithms do
on them, before any network was shown: neighboring steps should differ by more than a factor, and no few prompts should
decide alone. Hence covariances with two eigenvalues, many examples, and rates of about 1 over the largest eigenvalue.
Of a series most is noise, and where A makes it grow, it does so on few prompts: the more dimensions, the more alike
they are, and the more a step may explain before that (docs/log.md).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from algoscope import algorithms, constructions
from algoscope.algorithms import Algorithm, OnFeatures
from algoscope.contracts import Show, Task
from algoscope.instrument import Instrument
from algoscope.models.algoformer import AlgoFormerNetwork
from algoscope.models.transformer import TransformerNetwork, added
from algoscope.steps import CONVERGED
from algoscope.tasks import AutoregressiveRepresentation, ChainOfThought, LinearRegression, RepresentationRegression
from algoscope.trace import Stage
from algoscope.verdict import StageVerdict, Verdict, plain_law

Step = tuple[str, Stage]  # of an algorithm
STEPS = 5
SAME = CONVERGED  # share of a step that no multiple of another explains, up to which they are the same


@dataclass(frozen=True)
class Control:
    """A construction, its task, the algorithms to tell apart, and the step that each of some stages holds.

    They are a step a stage. `empty` are stages that hold no step. Encoders answer at the last token alone. `times` as
    many prompts are compared and fitted as is usual.
    """

    show: Callable[[], TransformerNetwork | Show]
    task: Task
    expected: Mapping[str, Step]
    listed: Sequence[Algorithm]
    empty: tuple[str, ...] = ()
    everywhere: bool = False
    times: int = 1


Build = Callable[[], AlgoFormerNetwork]


def after_loops(build: Build, own: bool = False) -> Callable[[], Show]:
    """What comes after 1, 2, … loops: what these themselves hold need not be a prediction yet.

    With `own`, what the network's own head predicts there: where the other places of a token also tell something about
    the target, a probe of the whole makes use of them.
    """

    def opened() -> Show:
        network = build()

        def show(tokens: Tensor) -> dict[str, Tensor]:
            stream, given = network.begin((network.embedded(tokens.double()),))
            states = {"pre": added(*stream)}
            for t, stage in enumerate(AFTER):
                stream = network.loop(t, stream, given)
                states[stage] = added(*network.end(stream))
            seen = {name: state[:, 1:] for name, state in states.items()}  # without the blank token
            return {name: network.read_out(state) for name, state in seen.items()} if own else seen

        return show

    return opened


def _listed(rate: float, alpha: float) -> tuple[Algorithm, Algorithm, list[Algorithm]]:
    """Gradient descent, Newton, and these with what else may be told from them."""
    gradient, newton = algorithms.GradientDescent(range(12), rate=rate), algorithms.Newton(12, start=alpha)
    others = [algorithms.ConjugateGradients(3), algorithms.OrdinaryLeastSquares()]
    return gradient, newton, [gradient, newton, *others, algorithms.GradientDescentPlusPlus(8)]


def _on_features(task: Any, rate: float) -> list[Algorithm]:
    """Gradient descent first."""
    gradient = algorithms.GradientDescent(range(12), rate=rate)
    others = (algorithms.ConjugateGradients(3), algorithms.OrdinaryLeastSquares())
    return [OnFeatures(each, task) for each in (gradient, *others)]


LOOPS = {f"loop {k}": k for k in range(1, STEPS + 1)}
AFTER = {f"after {name}": k for name, k in LOOPS.items()}
DIM, EXAMPLES, RATE, ALPHA = 4, 20, 0.011, 1.3e-4
PLAIN = LinearRegression(DIM, EXAMPLES, "ill-conditioned", condition=5.0, rescale=True)
GRADIENT_DESCENT, NEWTON, LISTED = _listed(RATE, ALPHA)
FEATURES, ON_FEATURES = RepresentationRegression(4, 20), 0.003
CHAIN_OF_THOUGHT, ON_CHAIN_OF_THOUGHT = ChainOfThought(10, 30, 2), 0.0034
AR_SERIES, ON_AR_SERIES = AutoregressiveRepresentation(16, 24, 2, 1, gain=0.4, slope=0.8), 0.0045


def _steps(algorithm: Algorithm, stages: Mapping[str, int]) -> dict[str, Step]:
    return {stage: (algorithm.name, step) for stage, step in stages.items()}


def _controls() -> dict[str, Control]:
    features, chains, series = (
        _on_features(task, rate)
        for task, rate in ((FEATURES, ON_FEATURES), (CHAIN_OF_THOUGHT, ON_CHAIN_OF_THOUGHT), (AR_SERIES, ON_AR_SERIES))
    )
    newton_steps = {f"layer {k + 3}": k for k in range(STEPS + 1)}
    causal_steps = {f"layer {2 * k + 4}": k for k in range(STEPS + 1)}
    return {
        "Newton": Control(
            lambda: constructions.newton(DIM, EXAMPLES, STEPS, ALPHA), PLAIN, _steps(NEWTON, newton_steps), LISTED,
            ("embedding", "layer 1", "layer 2"),
        ),
        "gradient descent": Control(
            lambda: constructions.gradient_descent(DIM, EXAMPLES, STEPS, RATE), PLAIN,
            _steps(GRADIENT_DESCENT, LOOPS), LISTED,
            ("embedding", "pre"),
        ),
        "regression on features": Control(
            lambda: constructions.representation_regression(
                FEATURES.features.matrices(), FEATURES.examples, STEPS, ON_FEATURES
            ),
            FEATURES, _steps(features[0], LOOPS), [*features, GRADIENT_DESCENT], ("embedding", "pre"), times=3,
        ),
        "AR series": Control(
            after_loops(lambda: constructions.autoregression(
                AR_SERIES.features.matrices(), AR_SERIES.order, AR_SERIES.examples, STEPS, ON_AR_SERIES, AR_SERIES.slope
            ), own=True),
            AR_SERIES, _steps(series[0], AFTER), series, ("pre",),
        ),
        "chain of thought": Control(
            after_loops(lambda: constructions.chain_of_thought(
                CHAIN_OF_THOUGHT.dim, CHAIN_OF_THOUGHT.examples, CHAIN_OF_THOUGHT.depth, STEPS, ON_CHAIN_OF_THOUGHT
            ), own=True),
            CHAIN_OF_THOUGHT, _steps(chains[0], AFTER), chains, ("pre",),
        ),
        "Newton, looped": Control(
            after_loops(lambda: constructions.looped_newton(DIM, EXAMPLES, STEPS, ALPHA)), PLAIN,
            _steps(NEWTON, AFTER), LISTED, ("pre",),
        ),
        "decoder": Control(
            after_loops(lambda: constructions.decoder_gradient_descent(DIM, EXAMPLES, STEPS, RATE)), PLAIN,
            _steps(GRADIENT_DESCENT, AFTER), LISTED, ("pre",), everywhere=True,
        ),
        "Newton, causal": Control(
            lambda: constructions.causal_newton(DIM, EXAMPLES, STEPS, ALPHA), PLAIN, _steps(NEWTON, causal_steps),
            LISTED, ("layer 2",), everywhere=True,
        ),
    }  # fmt: skip


CONTROLS = _controls()


def coinciding(instrument: Instrument, step: Step) -> set[Step]:
    """The steps that a stage with this one may be called, by the traces of the algorithms alone: itself, and those of
    which a multiple misses no more of it than `SAME`. A method that has converged has the name of what it came to.
    """
    name, own = step
    values = instrument.traces[name].values[instrument.traces[name].stages.index(own)][:, instrument.at].flatten()
    return alike(instrument, values) | {instrument.solved.get(step, step)}


def alike(instrument: Instrument, values: Tensor) -> set[Step]:
    """The steps of which a multiple misses no more than `SAME` of these predictions."""
    found: set[Step] = set()
    for trace in instrument.traces.values():
        for stage, other in zip(trace.stages, trace.values[:, :, instrument.at].flatten(1), strict=True):
            left = 1 - (values @ other).square() / (values.square().sum() * other.square().sum()).clamp(min=1e-300)
            if bool(left <= SAME):
                found.add((trace.name, stage))
    return {instrument.solved.get(each, each) for each in found}


@torch.no_grad()
def identified(control: Control, compared: int, fitted: int, seed: int = 0) -> tuple[Instrument, Verdict]:
    """What the instrument says about a construction."""
    at = "all" if control.everywhere else control.task.positions - 1
    instrument = Instrument(
        control.task, control.listed, control.times * compared, control.times * fitted, seed, at, others=()
    )
    return instrument, instrument.identify(control.show(), stages=(*control.empty, *control.expected), weights=False)


def counted(control: Control, instrument: Instrument, verdict: Verdict) -> tuple[dict[str, int], list[dict[str, Any]]]:
    """Whether that is so, in numbers, and stage by stage.

    The right step must be among those that it keeps, and all that it keeps must coincide with that. Of stages that hold
    none it must keep nothing. It `computes` the step if the instrument is sure that this is all there is to a stage,
    and is `denied` where it says that a mixture of steps explains more: these stages hold exactly one.
    """
    found = {str(stage.stage): stage for stage in verdict.stages}
    rows = [_judged(instrument, found[stage], step) for stage, step in control.expected.items()]
    counts = {key: sum(row[key] for row in rows) for key in ("kept", "named", "computes", "denied")}
    alarms = sum(bool(found[stage].agreed) for stage in control.empty)
    wrong = sum(found[stage].certain and not row["named"] for stage, row in zip(control.expected, rows, strict=True))
    return counts | {"expected": len(rows), "empty": len(control.empty), "alarms": alarms, "wrong": wrong}, rows


def named(control: Control, compared: int, fitted: int, seed: int = 0) -> dict[str, Any]:
    instrument, verdict = identified(control, compared, fitted, seed)
    counts, rows = counted(control, instrument, verdict)
    record = verdict.record()
    kept = {key: record[key] for key in record if key not in ("controls", "provenance")}
    law = verdict.law(next(iter(control.expected.values()))[0])
    return {"named": counts, "judged": rows, "law": plain_law(law), "verdict": kept}


def _judged(instrument: Instrument, found: StageVerdict, step: Step) -> dict[str, Any]:
    """`same` are other steps that coincide with the right one."""
    right, allowed = instrument.solved.get(step, step), coinciding(instrument, step)
    kept = right in found.spellings
    return {
        "stage": str(found.stage),
        "step": list(step),
        "same": [list(each) for each in sorted(allowed - {right}, key=str)],
        "kept": kept,
        "named": kept and (len(found.agreed) == 1 or set(found.agreed) <= allowed),
        "computes": found.certain and kept,
        "denied": found.misfit.gain.low > 0,
    }

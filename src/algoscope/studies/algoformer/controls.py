"""Answers that are known: AlgoFormers written by hand, one that was never trained, and steps that are planted on the
prompts of the study itself, to be found in the study's own list.
"""

from dataclasses import replace
from typing import Any

from torch import Tensor
from torch.nn.functional import pad

from algoscope import algorithms as known
from algoscope.algorithms import Algorithm
from algoscope.models import Transformer
from algoscope.models.algoformer import LoopingNetwork
from algoscope.randomness import normal, stream
from algoscope.reading.states import Show
from algoscope.studies.algoformer import loops
from algoscope.studies.algoformer.candidates import candidates, on_features
from algoscope.studies.algoformer.measures import SIZES
from algoscope.studies.algoformer.references import steady_rate
from algoscope.studies.constructions.controls import CONTROLS, Control, counted, said
from algoscope.tasks import ChainOfThought, RepresentationRegression, Task
from algoscope.trace import Prompts

BY_HAND = ("gradient descent", "regression on features", "series", "chains of thought", "Newton, looped", "decoder")
NAMED = {"smoke": 40, "laptop": 1000, "paper": 1000}  # prompts to compare on, and as many to fit on
BLURRED = 0.002  # of E[y²]: noise on every second copy of what is planted, as a network has some


def by_hand(name: str, scale: str) -> dict[str, Any]:
    """What the instrument says about a construction, and whether that is so: among its own algorithms, which have its
    rate or start, and all that the loops of models may be.
    """
    control, prompts = CONTROLS[name], NAMED[scale]
    listed = {each.name: each for each in (*control.listed, *candidates(control.task))}
    control = replace(control, listed=tuple(listed.values()))
    instrument, verdict = said(control, prompts, prompts)
    expected = {stage: list(step) for stage, step in control.expected.items()}
    return {"named": counted(control, instrument, verdict)[0], "expected": expected, "loops": loops.told(verdict)}


def fresh(task: Task, model: Transformer, scale: str) -> dict[str, Any]:
    """A network of random weights holds no step of anything but the mean: its attention weighs all tokens alike."""
    network = model.build(task.inputs, task.outputs, task.length, stream("weights", 0))
    assert isinstance(network, LoopingNetwork)
    found = loops.followed(network, task, SIZES[scale].compared, paged=False)
    named = [{name for name, _ in stage["agreed"]} for stage in found["loops"]["stages"] if stage["certain"]]
    alarms = sum(names != {known.Mean().name} for names in named)
    return {"named": {"kept": 0, "named": 0, "expected": 0, "alarms": alarms, "wrong": 0}, "expected": {}, **found}


def planted_steps(task: Task) -> dict[str, tuple[Algorithm, int]]:
    """What is planted: steps that lists of candidates which end too early call something else."""
    newton, descent = known.Newton([18, 20, 24]), known.GradientDescent([8192], rate=steady_rate(task))
    found: dict[str, tuple[Algorithm, int]] = {
        "ridge .01": (known.Ridge(0.01), 0),
        **{f"Newton {k}": (newton, k) for k in (18, 20, 24)},
        "descent 8,192": (descent, 8192),
        **{f"conjugate gradients {k}": (known.ConjugateGradients([k]), k) for k in (3, 6) if k < task.inputs},
    }
    return {told: (on_features(task, each), k) for told, (each, k) in found.items()} | {"mean": (known.Mean(), 0)}


def prompts_of(task: RepresentationRegression | ChainOfThought, tokens: Tensor) -> Prompts:
    """From tokens back to prompts, as `encode` made them; the last target, which has no token, is zero."""
    if isinstance(task, ChainOfThought):
        states = pad(tokens, (0, 0, 0, 1)).unflatten(1, (-1, task.depth + 1))
        x, y = states[:, :, :-1].flatten(1, 2), states[:, :, 1:].flatten(1, 2)
    else:
        x, y = tokens[:, 0::2, : task.dim], pad(tokens[:, 1::2, 0], (0, 1))
    return Prompts(x.double(), y.double(), power=task.power)


def shown(task: RepresentationRegression | ChainOfThought) -> Show:
    """Shows each planted step as the state of a stage of its own, as it is and blurred."""
    blur, answering = stream("planted", 0), list(task.answering)

    def show(tokens: Tensor) -> dict[str, Tensor]:
        prompts, states = prompts_of(task, tokens), {}
        for told, (method, step) in planted_steps(task).items():
            trace = method.trace(prompts)
            values = trace.values[trace.stages.index(step)].reshape(*prompts.y.shape[:2], -1)
            noise = normal([blur], *values.shape, dtype=values.dtype) * (BLURRED * task.power) ** 0.5
            for name, part in ((told, values), (f"{told}, blurred", values + noise)):
                states[name] = part.new_zeros(*tokens.shape[:2], part.shape[-1])
                states[name][:, answering] = part
        return states

    return show


def planted(task: RepresentationRegression | ChainOfThought, scale: str) -> dict[str, Any]:
    """Whether planted steps are found, on as many prompts as models are compared on."""
    instrument = loops.instrument_of(task, SIZES[scale].of(task).compared)
    steps = {told: (method.name, step) for told, (method, step) in planted_steps(task).items()}
    expected = {name: step for told, step in steps.items() for name in (told, f"{told}, blurred")}
    control = Control(lambda: shown(task), task, expected, instrument.algorithms, everywhere=True)
    verdict = instrument.identify(shown(task), list(expected), weights=False)
    counts, rows = counted(control, instrument, verdict)
    told = {stage: list(step) for stage, step in expected.items()}
    return {"named": counts, "judged": rows, "expected": told, "loops": loops.told(verdict)}

"""Answers that are known: an AlgoFormer that was never trained, and steps that are planted on the prompts of the study
itself, to be found in the study's own list.
"""

from typing import Any

from torch import Tensor

from algoscope import algorithms as known
from algoscope.algorithms import Algorithm
from algoscope.contracts import Task
from algoscope.controls import Planted
from algoscope.models import Transformer
from algoscope.models.algoformer import LoopingNetwork
from algoscope.randomness import stream
from algoscope.studies.algoformer import loops
from algoscope.studies.algoformer.candidates import on_features
from algoscope.studies.algoformer.measures import SIZES
from algoscope.studies.constructions.controls import Control, counted
from algoscope.tasks.candidates import steady_rate
from algoscope.trace import Stage

NOISE = 0.002**0.5  # of every second copy of what is planted, as a network has some


def fresh(task: Task, model: Transformer, scale: str) -> dict[str, Any]:
    """A network of random weights holds no step of anything but the mean: its attention weighs all tokens alike."""
    network = model.build(task.inputs, task.outputs, task.length, stream("weights", 0))
    assert isinstance(network, LoopingNetwork)
    found = loops.followed(network, task, SIZES[scale].compared)
    certain = [stage["agreed"][0][0] for stage in found["stages"] if stage["certain"]]
    alarms = sum(name != known.Mean().name for name in certain)
    return {"named": {"kept": 0, "expected": 0, "alarms": alarms, "wrong": 0}, "loops": found}


def planted_steps(task: Task) -> list[tuple[Algorithm, Stage]]:
    """What is planted: steps that lists of candidates which end too early call something else."""
    steps: list[tuple[Algorithm, Stage]] = [
        (known.Ridge(0.01), 0),
        *((known.Newton([k]), k) for k in (18, 20, 24)),
        (known.GradientDescent([8192], rate=steady_rate(task)), 8192),
        *((known.ConjugateGradients([k]), k) for k in (3, 6) if k < task.inputs),
    ]
    return [*((on_features(task, method), step) for method, step in steps), (known.Mean(), 0)]


def planted(task: Task, scale: str) -> dict[str, Any]:
    """Whether planted steps are found, on as many prompts as models are compared on."""
    instrument = loops.instrument_of(task, SIZES[scale].of(task).compared)
    models, expected = {}, {}
    for noise, suffix in ((0.0, ""), (NOISE, ", blurred")):
        for method, step in planted_steps(task):
            stage = f"{method.name} {step}{suffix}"
            models[stage], expected[stage] = Planted(method, task, noise), (method.name, step)

    def show(tokens: Tensor) -> dict[str, Tensor]:
        return {stage: next(iter(model(tokens).values())) for stage, model in models.items()}

    control = Control(lambda: show, task, expected, instrument.algorithms, everywhere=True)
    verdict = instrument.identify(show, list(expected), weights=False)
    counts, rows = counted(control, instrument, verdict)
    return {"named": counts, "judged": rows}

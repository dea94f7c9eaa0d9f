"""Networks whose loops are known: AlgoFormers written by hand, and one that was never trained."""

from typing import Any

from algoscope.models import AlgoFormer
from algoscope.randomness import stream
from algoscope.studies.algoformer import loops
from algoscope.studies.algoformer.measures import SIZES
from algoscope.studies.constructions.controls import CONTROLS, counted, said
from algoscope.tasks import RepresentationRegression

BY_HAND = ("gradient descent", "regression on features", "chains of thought", "Newton, looped", "decoder")
NAMED = {"smoke": 40, "laptop": 1000, "paper": 1000}  # prompts to compare on, and as many to fit on
UNTRAINED = RepresentationRegression(dim=5, examples=20)
FRESH = AlgoFormer(heads=4, width=32, loops=10, scored=5)


def by_hand(name: str, scale: str) -> dict[str, Any]:
    """What the instrument says about a construction, and whether that is so."""
    control, prompts = CONTROLS[name], NAMED[scale]
    instrument, verdict = said(control, prompts, prompts)
    expected = {stage: list(step) for stage, step in control.expected.items()}
    return {"named": counted(control, instrument, verdict)[0], "expected": expected, "loops": loops.told(verdict)}


def fresh(scale: str) -> dict[str, Any]:
    """A network of random weights holds no step of anything."""
    task = UNTRAINED
    network = FRESH.build(task.inputs, task.outputs, task.length, stream("weights", 0))
    found = loops.followed(network, task, SIZES[scale].compared, paged=False)
    alarms = sum(stage["certain"] for stage in found["loops"]["stages"])
    return {"named": {"kept": 0, "named": 0, "expected": 0, "alarms": alarms, "wrong": 0}, "expected": {}, **found}

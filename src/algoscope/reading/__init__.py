"""From a model to a trace: the states of its stages, read out linearly into the space of the targets."""

from algoscope.reading.induced import InducedWeights, induced_weights
from algoscope.reading.moments import LinearMap, Moments
from algoscope.reading.probe import Reading, fit, probe
from algoscope.reading.states import States, open_model

__all__ = [
    "InducedWeights",
    "LinearMap",
    "Moments",
    "Reading",
    "States",
    "fit",
    "induced_weights",
    "open_model",
    "probe",
]

"""From a model to a trace: the states of its stages, read out linearly into the space of the targets."""

from algoscope.reading.answers import ByDistance, accuracy_by_distance, decided, exact_match, lens
from algoscope.reading.channels import Channels, channels, equivariance
from algoscope.reading.induced import InducedWeights, induced_weights
from algoscope.reading.moments import LinearMap, Moments
from algoscope.reading.probe import Reading, fit, probe
from algoscope.reading.states import States, open_model

__all__ = [
    "ByDistance",
    "Channels",
    "InducedWeights",
    "LinearMap",
    "Moments",
    "Reading",
    "States",
    "accuracy_by_distance",
    "channels",
    "decided",
    "equivariance",
    "exact_match",
    "fit",
    "induced_weights",
    "lens",
    "open_model",
    "probe",
]

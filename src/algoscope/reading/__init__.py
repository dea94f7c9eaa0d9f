"""From a model to a trace: the states of its stages, read out linearly into the space of the targets."""

from algoscope.reading.answers import ByDistance, accuracy_by_distance, decided, exact_match, lens
from algoscope.reading.channels import Channels, channels, equivariance
from algoscope.reading.induced import InducedWeights, induced_weights
from algoscope.reading.lookups import Landing, features, in_place, landing, lookups, order, slots
from algoscope.reading.moments import LinearMap, Moments
from algoscope.reading.predict import predict
from algoscope.reading.probe import Reading, fit, probe
from algoscope.reading.states import States, open_model
from algoscope.reading.subspace import Subspace, subspace

__all__ = [
    "ByDistance",
    "Channels",
    "InducedWeights",
    "Landing",
    "LinearMap",
    "Moments",
    "Reading",
    "States",
    "Subspace",
    "accuracy_by_distance",
    "channels",
    "decided",
    "equivariance",
    "exact_match",
    "features",
    "fit",
    "in_place",
    "induced_weights",
    "landing",
    "lens",
    "lookups",
    "open_model",
    "order",
    "predict",
    "probe",
    "slots",
    "subspace",
]

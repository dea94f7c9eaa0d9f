"""From a model to numbers: linear probes, the logit lens, induced weights, what an index reads and a sketch counts."""

from algoscope.contracts import States
from algoscope.reading.answers import ByDistance, accuracy_by_distance, binarize, exact_match
from algoscope.reading.channels import Channels, channels, equivariance
from algoscope.reading.induced import InducedWeights, induced_weights
from algoscope.reading.lookups import Landing, features, in_place, landing, lookups, order, slots
from algoscope.reading.moments import LinearMap, Moments
from algoscope.reading.patching import PatchEffect, patch
from algoscope.reading.predict import predict
from algoscope.reading.probe import FittedProbe, fit, probe
from algoscope.reading.readers import CounterReader, LinearProbe, LogitLens, LookupReader, logit_lens
from algoscope.reading.states import open_model
from algoscope.reading.wrapped import Wrapped, wrap

__all__ = [
    "ByDistance",
    "Channels",
    "CounterReader",
    "FittedProbe",
    "InducedWeights",
    "Landing",
    "LinearMap",
    "LinearProbe",
    "LogitLens",
    "LookupReader",
    "Moments",
    "PatchEffect",
    "States",
    "Wrapped",
    "accuracy_by_distance",
    "binarize",
    "channels",
    "equivariance",
    "exact_match",
    "features",
    "fit",
    "in_place",
    "induced_weights",
    "landing",
    "logit_lens",
    "lookups",
    "open_model",
    "order",
    "patch",
    "predict",
    "probe",
    "slots",
    "wrap",
]

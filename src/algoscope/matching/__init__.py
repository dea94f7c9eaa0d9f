"""How alike traces are: measures, similarity matrices with intervals and ties, rate laws. Knows traces only."""

from algoscope.contracts import Measure
from algoscope.matching.candidates import Candidate, candidates
from algoscope.matching.compare import MEASURES, Match, compare, measure_of
from algoscope.matching.lookups import ReadsWhileSearching, WrongReads, found
from algoscope.matching.measures import (
    Agreement,
    ErrorSimilarity,
    PredictionDistance,
    UnexplainedVariance,
    WeightSimilarity,
)
from algoscope.matching.mixtures import Misfit
from algoscope.matching.rates import RateLaw, rate_law

__all__ = [
    "MEASURES",
    "Agreement",
    "Candidate",
    "ErrorSimilarity",
    "Match",
    "Measure",
    "Misfit",
    "PredictionDistance",
    "RateLaw",
    "ReadsWhileSearching",
    "UnexplainedVariance",
    "WeightSimilarity",
    "WrongReads",
    "candidates",
    "compare",
    "found",
    "measure_of",
    "rate_law",
]

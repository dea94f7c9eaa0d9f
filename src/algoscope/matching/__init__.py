"""How alike traces are: measures, similarity matrices with intervals and ties, rate laws. Knows traces only."""

from algoscope.contracts import Measure
from algoscope.matching.candidates import Candidate, candidates
from algoscope.matching.compare import MEASURES, Match, compare, judge, measure_of
from algoscope.matching.lookups import ReadsWhileSearching, WrongReads, found
from algoscope.matching.measures import (
    Agreement,
    Decodability,
    ErrorSimilarity,
    PredictionDistance,
    UnexplainedVariance,
    WeightSimilarity,
)
from algoscope.matching.rates import RateLaw, rate_law

__all__ = [
    "MEASURES",
    "Agreement",
    "Candidate",
    "Decodability",
    "ErrorSimilarity",
    "Match",
    "Measure",
    "PredictionDistance",
    "RateLaw",
    "ReadsWhileSearching",
    "UnexplainedVariance",
    "WeightSimilarity",
    "WrongReads",
    "candidates",
    "compare",
    "found",
    "judge",
    "measure_of",
    "rate_law",
]

"""How alike traces are: measures, similarity matrices with intervals and ties, rate laws. Knows traces only."""

from algoscope.matching.candidates import Candidate, candidates
from algoscope.matching.compare import Match, compare, judge
from algoscope.matching.lookups import found, nearest_so_far
from algoscope.matching.measures import MEASURES, Measure
from algoscope.matching.ranking import Standing, rank
from algoscope.matching.rates import RateLaw, inseparable, rate_law

__all__ = [
    "MEASURES",
    "Candidate",
    "Match",
    "Measure",
    "RateLaw",
    "Standing",
    "candidates",
    "compare",
    "found",
    "inseparable",
    "judge",
    "nearest_so_far",
    "rank",
    "rate_law",
]

"""How alike traces are: measures, similarity matrices with intervals and ties, rate laws. Knows traces only."""

from algoscope.matching.compare import Match, compare
from algoscope.matching.measures import MEASURES, Measure
from algoscope.matching.ranking import Standing, rank
from algoscope.matching.rates import RateLaw, inseparable, rate_law

__all__ = ["MEASURES", "Match", "Measure", "RateLaw", "Standing", "compare", "inseparable", "rank", "rate_law"]

"""Models whose weights are written by hand from a theorem: here the answer is known."""

from algoscope.constructions.newton import newton

__all__ = ["newton"]

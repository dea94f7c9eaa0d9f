"""Models whose weights are written by hand from a theorem: here the answer is known."""

from algoscope.constructions.anatomy import Anatomy, anatomy
from algoscope.constructions.causal import causal_newton
from algoscope.constructions.looped import gradient_descent, looped_newton, representation_regression
from algoscope.constructions.moments import Term, moments, recursion
from algoscope.constructions.newton import newton

__all__ = [
    "Anatomy",
    "Term",
    "anatomy",
    "causal_newton",
    "gradient_descent",
    "looped_newton",
    "moments",
    "newton",
    "recursion",
    "representation_regression",
]

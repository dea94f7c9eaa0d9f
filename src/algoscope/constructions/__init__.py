"""Models whose weights are written by hand from a theorem: here the answer is known."""

from algoscope.constructions.anatomy import Anatomy, anatomy
from algoscope.constructions.causal import causal_newton
from algoscope.constructions.connectivity import beyond_reach, connectivity
from algoscope.constructions.decoder import decoder_gradient_descent, quasi_orthogonal
from algoscope.constructions.looped import gradient_descent, looped_newton, representation_regression
from algoscope.constructions.moments import Term, moments, recursion
from algoscope.constructions.newton import newton
from algoscope.constructions.search import binary_search
from algoscope.constructions.series import autoregression
from algoscope.constructions.sums import sum_of_tokens
from algoscope.constructions.thought import chain_of_thought
from algoscope.constructions.written import Written

__all__ = [
    "Anatomy",
    "Term",
    "Written",
    "anatomy",
    "autoregression",
    "beyond_reach",
    "binary_search",
    "causal_newton",
    "chain_of_thought",
    "connectivity",
    "decoder_gradient_descent",
    "gradient_descent",
    "looped_newton",
    "moments",
    "newton",
    "quasi_orthogonal",
    "recursion",
    "representation_regression",
    "sum_of_tokens",
]

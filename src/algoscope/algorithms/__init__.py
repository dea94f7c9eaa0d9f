"""What people wrote: each algorithm returns its whole trace, every step at every prefix, batched and in float64."""

from algoscope.algorithms.algorithm import Algorithm
from algoscope.algorithms.components import AllConnected, Degree, Hops, LabelPropagation, Squaring, Tripling
from algoscope.algorithms.conjugate import ConjugateGradients
from algoscope.algorithms.exact import OrdinaryLeastSquares, Ridge, Zero
from algoscope.algorithms.gradient import GradientDescent, GradientDescentPlusPlus, PreconditionedGradientDescent
from algoscope.algorithms.momentum import Chebyshev, HeavyBall
from algoscope.algorithms.newton import Newton
from algoscope.algorithms.online import OnlineGradientDescent

__all__ = [
    "Algorithm",
    "AllConnected",
    "Chebyshev",
    "ConjugateGradients",
    "Degree",
    "GradientDescent",
    "GradientDescentPlusPlus",
    "HeavyBall",
    "Hops",
    "LabelPropagation",
    "Newton",
    "OnlineGradientDescent",
    "OrdinaryLeastSquares",
    "PreconditionedGradientDescent",
    "Ridge",
    "Squaring",
    "Tripling",
    "Zero",
]

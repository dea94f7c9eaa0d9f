"""What people wrote: each algorithm returns its whole trace, every step at every prefix, batched and in float64."""

from algoscope.algorithms.cells import IterativeQuantization, KMeansCells, RangeCells, SimHash
from algoscope.algorithms.components import AllConnected, Components, Degree, Hops, LabelPropagation, Squaring, Tripling
from algoscope.algorithms.conjugate import ConjugateGradients
from algoscope.algorithms.exact import Mean, OrdinaryLeastSquares, Ridge, Zero
from algoscope.algorithms.features import OnFeatures
from algoscope.algorithms.gradient import GradientDescent, GradientDescentPlusPlus, PreconditionedGradientDescent
from algoscope.algorithms.momentum import Chebyshev, HeavyBall
from algoscope.algorithms.newton import Newton
from algoscope.algorithms.online import OnlineGradientDescent
from algoscope.algorithms.search import BinarySearch, Buckets, InterpolationSearch, KDTree, Treap
from algoscope.algorithms.sketches import Counting, CountMean, CountMin, CountSketch
from algoscope.contracts import Algorithm

__all__ = [
    "Algorithm",
    "AllConnected",
    "BinarySearch",
    "Buckets",
    "Chebyshev",
    "Components",
    "ConjugateGradients",
    "CountMean",
    "CountMin",
    "CountSketch",
    "Counting",
    "Degree",
    "GradientDescent",
    "GradientDescentPlusPlus",
    "HeavyBall",
    "Hops",
    "InterpolationSearch",
    "IterativeQuantization",
    "KDTree",
    "KMeansCells",
    "LabelPropagation",
    "Mean",
    "Newton",
    "OnFeatures",
    "OnlineGradientDescent",
    "OrdinaryLeastSquares",
    "PreconditionedGradientDescent",
    "RangeCells",
    "Ridge",
    "SimHash",
    "Squaring",
    "Treap",
    "Tripling",
    "Zero",
]

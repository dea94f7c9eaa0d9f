"""What people wrote: each algorithm returns its whole trace, every step at every prefix, batched and in float64."""

from algoscope.algorithms.adaptive import BarzilaiBorwein, SteepestDescent
from algoscope.algorithms.cells import IterativeQuantization, KMeansCells, RangeCells, SimHash
from algoscope.algorithms.components import AllConnected, Components, Degree, Hops, LabelPropagation, Squaring, Tripling
from algoscope.algorithms.conjugate import ConjugateGradients
from algoscope.algorithms.exact import Mean, OrdinaryLeastSquares, Ridge, RidgePath, Zero
from algoscope.algorithms.features import OnFeatures
from algoscope.algorithms.gradient import GradientDescent, GradientDescentPlusPlus, PreconditionedGradientDescent
from algoscope.algorithms.kaczmarz import Kaczmarz
from algoscope.algorithms.krylov import Krylov
from algoscope.algorithms.local import KernelSmoother, NearestNeighbors
from algoscope.algorithms.momentum import Chebyshev, HeavyBall, Nesterov
from algoscope.algorithms.newton import Halley, Newton
from algoscope.algorithms.online import OnlineGradientDescent
from algoscope.algorithms.search import BinarySearch, Buckets, InterpolationSearch, KDTree, Treap
from algoscope.algorithms.sketches import Counting, CountMean, CountMin, CountSketch
from algoscope.algorithms.sparse import Lasso
from algoscope.contracts import Algorithm

__all__ = [
    "Algorithm",
    "AllConnected",
    "BarzilaiBorwein",
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
    "Halley",
    "HeavyBall",
    "Hops",
    "InterpolationSearch",
    "IterativeQuantization",
    "KDTree",
    "KMeansCells",
    "Kaczmarz",
    "KernelSmoother",
    "Krylov",
    "LabelPropagation",
    "Lasso",
    "Mean",
    "NearestNeighbors",
    "Nesterov",
    "Newton",
    "OnFeatures",
    "OnlineGradientDescent",
    "OrdinaryLeastSquares",
    "PreconditionedGradientDescent",
    "RangeCells",
    "Ridge",
    "RidgePath",
    "SimHash",
    "Squaring",
    "SteepestDescent",
    "Treap",
    "Tripling",
    "Zero",
]

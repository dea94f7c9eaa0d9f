"""Looped encoders that regress on pairs of x and y (Gao et al., Lemmas A.2 and A.4, Theorems 3.1 and 4.1).

In the papers x and y stand in coordinates of their own; here, as in all of this project, they share them, so one layer
more comes first that brings each example together. And since predictions are read at x itself, no last layer has to
carry them elsewhere.
"""

from collections.abc import Sequence

from algoscope import arguments
from algoscope.constructions.loop import LARGE, SMALL, LoopConstruction, Matrix, checked_matrices
from algoscope.models.algoformer import AlgoFormerNetwork
from algoscope.tasks import LinearRegression

SMALL_AT_FIRST = 2e-5  # for scores that are small at first, x·Mx or x·w: with a smaller c more is lost to rounding


class Pairs(LoopConstruction):
    """Tokens of x hold their example, and they answer."""

    silent = "test"

    def __init__(
        self,
        task: LinearRegression,
        pre: int,
        post: int,
        loops: int,
        small: float,
        large: float,
        **places: tuple[int, str],
    ) -> None:
        super().__init__(
            task, pre, post, loops, small, large, 2,
            x=(task.dim, "x, at its token"),
            y=(task.targets, "y of an example, at the token of its x"),
            **places,
            test=(1, "1 at the test point"),
        )  # fmt: skip

    def mark_points(self) -> None:
        self.positions[2::2, self.stream["point"]] = 0.0
        self.positions[-1, self.stream["test"]] = 1.0

    def gather(self) -> None:
        """x and y of each example to the token of x."""
        self.mark_points()
        self.copy(0, "x", {"point": 1.0})
        self.copy(1, "y", {"point": 1.0, "test": -1.0}, offset=1.0)


def gradient_descent(
    dim: int,
    examples: int,
    loops: int,
    rate: float,
    ridge: float = 0.0,
    targets: int = 1,
    small: float = SMALL,
    large: float = LARGE,
) -> AlgoFormerNetwork:
    """A step of gradient descent a loop, from A = 0 (Lemma A.2, and Theorem 3.1 without a representation).

    One layer with two heads is looped. Every token j of an x carries the residual r_j = A x_j − y_j (at the test point
    there is no y, so it is the prediction), and since A ← A − η(Σ_i r_i x_iᵀ + ρA),

        r_j ← r_j − η Σ_i r_i (x_i · x_j) − ηρ (r_j + y_j).

    `rate` η multiplies the sum over the examples, not the mean; `ridge` is ρ. `small` and `large` are c and C: c is
    chosen for inputs of variance 1, and should be as many times smaller as scores x·x' are larger.
    """
    task = LinearRegression(dim=dim, examples=examples, targets=targets)
    arguments.number("rate", rate, strict=True)
    arguments.number("ridge", ridge)
    written = Pairs(task, 1, 0, loops, small, large, r=(targets, "A x − y, at the token of x"))
    written.mlp(0, {("r", "y"): -1.0})
    shrunk = 1 - rate * ridge
    if shrunk <= 0:
        raise ValueError(f"rate times ridge must be below 1, got {rate * ridge}")
    written.sum_over_examples(1, "x", "r", "r", -rate / shrunk, size=float(dim))
    written.mlp(1, {("r", "r"): shrunk - 1, ("r", "y"): shrunk - 1})  # also of what attention has just added
    written.read("r")
    return written.network


def representation_regression(
    matrices: Sequence[Matrix],
    examples: int,
    loops: int,
    rate: float,
    slope: float = 0.01,
    targets: int = 1,
    small: float = SMALL,
    large: float = LARGE,
) -> AlgoFormerNetwork:
    """Gradient descent on y = A Φ(x), a step a loop, where Φ is an MLP that is known (Theorem 3.1).

    `matrices` are those of Φ, first to last, each followed by a leaky ReLU of the given `slope`. Of the layers before
    the loop, the first gathers and each other is a layer of Φ, as the theorem states: L + 1 for L layers.
    """
    weights = checked_matrices(matrices)
    widths = [weights[0].shape[1], *(len(w) for w in weights)]
    arguments.number("rate", rate, strict=True)
    arguments.number("slope", slope)
    task = LinearRegression(dim=widths[0], examples=examples, targets=targets)
    widest = max(widths[1:])
    written = Pairs(
        task, 1 + len(weights), 0, loops, small, large,
        features=(widest, "Φ(x) as far as it is made, at the token of x"), r=(targets, "A Φ(x) − y, at the token of x"),
    )  # fmt: skip
    written.mlp(0, {("r", "y"): -1.0})
    for k, matrix in enumerate(weights):
        written.leaky_layer(1 + k, {"features" if k else "x": matrix}, "features", slope)
    last = 1 + len(weights)
    written.sum_over_examples(last, "features", "r", "r", -rate, size=float(widths[-1]), answerer="features")
    written.read("r")
    return written.network


def looped_newton(
    dim: int, examples: int, loops: int, alpha: float, small: float = SMALL_AT_FIRST, large: float = LARGE
) -> AlgoFormerNetwork:
    """A step of Iterative Newton a loop, from M = αS (Lemma A.4 and Theorem 4.1).

    One layer with two heads is looped; two layers before it gather and start, one after it predicts. Every token j of
    an x carries u_j = M x_j. Attention takes half of Σ_i u_i (x_i·u_j) away, and the MLP doubles what is left.
    """
    arguments.number("alpha", alpha, strict=True)
    task = LinearRegression(dim=dim, examples=examples)
    written = Pairs(
        task, 2, 1, loops, small, large,
        u=(dim, "M x, at the token of x"), prediction=(1, "the prediction, which is read out"),
    )  # fmt: skip
    written.sum_over_examples(1, "x", "x", "u", alpha, size=float(dim))
    written.sum_over_examples(2, "u", "u", "u", -0.5)
    written.mlp(2, {("u", "u"): 1.0})
    written.sum_over_examples(3, "u", "y", "prediction")
    written.read("prediction")
    return written.network

"""Theorem 1 of Fu et al.: a transformer that runs Iterative Newton, written by hand and exact.

Every token j of an x carries u_j = M_k x_j. Since M_{k+1} = 2M_k − M_k S M_k,

    u_j ← 2u_j − Σ_i u_i (x_i·u_j),

which is a sum over the examples, and so is the prediction Σ_i y_i (x_i·u_j).
"""

from algoscope import arguments
from algoscope.constructions.regression import Regression
from algoscope.models.transformer import TransformerNetwork


def newton(dim: int, examples: int, steps: int, alpha: float) -> TransformerNetwork:
    """k steps of Iterative Newton from M_0 = αS in k + 3 layers, predicting y of the last x, in float64.

    Layer 1 brings each example together, layer 2 starts, layers 3 to k + 2 make the steps, and the last predicts. Each
    of these also predicts from what it finds: the place `prediction` holds step m after layer m + 3.
    """
    check_sizes(dim, examples, steps)
    arguments.number("alpha", alpha, strict=True)
    written = Regression(
        dim, examples, steps + 3, u=(dim, "M x, at the token of x"), change=(dim, "−M S M x, until it is added")
    )
    written.sum_over_examples(1, (0, 1), "x", "key", "u", alpha)  # u = αSx
    for layer in range(2, steps + 3):
        predicted = written.predict(layer, "u")
        written.sum_over_examples(layer, (0, 1), "u", "u", "change", -1.0)
        written.mlp(layer, {("u", "u"): 1.0, ("u", "change"): 1.0, ("change", "change"): -1.0, **predicted})
    return written.network


def check_sizes(dim: int, examples: int, steps: int) -> None:
    arguments.integer("dim", dim, 1)
    arguments.integer("examples", examples, 1)
    arguments.integer("steps", steps, 0)

"""Sums of moments of S (Fu et al., B.3): every method that is a polynomial in S, written by hand and exact.

Every token j of an x carries q_j = p(S) x_j, and one layer makes one power more of it:

    q_j ← keep·q_j + apply·S q_j + before·q_j' + start·x_j,

where q_j' is what q_j was a layer ago and S q_j = Σ_i x_i (x_i·q_j) is a sum over the examples. Gradient descent, heavy
ball and Chebyshev are such recursions, and Horner's rule makes any sum of moments one. (In equations 36 and 37 of the
paper M_1 should be 2αS − α²S³, and M_2 = 4αS − 6α²S³ + 4α³S⁵ − α⁴S⁷.)
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from algoscope.constructions.newton import check_sizes
from algoscope.constructions.regression import Regression
from algoscope.models.transformer import TransformerNetwork


class Term(NamedTuple):
    """A step of a recursion: q ← keep·q + apply·S q + before·q' + start·x."""

    keep: float = 0.0
    apply: float = 0.0
    before: float = 0.0
    start: float = 0.0


def recursion(dim: int, examples: int, first: float, terms: Sequence[Term | tuple[float, ...]]) -> TransformerNetwork:
    """The prediction x·p(S)Xᵀy of the last x, with q_0 = first·x and a layer for each term: k + 2 layers for k terms.

    The place `prediction` holds that of q_m after layer m + 2.
    """
    (first,) = _finite([first])
    try:
        steps = [Term(*_finite(term)) for term in terms]
    except TypeError:
        raise ValueError(f"terms must be a list of Term(keep, apply, before, start), got {terms!r}") from None
    check_sizes(dim, examples, len(steps))
    written = Regression(
        dim, examples, len(steps) + 2, q=(dim, "p(S)x, at the token of x"),
        before=(dim, "what q was a layer ago"), change=(dim, "Sq, until it is added"),
    )  # fmt: skip
    written.mlp(0, {("q", "x"): first})
    for layer, term in enumerate((*steps, Term(keep=1.0)), 1):
        predicted = written.predict(layer, "q")
        written.sum_over_examples(layer, (0, 1), "q", "key", "change", term.apply)
        moved = {("q", "q"): term.keep - 1, ("q", "change"): 1.0, ("q", "before"): term.before, ("q", "x"): term.start}
        shifted = {("before", "before"): -1.0, ("before", "q"): 1.0, ("change", "change"): -1.0}
        written.mlp(layer, {**moved, **shifted, **predicted})
    return written.network


def moments(dim: int, examples: int, coefficients: Sequence[float]) -> TransformerNetwork:
    """The prediction of w = Σ_s β_s S^s Xᵀy for the last x, with the coefficients β_0, β_1, …, by Horner's rule."""
    numbers = _finite(coefficients)
    if not numbers:
        raise ValueError("coefficients must be at least one number")
    *lower, highest = numbers
    return recursion(dim, examples, highest, [Term(apply=1.0, start=beta) for beta in reversed(lower)])


def _finite(given: Iterable[float]) -> list[float]:
    """Numbers of a list, an array or a tensor."""
    try:
        numbers = [float(number) for number in given]
    except (TypeError, ValueError):
        raise ValueError(f"coefficients must be a list of numbers, got {given!r}") from None
    if not all(math.isfinite(number) for number in numbers):
        raise ValueError(f"coefficients must be finite numbers, got {numbers}")
    return numbers

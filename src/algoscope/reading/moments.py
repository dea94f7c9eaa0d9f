"""Linear maps by least squares from moments alone, so that memory does not grow with the number of prompts."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

CONSTANT = 1e-15  # variance of all features, relative to the squares of their means: less is rounding
RIDGES = tuple(10.0**k for k in range(-12, 1))  # tried, in units of the mean variance of a feature


@dataclass(frozen=True, eq=False)
class LinearMap:
    """features @ weights + shift."""

    weights: Float[Tensor, "width targets"]
    shift: Float[Tensor, "targets"]

    def __call__(self, features: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch targets"]:
        return features @ self.weights + self.shift


class Moments:
    """Means of features and targets over weighted rows, and sums of their products about the means, in float64.

    Sums of raw products would lose what is small next to the means: the variance of features that hardly vary.
    """

    def __init__(self) -> None:
        self.rows = 0.0
        self.features = self.targets = self.squares = self.products = self.power = torch.zeros(1, dtype=torch.float64)

    def add(
        self,
        features: Float[Tensor, "rows width"],
        targets: Float[Tensor, "rows targets"],
        root: Float[Tensor, "rows 1"] | None = None,
    ) -> None:
        """`root` is the square root of the weight of each row, by default 1."""
        root = torch.ones(len(features), 1, dtype=torch.float64) if root is None else root
        part, weights = Moments(), root[:, 0].square()
        part.rows = float(weights.sum())
        part.features, part.targets = (each.mT @ weights / part.rows for each in (features, targets))
        features, targets = root * (features - part.features), root * (targets - part.targets)
        part.squares, part.products = features.mT @ features, features.mT @ targets
        part.power = targets.square().sum(0)
        vars(self).update(vars(self + part))

    def __add__(self, other: "Moments") -> "Moments":
        """As if the rows of both had been added to one (Chan, Golub and LeVeque 1979)."""
        total = Moments()
        total.rows = self.rows + other.rows
        features, targets, share = other.features - self.features, other.targets - self.targets, other.rows / total.rows
        total.features, total.targets = self.features + share * features, self.targets + share * targets
        weight = self.rows * share
        total.squares = self.squares + other.squares + weight * features[:, None] * features
        total.products = self.products + other.products + weight * features[:, None] * targets
        total.power = self.power + other.power + weight * targets.square()
        return total

    def error(self, linear: LinearMap) -> Float[Tensor, "targets"]:
        """Mean squared error of a map on these rows."""
        w, off = linear.weights, linear(self.features) - self.targets
        return ((w * (self.squares @ w - 2 * self.products)).sum(0) + self.power) / self.rows + off.square()


def solve(train: Moments, validation: Moments) -> LinearMap:
    """Ridge regression on all rows, with a penalty for each target that is best from the first part to the second.

    The penalty is on a common scale for all features, so a rotation of the features changes nothing, and not on the
    shift.
    """
    trials = _maps(train, torch.tensor(RIDGES, dtype=torch.float64)[:, None].expand(-1, len(train.targets)))
    errors = torch.stack([validation.error(trial) for trial in trials])
    chosen = torch.tensor(RIDGES, dtype=torch.float64)[errors.argmin(0)]
    return _maps(train + validation, chosen[None])[0]


def _maps(moments: Moments, ridges: Float[Tensor, "trials targets"]) -> list[LinearMap]:
    values, basis = torch.linalg.eigh(moments.squares / moments.rows)
    values, projected = values.clamp(min=0), basis.mT @ (moments.products / moments.rows)
    if values.mean() <= CONSTANT * moments.features.square().mean():
        projected = torch.zeros_like(projected)  # features that never vary are read as nothing
    unit = values.mean().clamp(min=1e-300)
    maps = []
    for ridge in ridges:
        weights = basis @ (projected / (values[:, None] + ridge * unit))
        maps.append(LinearMap(weights, moments.targets - moments.features @ weights))
    return maps

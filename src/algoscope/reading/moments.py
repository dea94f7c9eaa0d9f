"""Linear maps by least squares from sums alone, so that memory does not grow with the number of prompts."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

CONSTANT = 1e-15  # variance of all features, relative to their squares: less is rounding
RIDGES = tuple(10.0**k for k in range(-12, 1))  # tried, in units of the mean variance of a feature


@dataclass(frozen=True, eq=False)
class LinearMap:
    """features @ weights + shift."""

    weights: Float[Tensor, "width targets"]
    shift: Float[Tensor, "targets"]

    def __call__(self, features: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch targets"]:
        return features @ self.weights + self.shift

    def of(self, targets: int) -> "LinearMap":
        """Of the first targets alone."""
        return LinearMap(self.weights[:, :targets], self.shift[:targets])


class Moments:
    """Sums of features, targets and their products over rows, in float64."""

    def __init__(self) -> None:
        self.rows = 0
        self.features = self.targets = self.squares = self.products = self.power = torch.zeros(1, dtype=torch.float64)

    def add(self, features: Float[Tensor, "rows width"], targets: Float[Tensor, "rows targets"]) -> None:
        self.rows += len(features)
        self.features = self.features + features.sum(0)
        self.targets = self.targets + targets.sum(0)
        self.squares = self.squares + features.mT @ features
        self.products = self.products + features.mT @ targets
        self.power = self.power + targets.square().sum(0)

    def __add__(self, other: "Moments") -> "Moments":
        total = Moments()
        total.rows = self.rows + other.rows
        for name in ("features", "targets", "squares", "products", "power"):
            setattr(total, name, getattr(self, name) + getattr(other, name))
        return total

    def scaled(self, unit: Float[Tensor, "width"]) -> "Moments":
        """As if each feature had been multiplied by a number."""
        found = self + Moments()
        found.features, found.products = unit * self.features, unit[:, None] * self.products
        found.squares = unit[:, None] * self.squares * unit
        return found

    def power_of(self, linear: LinearMap) -> Float[Tensor, "targets"]:
        """Sum of the squares of what a map predicts on these rows."""
        w, b = linear.weights, linear.shift
        return (w * (self.squares @ w)).sum(0) + 2 * b * (self.features @ w) + self.rows * b.square()

    def error(self, linear: LinearMap) -> Float[Tensor, "targets"]:
        """Mean squared error of a map on these rows."""
        hits = (linear.weights * self.products).sum(0) + linear.shift * self.targets
        return (self.power_of(linear) - 2 * hits + self.power) / self.rows


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
    mean_f, mean_t = moments.features / moments.rows, moments.targets / moments.rows
    covariance = moments.squares / moments.rows - mean_f[:, None] * mean_f
    values, basis = torch.linalg.eigh(covariance)
    values = values.clamp(min=0)
    projected = basis.mT @ (moments.products / moments.rows - mean_f[:, None] * mean_t)
    if values.mean() <= CONSTANT * moments.squares.diagonal().mean() / moments.rows:
        projected = torch.zeros_like(projected)  # features that never vary are read as nothing
    unit = values.mean().clamp(min=1e-300)
    maps = []
    for ridge in ridges:
        weights = basis @ (projected / (values[:, None] + ridge * unit))
        maps.append(LinearMap(weights, mean_t - mean_f @ weights))
    return maps

"""Is the closest step all that a stage computes? A mixture of all known steps may explain more of it.

A mixture is linear in its features: the steps, and whatever else a task lets mixtures use. It is fitted to what the
closest step misses, block by block of the prompts, and asked two questions:

- **Gain:** which share of what the step misses does it explain, on prompts that it was not fitted to? A true step
  leaves noise alone, so a fitted mixture makes things worse there.
- **Systematic misfit:** how large is what it adds, free of the noise of fitting? Mixtures fitted to different prompts
  have independent noise, so the mean of their products is the square of what they have in common.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import NormalDist

import torch
from jaxtyping import Float, Int
from torch import Tensor

from algoscope.matching.bootstrap import ratio_interval, resampling
from algoscope.matching.calibration import BLOCKS
from algoscope.matching.statistics import Estimate

NEGLIGIBLE = 0.05  # of the squared distance to the nearest other step: misfit that may be there, and it is that step
SPOILED = -0.25  # gain of a mixture that was fitted to too few prompts to say anything
RIDGE = 1e-6  # of the mean square of a feature, at least: steps may be equal to each other
ROUNDING = 1e-12  # share of the square of a stage that a step may miss, and it is the same: six digits, as in float32
Rows = Float[Tensor, "batch rows"]
Features = Callable[[], Iterator[tuple[slice, Float[Tensor, "part rows features"]]]]


NONE = Estimate(math.nan, math.nan, math.nan, 0)


@dataclass(frozen=True)
class Misfit:
    """What the closest step misses of a stage.

    `gain` is the share of it that a mixture of all known steps explains on other prompts. `systematic` is the square of
    what such a mixture adds, free of the noise of fitting, in units of the squared distance to the nearest other step,
    or to nothing; `of_method` is the same in units of that to the nearest step of another method. `spread` is how much
    prompts differ in the step that they follow, in squares of the distance from the step before to the step after. Of
    labels, those that are read wrongly depend on what is right, so that a mixture explains a little even where the step
    is all that there is: `tolerated` is how much.
    """

    gain: Estimate = NONE
    systematic: Estimate = NONE
    spread: Estimate = NONE
    of_method: Estimate = NONE
    tolerated: float = 0.0

    @property
    def noise(self) -> bool:
        """Nothing that is known adds to the step, and the evidence suffices to say so: what is missed is noise."""
        fitted = self.gain.value >= SPOILED and not self.incomplete
        return fitted and self.systematic.high < NEGLIGIBLE and not self.spread.high >= NEGLIGIBLE

    @property
    def within_method(self) -> bool:
        """What is known to add to the step is small against the distance to the nearest step of another method."""
        return self.gain.value >= SPOILED and self.of_method.high < NEGLIGIBLE

    @property
    def incomplete(self) -> bool:
        """Something that is known adds to the step."""
        systematic = self.systematic.low > NEGLIGIBLE and not self.tolerated
        return systematic or (self.gain.low > 0 and self.gain.high > self.tolerated)

    @property
    def varies(self) -> bool:
        """Prompts do not all follow the same step."""
        return self.spread.low > NEGLIGIBLE


class Mixture:
    """Of some `features`, which are handed out again and again, a few prompts at a time, in order."""

    def __init__(self, features: Features, block: Int[Tensor, "batch"]) -> None:
        self.features, self.block = features, block
        squares: Tensor | None = None
        for part, own in features():
            squares = own.new_zeros(BLOCKS, own.shape[-1], own.shape[-1]) if squares is None else squares
            for k, rows in self._by_block(part, own):
                squares[k] += rows.flatten(0, 1).mT @ rows.flatten(0, 1)
        assert squares is not None
        self.squares, whole = squares, squares.sum(0)
        self.unit = whole.diagonal().clamp(min=1e-300).rsqrt()  # brought to one size: their sizes may differ by orders

    def adds(
        self,
        misfit: Rows,
        power: float,
        apart: float,
        confidence: float,
        resamples: int,
        seed: int,
        parameters: int = 0,
    ) -> tuple[Estimate, Estimate]:
        """Of what the closest step misses, the share that a mixture explains; and the systematic misfit.

        The latter is in units of `apart`, the squared distance to the nearest other step; `power` is the square of the
        stage. The ridge leaves out directions in which no mixture of weights below one would matter. `parameters` is
        how many numbers were fitted to bring the step to the stage.
        """
        alone, n, ridge = misfit.square().sum(1), len(misfit), max(NEGLIGIBLE * apart / power, RIDGE)
        if float(alone.sum()) <= ROUNDING * power:
            return Estimate(0.0, 0.0, 0.0, n), Estimate(0.0, 0.0, 0.0, n)
        each = torch.cat([torch.einsum("brf,br->bf", own, misfit[part]) for part, own in self.features()])
        products = torch.stack([each[self.block == k].sum(0) for k in range(BLOCKS)])
        others = torch.stack([self._solve(self.squares.sum(0) - s, products.sum(0) - p, ridge)
                              for s, p in zip(self.squares, products, strict=True)])  # fmt: skip
        mixed = [
            (misfit[part] - (own @ others[self.block[part], :, None])[..., 0]).square().sum(1)
            for part, own in self.features()
        ]
        draws = resampling(n, resamples, seed)
        found = ratio_interval((alone - torch.cat(mixed))[:, None], alone[:, None], draws, confidence)
        share, low, high = (float(each) for each in found)
        fitted = parameters * float(misfit.square().mean())
        return Estimate(share, low, high, n), self._systematic(each, apart, ridge, fitted, confidence)

    def _systematic(
        self, products: Float[Tensor, "batch features"], apart: float, ridge: float, fitted: float, confidence: float
    ) -> Estimate:
        """The square of what mixtures fitted to different prompts have in common: a U-statistic over pairs of prompts.

        Its variance has a part that is linear in the prompts and one that is not, which is all there is if nothing is
        systematic (Hoeffding 1948). `fitted` is what the calibration took away, because it was fitted to these prompts.
        """
        if not apart > 0:  # another step is the same, or the closest is nothing
            return NONE
        whole, n = self.squares.sum(0), len(products)
        solved = n * self._solve(whole, products.mT, ridge)
        common = (solved.mT @ (whole @ solved)).fill_diagonal_(0.0) / apart
        pairs = n * (n - 1)
        mean, linear = float(common.sum()) / pairs, float((common.sum(1) / (n - 1)).var())
        second = max(float(common.square().sum()) / pairs - mean**2, 0.0)
        error = math.sqrt(max(4 * linear / n - 2 * second / n**2, 2 * second / n**2))
        mean += fitted / apart
        half = NormalDist().inv_cdf((1 + confidence) / 2) * error
        return Estimate(mean, mean - half, mean + half, n)

    def _solve(self, squares: Tensor, products: Tensor, ridge: float) -> Tensor:
        regular = self.unit[:, None] * squares * self.unit
        regular = regular + ridge * regular.diagonal().mean() * torch.eye(len(regular), dtype=torch.float64)
        unit = self.unit if products.ndim == 1 else self.unit[:, None]
        return unit * torch.linalg.solve(regular, unit * products)

    def _by_block(self, part: slice, own: Tensor) -> Iterator[tuple[int, Tensor]]:
        inside = self.block[part]
        for k in inside.unique().tolist():
            yield k, own[inside == k]


def step_spread(misfit: Rows, change: Rows, confidence: float, resamples: int, seed: int) -> Estimate:
    """How much prompts differ in the step that they follow, in squares of the distance between its two neighbors.

    `change` is the next step minus the one before. The slope of what the closest step misses on it, prompt by prompt,
    is estimated twice, from every other row each: what both have in common is no noise.
    """
    if misfit.shape[1] < 2:
        return NONE
    slopes = []
    for part in (slice(0, None, 2), slice(1, None, 2)):
        r, c = misfit[:, part], change[:, part]
        slopes.append(((r * c).sum(1), c.square().sum(1)))
    (up_a, down_a), (up_b, down_b) = slopes
    weight = down_a * down_b  # prompts on which neighbors hardly differ say little
    above, draws = up_a * up_b, resampling(len(misfit), resamples, seed)
    value, low, high = (float(x) for x in ratio_interval(above[:, None], weight[:, None], draws, confidence))
    return Estimate(value, low, high, len(misfit))

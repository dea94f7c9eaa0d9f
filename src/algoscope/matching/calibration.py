"""Brings each step of an algorithm to the size at which a stage is read.

A probe that is fitted to y stretches what it reads, noise in a stage shrinks it again, and a stage may hold its numbers
in a unit that depends on the position. So each step is scaled to the probe by a factor for each position. Where the
target has several coordinates, which a probe also mixes and shifts, it is a linear map with a shift, the same at all
positions. An exact planted step then comes back as that step.
"""

import functools
from dataclasses import dataclass, fields

import torch
from jaxtyping import Float, Int
from torch import Tensor

BLOCKS = 5  # of prompts: what is fitted for a prompt is fitted to the other blocks
VARIES = 1e-12  # of a column's largest variance: directions with less are taken to be constant

Read = Float[Tensor, "stages batch points targets"]
Columns = Float[Tensor, "batch points columns targets"]


def blocks(batch: int) -> Int[Tensor, "batch"]:
    """The block that each prompt is in."""
    return torch.arange(batch) * BLOCKS // batch


@dataclass(frozen=True)
class Sums:
    """Of the steps, of what is read, and of their products, over some prompts. Of one target they are by position."""

    rows: int | float
    columns: Tensor  # [columns, targets], or nothing
    read: Tensor  # [stages, targets], or nothing
    squares: Tensor  # [columns, targets, targets], or [points, columns]
    products: Tensor  # [stages, columns, targets, targets], or [stages, points, columns]

    def plus(self, other: "Sums", sign: int = 1) -> "Sums":
        """With another's added, or taken away."""
        return Sums(*(getattr(self, each.name) + sign * getattr(other, each.name) for each in fields(self)))


def _sums(read: Read, columns: Columns, weights: Tensor) -> Sums:
    if read.shape[-1] == 1:
        c, p, none = columns[..., 0], read[..., 0], torch.zeros(0)
        return Sums(0, none, none, c.square().sum(0), torch.einsum("sbt,btc->stc", p, c))
    at = weights > 0
    c, p, w = columns[:, at].flatten(0, 1).movedim(1, 0), read[:, :, at].flatten(1, 2), weights[at].repeat(len(columns))
    c_weighted = w[:, None] * c
    products = torch.einsum("crm,srn->scmn", c_weighted, p)
    return Sums(float(w.sum()), c_weighted.sum(1), (w[:, None] * p).sum(1), c_weighted.mT @ c, products)


class Calibration:
    """Fitted to the prompts outside of each block, and for prompts of no block to all. Positions have `weights`."""

    def __init__(
        self, read: Read, columns: Columns, block: Int[Tensor, "batch"], weights: Tensor | None = None
    ) -> None:
        weights = torch.ones(read.shape[2], dtype=torch.float64) if weights is None else weights
        parts = [_sums(read[:, block == k], columns[block == k], weights) for k in range(BLOCKS)]
        whole = functools.reduce(Sums.plus, parts)
        self.fits = [_factors(each) if read.shape[-1] == 1 else _maps(each)
                     for each in (*(whole.plus(part, -1) for part in parts), whole)]  # fmt: skip

    def __call__(
        self, stage: int, columns: Columns, block: int = BLOCKS, part: slice | list[int] = slice(None)
    ) -> Columns:
        """The columns, or a `part` of all that it was fitted to, brought to a stage."""
        weights, shift, _ = self.fits[block]
        if weights.ndim == 3:
            return columns * weights[stage][:, part, None]
        return torch.einsum("btcm,cmn->btcn", columns, weights[stage, part]) + shift[stage, part]

    def nothing(self, stage: int, block: int = BLOCKS) -> Float[Tensor, "targets"]:
        """What a step that is zero throughout is brought to."""
        return self.fits[block][2][stage]


def _factors(sums: Sums) -> tuple[Tensor, Tensor, Tensor]:
    factors = torch.where(sums.squares > 0, sums.products / sums.squares.clamp(min=1e-300), 1.0)
    return factors, torch.zeros(0), torch.zeros(len(factors), 1, dtype=torch.float64)


def _maps(sums: Sums) -> tuple[Tensor, Tensor, Tensor]:
    """By least squares about the means; directions in which a step never varies are left out."""
    mean_c, mean_p = sums.columns / sums.rows, sums.read / sums.rows
    covariance = sums.squares / sums.rows - mean_c[:, :, None] * mean_c[:, None]
    products = sums.products / sums.rows - mean_c[None, :, :, None] * mean_p[:, None, None]
    weights = torch.linalg.pinv(covariance, rtol=VARIES, hermitian=True) @ products
    return weights, mean_p[:, None] - torch.einsum("cm,scmn->scn", mean_c, weights), mean_p

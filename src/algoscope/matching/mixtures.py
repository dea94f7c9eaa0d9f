"""Is the closest step all that a stage computes? A mixture of all known steps may explain more of it.

A mixture is linear, is fitted to the trace of a stage on some prompts and is judged on others. Where a label is one of
many, such as a point, it stands for a vector with a 1 in its own place: then only agreements are needed.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from algoscope.contracts import Measure
from algoscope.matching.bootstrap import ratio_interval, resampling
from algoscope.matching.measures import Agreement, centered_by_position
from algoscope.trace import Trace

RIDGE = 1e-6  # of the mean square of a step: steps may be equal to each other
ROUNDING = 1e-12  # share of the square of a stage that a step may miss, and it is the same: six digits, as in float32
Columns = Shaped[Tensor, "columns batch points *target"]


class Side(NamedTuple):
    """The trace of a model on some prompts, one of its stages by its place, and every step as a column."""

    trace: Trace
    stage: int
    columns: Columns

    @property
    def values(self) -> Shaped[Tensor, "batch points *target"]:
        return self.trace.values[self.stage]


def mixture_gain(
    measure: Measure,
    fitted: Side,
    judged: Side,
    closest: int,
    at: Bool[Tensor, "positions"],
    confidence: float,
    resamples: int,
    seed: int,
) -> tuple[float, float, float]:
    """Of what the closest column misses of a stage, the share that a mixture of all columns explains; with its CI.

    The mixture is `fitted` on some prompts and `judged` on others.
    """
    points = judged.trace.prompts.before  # labels are points, of which there are many, or else zeros and ones
    missed = _missed_labels if isinstance(measure, Agreement) and points else _missed_numbers
    alone, mixed, whole = missed(measure, fitted, judged, closest, at)
    if float(alone.sum()) <= ROUNDING * whole:
        return 0.0, 0.0, 0.0
    draws = resampling(len(alone), resamples, seed)
    share, low, high = ratio_interval((alone - mixed)[:, None], alone[:, None], draws, confidence)
    return float(share), float(low), float(high)


def _missed_numbers(
    measure: Measure,
    fitted: Side,
    judged: Side,
    closest: int,
    at: Bool[Tensor, "positions"],
) -> tuple[Float[Tensor, "batch"], Float[Tensor, "batch"], float]:
    """Squares that are missed by the closest column and by a linear mixture, each about the means of the positions."""
    known, theirs = (centered_by_position(side.columns, at) for side in (fitted, judged))
    ours, stage = (centered_by_position(side.values[None], at)[0] for side in (fitted, judged))
    squares, products = known.flatten(1) @ known.flatten(1).mT, known.flatten(1) @ ours.flatten()
    unit = squares.diagonal().clamp(min=1e-300).rsqrt()  # brought to one size: their sizes may differ by orders
    regular = unit[:, None] * squares * unit + RIDGE * torch.eye(len(unit), dtype=torch.float64)
    weights = unit * torch.linalg.solve(regular, unit * products)
    factor = products[closest] / squares[closest, closest].clamp(min=1e-300)
    alone, mixed = stage - factor * theirs[closest], stage - torch.tensordot(weights, theirs, 1)
    return alone.square().sum(-1), mixed.square().sum(-1), float(stage.square().sum())


def _missed_labels(
    measure: Measure,
    fitted: Side,
    judged: Side,
    closest: int,
    at: Bool[Tensor, "positions"],
) -> tuple[Float[Tensor, "batch"], Float[Tensor, "batch"], float]:
    """The same for labels that count, as vectors, each with a share of every label alike in the place of a mean."""
    assert isinstance(measure, Agreement)
    (squares, products, _), (own, with_stage, sizes) = (_agreements(measure, side, at) for side in (fitted, judged))
    squares, products, off = squares.sum(0), products.sum(0), []
    for kept in ([closest, len(products) - 1], list(range(len(products)))):
        regular = squares[kept][:, kept] + RIDGE * squares.diagonal().mean() * torch.eye(len(kept), dtype=torch.float64)
        weights = torch.linalg.solve(regular, products[kept])
        explained = 2 * with_stage[:, kept] @ weights - torch.einsum(
            "bij,i,j->b", own[:, kept][:, :, kept], weights, weights
        )
        off.append(sizes - explained)
    return off[0], off[1], float(sizes.sum())


def _agreements(
    measure: Agreement, side: Side, at: Bool[Tensor, "positions"]
) -> tuple[Float[Tensor, "batch k k"], Float[Tensor, "batch k"], Float[Tensor, "batch"]]:
    """By sequence: how often columns agree with each other and with the stage, and how many labels count.

    The last column is that of all labels alike: each agrees with it to 1/labels.
    """
    counted, labels = measure.mixed(side.trace, at)[side.stage].flatten(1), side.trace.prompts.before
    rows, stage = side.columns.flatten(2), side.values.flatten(1)
    sizes = counted.double().sum(1)
    own = torch.stack([((rows == one) & counted).double().sum(-1) for one in (*rows, stage)], -1).movedim(0, 1)
    alike = (sizes / labels)[:, None, None].expand(-1, len(rows), 1)
    below = torch.cat([alike.mT, alike[:, :1]], -1)
    squares = torch.cat([torch.cat([own[..., :-1], alike], -1), below], 1)
    return squares, torch.cat([own[..., -1], alike[:, 0]], 1), sizes

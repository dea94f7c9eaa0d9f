"""How alike two traces are. A measure gives one value a sequence; its mean over the sequences is the similarity."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from algoscope.contracts import Measure
from algoscope.trace import Trace

SEQUENCES = 128  # whose weights are compared at once: bounds the memory
HALF = 0.5  # of what a null leaves: a stage is a step where it explains more than it leaves open
VANISHED = 1e-9  # a residual this small, relative to the target, is rounding: it has a size but no direction


class ErrorSimilarity(Measure):
    """Cosine of the residual sequences (Fu et al., eq. 10). NaN where a residual vanishes or is not finite.

    At a single position a sequence has only one residual, so the cosine is taken over the batch there, and the value
    of a sequence is its influence on that cosine (the mean is the cosine itself).
    """

    name = "errors"
    floor = 0.002

    def per_sequence(self, a: Trace, b: Trace, at: Bool[Tensor, "positions"]) -> Float[Tensor, "batch a b"]:
        ra, rb = _residual_rows(a, at), _residual_rows(b, at)
        if int(at.sum()) > 1:
            return _unit(ra, _scale(b, at)) @ _unit(rb, _scale(b, at)).mT
        products = torch.einsum("ibm,jbm->bij", *_over_batch(a, b, at))
        cosine = products.sum(0)
        return cosine + len(ra) * (products - cosine * self._shares(a, b, at))

    def below(self, a: Trace, b: Trace, at: Bool[Tensor, "positions"]) -> Float[Tensor, "batch a b"] | None:
        """Of residuals of length 1, the cosine is their product over the mean of their squares, to second order."""
        return None if int(at.sum()) > 1 else self._shares(a, b, at)

    def _shares(self, a: Trace, b: Trace, at: Bool[Tensor, "positions"]) -> Float[Tensor, "batch a b"]:
        """Of the squares of both residuals; they sum to 1."""
        own, other = (units.square().sum(-1).mT for units in _over_batch(a, b, at))
        return (own[:, :, None] + other[:, None, :]) / 2

    def null(self, like: Trace) -> Trace:
        return _zeros(like)


class WeightSimilarity(Measure):
    """Cosine of the weight vectors, averaged over positions (Fu et al., similarity of induced weights).

    A zero vector has similarity zero with everything.
    """

    name = "weights"

    def per_sequence(self, a: Trace, b: Trace, at: Bool[Tensor, "positions"]) -> Float[Tensor, "batch a b"]:
        pairs = zip(_weight_rows(a, at), _weight_rows(b, at), strict=True)
        return torch.cat([ua.mT @ ub for ua, ub in pairs]) / int(at.sum())

    def null(self, like: Trace) -> Trace:
        return _zeros(like)


class PredictionDistance(Measure):
    """Mean squared distance of the predictions, divided by E[y²]. It sees the scale that a cosine hides."""

    name = "distance"
    larger_is_closer = False
    range = (0.0, float("inf"))
    resolution = 1e-24

    def per_sequence(self, a: Trace, b: Trace, at: Bool[Tensor, "positions"]) -> Float[Tensor, "batch a b"]:
        ra, rb = _residual_rows(a, at), _residual_rows(b, at)
        columns = [(ra[:, i, None] - rb).square().mean(-1) for i in range(len(a))]
        return torch.stack(columns, dim=1) / a.prompts.normalizer()

    def null(self, like: Trace) -> Trace:
        return _zeros(like)


class UnexplainedVariance(Measure):
    """Share of the variance of a stage that a step leaves unexplained: 1 − R², after one factor and a shift a position.

    For targets whose mean depends on the position, as counts along a stream: what every stream has in common at a
    position says nothing about the algorithm.
    """

    name = "unexplained variance"
    larger_is_closer = False
    range = (0.0, float("inf"))

    def per_sequence(self, a: Trace, b: Trace, at: Bool[Tensor, "positions"]) -> Float[Tensor, "batch a b"]:
        ca, cb = (centered_by_position(trace.values, at) for trace in (a, b))
        products = torch.einsum("ibm,jbm->bij", ca, cb)
        power_a, power_b = (part.square().sum(-1).mT for part in (ca, cb))  # [batch, stages]
        factors = products.sum(0) / power_b.sum(0).clamp(min=1e-300)
        whole, unit = power_a[:, :, None], power_a.mean(0).clamp(min=1e-300)[:, None]
        off = whole - 2 * factors * products + factors.square() * power_b[:, None]
        left = off.mean(0) / unit
        return left + (off - left * whole) / unit

    def below(self, a: Trace, b: Trace, at: Bool[Tensor, "positions"]) -> Float[Tensor, "batch a 1"]:
        return centered_by_position(a.values, at).square().sum(-1).mT[..., None]

    def bar(self, null: float) -> float:
        return HALF * null

    def null(self, like: Trace) -> Trace:
        return _zeros(like)


class Agreement(Measure):
    """Share of equal labels. The null of a step is what it says of another prompt: labels that are common, or always
    the same at some position, are no sign of an algorithm.
    """

    name = "agreement"
    range = (0.0, 1.0)

    def bar(self, null: float) -> float:
        return null + HALF * (1 - null)

    def counted(self, trace: Trace, at: Bool[Tensor, "positions"]) -> Bool[Tensor, "stages batch points *target"]:
        """Which answers of each stage count; by default all at these positions."""
        kept = at.reshape(-1, *[1] * (trace.values.ndim - 3))
        return kept.expand(trace.values.shape)

    def mixed(self, trace: Trace, at: Bool[Tensor, "positions"]) -> Bool[Tensor, "stages batch points *target"]:
        """Which answers count where steps are mixed: those that count, unless that depends on what the answer is."""
        return self.counted(trace, at)

    def per_sequence(self, a: Trace, b: Trace, at: Bool[Tensor, "positions"]) -> Float[Tensor, "batch a b"]:
        va, vb = (trace.values[:, :, at.to(trace.values.device)].flatten(2).movedim(0, 1).cpu() for trace in (a, b))
        return torch.stack([(va[:, i, None] == vb).double().mean(-1) for i in range(len(a))], dim=1)

    def null(self, like: Trace) -> Trace:
        others = like.values.roll(max(like.prompts.batch // 2, 1), 1)
        return replace(like, name="of another prompt", values=others, weights=None, converged=None)


def shared_labels(
    same: Float[Tensor, "batch *cells"], counted: Float[Tensor, "batch *#cells"]
) -> Float[Tensor, "batch *cells"]:
    """A value a sequence whose mean is the share of the counted labels that are the same, over all sequences.

    Sequences differ in how many of their labels count: each value is the sequence's influence on the share, so that
    the spread of the values is that of the share.
    """
    share = same.sum(0) / counted.sum(0).clamp(min=1)
    return share + (same - share * counted) / counted.mean(0).clamp(min=1 / len(counted))


def centered_by_position(
    values: Shaped[Tensor, "stages batch points *target"], at: Bool[Tensor, "positions"]
) -> Float[Tensor, "stages batch coordinates"]:
    """Without what all sequences have in common at a position."""
    kept = values.double().cpu()[:, :, at]
    return (kept - kept.mean(1, keepdim=True)).flatten(2)


def errors_vanish(trace: Trace, at: Bool[Tensor, "positions"]) -> bool:
    """Whether some stage is right up to rounding on a sequence, so that its residual has no direction to compare."""
    norms = _residual_rows(trace, at).norm(dim=-1)
    scale = _scale(trace, at)[:, None]
    if int(at.sum()) == 1:
        norms, scale = norms.norm(dim=0), scale.norm()
    return bool((norms <= VANISHED * scale).any())


def _residual_rows(trace: Trace, at: Bool[Tensor, "positions"]) -> Float[Tensor, "batch stages coordinates"]:
    return trace.residuals().cpu()[:, :, at].flatten(2).movedim(0, 1)


def _over_batch(
    a: Trace, b: Trace, at: Bool[Tensor, "positions"]
) -> tuple[Float[Tensor, "a batch targets"], Float[Tensor, "b batch targets"]]:
    """The residuals at a single position, as one vector of length 1 over the batch."""
    pooled, rows = _scale(b, at).square().sum().sqrt()[None], [_residual_rows(each, at) for each in (a, b)]
    one, other = (_unit(each.movedim(0, -2).flatten(1), pooled).unflatten(1, (len(each), -1)) for each in rows)
    return one, other


def _weight_rows(trace: Trace, at: Bool[Tensor, "positions"]) -> Iterator[Float[Tensor, "sequences entries stages"]]:
    """The weights as unit vectors, one position below the other, some sequences at a time; a zero vector stays zero."""
    if trace.weights is None:
        raise ValueError(f"measure 'weights' needs traces with weights; the trace of {trace.name} has none")
    for part in trace.weights.movedim(0, -1).split(SEQUENCES):  # how algorithms lay their weights out in memory
        columns = part.cpu()[:, at].double().flatten(2, -2)
        lengths = columns.square().sum(2, keepdim=True).sqrt()
        yield (columns / lengths.clamp(min=1e-150)).flatten(1, 2)


def _scale(trace: Trace, at: Bool[Tensor, "positions"]) -> Float[Tensor, "batch"]:
    return trace.prompts.target_columns.cpu().double()[:, at].flatten(1).norm(dim=1)


def _unit(rows: Float[Tensor, "*batch stages coordinates"], scale: Tensor) -> Tensor:
    norms = rows.norm(dim=-1, keepdim=True)
    direction = norms > VANISHED * scale[..., None, None] if rows.ndim == 3 else norms > VANISHED * scale
    return torch.where(direction & norms.isfinite(), rows / norms, torch.nan)


def _zeros(like: Trace) -> Trace:
    weights = None if like.weights is None else torch.zeros_like(like.weights[:1])
    return Trace("Zero", torch.zeros_like(like.values[:1]), (0,), like.prompts, weights)

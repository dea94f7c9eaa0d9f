"""Which steps of which algorithms a stage may be: the closest one, and all that are statistically tied with it."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from algoscope.matching.bootstrap import larger_than_zero, resampling
from algoscope.matching.compare import Match, similarity_interval
from algoscope.trace import Stage


@dataclass(frozen=True)
class Candidate:
    """A step of an algorithm, and how close it is."""

    name: str
    step: Stage
    similarity: float
    low: float
    high: float
    null: float  # similarity of its null
    behind: bool = False  # the closest is surely closer, but by less than the floor of the measure


def candidates(
    matches: Mapping[str, Match], stage: Stage, confidence: float | None = None, resamples: int | None = None
) -> list[Candidate]:
    """The steps of all algorithms that a stage may be, closest first; none where no step beats its null and the bar.

    Those that are behind by less than the floor of the measure are held as well, and marked.

    Each step must be closer than its own null: a step that is nearly the same on all prompts is close to whatever is
    common. And it must reach the bar of the measure.

    `matches` holds comparisons of the same trace, by algorithm. All steps of all algorithms are judged together, so
    that the more there are to choose from, the more a difference must show: the set holds the closest step with the
    given confidence, that of the matches if it is not stated.
    """
    reference = common(matches, stage)
    i, sign, scale = reference.stages.index(stage), reference.sign, reference.scale
    confidence = reference.confidence if confidence is None else confidence
    labels = [(name, step) for name, match in matches.items() for step in match.steps]
    values = torch.cat([match.per_sequence[:, i] for match in matches.values()], dim=1)
    usable = values.isfinite().all(0)
    if not bool(usable.any()):
        return []
    labels = [label for label, kept in zip(labels, usable.tolist(), strict=True) if kept]
    closeness = sign * values[:, usable]
    draws = resampling(closeness.shape[0], resamples or reference.resamples, reference.seed)
    nulls = [match.null_per_sequence[:, i].expand(-1, len(match.steps)) for match in matches.values()]
    null = torch.cat(nulls, dim=1)[:, usable]
    ahead = closeness - sign * null
    if not bool(larger_than_zero(ahead, draws, confidence, scale.resolution).any()):
        return []
    means, averages = closeness.mean(0), null.mean(0)
    passing = [scale.passes(sign * mean, own) for mean, own in zip(means.tolist(), averages.tolist(), strict=True)]
    close = (ahead.mean(0) > scale.resolution) & torch.tensor(passing)
    if not bool(close.any()):
        return []
    behind = closeness[:, int(torch.where(close, means, -torch.inf).argmax()), None] - closeness
    worse = larger_than_zero(behind, draws, confidence, scale.resolution)
    tied = (close & (~worse | (behind.mean(0) < scale.floor))).nonzero()[:, 0]
    tied = tied[means[tied].argsort(descending=True, stable=True)]
    below = [match.below[:, i].expand(-1, len(match.steps)) for match in matches.values() if match.below is not None]
    lower = torch.cat(below, dim=1)[:, usable][:, tied] if below else None
    low, high = similarity_interval(sign * closeness[:, tied], draws, scale, confidence, lower)
    columns = (tied, low, high, averages[tied], worse[tied])
    return [
        Candidate(*labels[k], similarity=float(sign * means[k]), low=lower, high=upper, null=null, behind=late)
        for k, lower, upper, null, late in zip(*(column.tolist() for column in columns), strict=True)
    ]


def common(matches: Mapping[str, Match], stage: Stage) -> Match:
    """Any of the matches, after a check that all compare the same trace in the same way."""
    if not matches:
        raise ValueError("matches must hold at least one comparison")
    first, *others = matches.values()
    same = ("a", "stages", "measure", "positions", "first")
    for other in others:
        differing = [field for field in same if getattr(first, field) != getattr(other, field)]
        nulls = first.null_per_sequence, other.null_per_sequence
        sizes = [null.shape[0] for null in nulls]
        # One null for several steps depends on the prompts, the trace and the measure alone.
        shared = nulls[0].shape[2] == nulls[1].shape[2] == 1 < max(len(first.steps), len(other.steps))
        alike = not shared or "measure" in differing or torch.allclose(*nulls, rtol=0, atol=0, equal_nan=True)
        if sizes[0] != sizes[1] or not alike:
            differing.append("prompts")
        if differing:
            hint = "; pass the same measure to each compare" if "measure" in differing else ""
            raise ValueError(f"matches must compare one trace in one way; they differ in {differing}{hint}")
    if stage not in first.stages:
        raise ValueError(f"stage must be one of {list(first.stages)}, got {stage!r}")
    return first

"""Which steps of which algorithms a stage may be: the closest one, and all that cannot be told from it."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from algoscope.matching.bootstrap import interval, larger_than_zero, resampling
from algoscope.matching.compare import Match
from algoscope.matching.measures import SCALES
from algoscope.matching.ranking import common
from algoscope.trace import Stage


@dataclass(frozen=True)
class Candidate:
    """A step of an algorithm, and how close it is."""

    name: str
    step: Stage
    similarity: float
    low: float
    high: float


def candidates(
    matches: Mapping[str, Match], stage: Stage, confidence: float | None = None, resamples: int | None = None
) -> list[Candidate]:
    """The steps of all algorithms that a stage may be, closest first; none where nothing beats the null.

    `matches` holds comparisons of the same trace, by algorithm. All steps of all algorithms are judged together, so
    that the more there are to choose from, the more a difference must show: the set holds the closest step with the
    given confidence, that of the matches if it is not stated.
    """
    reference = common(matches, stage)
    i, sign, scale = reference.stages.index(stage), reference.sign, SCALES[reference.measure]
    confidence = reference.confidence if confidence is None else confidence
    labels = [(name, step) for name, match in matches.items() for step in match.steps]
    values = torch.cat([match.per_sequence[:, i] for match in matches.values()], dim=1)
    usable = values.isfinite().all(0)
    if not bool(usable.any()):
        return []
    labels = [label for label, kept in zip(labels, usable.tolist(), strict=True) if kept]
    closeness = sign * values[:, usable]
    draws = resampling(closeness.shape[0], resamples or reference.resamples, reference.seed)
    ahead = closeness - sign * reference.null_per_sequence[:, i, None]
    if not bool(larger_than_zero(ahead, draws, confidence, scale.resolution).any()):
        return []
    means = closeness.mean(0)
    behind = closeness[:, int(means.argmax()), None] - closeness
    tied = (~larger_than_zero(behind, draws, confidence, scale.resolution)).nonzero()[:, 0]
    tied = tied[means[tied].argsort(descending=True, stable=True)]
    low, high = (end.clamp(*scale.range) for end in interval(sign * closeness[:, tied], draws, confidence))
    numbers = zip(tied.tolist(), low.tolist(), high.tolist(), strict=True)
    return [
        Candidate(name=labels[k][0], step=labels[k][1], similarity=float(sign * means[k]), low=lower, high=upper)
        for k, lower, upper in numbers
    ]

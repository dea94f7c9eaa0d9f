"""Which algorithm fits a stage best, and which cannot be told from it."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from algoscope.matching.bootstrap import interval, larger_than_chance, resampling
from algoscope.matching.compare import Match
from algoscope.matching.measures import MEASURES
from algoscope.trace import Stage

NULL = "the null"


@dataclass(frozen=True)
class Standing:
    """One algorithm's fit; `tied` means that it cannot be told from the best on this evidence."""

    name: str
    step: Stage
    similarity: float
    low: float
    high: float
    tied: bool


def rank(matches: Mapping[str, Match], stage: Stage) -> list[Standing]:
    """The algorithms and the null by how well they fit one stage of a model, best first.

    `matches` holds comparisons of the same trace, by algorithm. A method with more steps to choose from must not win by
    choosing: each half of the prompts is scored with the step that fits the *other* half best.
    """
    reference = _common(matches, stage)
    i, sign = reference.stages.index(stage), reference.sign
    names, columns = [NULL], [sign * reference.null_per_sequence[:, i]]
    steps: list[Stage] = [0]
    for name, match in matches.items():
        closeness = sign * match.per_sequence[:, i]
        closeness = torch.where(closeness.isfinite().all(0), closeness, -torch.inf)
        if bool(closeness.isfinite().any()):
            names.append(name)
            steps.append(match.best[i])
            columns.append(_scored_on_the_other_half(closeness))
    values = torch.stack(columns, dim=1)
    draws = resampling(values.shape[0], reference.resamples, reference.seed)
    best = int(values.mean(0).argmax())
    behind = values[:, best, None] - values
    resolution = MEASURES[reference.measure].resolution
    worse = larger_than_chance(behind.mean(0), draws @ behind, reference.confidence, resolution)
    low, high = interval(draws @ (sign * values), reference.confidence)
    order = values.mean(0).argsort(descending=True, stable=True).tolist()
    means = sign * values.mean(0)
    return [
        Standing(names[k], steps[k], float(means[k]), float(low[k]), float(high[k]), not bool(worse[k])) for k in order
    ]


def _scored_on_the_other_half(closeness: Float[Tensor, "batch steps"]) -> Float[Tensor, "batch"]:
    even = torch.arange(closeness.shape[0]) % 2 == 0
    scores = torch.empty(closeness.shape[0], dtype=torch.float64)
    for half in (even, ~even):
        scores[half] = closeness[half, int(closeness[~half].mean(0).argmax())]
    return scores


def _common(matches: Mapping[str, Match], stage: Stage) -> Match:
    """Any of the matches, after a check that all compare the same trace in the same way."""
    if not matches:
        raise ValueError("matches must hold at least one comparison")
    first, *others = matches.values()
    same = ("a", "stages", "measure", "positions", "first")
    for other in others:
        differing = [field for field in same if getattr(first, field) != getattr(other, field)]
        if differing or first.per_sequence.shape[0] != other.per_sequence.shape[0]:
            raise ValueError(f"matches must compare one trace in one way; they differ in {differing or 'prompts'}")
    if stage not in first.stages:
        raise ValueError(f"stage must be one of {list(first.stages)}, got {stage!r}")
    return first

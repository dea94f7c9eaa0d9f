"""Which algorithm fits a stage best, and which cannot be told from it."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from algoscope.matching.bootstrap import interval, larger_than_zero, resampling
from algoscope.matching.compare import Match
from algoscope.matching.measures import SCALES
from algoscope.trace import Stage

NULL = "the null"


@dataclass(frozen=True)
class Standing:
    """One algorithm's fit; `tied` means that it cannot be told from the best. NaN where nothing could be measured."""

    name: str
    step: Stage | None
    similarity: float
    low: float
    high: float
    tied: bool


def rank(matches: Mapping[str, Match], stage: Stage) -> list[Standing]:
    """The algorithms and the null by how well they fit one stage of a model, best first.

    `matches` holds comparisons of the same trace, by algorithm. A method with more steps to choose from must not win by
    choosing: each half of the prompts is scored with the step that fits the *other* half best.
    """
    reference = common(matches, stage)
    i, sign = reference.stages.index(stage), reference.sign
    columns = {NULL: sign * reference.null_per_sequence[:, i]}
    columns |= {name: _scored_on_the_other_half(sign * match.per_sequence[:, i]) for name, match in matches.items()}
    steps = {NULL: 0, **{name: match.best[i] for name, match in matches.items()}}
    measured = [name for name, column in columns.items() if bool(column.isfinite().all())]
    nan = float("nan")
    standings = [Standing(name, None, nan, nan, nan, False) for name in columns if name not in measured]
    if measured:
        values = torch.stack([columns[name] for name in measured], dim=1)
        draws = resampling(values.shape[0], reference.resamples, reference.seed)
        measure = SCALES[reference.measure]
        behind = values[:, int(values.mean(0).argmax()), None] - values
        worse = larger_than_zero(behind, draws, reference.confidence, measure.resolution)
        ends = [end.clamp(*measure.range) for end in interval(sign * values, draws, reference.confidence)]
        for k in values.mean(0).argsort(stable=True).tolist():  # worst first, each put before those already there
            mean, low, high = (float(part[k]) for part in (sign * values.mean(0), *ends))
            standings.insert(0, Standing(measured[k], steps[measured[k]], mean, low, high, not bool(worse[k])))
    return standings


def _scored_on_the_other_half(closeness: Float[Tensor, "batch steps"]) -> Float[Tensor, "batch"]:
    """NaN throughout where no step could be measured on every sequence."""
    usable = closeness[:, closeness.isfinite().all(0)]
    scores = torch.full((closeness.shape[0],), torch.nan, dtype=torch.float64)
    if usable.shape[1]:
        even = torch.arange(len(scores)) % 2 == 0
        for half in (even, ~even):
            scores[half] = usable[half, int(usable[~half].mean(0).argmax())]
    return scores


def common(matches: Mapping[str, Match], stage: Stage) -> Match:
    """Any of the matches, after a check that all compare the same trace in the same way."""
    if not matches:
        raise ValueError("matches must hold at least one comparison")
    first, *others = matches.values()
    same = ("a", "stages", "measure", "positions", "first")
    for other in others:
        differing = [field for field in same if getattr(first, field) != getattr(other, field)]
        if not differing and not torch.allclose(
            first.null_per_sequence, other.null_per_sequence, rtol=0, atol=0, equal_nan=True
        ):
            differing = ["prompts"]  # the null depends on them and on the trace alone
        if differing:
            hint = "; pass the same measure to each compare" if "measure" in differing else ""
            raise ValueError(f"matches must compare one trace in one way; they differ in {differing}{hint}")
    if stage not in first.stages:
        raise ValueError(f"stage must be one of {list(first.stages)}, got {stage!r}")
    return first

"""Which algorithm does a loop run? The instrument over the loops of training."""

import functools
import re
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from algoscope.contracts import Task
from algoscope.instrument import Instrument
from algoscope.matching import Match
from algoscope.matching.statistics import means
from algoscope.models.algoformer import LoopingNetwork
from algoscope.studies.algoformer.candidates import candidates
from algoscope.trace import Stage
from algoscope.verdict import StageVerdict, Verdict, short

FEATURES = " on features"
MEASURED = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 30)  # loops, and the last of training
KEPT = 6  # of the tied steps


def loop_number(stage: Stage) -> int | None:
    """Of a stage that is a loop, or what comes after one; what is before the loops is 0."""
    found = re.fullmatch(r"(?:after )?loop (\d+)", str(stage))
    return int(found[1]) if found else 0 if stage in ("pre", "embedding") else None


@functools.lru_cache(maxsize=2)
def instrument_of(task: Task, prompts: int) -> Instrument:
    return Instrument(task, candidates(task), prompts, prompts, others=[])


def followed(network: LoopingNetwork, task: Task, prompts: int) -> dict[str, Any]:
    """What the instrument finds in the state before the loops and after loops of training."""
    before = "pre" if "pre" in network.stages else "embedding"
    loops = sorted({k for k in MEASURED if k < network.loops} | {network.loops})
    stages = [before, *(f"loop {k}" for k in loops)]
    return summary(instrument_of(task, prompts).identify(network, stages, weights=False))


def summary(verdict: Verdict) -> dict[str, Any]:
    """The verdict in few numbers: what each stage may be, and the closest step of each algorithm."""
    errors = verdict.matches["errors"]
    return {
        "n": verdict.trace.prompts.batch,
        "stages": [stage_summary(found) for found in verdict.stages],
        "null": short(next(iter(errors.values())).null),
        "closest": {name: closest(match) for name, match in errors.items()},
        "where": where(errors, len(verdict.stages) - 1),
    }


def stage_summary(found: StageVerdict) -> dict[str, Any]:
    record = found.record("errors")
    kept = {name: record[name] for name in ("stage", "error", "null", "certain", "mixture_gain")}
    return {**kept, "agreed": record["agreed"][:KEPT], "among": len(record["agreed"])}


def closest(match: Match) -> dict[str, Any]:
    """At each stage, the step that fits best by its errors, and how well it does."""
    best = [None if none else step for step, none in zip(match.best, match.none, strict=True)]
    return {"step": best, "similarity": short(match.similarity.nan_to_num(-1).amax(1))}


def where(errors: Mapping[str, Match], stage: int) -> dict[str, Any] | None:
    """How much closer a stage is to the best algorithm on features than to the best on x, paired by prompt."""
    best: dict[bool, tuple[float, Tensor]] = {}
    for name, match in errors.items():
        similarity, step = match.similarity[stage].nan_to_num(-1).max(0)
        kind = name.endswith(FEATURES)
        if kind not in best or float(similarity) > best[kind][0]:
            best[kind] = (float(similarity), match.per_sequence[:, stage, int(step)])
    if len(best) < 2:
        return None
    value, low, high, n = means((best[True][1] - best[False][1])[:, None])[0]
    return {"by": value, "low": low, "high": high, "n": n}

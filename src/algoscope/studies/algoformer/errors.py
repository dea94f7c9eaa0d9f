"""Errors of predictions by the number of examples, with intervals.

Errors are normalized by E[y²]. Of a chain of thought, the states of one chain count as one example.
"""

import functools
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from algoscope.matching.bootstrap import interval, resampling
from algoscope.tasks import Task
from algoscope.trace import Prompts

RESAMPLES = 1000
PARTS = 20  # of the prompts
WORST = 1e6  # an error that is not a number is as bad as any
PerExample = Float[Tensor, "prompts examples"]


def per_example(values: Tensor, prompts: Prompts, task: Task) -> PerExample:
    """Normalized squared errors by the number of examples seen."""
    return apart(values, prompts.target_columns, prompts, task)


def apart(values: Tensor, others: Tensor, prompts: Prompts, task: Task) -> PerExample:
    """Normalized squared distances of predictions from others."""
    shape = prompts.target_columns.shape
    off = (values.reshape(shape).double() - others.reshape(shape)).square().mean(-1) / prompts.normalizer()
    examples = int(task.examples)  # pyright: ignore[reportAttributeAccessIssue]  # all tasks of this study have them
    return off.nan_to_num(WORST).clamp(max=WORST).reshape(len(off), examples + 1, -1).mean(-1)


def spread(values: Float[Tensor, "prompts cells"]) -> dict[str, list[float]]:
    """Means with intervals."""
    low, high = interval(values, draws_of(len(values)), 0.95)
    return {"error": values.mean(0).tolist(), "low": bounded(low), "high": bounded(high)}


def bounded(ends: Tensor) -> list[float]:
    return ends.clamp(0, WORST).tolist()


@functools.lru_cache(maxsize=4)
def draws_of(prompts: int) -> Tensor:
    return resampling(prompts, RESAMPLES, 0)


def curve(errors: PerExample) -> dict[str, Any]:
    return {"t": list(range(errors.shape[1])), "n": len(errors), **spread(errors)}


def part_means(values: Float[Tensor, "prompts cells"]) -> Float[Tensor, "cells parts"]:
    return torch.stack([part.mean(0) for part in values.chunk(PARTS)]).mT


def summary(errors: PerExample) -> dict[str, Any]:
    """At the last number of examples, and on average from the first example on.

    The means over parts of the prompts, the same for all models, let two models be compared prompts by prompts.
    """
    views = torch.stack([errors[:, -1], errors[:, 1:].mean(1)], dim=1)
    both, parts = spread(views), part_means(views).tolist()
    return {
        place: {"n": len(errors), **{part: both[part][k] for part in ("error", "low", "high")}, "parts": parts[k]}
        for k, place in enumerate(("last", "mean"))
    }

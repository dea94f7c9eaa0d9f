"""What extra slots hold: numbers that a network wrote, beside what people would write there."""

from collections.abc import Callable, Mapping

import torch
from jaxtyping import Float, Int
from torch import Tensor

from algoscope.matching.bootstrap import ratio_interval, resampling
from algoscope.models import Network
from algoscope.reading import lookups, slots
from algoscope.studies.data_structures.intervals import CONFIDENCE, RESAMPLES, Table
from algoscope.tasks.search import Search
from algoscope.trace import Prompts

FEW = 20  # queries; of a slot that fewer read it is not known what it is for
STILL = 1e-6  # a standard deviation this small, relative to what a slot holds, is that of one that never changes
NEAREST, VALUE, BELOW = "the rank of the nearest point", "the nearest point", "how many points lie below"
Sorted = Float[Tensor, "sets points"]


def _rank(points: Sorted, middle: Tensor) -> Tensor:
    return (points - middle).abs().argmin(1)


# Of a set of points and the middle of the queries that read a slot: what the slot may hold.
CONTENTS: Mapping[str, Callable[[Sorted, Tensor], Tensor]] = {
    NEAREST: _rank,
    VALUE: lambda points, middle: points.gather(1, _rank(points, middle)[:, None])[:, 0],
    BELOW: lambda points, middle: (points < middle).sum(1),
}


def held(networks: Mapping[str, Network], task: Search, prompts: Prompts) -> Table:
    """Of each network how many slots are read, and how much of what they hold is explained by what they may hold."""
    rows = []
    for what, network in networks.items():
        reads = lookups(network, task, prompts).values.long().cpu() - task.size
        contents = slots(network, task, prompts)[..., 0].double().cpu()
        used = len(reads[reads >= 0].unique())
        rows += [{"what": what, "read": used, **row} for row in explained(reads, contents, prompts)]
    return rows


def explained(
    reads: Int[Tensor, "lookups sets queries"], contents: Float[Tensor, "sets slots"], prompts: Prompts
) -> Table:
    """The share of the variance of what slots hold, from set to set, that follows from each thing that they may hold;
    a slot counts by how often it is read. `reads` are numbers of slots, and below zero where points are read.

    Where a slot is asked, and what linear function it holds, is fitted to every second set, and the others are judged.
    """
    count, x = prompts.before, prompts.x[..., 0].double().cpu()
    points, queries = x[:, :count].sort(1).values, x[:, count:].expand(len(reads), -1, -1)
    fit, judge = slice(0, None, 2), slice(1, None, 2)
    spread, errors = torch.zeros_like(x[judge, 0]), {name: torch.zeros_like(x[judge, 0]) for name in CONTENTS}
    for slot, own in enumerate(contents.unbind(1)):
        asked = queries[:, fit][reads[:, fit] == slot]
        mean, deviation = own[fit].mean(), own[fit].std()
        if len(asked) < FEW or bool(deviation <= STILL * own.abs().max()):
            continue
        own, middle = (own - mean) / deviation, asked.median()
        spread += len(asked) * own[judge].square()
        for name, content in CONTENTS.items():
            known = torch.stack((torch.ones_like(own), content(points, middle).to(own)), 1)
            line = torch.linalg.lstsq(known[fit], own[fit, None]).solution[:, 0]
            errors[name] += len(asked) * (own - known @ line)[judge].square()
    if not bool(spread.any()):
        return []
    draws, rows = resampling(len(spread), RESAMPLES, 0), []
    for name, error in errors.items():
        left, low, high = (float(part) for part in ratio_interval(error[:, None], spread[:, None], draws, CONFIDENCE))
        rows.append({"holds": name, "value": 1 - left, "low": 1 - high, "high": 1 - low, "n": len(spread)})
    return rows

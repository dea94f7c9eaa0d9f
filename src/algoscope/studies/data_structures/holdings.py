"""What extra slots hold: numbers that a network wrote, beside what people would write there."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from algoscope.matching.bootstrap import ratio_interval, resampling
from algoscope.models import Network
from algoscope.reading import lookups, slots
from algoscope.studies.data_structures.intervals import CONFIDENCE, RESAMPLES, Table, described
from algoscope.studies.data_structures.references import MODEL, UNTRAINED
from algoscope.tasks.search import Search
from algoscope.trace import Prompts

FEW = 20  # queries; of a slot that fewer read it is not known what it is for
STILL = 1e-6  # a standard deviation this small, relative to what a slot holds, is that of one that never changes
FIT, JUDGE = slice(0, None, 2), slice(1, None, 2)  # sets: by half of them it is told what slots are for
NEAREST, VALUE, BELOW = "the rank of the nearest point", "the nearest point", "how many points lie below"
FRACTION = "that rank, and how far to the next"
SHOWN = 400  # sets, in the figure
ALONE, LAST, AHEAD = "the nearest point", "the last look-up", "ahead"
Sorted = Float[Tensor, "sets points"]


def _rank(points: Sorted, middle: Tensor) -> Tensor:
    return (points - middle).abs().argmin(1)


def _cell(points: Sorted, middle: Tensor) -> tuple[Tensor, Tensor]:
    """How far below the middle, and how far above it, another point becomes the nearest; infinite where none does."""
    borders = nn.functional.pad((points[:, 1:] + points[:, :-1]) / 2, (1, 1), value=torch.inf)
    borders[:, 0] = -torch.inf
    rank = _rank(points, middle)[:, None]
    return middle - borders.gather(1, rank)[:, 0], borders.gather(1, rank + 1)[:, 0] - middle


def _fraction(points: Sorted, middle: Tensor) -> Tensor:
    below, above = _cell(points, middle)
    within = torch.where(below.isinf() | above.isinf(), 0.5, below / (below + above))
    return _rank(points, middle) + within


# Of a set of points and the middle of the queries that read a slot: what the slot may hold.
CONTENTS: Mapping[str, Callable[[Sorted, Tensor], Tensor]] = {
    NEAREST: _rank,
    VALUE: lambda points, middle: points.gather(1, _rank(points, middle)[:, None])[:, 0],
    FRACTION: _fraction,
    BELOW: lambda points, middle: (points < middle).sum(1),
}


def holdings(network: Network, fresh: Network | None, task: Search, prompts: Prompts) -> dict[str, Any]:
    """Of a network, and of the same before training: how many slots are read, and how much of what they hold is
    explained by what they may hold. Of the first also what one slot holds, and whether slots tell more than ranks.
    """
    rows, told = [], {}
    for what, each in {MODEL: network, UNTRAINED: fresh}.items():
        if each is None:
            continue
        reads = lookups(each, task, prompts).values.long().cpu() - task.size
        contents = slots(each, task, prompts)[..., 0].double().cpu()
        used = len(reads[reads >= 0].unique())
        rows += [{"what": what, "read": used, **row} for row in explained(reads, contents, prompts)]
        if what == MODEL:
            told = {"beyond": beyond(reads, prompts), "slot": seen(reads, contents, prompts)}
    return {"held": rows, **told}


def explained(
    reads: Int[Tensor, "lookups sets queries"], contents: Float[Tensor, "sets slots"], prompts: Prompts
) -> Table:
    """The share of the variance of what slots hold, from set to set, that follows from each thing that they may hold;
    a slot counts by how often it is read. `reads` are numbers of slots, and below zero where points are read.

    Where a slot is asked, and what linear function it holds, is fitted to every second set, and the others are judged.
    """
    points = prompts.x[:, : prompts.before, 0].double().cpu().sort(1).values
    spread, *errors = torch.zeros(1 + len(CONTENTS), len(points[JUDGE]), dtype=points.dtype)
    for slot, (count, middle) in _asked(reads, prompts).items():
        own = contents[:, slot]
        mean, deviation = own[FIT].mean(), own[FIT].std()
        if bool(deviation <= STILL * own.abs().max()):
            continue
        own = (own - mean) / deviation
        spread += count * own[JUDGE].square()
        for error, content in zip(errors, CONTENTS.values(), strict=True):
            known = torch.stack((torch.ones_like(own), content(points, middle).to(own)), 1)
            line = torch.linalg.lstsq(known[FIT], own[FIT, None]).solution[:, 0]
            error += count * (own - known @ line)[JUDGE].square()
    if not bool(spread.any()):
        return []
    draws, rows = resampling(len(spread), RESAMPLES, 0), []
    for name, error in zip(CONTENTS, errors, strict=True):
        left, low, high = (float(part) for part in ratio_interval(error[:, None], spread[:, None], draws, CONFIDENCE))
        rows.append({"holds": name, "value": 1 - left, "low": 1 - high, "high": 1 - low, "n": len(spread)})
    return rows


def beyond(reads: Int[Tensor, "lookups sets queries"], prompts: Prompts) -> Table:
    """Whether slots tell more than ranks: of the queries whose first look-up reads a slot, how often the answer is the
    point nearest to the middle of those that read this slot, how often the last look-up reads it, and the difference.
    """
    x = prompts.x[..., 0].double().cpu()
    points, queries = x[:, : prompts.before], x[:, prompts.before :]
    middles = torch.full((max(int(reads.max()), 0) + 1,), torch.nan, dtype=x.dtype)
    for slot, (_, middle) in _asked(reads[:1], prompts).items():
        middles[slot] = middle
    middle = torch.where(reads[0] >= 0, middles[reads[0].clamp(min=0)], torch.nan)
    told, nearest = ((points[:, None] - at[..., None]).abs().argmin(-1) for at in (middle, queries))
    counted = ~middle.isnan()
    right = [((read == nearest) & counted)[JUDGE].sum(1) for read in (told, reads[-1] + prompts.before)]
    some = counted[JUDGE].any(1)
    if not bool(some.any()):
        return []
    shares = torch.stack((*right, right[1] - right[0]), 1)[some].double() / counted[JUDGE].sum(1, keepdim=True)[some]
    return [{"is": name, **row} for name, row in zip((ALONE, LAST, AHEAD), described(shares, least=-1.0), strict=True)]


def seen(
    reads: Int[Tensor, "lookups sets queries"], contents: Float[Tensor, "sets slots"], prompts: Prompts
) -> dict[str, list[Any]]:
    """Of one slot, that which is asked in the middle of the others: what it holds in some of the sets, the rank that it
    may hold, and on which side another point is sooner the nearest. In columns: names once, for a short file.
    """
    asked = sorted(_asked(reads, prompts).items(), key=lambda each: float(each[1][1]))
    if not asked:
        return {}
    slot, (_, middle) = asked[len(asked) // 2]
    points = prompts.x[:SHOWN, : prompts.before, 0].double().cpu().sort(1).values
    below, above = _cell(points, middle)
    sides = ["below" if closer else "above" for closer in (below < above).tolist()]
    return {"rank": _rank(points, middle).tolist(), "held": contents[:SHOWN, slot].tolist(), "next": sides}


def _asked(reads: Int[Tensor, "lookups sets queries"], prompts: Prompts) -> dict[int, tuple[int, Tensor]]:
    """Of each slot that is read often enough: by how many queries, and their median; of half of the sets."""
    queries = prompts.x[:, prompts.before :, 0].double().cpu().expand(len(reads), -1, -1)
    each = {slot: queries[:, FIT][reads[:, FIT] == slot] for slot in range(int(reads.max()) + 1)}
    return {slot: (len(asked), asked.median()) for slot, asked in each.items() if len(asked) >= FEW}

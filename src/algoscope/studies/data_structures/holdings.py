"""What extra slots hold: numbers that a network wrote, beside what people would write there, and in its place."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from algoscope.matching.bootstrap import ratio_interval, resampling
from algoscope.matching.lookups import found
from algoscope.models import Network
from algoscope.reading import lookups, slots
from algoscope.studies.data_structures.intervals import CONFIDENCE, RESAMPLES, Table, described
from algoscope.studies.data_structures.references import MODEL, UNTRAINED
from algoscope.tasks.search import Search
from algoscope.trace import Prompts

FEW = 20  # queries; of a slot that fewer read it is not known what it is for
STILL = 1e-6  # a standard deviation this small, relative to what a slot holds, is that of one that never changes
SHOWN = 400  # sets, in the figure
FIT, JUDGE = slice(0, None, 2), slice(1, None, 2)  # sets: by half of them it is told what slots are for
NEAREST, VALUE, BELOW = "the rank of the nearest point", "the nearest point", "how many points lie below"
FRACTION, ELSEWHERE = "the rank, with a fraction: how far to the next", "null: that of the next slot"
AHEAD, WRITTEN = "ahead of the null", "what was written"
FOUND_SO, LOST = "found", "less than as written"
Sorted = Float[Tensor, "sets points"]
Contents = Float[Tensor, "sets slots"]
Asked = Mapping[int, tuple[int, Tensor]]  # of slots: how many queries read one, and their middle; by the middle


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
    BELOW: lambda points, middle: (points < middle).sum(1),
    FRACTION: _fraction,
}


def holdings(network: Network, fresh: Network | None, task: Search, prompts: Prompts) -> dict[str, Any]:
    """Of a network, and of the same before training: how many slots are read, and how much of what they hold is
    explained by what they may hold. Of the first also what is found with that in its place, and what one slot holds.
    """
    rows, told = [], {}
    for what, each in {MODEL: network, UNTRAINED: fresh}.items():
        if each is None:
            continue
        reads = lookups(each, task, prompts).values.long().cpu() - task.size
        contents = slots(each, task, prompts)[..., 0].double().cpu()
        asked = asked_of(reads, prompts)
        used, others = len(reads[reads >= 0].unique()), instead(contents, asked, prompts)
        rows += [{"what": what, "read": used, **row} for row in explained(contents, asked, others)]
        if what == MODEL:
            told = {"swapped": swapped(each, task, prompts, others), "slot": one_slot(contents, asked, prompts)}
    return {"held": rows, **told}


def asked_of(reads: Int[Tensor, "lookups sets queries"], prompts: Prompts) -> Asked:
    """Of the slots that are read often enough, in half of the sets, from the lowest queries to the highest. `reads` are
    numbers of slots, and below zero where points are read.
    """
    queries = prompts.x[:, prompts.before :, 0].double().cpu().expand(len(reads), -1, -1)
    each = {slot: queries[:, FIT][reads[:, FIT] == slot] for slot in range(int(reads.max()) + 1)}
    told = {slot: (len(asked), asked.median()) for slot, asked in each.items() if len(asked) >= FEW}
    return dict(sorted(told.items(), key=lambda slot: float(slot[1][1])))


def instead(contents: Contents, asked: Asked, prompts: Prompts) -> dict[str, Contents]:
    """By what slots may hold, that in the place of what they hold: a line of it, fitted to half of the sets. As a null,
    that of the next slot. Slots that are seldom read or do not change, or whose numbers went astray, stay as they are.
    """
    points = prompts.x[:, : prompts.before, 0].double().cpu().sort(1).values
    made = {name: contents.clone() for name in (*CONTENTS, ELSEWHERE)}
    middles = [middle for _, middle in asked.values()]
    for slot, middle, other in zip(asked, middles, middles[1:] + middles[-2:-1] or middles, strict=True):
        own = contents[:, slot]
        if not bool(own[FIT].std() > STILL * own.abs().max()):
            continue
        known = {name: content(points, middle) for name, content in CONTENTS.items()}
        for name, content in (*known.items(), (ELSEWHERE, CONTENTS[FRACTION](points, other))):
            base = torch.stack((torch.ones_like(own), content.to(own)), 1)
            made[name][:, slot] = base @ torch.linalg.lstsq(base[FIT], own[FIT, None]).solution[:, 0]
    return made


def explained(contents: Contents, asked: Asked, others: Mapping[str, Contents]) -> Table:
    """The share of the variance of what slots hold, from set to set, that follows from what they may hold, in sets that
    lines were not fitted to; and how much more follows from the last of these than from the null. A slot counts by how
    often it is read.
    """
    if not asked:
        return []
    count = torch.tensor([count for count, _ in asked.values()], dtype=contents.dtype)
    own = contents[:, list(asked)]
    mean, deviation = own[FIT].mean(0), own[FIT].std(0)
    moves = deviation > STILL * own.abs().amax(0)
    if not bool(moves.any()):
        return []
    weight = (count / deviation.square())[moves]

    def squares(apart: Tensor) -> Tensor:
        return (apart[JUDGE][:, moves].square() @ weight)[:, None]

    spread, errors = squares(own - mean), {name: squares(own - other[:, list(asked)]) for name, other in others.items()}
    draws, rows = resampling(len(spread), RESAMPLES, 0), []
    left = {name: spread - error for name, error in errors.items()} | {AHEAD: errors[ELSEWHERE] - errors[FRACTION]}
    for name, less in left.items():
        value, low, high = (float(part) for part in ratio_interval(less, spread, draws, CONFIDENCE))
        rows.append({"holds": name, "value": value, "low": low, "high": high, "n": len(spread)})
    return rows


def swapped(network: Network, task: Search, prompts: Prompts, others: Mapping[str, Contents]) -> Table:
    """What is found where slots hold other things, in sets that these were not fitted to; as they are written; and how
    much less is found with each than so.
    """
    traces = {name: lookups(network, task, prompts, written=other[..., None]) for name, other in others.items()}
    traces[WRITTEN] = lookups(network, task, prompts)
    shares = {name: found(trace)[-1].double().mean(-1, keepdim=True)[JUDGE] for name, trace in traces.items()}
    rows = [{"with": name, "is": FOUND_SO, **described(share)[0]} for name, share in shares.items()]
    lost = {name: shares[WRITTEN] - share for name, share in shares.items() if name != WRITTEN}
    return rows + [{"with": name, "is": LOST, **described(share, least=-1.0)[0]} for name, share in lost.items()]


def one_slot(contents: Contents, asked: Asked, prompts: Prompts) -> dict[str, list[Any]]:
    """Of one slot, that which is asked in the middle of the others: what it holds in some of the sets, the rank that it
    may hold, and on which side another point is sooner the nearest. In columns: names once, for a short file.
    """
    if not asked:
        return {}
    slot = list(asked)[len(asked) // 2]
    middle = asked[slot][1]
    points = prompts.x[:SHOWN, : prompts.before, 0].double().cpu().sort(1).values
    below, above = _cell(points, middle)
    sides = ["below" if closer else "above" for closer in (below < above).tolist()]
    return {"rank": _rank(points, middle).tolist(), "held": contents[:SHOWN, slot].tolist(), "next": sides}

"""What is measured of each model of the study. Every table is plain numbers with intervals over sets of points."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from algoscope.matching import compare, found
from algoscope.matching.bootstrap import larger_than_zero, resampling
from algoscope.models import Network
from algoscope.models.index import IndexNetwork
from algoscope.randomness import stream
from algoscope.reading import in_place, landing, lookups, order
from algoscope.studies.data_structures.examples import examples
from algoscope.studies.data_structures.holdings import holdings
from algoscope.studies.data_structures.intervals import CONFIDENCE, RESAMPLES, Table, described, table
from algoscope.studies.data_structures.pictures import by_number
from algoscope.studies.data_structures.probe import probed
from algoscope.studies.data_structures.references import BINARY, INTERPOLATION, MODEL, TREE, UNTRAINED, searches
from algoscope.studies.data_structures.streams import measure_stream
from algoscope.studies.study import Training
from algoscope.tasks import NumberSearch, NumberStream, SphereSearch, UniformSearch
from algoscope.tasks.search import Search
from algoscope.tasks.streams import Stream
from algoscope.trace import Prompts, Trace

SETS = {"smoke": 40, "laptop": 500, "paper": 1000}  # of points, each with several queries
BINS = 10  # of queries, as published
MAPPED = (BINARY, INTERPOLATION, TREE)  # of which a figure shows which look-ups agree
ROUNDING = 1e-12
HALF = 0.5  # a model is called by the name of a search that it agrees with more often than not, at every look-up
MISTAKEN = 0.05  # of the queries: a look-up that reads a wrong point for fewer says nothing about the search


def measure(training: Training, network: Network, scale: str) -> dict[str, Any]:
    """`training` names the seed of this network alone. Pictures are of digits that it was not trained with."""
    task = training.task
    if isinstance(task, NumberSearch | NumberStream):
        task = replace(task, split="test")
    fresh = training.model.build(task.inputs, task.outputs, task.length, stream("weights", training.seeds[0])).eval()
    if isinstance(task, Stream):
        return measure_stream(task, network, sampled(task, scale))
    assert isinstance(task, Search)
    fresh = fresh.to(next(network.parameters()).device)
    found = measure_search(task, network, fresh, scale)
    if isinstance(task, NumberSearch) and isinstance(network, IndexNetwork):
        found |= {"pictures": by_number(network, task, sampled(task, scale))}
    if isinstance(task, SphereSearch) and len(table(found, "found", what=MODEL)) == 1:
        found |= {"probe": probed({MODEL: network, UNTRAINED: fresh}, task, sampled(task, scale))}
    return found


def sampled(task: Search | Stream, scale: str) -> Prompts:
    return task.sample(SETS[scale], seed=0, purpose="study")


def measure_search(task: Search, network: Network, fresh: Network | None, scale: str) -> dict[str, Any]:
    """`fresh` is the same network before training, where there was any."""
    assert isinstance(network, IndexNetwork)
    prompts, slots = sampled(task, scale), network.model.slots * network.model.permuted
    trace = lookups(network, task, prompts, MODEL)
    known = {name: each.trace(prompts) for name, each in searches(task, len(trace), slots).items()}
    stored = order(network, task, prompts)
    before = {} if fresh is None else {UNTRAINED: lookups(fresh, task, prompts, UNTRAINED)}
    orders = {MODEL: stored} | ({} if fresh is None else {UNTRAINED: order(fresh, task, prompts)})
    return {
        "points": task.size,
        "dim": task.dim,
        "slots": slots,
        "sorted": sortedness(orders, prompts) if task.dim == 1 else [],
        "neighbors": neighbors(orders, prompts) if task.dim == 1 and task.size > 1 else [],
        "found": found_by({MODEL: trace, **known, **before}),
        "ahead": ahead(trace, {**known, **before}),
        **agreement(trace, known),
        "landing": landings({MODEL: trace, **known}, stored) if task.dim == 1 else [],
        "first": first_reads({MODEL: trace, **known}, task) if task.dim == 1 and not slots else [],
        "splits": splits(stored, prompts) if task.dim == 2 else [],
        "examples": examples(network, task, prompts, stored, {MODEL: trace, **known}),
        **(holdings(network, fresh, task, prompts) if task.dim == 1 and slots else {}),
    }


def called_after(network: Network, task: Search, prompts: Prompts) -> dict[str, Any]:
    """What a network is called, and the agreement of its look-ups with that search, or with the closest."""
    trace = lookups(network, task, prompts, MODEL)
    found = agreement(trace, {name: each.trace(prompts) for name, each in searches(task, len(trace)).items()})
    return {"called": found["called"], "closest": found["closest"], **found["mean"][found["closest"]]}


def sortedness(orders: Mapping[str, Tensor], prompts: Prompts) -> Table:
    """The share of points that are stored where they belong if all are sorted."""
    shares = {what: in_place(stored, prompts).double().mean(1, keepdim=True) for what, stored in orders.items()}
    return [{"what": what, **described(share)[0]} for what, share in shares.items()]


def neighbors(orders: Mapping[str, Tensor], prompts: Prompts) -> Table:
    """The share of places whose point is next to that of the place before, by size.

    An order may be sorted but for where it begins: then next to nothing is in place, and nearly all is beside its
    neighbor.
    """
    ranks = prompts.x[:, : prompts.before, 0].argsort(1).argsort(1)
    shares = {what: (ranks.gather(1, stored).diff(dim=1).abs() == 1) for what, stored in orders.items()}
    return [{"what": what, **described(share.double().mean(1, keepdim=True))[0]} for what, share in shares.items()]


def found_shares(trace: Trace) -> Tensor:
    """[sets, look-ups]: of the queries of a set, the share whose nearest neighbor has been read."""
    return found(trace).double().mean(-1).mT


def found_by(traces: Mapping[str, Trace]) -> Table:
    rows = []
    for what, trace in traces.items():
        shares = described(found_shares(trace))
        rows += [{"what": what, "lookup": m + 1, **share} for m, share in enumerate(shares)]
    return rows


def ahead(trace: Trace, others: Mapping[str, Trace]) -> Table:
    """How much more the model has found than others, after each look-up, on the same sets."""
    rows = []
    for what, other in others.items():
        shares = described(found_shares(trace) - found_shares(other), least=-1.0)
        rows += [{"over": what, "lookup": m + 1, **share} for m, share in enumerate(shares)]
    return rows


def searching(trace: Trace) -> Tensor:
    """[look-ups, sets, queries]: whether the nearest neighbor has not been read before a look-up."""
    read = found(trace)
    return ~torch.cat([torch.zeros_like(read[:1]), read[:-1]])


def of_points(trace: Trace) -> Trace:
    """The look-ups that read points, those that read slots behind them: a search has its first point first."""
    slots = trace.values >= trace.prompts.before
    return replace(trace, values=trace.values.gather(0, slots.byte().argsort(dim=0, stable=True)))


def shared_reads(trace: Trace, other: Tensor, counted: Tensor) -> Tensor:
    """[sets, look-ups]: how often the model reads what another does, where it counts.

    Sets differ in how many reads count, so these are values whose mean is the share over all of them, and whose spread
    is that of this share.
    """
    same, of = (part.double().sum(-1).mT for part in ((trace.values == other) & counted, counted))
    share = same.sum(0) / of.sum(0).clamp(min=1)
    return share + (same - share * of) / of.mean(0).clamp(min=1 / len(of))


def agreement(trace: Trace, known: Mapping[str, Trace]) -> dict[str, Any]:
    """How often each look-up reads what a search reads, as long as the model has not found the answer; which search is
    closest, and what the model is called.

    It is called by the name of the one search that is closest to it, if that agrees with it at every look-up more often
    than not, also where the model reads a wrong point, and there more often than chance, and on the whole than the same
    search for another query. That both are right says nothing, so look-ups with next to no wrong reads, and the last
    one, have no say. Look-ups are those of points: one that reads a slot is left out.
    """
    if trace.prompts.y.shape[1] < 2:
        raise ValueError("queries must be at least 2: look-ups are also compared with those for another query")
    trace = of_points(trace)
    wrong, prompts = ~found(trace), trace.prompts
    telling = [m for m in range(max(len(trace) - 1, 1)) if wrong[m].double().mean() >= MISTAKEN]
    draws = resampling(prompts.batch, RESAMPLES, 0)
    any_point = torch.randint(prompts.before, prompts.y.shape, generator=stream("random reads", 0)).double()
    chance = shared_reads(trace, any_point, wrong)
    rows, maps, own, clear = [], {}, {}, {}
    for name, other in known.items():
        shares = shared_reads(trace, other.values, searching(trace))
        mistakes = shared_reads(trace, other.values, wrong)
        elsewhere = shared_reads(trace, other.values.roll(1, -1), wrong)  # for another query
        beats = larger_than_zero(mistakes - chance, draws, CONFIDENCE, ROUNDING)
        told, mistaken = described(shares), described(mistakes)
        clear[name] = bool(telling) and bool(beats[telling].all())
        clear[name] &= all(min(told[m]["low"], mistaken[m]["low"]) > HALF for m in telling)
        asked = (mistakes - elsewhere)[:, telling or [0]].mean(1, keepdim=True)
        clear[name] &= bool(larger_than_zero(asked, draws, CONFIDENCE, ROUNDING))
        for m, row in enumerate(told):
            level = {"random": chance, "another query": elsewhere}
            levels = {null: float(values[:, m].mean()) for null, values in level.items()}
            others = {"mistakes": mistaken[m]["value"], "wrong": float(wrong[m].double().mean()), **levels}
            rows.append({"search": name, "lookup": m + 1, **row, **others, "beats": bool(beats[m])})
        if name in MAPPED:
            match = compare(trace, other, "agreement")
            cells = [{**cell, "none": not bool(beats[match.stages.index(cell["stage"])])} for cell in match.records()]
            maps[name] = {key: [cell[key] for cell in cells] for key in cells[0]}  # names once, for a short file
        own[name] = shares[:, telling or [0]].mean(1)
    closest, ties = nearest_of(own, draws)
    called = closest if clear[closest] and ties == [closest] else None
    means = {name: described(values[:, None])[0] for name, values in own.items()}
    return {"agreement": rows, "maps": maps, "mean": means, "closest": closest, "ties": ties, "called": called}


def nearest_of(own: Mapping[str, Tensor], draws: Tensor) -> tuple[str, list[str]]:
    """The search with the largest agreement, and all that cannot be told from it."""
    names, values = list(own), torch.stack(list(own.values()), 1)
    best = int(values.mean(0).argmax())
    worse = larger_than_zero(values[:, best, None] - values, draws, CONFIDENCE, ROUNDING)
    return names[best], [name for name, behind in zip(names, worse.tolist(), strict=True) if not behind]


def landings(traces: Mapping[str, Trace], stored: Tensor) -> Table:
    """Where in the model's order the first look-up lands, for queries in equal parts of their range.

    `low` and `high` hold the middle four fifths of the look-ups.
    """
    rows = []
    for what, trace in traces.items():
        table = landing(trace, stored, bins=BINS)
        below = table.share.cumsum(1)
        low, high = ((below < share).sum(1) for share in (0.1, 0.9))
        for i, count in enumerate(table.counts.tolist()):
            if count:
                middle = float(table.edges[i] + table.edges[i + 1]) / 2
                spread = {"low": int(low[i]), "high": int(high[i])}
                rows.append({"what": what, "query": middle, "place": float(table.mean[i]), **spread, "n": count})
    return rows


def first_reads(traces: Mapping[str, Trace], task: Search) -> Table:
    """The rank of what the first look-up reads: how often that is the middle, and, of uniform points, how far it is
    from where the query is to be expected, as a share of all points.
    """
    rows = []
    for what, trace in traces.items():
        count, x = trace.prompts.before, trace.prompts.x[..., 0]
        ranks = x[:, :count].argsort(1).argsort(1).gather(1, trace.values[0].long())
        middle = (ranks == (count - 1) // 2).double().mean(1, keepdim=True)
        rows.append({"what": what, "is": "in the middle", **described(middle)[0]})
        if isinstance(task, UniformSearch):
            expected = (count * (x[:, count:] + 1) / 2 - 0.5).clamp(0, count - 1)
            off = (ranks - expected).abs().mean(1, keepdim=True) / count
            rows.append({"what": what, "is": "off the expected place", **described(off)[0]})
    return rows


def splits(stored: Tensor, prompts: Prompts) -> Table:
    """Whether an order splits the plane like a k-d tree: 1 where all points on one side of the middle place have a
    smaller coordinate than all on the other, as in the whole order of a k-d tree, and 0.5 where sides say nothing.

    Level 1 is the whole order, level 2 its halves.
    """
    count, rows = stored.shape[1], []
    middle = (count - 1) // 2
    levels = {1: [(0, count)], 2: [(0, middle), (middle + 1, count)]}
    for level, parts in levels.items():
        for coordinate in range(prompts.dim):
            values = prompts.x[:, :count, coordinate].gather(1, stored)
            shares = [_below(values[:, first:end]) for first, end in parts if end - first > 2]
            if shares:
                told = described(torch.stack(shares).mean(0)[:, None])[0]
                rows.append({"level": level, "coordinate": coordinate + 1, **told})
    return rows


def _below(values: Tensor) -> Tensor:
    """By set, the share of pairs from both sides of the middle place that are in order, upwards or downwards."""
    middle = (values.shape[1] - 1) // 2
    upwards = (values[:, :middle, None] < values[:, None, middle + 1 :]).double().mean((1, 2))
    return upwards if float(upwards.mean()) >= 0.5 else 1 - upwards

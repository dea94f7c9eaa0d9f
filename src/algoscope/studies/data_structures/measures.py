"""What is measured of each model of the study. Every table is plain numbers with intervals over sets of points."""

from collections.abc import Mapping
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor

from algoscope.contracts import Task
from algoscope.instrument import identify
from algoscope.matching import ReadsWhileSearching, found
from algoscope.matching.measures import HALF
from algoscope.models import Network
from algoscope.models.index import IndexNetwork
from algoscope.models.sketch import SketchNetwork
from algoscope.randomness import stream
from algoscope.reading import in_place, landing, lookups, order
from algoscope.studies.data_structures.examples import examples
from algoscope.studies.data_structures.pictures import by_number
from algoscope.studies.data_structures.references import MODEL, UNTRAINED, Table, described, searches
from algoscope.studies.data_structures.streams import measure_stream
from algoscope.studies.study import Training
from algoscope.tasks.search import Search
from algoscope.trace import Prompts, Trace
from algoscope.verdict import Verdict

SETS = {"smoke": 200, "laptop": 500, "paper": 1000}  # of points, each with several queries
BINS = 10  # of queries, as published


def measure(training: Training, network: Network, scale: str) -> dict[str, Any]:
    """`training` names the seed of this network alone. Pictures are of digits that it was not trained with."""
    task = training.task.held_out()
    if isinstance(network, SketchNetwork):
        prompts = sampled(task, scale)
        verdict = identify(network, task, prompts=prompts, fit_on=prompts.batch)
        return {**measure_stream(task, network, prompts), **page_of(verdict)}
    fresh = training.model.build(task.inputs, task.outputs, task.length, stream("weights", training.seeds[0])).eval()
    return measure_search(cast(Search, task), network, fresh.to(next(network.parameters()).device), scale)


def sampled(task: Task, scale: str) -> Prompts:
    return task.sample(SETS[scale], seed=0, purpose="study")


def measure_search(task: Search, network: Network, fresh: Network | None, scale: str) -> dict[str, Any]:
    """`fresh` is the same network before training, where there was any."""
    assert isinstance(network, IndexNetwork)
    prompts, slots = sampled(task, scale), network.model.slots * network.model.stores_points
    trace = lookups(network, task, prompts, MODEL)
    known = {name: each.trace(prompts) for name, each in searches(task, len(trace), slots).items()}
    stored, verdict = order(network, task, prompts), identified(network, task, prompts, slots)
    before = {} if fresh is None else {UNTRAINED: lookups(fresh, task, prompts, UNTRAINED)}
    orders = {MODEL: stored} | ({} if fresh is None else {UNTRAINED: order(fresh, task, prompts)})
    return {
        "points": task.size,
        "dim": task.dim,
        "slots": slots,
        "sorted": sortedness(orders, prompts) if task.dim == 1 else [],
        "found": found_by({MODEL: trace, **known, **before}),
        "ahead": ahead(trace, {**known, **before}),
        **agreement(verdict, known),
        **page_of(verdict),
        "landing": landings({MODEL: trace, **known}, stored) if task.dim == 1 else [],
        "first": first_reads({MODEL: trace, **known}, task) if task.dim == 1 and not slots else [],
        "examples": examples(network, task, prompts, stored, {MODEL: trace, **known}),
        **({"pictures": by_number(network, task, prompts)} if network.encoder else {}),
    }


def identified(network: Network, task: Search, prompts: Prompts, slots: int = 0) -> Verdict:
    """By the searches with as many look-ups and slots."""
    steps = sum(stage.startswith("look-up") for stage in network.stages)
    return identify(network, task, task.searches(steps, slots), prompts, fit_on=prompts.batch)


def page_of(verdict: Verdict) -> dict[str, Any]:
    """What the page of the model is made of."""
    record = verdict.record()
    return {"verdict": {key: record[key] for key in record if key not in ("controls", "provenance")}}


def called_after(network: Network, task: Search, prompts: Prompts) -> dict[str, Any]:
    """What a network is called, and how often it reads what the closest search reads."""
    verdict = identified(network, task, prompts)
    known = {name: each.trace(prompts) for name, each in searches(task, len(verdict.stages)).items()}
    found = agreement(verdict, known)
    return {"called": found["called"], "closest": found["closest"], **found["mean"][found["closest"]]}


def sortedness(orders: Mapping[str, Tensor], prompts: Prompts) -> Table:
    """The share of points that are stored where they belong if all are sorted."""
    shares = {what: in_place(stored, prompts).double().mean(1, keepdim=True) for what, stored in orders.items()}
    return [{"what": what, **described(share)[0]} for what, share in shares.items()]


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


def agreement(verdict: Verdict, known: Mapping[str, Trace]) -> dict[str, Any]:
    """How often each look-up reads what the same look-up of a search reads, as long as the model has not found the
    answer, and where it reads a wrong point; which search is closest, and what the model is called. `known` are the
    traces of the verdict, by the study's names.
    """
    trace, rows, own = verdict.trace, [], {}
    at = torch.ones(trace.prompts.positions, dtype=torch.bool)
    informative = [m for m in _before_last(verdict) if verdict.stages[m].informative]
    wrong = 1 - found(trace).double().mean((1, 2))
    for (name, other), match in zip(known.items(), verdict.matches[verdict.measure].values(), strict=True):
        shares = _same_lookup(ReadsWhileSearching().per_sequence(trace, other, at))
        for m, row in enumerate(described(shares)):
            mistakes = {
                "mistakes": float(match.similarity[m, m]),
                "wrong": float(wrong[m]),
                "null": float(match.null[m]),
            }
            rows.append({"search": name, "lookup": m + 1, **row, **mistakes})
        own[name] = described(shares[:, informative or [0]].mean(1, keepdim=True))[0]
    closest = max(own, key=lambda name: own[name]["value"])
    return {"agreement": rows, "mean": own, "closest": closest, "called": called(verdict, known)}


def _before_last(verdict: Verdict) -> range:
    """The look-ups that say how a model searches: the last one only has to answer."""
    return range(max(len(verdict.stages) - 1, 1))


def _same_lookup(values: Float[Tensor, "sets lookups steps"]) -> Float[Tensor, "sets lookups"]:
    return values.diagonal(dim1=1, dim2=2)


def called(verdict: Verdict, known: Mapping[str, Trace]) -> str | None:
    """The search which every informative look-up before the last is, alone: its wrong reads are those of that search's
    own look-up, more often than not. One that reads the same point for every query, as binary search does first, cannot
    be named, so there that is enough.
    """
    stages = [(m, verdict.stages[m]) for m in _before_last(verdict) if verdict.stages[m].informative]
    matches, found = verdict.matches[verdict.measure], []
    for (name, trace), algorithm in zip(known.items(), verdict.algorithms, strict=True):
        several = trace.values.shape[-1] > 1
        fixed = ((trace.values == trace.values[..., :1]).flatten(1).all(1) & several).tolist()
        named = [(m + 1, stage) for m, stage in stages if not fixed[m]]
        alike = all(float(matches[algorithm].similarity[m, m]) > HALF for m, _ in stages if fixed[m])
        alone = all(len(stage.agreed) == 1 and stage.clear for _, stage in named)
        if named and alone and alike and all(step in stage.steps(algorithm) for step, stage in named):
            found.append(name)
    return found[0] if len(found) == 1 else None


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
        below = task.below(x[:, count:])
        if below is not None:
            expected = (count * below - 0.5).clamp(0, count - 1)
            off = (ranks - expected).abs().mean(1, keepdim=True) / count
            rows.append({"what": what, "is": "off the expected place", **described(off)[0]})
    return rows

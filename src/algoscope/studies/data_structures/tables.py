"""The tables of the page: what each model is called, the controls, and our numbers beside the published ones."""

from collections.abc import Sequence
from typing import Any

from algoscope.studies.claim import Numbers, Value
from algoscope.studies.data_structures.findings import error, sorted_share, value_of
from algoscope.studies.data_structures.forms import LONGEST
from algoscope.studies.data_structures.holdings import CONTENTS, ELSEWHERE, FOUND_SO, FRACTION
from algoscope.studies.data_structures.intervals import table
from algoscope.studies.data_structures.published import Number
from algoscope.studies.data_structures.published import numbers as published
from algoscope.studies.data_structures.references import MODEL, UNTRAINED
from algoscope.studies.data_structures.trainings import FIXED, FOUR, HITTERS, OURS, SPACED, mnist
from algoscope.studies.study import Table, labeled

COUNTED = (FIXED, HITTERS, mnist(HITTERS))  # runs whose frequent items are always the same


def tables(numbers: Numbers) -> Sequence[Table]:
    made = [make(numbers) for make in (_names, _controls, _splits, _held, _probe, _shared, _beside)]
    return [each for each in made if each.rows]


def _names(numbers: Numbers) -> Table:
    """What the instrument says of every model."""
    rows = []
    for label, model in labeled(numbers).items():
        if "called" in model:
            closest, all_tied = model["closest"], len(model["ties"]) == len(model["mean"]) > 1
            ties = ", ".join(name for name in model["ties"] if name != closest) or "none"
            found = table(model, "agreement", search=closest)
            shares = [" ".join(f"{row[part]:.2f}" for row in found) for part in ("value", "mistakes", "wrong")]
            rows.append([label, model["called"] or "no known search", "none" if all_tied else closest, *shares, ties])
    return Table(
        "Which search is it?",
        "Look-ups count as long as the model has not found the answer. It is called by the name of a search if that "
        "one alone is closest to it and reads the same point more often than not at every look-up but the last, also "
        "where that point is wrong: that both are right says nothing. Look-ups with few wrong reads have no say.",
        ("model", "called", "closest", "equal reads, look-up by look-up", "equal wrong reads", "wrong reads", "ties"),
        rows,
    )


def _controls(numbers: Numbers) -> Table:
    rows = []
    for model in labeled(numbers).values():
        for row in model.get("controls", ()):
            rows.append([row["what"], row["expected"] or "no name", row["called"] or "no name", float(row["value"])])
    return Table(
        "Controls",
        "Binary search, written into the weights of an index, has to be called that, and fresh networks nothing.",
        ("network", "should be called", "is called", "agreement with the closest search"),
        rows,
    )


def _splits(numbers: Numbers) -> Table:
    rows = []
    for label, model in labeled(numbers).items():
        for row in model.get("splits", ()):
            share = f"{row['value']:.3f} ({row['low']:.3f} – {row['high']:.3f})"
            rows.append([label, row["level"], row["coordinate"], share])
    return Table(
        "Does the order split the plane like a k-d tree?",
        "Of pairs of points from both sides of the middle place, the share whose coordinates are in order. A k-d tree "
        "has 1 for one coordinate at level 1, the whole order, and for the other at level 2, its halves; 0.5 says "
        "nothing.",
        ("model", "level", "coordinate", "in order"),
        rows,
    )


def _held(numbers: Numbers) -> Table:
    rows = []
    for label, model in labeled(numbers).items():
        for what in (MODEL, UNTRAINED):
            found = {row["holds"]: row for row in table(model, "held", what=what)}
            names = (*CONTENTS, ELSEWHERE) if what == MODEL else (FRACTION,)
            for name in names if found else ():
                read, row = f"{found[name]['read']} of {model['slots']}", found[name]
                swaps = table(model, "swapped", **{"with": name, "is": FOUND_SO}) if what == MODEL else []
                shares = [f"{each['value']:.3f} ({each['low']:.3f} – {each['high']:.3f})" for each in (row, *swaps)]
                rows.append([label, what, read, name, *shares, *([] if swaps else [""])])
    return Table(
        "What do extra slots hold?",
        "The share of the variance of what a slot holds, from set to set, that a line explains of what it may hold: "
        "nearest to the middle of the queries that read the slot, and below it. And how much is found where slots hold "
        "that line instead. Lines are fitted to half of the sets, and the others judged. Of runs whose weights were at "
        "hand when this was measured.",
        ("model", "network", "slots read", "what they may hold", "explained", "found with that instead"),
        rows,
    )


def _probe(numbers: Numbers) -> Table:
    rows = []
    for label, model in labeled(numbers).items():
        for row in model.get("probe", {}).get("subspaces", ()):
            two = f"{row['value']:.3f} ({row['low']:.3f} – {row['high']:.3f})"
            each = " ".join(f"{share:.2f}" for share in row["shares"])
            rows.append([label, row["what"], row["places"], two, each])
    return Table(
        "Which directions decide the look-up?",
        "A logistic regression for each place tells which queries read it. Of the variance of their weights, the share "
        "along the first two principal directions, and along each.",
        ("model", "network", "places read", "first two", "each"),
        rows,
    )


def _shared(numbers: Numbers) -> Table:
    """Of sketches whose frequent items are always the same: which of them are counted together."""
    rows = []
    firsts = [(run, model) for run in COUNTED for model in list(numbers.get(run, {}).values())[:1]]
    for run, model in firsts:
        cells: dict[int, list[Numbers]] = {}
        for row in model["cells"]:
            cells.setdefault(row["cell"], []).append(row)
        for cell, items in cells.items():
            adds = sum(row["adds"] for row in items) / len(items)
            rows.append([run, cell, ", ".join(str(row["item"] + 1) for row in items), float(adds)])
    return Table(
        "Which items share a cell?",
        "The cells of the learned sketch, where small numbers are always the frequent ones, and what an item adds. Of "
        "an item that is seen as many pictures, the cell of most.",
        ("run", "cell", "items, from the most frequent", "adds, on average"),
        rows,
    )


def _beside(numbers: Numbers) -> Table:
    """Published numbers whose run was carried out, of whatever size it was here, and beside it other forms of it."""
    rows = []
    for number in published():
        for run in (
            number.run,
            *(f"{number.run}, {form}" for form in (*SPACED, FOUR, LONGEST.removeprefix(f"{OURS}, "))),
        ):
            found = [_ours(number, model) for model in numbers.get(run, {}).values()]
            ours = ", ".join(f"{each.value:.3f} ({each.low:.3f} – {each.high:.3f})" for each in found if each)
            if ours:
                rows.append([run, number.method, number.quantity, number.value, ours, number.where])
    return Table(
        "Beside the published numbers",
        "The sizes are the paper's only at paper scale. Ours are those of each seed, after the last look-up. ITQ and "
        "cells of equal ranges are ours to define where the paper does not, and differ from the published ones.",
        ("run", "method", "what", "published", "ours", "where"),
        rows,
    )


def _ours(number: Number, model: dict[str, Any] | Any) -> Value | None:
    what = {"model": MODEL, "untrained": UNTRAINED}.get(number.method, number.method)
    if number.quantity == "in place":
        return sorted_share(what)(model)
    if number.quantity == "error":
        return error(what)(model)
    rows = table(model, "found", what=what)
    return value_of(rows[-1]) if rows else None

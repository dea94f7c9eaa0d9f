"""The paper's curves, read off its vector figures (to about .005).

chains.csv: exact match on two chains, by the chance of an edge in training and the limit on the diameter (Figure 5).
mixtures.csv: by the share of graphs beyond capacity in training, the share of the algorithm, exact match on two chains
of three edges, and the share of right answers (Figure 6). reach.csv: the longest paths that are known, by steps of
training (Figures 2 and 10). training.csv: some points of what is drawn over training (Figures 1, 3, 4, 7, 8 and 11).
"""

import csv
import functools
from pathlib import Path


@functools.cache
def rows(name: str) -> tuple[dict[str, str], ...]:
    with (Path(__file__).parent / f"{name}.csv").open(encoding="utf-8") as file:
        return tuple(csv.DictReader(file))


@functools.cache
def chains(edges: int, limit: int | None) -> dict[float, float]:
    """Exact match by the chance of an edge."""
    column = "no_limit" if limit is None else f"limit_{limit}"
    return {float(row["chance"]): float(row[column]) for row in rows("chains") if int(row["edges"]) == edges}


@functools.cache
def mixtures(column: str) -> dict[float, float]:
    """By the share of graphs beyond capacity."""
    return {float(row["beyond"]): float(row[column]) for row in rows("mixtures")}


@functools.cache
def training(figure: int) -> dict[str, dict[int, float]]:
    """The curves of a figure over training: values by steps."""
    found: dict[str, dict[int, float]] = {}
    for row in rows("training"):
        if int(row["figure"]) == figure:
            found.setdefault(row["series"], {})[int(row["steps"])] = float(row["value"])
    return found


@functools.cache
def reach(model: str) -> dict[int, int]:
    """By steps."""
    return {int(row["steps"]): int(row["reach"]) for row in rows("reach") if row["model"] == model}

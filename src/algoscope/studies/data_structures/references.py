"""The study's names for the searches and sketches that people wrote, and the tables that are measured of them."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from algoscope import algorithms as known
from algoscope.algorithms.sketches import Sketch
from algoscope.contracts import Algorithm
from algoscope.matching.statistics import bounded_means
from algoscope.tasks.search import Search

Table = list[dict[str, Any]]
MODEL, UNTRAINED = "the model", "untrained"  # beside which they stand
BINARY, INTERPOLATION, TREAP, TREE = "binary search", "interpolation search", "treap", "k-d tree"
HASH, ROTATED, CELLS, OWN_CELLS = "SimHash", "ITQ", "k-means cells", "k-means cells of each set"
RANGES = "cells of equal ranges"
BUCKETS, MINIMUM, LESS, SIGNED = "buckets", "count-min", "count-min, increment .8", "count sketch"
NAMES = {
    known.BinarySearch: BINARY,
    known.InterpolationSearch: INTERPOLATION,
    known.Treap: TREAP,
    known.KDTree: TREE,
    known.SimHash: HASH,
    known.IterativeQuantization: ROTATED,
    known.RangeCells: RANGES,
    known.Buckets: BUCKETS,
}


def searches(task: Search, lookups: int, slots: int = 0) -> dict[str, Algorithm]:
    """Those that make sense of a task's points, by name; all of them may read `lookups` points."""
    return {_named(search): search for search in task.searches(lookups, slots)}


def _named(search: Algorithm) -> str:
    if isinstance(search, known.KMeansCells):
        return OWN_CELLS if search.centers is None else CELLS
    return NAMES[type(search)]


def sketches(cells: int, accesses: int, seed: int) -> dict[str, Sketch]:
    return {
        MINIMUM: known.CountMin(cells, accesses, seed=seed),
        LESS: known.CountMin(cells, accesses, increment=0.8, seed=seed),
        SIGNED: known.CountSketch(cells, accesses, seed=seed),
    }


def described(values: Tensor, least: float = 0.0, most: float = 1.0) -> Table:
    """The mean of each column over the rows, which are prompts, with its interval."""
    return [estimate._asdict() for estimate in bounded_means(values, least, most)]


def table(model: Mapping[str, Any], name: str, **wanted: object) -> Table:
    """Rows of a table with given entries."""
    return [row for row in model.get(name, ()) if all(row[key] == value for key, value in wanted.items())]

"""The searches and sketches that people wrote, for each task of the study."""

import functools

from algoscope.algorithms import (
    BinarySearch,
    Buckets,
    CountMin,
    CountSketch,
    InterpolationSearch,
    IterativeQuantization,
    KDTree,
    KMeansCells,
    RangeCells,
    SimHash,
    Treap,
)
from algoscope.algorithms.cells import means, quantizer
from algoscope.algorithms.search import Lookups
from algoscope.algorithms.sketches import Sketch
from algoscope.tasks import HardSearch, NumberSearch, SphereSearch, UniformSearch, ZipfSearch
from algoscope.tasks.search import Search

MODEL, UNTRAINED = "the model", "untrained"  # beside which they stand
BINARY, INTERPOLATION, TREAP, TREE = "binary search", "interpolation search", "treap", "k-d tree"
HASH, ROTATED, CELLS, OWN_CELLS = "SimHash", "ITQ", "k-means cells", "k-means cells of each set"
RANGES = "cells of equal ranges"
BUCKETS, MINIMUM, LESS, SIGNED = "buckets", "count-min", "count-min, increment .8", "count sketch"
BITS = 4  # 16 cells, as published
PARTS = 8  # of all numbers, as published
LEARNED_FROM = 5000  # points, for cells that are the same for all sets


def searches(task: Search, lookups: int, slots: int = 0) -> dict[str, Lookups]:
    """Those that make sense of a task's points, by name; all of them may read `lookups` points."""
    if isinstance(task, ZipfSearch):
        ends = 0.5, task.universe + 0.5
        return {**_on_a_line(lookups, *ends), TREAP: Treap(lookups, task.universe, task.exponent)}
    if isinstance(task, NumberSearch):
        ends = -0.5, task.universe - 0.5
        cells = {RANGES: RangeCells(lookups, PARTS, *ends)} if task.size >= PARTS else {}
        return {**_on_a_line(lookups, *ends), **cells}
    if isinstance(task, HardSearch) and task.dim == 1:
        below = task.reach - task.base**task.levels  # the root is never negative
        return _on_a_line(lookups, -below, task.reach)
    if isinstance(task, UniformSearch) and task.dim == 1:
        extra = {BUCKETS: Buckets(lookups, slots)} if slots else {}
        return {**_on_a_line(lookups, -1.0, 1.0), **extra}
    if isinstance(task, SphereSearch) and task.size >= 2**BITS:
        return _cells(task, lookups)
    cells = {OWN_CELLS: KMeansCells(lookups, 2**BITS)} if task.size >= 2**BITS else {}
    return {TREE: KDTree(lookups), **cells}


def _on_a_line(lookups: int, low: float, high: float) -> dict[str, Lookups]:
    return {BINARY: BinarySearch(lookups), INTERPOLATION: InterpolationSearch(lookups, low, high)}


@functools.cache
def _cells(task: SphereSearch, lookups: int) -> dict[str, Lookups]:
    """Cells of the whole distribution, as published, and of each set of points, which an index may have as well."""
    sets = task.sample(-(-LEARNED_FROM // task.size), seed=0, purpose="cells")
    points = sets.x[:, : task.size].flatten(0, 1)[None]
    centers, basis = means(points, 2**BITS)[0], quantizer(points, BITS)[0]
    return {
        HASH: SimHash(lookups, BITS),
        ROTATED: IterativeQuantization(lookups, BITS, basis),
        CELLS: KMeansCells(lookups, 2**BITS, centers),
        OWN_CELLS: KMeansCells(lookups, 2**BITS),
    }


def sketches(cells: int, accesses: int, seed: int) -> dict[str, Sketch]:
    return {
        MINIMUM: CountMin(cells, accesses, seed=seed),
        LESS: CountMin(cells, accesses, increment=0.8, seed=seed),
        SIGNED: CountSketch(cells, accesses, seed=seed),
    }

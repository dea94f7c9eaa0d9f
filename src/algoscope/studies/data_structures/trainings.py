"""The runs of the study at each scale.

As published, each look-up has a network of its own and the last one answers. Ours is one network for all look-ups, and
any of them may answer: that is what the paper's own measure of success counts, once at the end; or, "in haste", after
each look-up. "With waves" a small network sees numbers as waves, too. With extra space the last look-up answers: where
any may, one that reads a slot is one that cannot; slots that are "read first" are those of a small network with waves.
In more than one dimension, where points are uniform, orders can be folded.

Pictures of numbers are those of the digits that ship with the project. A folder with the files of MNIST, named by the
variable ALGOSCOPE_MNIST, adds runs with these: only they are comparable with the published numbers.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from algoscope.models import Index, LearnedSketch, Model
from algoscope.studies.data_structures.controls import planted_case
from algoscope.studies.study import Case, Training
from algoscope.tasks import (
    HardSearch,
    NumberSearch,
    NumberStream,
    SphereSearch,
    Task,
    UniformSearch,
    ZipfSearch,
    ZipfStream,
)
from algoscope.tasks.numerals import height_and_width
from algoscope.training import Settings

PUBLISHED, OURS, HALF = "1D uniform, as published", "1D uniform", "1D uniform, 2 look-ups"
HASTY, WAVES = "1D uniform, in haste", "1D uniform, in haste, with waves"
HARD, HARD_PUBLISHED, ZIPF = "1D hard", "1D hard, as published", "1D Zipf queries"
PLANE, PLANE_HARD, SPHERE = "2D uniform", "2D hard", "30D sphere"
NOISELESS, FROZEN, BLIND, FLAT = "without noise", "frozen order", "queries that see no reads", "no folds"
STREAM, FIXED, LARGE = "Zipf stream", "Zipf stream, fixed ranks", "500 points, pointers"
NUMBERS, HITTERS, PROBE = "pictures of numbers", "stream of pictures", "30D sphere, 8 points, 1 look-up"
MNIST = os.environ.get("ALGOSCOPE_MNIST")
QUERIES = 16  # for each set of points: with 64 sets a step learns from 1,024 queries, as the paper's


def space(slots: int) -> str:
    return f"{slots} extra slots"


def slots_first(slots: int) -> str:
    return f"{space(slots)}, read first"


def mnist(run: str) -> str:
    return f"{run}, MNIST"


def one(
    name: str, task: Task, model: Model, steps: int, rate: float, seeds: tuple[int, ...] = (0,), batch: int = 64
) -> Training:
    settings = Settings(steps=steps, batch=batch, curriculum=None, checkpoint_every=max(steps // 10000, 1) * 1000)
    return Training(name, task, model, settings, rate, seeds)


def ablations(name: str, of: Training, seeds: tuple[int, ...]) -> list[Training]:
    """What is lost without noise, with an order that is not learned, and where queries do not see what was read."""
    assert isinstance(of.model, Index)
    changed = {NOISELESS: {"noisy": False}, FROZEN: {"ordered": False}, BLIND: {"adaptive": False}}
    return [
        replace(of, name=f"{name}, {what}", model=replace(of.model, **change), seeds=seeds)
        for what, change in changed.items()
    ]


def folded(training: Training, folds: int) -> list[Training]:
    """An order that can wind through space, and beside it one that cannot, of the first seed."""
    assert isinstance(training.model, Index)
    winding = replace(training, model=replace(training.model, folds=folds))
    return [winding, replace(training, name=f"{training.name}, {FLAT}", seeds=training.seeds[:1])]


def pictures(
    search: str,
    stream: str,
    model: Index,
    settings: Mapping[str, Any],
    counting: Mapping[str, Any],
    folder: str | None = None,
) -> list[Training]:
    """A search among numbers and a stream of them, both seen as pictures of three digits, at the published sizes."""
    seen = height_and_width(3, folder)
    return [
        one(search, NumberSearch(50, queries=QUERIES, folder=folder), replace(model, picture=seen), **settings),
        one(stream, NumberStream(100, 100, folder=folder), LearnedSketch(cells=16, picture=seen), **counting),
    ]


def smoke() -> Sequence[Training | Case]:
    tiny = Index(lookups=3, layers=1, heads=2, width=8, hidden=16, shared=True, answer="each")
    line, settings = UniformSearch(7, queries=4), {"steps": 20, "rate": 3e-3, "batch": 8}
    return (
        one(OURS, line, tiny, **settings),
        one(PLANE, UniformSearch(16, dim=2, queries=4), tiny, **settings),
        one(space(2), line, replace(tiny, lookups=2, slots=2), **settings),
        one(STREAM, ZipfStream(10, 8), LearnedSketch(cells=4, hidden=8), **settings),
        one(
            NUMBERS,
            NumberSearch(8, 20, queries=4, digits=2),
            replace(tiny, picture=(8, 16), channels=2),
            **settings,
        ),
        one(
            HITTERS,
            NumberStream(10, 8, digits=2),
            LearnedSketch(cells=4, hidden=8, picture=(8, 16), channels=2),
            **settings,
        ),
        one(PROBE, SphereSearch(4, dim=3, queries=4), replace(tiny, lookups=1), **settings),
        planted_case(points=7),
    )


def laptop() -> Sequence[Training | Case]:
    """15 points in 4 look-ups, which is as many as binary search needs; 16 in 2 with extra space. In the plane 3, fewer
    than a k-d tree has levels, as in the paper. Of the seeds, 1 begins with 40% of the points in place and 5 with 69%.
    """
    published, settings = Index(lookups=4, layers=2, heads=2, width=32, hidden=64), {"steps": 1500, "rate": 3e-3}
    ours = replace(published, shared=True, answer="any")
    line = UniformSearch(15, queries=QUERIES)
    main = one(OURS, line, ours, **settings, seeds=(1, 5))
    crowded, few = UniformSearch(16, queries=QUERIES), replace(published, lookups=2)
    sketch = LearnedSketch(cells=8, hidden=64)
    return (
        main,
        *(
            one(name, line, replace(ours, answer="each", octaves=octaves), **settings, seeds=(1,))
            for name, octaves in ((HASTY, 0), (WAVES, 4))
        ),
        one(PUBLISHED, line, published, **settings, seeds=(1,)),
        one(HARD, HardSearch(15, queries=QUERIES), ours, **settings),
        one(HARD_PUBLISHED, HardSearch(15, queries=QUERIES), published, **settings),
        *folded(one(PLANE, UniformSearch(15, dim=2, queries=QUERIES), replace(ours, lookups=3), **settings), 1),
        *(one(space(slots), crowded, replace(few, slots=slots), 3000, 3e-3) for slots in (0, 8)),  # slots learn late
        *ablations(OURS, main, seeds=(1,)),
        one(STREAM, ZipfStream(20, 30), sketch, **settings),
        one(FIXED, ZipfStream(20, 30, ranks="fixed"), sketch, **settings),
        one(
            NUMBERS,
            NumberSearch(15, 30, queries=QUERIES, digits=2),
            replace(ours, picture=(8, 16), channels=16),
            **settings,
            batch=16,
        ),
        one(
            HITTERS,
            NumberStream(20, 30, digits=2),
            replace(sketch, picture=(8, 16), channels=16),
            **settings,
            batch=16,
        ),
        *folded(one(PROBE, SphereSearch(8, queries=QUERIES), replace(published, lookups=1), **settings), 1),
        planted_case(points=15),
    )


def paper() -> Sequence[Training | Case]:
    """The paper's sizes, what matters most first. It trains up to 500,000 steps with Adam; with Muon a hundredth of
    that finds as much or more, though errors still fall a little (docs/data-structures.md). In more than one dimension
    at a third of the rate. Small networks, of a tenth to a seventh of the published weights, train on one core of a
    processor in 2 to 40 minutes.
    """
    short, three = {"steps": 20_000, "rate": 3e-3}, (0, 1, 2)
    small: dict[str, Any] = {"layers": 4, "heads": 4, "width": 32, "hidden": 256}
    counting = {"steps": 15_000, "rate": 2e-3}
    published = Index(lookups=7)
    ours = replace(published, shared=True, answer="any")
    six, four, two = (replace(ours, lookups=lookups) for lookups in (6, 4, 2))
    hasty = replace(ours, answer="each")
    # Training that counts what is found in the end alone loses the order of so many (docs/log.md).
    pointers = replace(hasty, lookups=5, address="pointer", octaves=7, **small)
    line, fifty = UniformSearch(100, queries=QUERIES), UniformSearch(50, queries=QUERIES)
    main, few = one(OURS, line, ours, **short, seeds=three), replace(published, lookups=2)
    first = replace(few, slots=8, before="slots", octaves=5, **small)
    brisk = {"rate": 1e-2, "batch": 32}
    plane = folded(one(PLANE, UniformSearch(100, dim=2, queries=QUERIES), six, 20_000, 1e-3, three), 1)
    sphere = folded(one(SPHERE, SphereSearch(100, queries=QUERIES), replace(six, **small), 3_000, 1e-3, batch=32), 4)
    hashed = replace(published, lookups=1, **small)
    probe = folded(one(PROBE, SphereSearch(8, queries=QUERIES), hashed, 4_000, 3e-3, batch=32), 1)
    return (
        main,
        plane[0],
        one(HARD, HardSearch(15, queries=QUERIES), four, **short),
        one(PLANE_HARD, HardSearch(15, dim=2, queries=QUERIES), four, 30_000, 1e-3),
        sphere[0],
        *(one(space(slots), fifty, replace(few, slots=slots), **short) for slots in (0, 8, 32, 128)),
        *(one(slots_first(slots), fifty, replace(first, slots=slots), 20_000, **brisk) for slots in (8, 32, 128)),
        one(STREAM, ZipfStream(1000, 100), LearnedSketch(cells=32), **counting),
        one(HALF, fifty, replace(two, octaves=5, **small), 3_000, **brisk),
        one(ZIPF, ZipfSearch(100, queries=QUERIES), ours, **short),
        *(pictures(mnist(NUMBERS), mnist(HITTERS), ours, short, counting, MNIST) if MNIST else ()),
        one(LARGE, UniformSearch(500, queries=64), pointers, 3_000, 1e-2, batch=8),
        *ablations(OURS, main, seeds=(0,)),
        one(WAVES, line, replace(hasty, octaves=6, **small), 3_000, **brisk, seeds=three),
        one(HASTY, line, hasty, **short, seeds=three),
        *probe,
        one(FIXED, ZipfStream(100, 100, ranks="fixed"), LearnedSketch(cells=16), **counting),
        one(PUBLISHED, line, published, **short),
        one(HARD_PUBLISHED, HardSearch(15, queries=QUERIES), replace(published, lookups=4), **short),
        *pictures(NUMBERS, HITTERS, ours, short, counting),
        plane[1],
        sphere[1],
        planted_case(points=15),
    )


RUNS = {"smoke": smoke(), "laptop": laptop(), "paper": paper()}

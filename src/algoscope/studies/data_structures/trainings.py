"""The runs of the study at each scale.

As published, each look-up has a network of its own and the last one answers. Ours is one network for all look-ups, and
any of them may answer: that is what the paper's own measure of success counts, once at the end; or, "in haste", after
each look-up. "With waves" a small network sees numbers as waves, too. With extra space the last look-up answers: where
any may, one that reads a slot is one that cannot; slots that are "read first" are those of a small network with waves,
and so are those that are "written apart", by a transformer of their own, those that are only "in favor" to begin with
and those that are "known by tokens"; with none, there is also a "small" network without waves. In long runs points can
be "sorted sharply", by a sort that blurs half as much in training, and weights can be trained "with decay", against
orders that are lost: each helps in some of them (docs/data-structures.md). In more than one dimension, where points
are uniform, orders can be folded.

Pictures of numbers are those of the digits that ship with the project. With a folder of the files of MNIST, named by
the variable ALGOSCOPE_MNIST, runs with these are made too: only they are comparable with the published numbers.
"""

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
from algoscope.tasks.search import Search
from algoscope.training import Settings

PUBLISHED, OURS, HALF = "1D uniform, as published", "1D uniform", "1D uniform, 2 look-ups"
HASTY, WAVES = "1D uniform, in haste", "1D uniform, in haste, with waves"
HARD, HARD_PUBLISHED, HARD_MORE = "1D hard", "1D hard, as published", "1D hard, 31 points"
ZIPF, PLANE, PLANE_HARD, SPHERE = "1D Zipf queries", "2D uniform", "2D hard", "30D sphere"
NOISELESS, FROZEN, BLIND = "without noise", "frozen order", "queries that see no reads"
UNPERMUTED, FLAT = "vectors instead of points", "no folds"
STREAM, FIXED, LARGE = "Zipf stream", "Zipf stream, fixed ranks", "500 points, pointers"
NUMBERS, HITTERS, PROBE = "pictures of numbers", "stream of pictures", "30D sphere, 8 points, 1 look-up"
MNIST, MNIST_DIGITS = "ALGOSCOPE_MNIST", (28, 28)  # a variable that names a folder, and the pixels of its images
SMALL, FIRST, APART, FAVORED, KNOWN = "small", "read first", "written apart", "in favor", "known by tokens"
SHARP, DECAYED, FOUR = "sorted sharply", "with decay", "four features"
DECAY = 0.03  # of weights; ten times that costs early look-ups on a line (docs/log.md)
MOST = 100_000  # steps
QUERIES = 16  # for each set of points: with 64 sets a step learns from 1,024 queries, as the paper's


def space(slots: int, form: str = "") -> str:
    return f"{slots} extra slots" + (f", {form}" if form else "")


def longer(run: str, steps: int | None = None) -> str:
    return f"{run}, {steps:,} steps" if steps else f"{run}, twice the steps"


def sharp(run: str) -> str:
    return f"{run}, {SHARP}"


def decayed(run: str) -> str:
    return f"{run}, {DECAYED}"


def four(run: str) -> str:
    return f"{run}, {FOUR}"


def mnist(run: str) -> str:
    return f"{run}, MNIST"


def variants(run: str) -> tuple[str, str]:
    """Runs that differ from it in how they sort, and in that and the decay of weights."""
    return sharp(run), decayed(sharp(run))


# Forms of small networks with extra slots, or with none.
SPACED = (SMALL, *variants(SMALL), FIRST, APART, FAVORED, *variants(FAVORED), KNOWN)


def one(
    name: str, task: Task, model: Model, steps: int, rate: float, seeds: tuple[int, ...] = (0,), batch: int = 64
) -> Training:
    settings = Settings(steps=steps, batch=batch, curriculum=None, checkpoint_every=_every(steps))
    return Training(name, task, model, settings, rate, seeds)


def _every(steps: int) -> int:
    """How many of them are between two checkpoints."""
    return max(steps // 10000, 1) * 1000


def exactly(training: Training) -> Training:
    """In 32 bits, also on a GPU: what a slot or a feature of a picture has to tell apart, and coordinates that are 1
    and 10,000 times as large, 16 do not.
    """
    return replace(training, settings=replace(training.settings, precision="fp32"))


def for_longer(training: Training, steps: int | None = None) -> Training:
    """The same for twice the steps, or for so many, at half the rate, in 32 bits: whether what is found would still
    change. At the whole rate more neighbors changed places in one seed of six (docs/log.md).
    """
    name, rate = longer(training.name, steps), training.learning_rate / 2
    steps = steps or 2 * training.settings.steps
    settings = replace(training.settings, steps=steps, checkpoint_every=_every(steps))
    return exactly(replace(training, name=name, settings=settings, learning_rate=rate))


def sharply(training: Training) -> Training:
    """The same with a sort that blurs half as much in training."""
    assert isinstance(training.model, Index)
    model = replace(training.model, softness=training.model.softness / 2)
    return replace(training, name=sharp(training.name), model=model)


def decaying(training: Training) -> Training:
    """The same with weights that decay."""
    settings = replace(training.settings, weight_decay=DECAY)
    return replace(training, name=decayed(training.name), settings=settings)


def ablations(name: str, of: Training, seeds: tuple[int, ...], rate: float) -> list[Training]:
    """What is lost without noise, with an order that is not learned, where queries do not see what was read, and where
    as many vectors of the network's own are stored instead of the points: these diverge at rates above their own.
    """
    assert isinstance(of.model, Index)
    assert isinstance(of.task, Search)
    changed: dict[str, dict[str, Any]] = {NOISELESS: {"noisy": False}, FROZEN: {"ordered": False}}
    changed |= {BLIND: {"adaptive": False}, UNPERMUTED: {"permuted": False, "slots": of.task.size}}
    made = [
        replace(of, name=f"{name}, {what}", model=replace(of.model, **change), seeds=seeds)
        for what, change in changed.items()
    ]
    return [*made[:-1], replace(made[-1], learning_rate=rate)]


def folded(training: Training, folds: int) -> list[Training]:
    """An order that can wind through space, and beside it one that cannot, of the first seed."""
    assert isinstance(training.model, Index)
    winding = replace(training, model=replace(training.model, folds=folds))
    return [winding, replace(training, name=f"{training.name}, {FLAT}", seeds=training.seeds[:1])]


def featured(training: Training) -> list[Training]:
    """A search among pictures of which one feature is stored, as published, and beside it one of four."""
    assert isinstance(training.model, Index)
    return [training, replace(training, name=four(training.name), model=replace(training.model, features=4))]


def pictures(
    model: Index, settings: Mapping[str, Any], counting: Mapping[str, Any], images: str | None = None, shift: int = 0
) -> list[Training]:
    """A search among numbers and a stream of them, both seen as pictures of three digits, at the published sizes.

    Images are those of the folder that the variable `images` names, by default those that ship with the project; those
    to train with are moved by up to `shift` pixels.
    """
    folder, seen = f"${images}" if images else None, (MNIST_DIGITS[0], 3 * MNIST_DIGITS[1])
    seen = seen if images else height_and_width(3)
    search = NumberSearch(50, queries=QUERIES, folder=folder, shift=shift), replace(model, picture=seen)
    stream = NumberStream(100, 100, folder=folder, shift=shift), LearnedSketch(cells=16, picture=seen)
    named, needs = (mnist, images) if images else (str, "")
    made = one(named(NUMBERS), *search, **settings), one(named(HITTERS), *stream, **counting)
    return [replace(each, needs=needs) for each in made]


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
    than a k-d tree has levels, as in the paper. Of the seeds, 1 begins with 37% of the points in place and 5 with 70%.
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
        *ablations(OURS, main, seeds=(1,), rate=3e-3),
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


SMALL_SIZE: dict[str, Any] = {"layers": 4, "heads": 4, "width": 32, "hidden": 256}
LARGE_STEPS, BRISK = {"steps": 20_000, "rate": 3e-3}, {"rate": 1e-2, "batch": 32}
AS_PUBLISHED = Index(lookups=7)
OF_OURS = replace(AS_PUBLISHED, shared=True, answer="any", **SMALL_SIZE)


def paper() -> Sequence[Training | Case]:
    """The paper's sizes, what matters most first. It trains up to 500,000 steps with Adam; with Muon a fifth of that or
    less suffices for most of them, and not for all (docs/data-structures.md). Small networks, of a seventh of the
    weights that the same form has at the published size, find about as much in the plane; the published form has the
    published size.
    """
    counting, seen = {"steps": 15_000, "rate": 2e-3}, {"steps": 12_000, "rate": 3e-3, "batch": 16}
    hard, four_times, six = HardSearch(15, queries=QUERIES), replace(OF_OURS, lookups=4), replace(OF_OURS, lookups=6)
    square, ball = UniformSearch(100, dim=2, queries=QUERIES), SphereSearch(100, queries=QUERIES)
    plane = folded(one(PLANE, square, six, 12_000, 2e-3, (0, 1, 2), 32), 1)
    sphere = folded(one(SPHERE, ball, six, 6_000, 1e-3, batch=32), 4)
    hashed = replace(AS_PUBLISHED, lookups=1, **SMALL_SIZE)
    search, stream = pictures(
        OF_OURS, {**seen, "steps": 30_000}, {**seen, "rate": 1e-3, "steps": 24_000}, MNIST, shift=2
    )
    return (
        plane[0],
        exactly(one(HARD, hard, four_times, 20_000, 1e-2)),
        exactly(one(PLANE_HARD, HardSearch(15, dim=2, queries=QUERIES), four_times, 20_000, 1e-2)),
        sphere[0],
        *with_slots(),
        one(STREAM, ZipfStream(1000, 100), LearnedSketch(cells=32), **counting),
        *featured(exactly(search)),
        stream,
        *on_a_line(),
        exactly(one(HARD_MORE, HardSearch(31, queries=QUERIES), replace(OF_OURS, lookups=5), **LARGE_STEPS)),
        *folded(one(PROBE, SphereSearch(8, queries=QUERIES), hashed, 4_000, 3e-3, batch=32), 1),
        one(FIXED, ZipfStream(100, 100, ranks="fixed"), LearnedSketch(cells=16), **counting),
        exactly(one(HARD_PUBLISHED, hard, replace(AS_PUBLISHED, lookups=4), **LARGE_STEPS)),
        *pictures(OF_OURS, seen, seen),
        plane[1],
        sphere[1],
        planted_case(points=15),
    )


def on_a_line() -> Sequence[Training]:
    """Uniform points: counted in the end, after each look-up, and with waves, each also for longer, the second of them
    also sorted sharply, with decay, and then for the most steps; as published; with few look-ups, many points, and
    queries that follow Zipf's law.
    """
    line, fifty, three = UniformSearch(100, queries=QUERIES), UniformSearch(50, queries=QUERIES), (0, 1, 2)
    hasty = replace(OF_OURS, answer="each")
    waves = replace(hasty, octaves=6)
    arms = [
        one(name, line, model, 12_000, **BRISK, seeds=three)
        for name, model in ((OURS, OF_OURS), (HASTY, hasty), (WAVES, waves))
    ]
    # Training that counts what is found in the end alone loses the order of so many (docs/log.md).
    pointers = replace(hasty, lookups=5, address="pointer", octaves=7)
    return (
        *arms,
        *map(for_longer, arms),
        sharply(for_longer(arms[1])),
        *(decaying(sharply(for_longer(arms[1], steps))) for steps in (None, MOST)),
        *ablations(OURS, arms[0], seeds=(0, 1), rate=1e-3),  # a fresh order is sorted in seed 0, and not in seed 1
        one(PUBLISHED, line, AS_PUBLISHED, **LARGE_STEPS),
        one(HALF, fifty, replace(OF_OURS, lookups=2, octaves=5), 3_000, **BRISK),
        one(ZIPF, ZipfSearch(100, queries=QUERIES), waves, 12_000, **BRISK),
        one(LARGE, UniformSearch(500, queries=64), pointers, 3_000, 1e-2, batch=8),
    )


def with_slots() -> Sequence[Training]:
    """Two look-ups among 50 points with extra slots: free to be read, as published; read first, with waves; then also
    written by a transformer of their own; then only in favor to begin with; and known by their tokens. The last two are
    read by look-ups that are cooled. With none also by a small network. That, and 8 in favor, are also sorted sharply,
    and with decay.
    """
    free, fifty = replace(AS_PUBLISHED, lookups=2), UniformSearch(50, queries=QUERIES)
    first, asked = replace(free, slots=8, before="slots", octaves=5, **SMALL_SIZE), replace(fifty, queries=64)
    apart = replace(first, apart=True)
    favored = replace(apart, before="all", favor=6.0, coldest=0.25)
    known = replace(apart, address="token", coldest=0.25)
    forms = (
        (SMALL, replace(free, **SMALL_SIZE), MOST, {0: 1e-2}),
        (FIRST, first, 40_000, {8: 1e-2, 32: 1e-2, 128: 5e-3}),
        (APART, apart, 10_000, dict.fromkeys((8, 32, 128), 1e-2)),
        (FAVORED, favored, MOST, {8: 1e-2}),
        (KNOWN, known, MOST, {32: 1e-2, 128: 5e-3}),
    )
    made = {
        (slots, form): exactly(one(space(slots, form), asked, replace(model, slots=slots), steps, rate, batch=32))
        for form, model, steps, rates in forms
        for slots, rate in rates.items()
    }
    return (
        *(exactly(one(space(slots), fifty, replace(free, slots=slots), 40_000, 3e-3)) for slots in (0, 8, 32, 128)),
        *made.values(),
        *(variant for run in (made[0, SMALL], made[8, FAVORED]) for variant in (sharply(run), decaying(sharply(run)))),
    )


RUNS = {"smoke": smoke(), "laptop": laptop(), "paper": paper()}

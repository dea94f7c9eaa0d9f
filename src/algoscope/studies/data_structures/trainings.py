"""The runs of the study at each scale.

As published, each look-up has a network of its own and the last one answers. Ours is one network for all look-ups, and
any of them may answer: that is what the paper's own measure of success counts, once at the end; or with a loss at every
look-up. With extra space the last look-up answers, as published; slots have a bias to begin with, or are addressed by
tokens (see `Index`). Against orders that are lost, the longest run has a sharper sort, which blurs half as much in
training, and weight decay.

Only pictures of MNIST are comparable with the published numbers, so they need a folder of its files, which the variable
ALGOSCOPE_MNIST names. To check the way, the digits that ship with the project do.
"""

from collections.abc import Sequence
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
from algoscope.training import Settings

MOST = 100_000  # steps
PUBLISHED, OURS, EVERY = "1D uniform, as published", "1D uniform", "1D uniform, loss at every look-up"
LONGEST = f"{EVERY}, {MOST:,} steps, sharper sort, weight decay"
HARD, HARD_PUBLISHED = "1D hard", "1D hard, as published"
ZIPF, PLANE, PLANE_HARD, SPHERE = "1D Zipf queries", "2D uniform", "2D hard", "30D sphere, no folds"
NOISELESS, FROZEN, BLIND, POINTLESS = "without noise", "frozen order", "without feedback", "vectors instead of points"
STREAM, LARGE = "Zipf stream", "500 points, pointers"
NUMBERS, HITTERS, FOUR = "pictures of numbers, MNIST", "stream of pictures, MNIST", "four features"
BIASED, TOKENS = "slot bias", "token-addressed"  # forms of small networks with extra slots
MNIST, MNIST_PICTURE = "ALGOSCOPE_MNIST", (28, 84)  # a variable that names a folder, and the pixels of three digits
DECAY = 0.03  # of weights; ten times that costs early look-ups on a line (docs/log.md)
CHANNELS = 32  # of the first convolution
QUERIES = 16  # for each set of points: with 64 sets a step learns from 1,024 queries, as the paper's


def space(slots: int, form: str = "") -> str:
    return f"{slots} extra slots" + (f", {form}" if form else "")


def one(
    name: str,
    task: Task,
    model: Model,
    steps: int,
    rate: float,
    seeds: tuple[int, ...] = (0,),
    batch: int = 64,
    exact: bool = False,
    **settings: Any,
) -> Training:
    """In 32 bits if it has to be `exact`, also on a GPU: what a slot or a feature of a picture has to tell apart, and
    coordinates that are 1 and 10,000 times as large, 16 do not.
    """
    settings |= {"precision": "fp32"} if exact else {}
    every = max(steps // 10000, 1) * 1000
    chosen = Settings(steps=steps, batch=batch, curriculum=None, checkpoint_every=every, **settings)
    return Training(name, task, model, chosen, rate, seeds)  # fmt: skip


def ablations(of: Training, model: Index, seeds: tuple[int, ...], rate: float, points: int) -> list[Training]:
    """What is lost without a part; vectors of the network's own instead of the points diverge at rates above theirs."""
    parts = {NOISELESS: "noise", FROZEN: "learned order", BLIND: "feedback"}
    whole = [replace(of, name=f"{OURS}, {k}", model=replace(model, without=v), seeds=seeds) for k, v in parts.items()]
    own = replace(model, without="points", slots=points)
    return [*whole, replace(of, name=f"{OURS}, {POINTLESS}", model=own, seeds=seeds, learning_rate=rate)]


def smoke() -> Sequence[Training | Case]:
    tiny, picture = Index(lookups=3, layers=1, width=8, hidden=16, answer="each"), (8, 16, 1, 2)
    line, settings = UniformSearch(7, queries=4), {"steps": 20, "rate": 3e-3, "batch": 8}
    search, stream = NumberSearch(8, 20, queries=4, digits=2), NumberStream(10, 8, digits=2)
    return (
        one(OURS, line, tiny, **settings),
        one(PLANE, UniformSearch(16, dim=2, queries=4), tiny, **settings),
        one(space(2), line, replace(tiny, lookups=2, slots=2), **settings),
        one(STREAM, ZipfStream(10, 8), LearnedSketch(cells=4, hidden=8), **settings),
        one("pictures of numbers", search, replace(tiny, picture=picture), **settings),
        one("stream of pictures", stream, LearnedSketch(cells=4, hidden=8, picture=picture), **settings),
        planted_case(points=7),
    )


def laptop() -> Sequence[Training | Case]:
    """15 points in 4 look-ups, which is as many as binary search needs; 16 in 2 with extra space. In the plane 3, fewer
    than a k-d tree has levels, as in the paper. Of the seeds, 1 begins with 37% of the points in place and 5 with 70%.
    """
    published, settings = Index(lookups=4, layers=2, width=32, hidden=64), {"steps": 1500, "rate": 3e-3}
    ours, few = replace(published, answer="any"), replace(published, lookups=2)
    line, crowded = UniformSearch(15, queries=QUERIES), UniformSearch(16, queries=QUERIES)
    hard, plane = HardSearch(15, queries=QUERIES), UniformSearch(15, dim=2, queries=QUERIES)
    main = one(OURS, line, ours, **settings, seeds=(1, 5))
    return (
        main,
        one(EVERY, line, replace(ours, answer="each"), **settings, seeds=(1,)),
        one(PUBLISHED, line, published, **settings, seeds=(1,)),
        one(HARD, hard, ours, **settings),
        one(HARD_PUBLISHED, hard, published, **settings),
        one(PLANE, plane, replace(ours, lookups=3, folds=1), **settings),
        *(one(space(slots), crowded, replace(few, slots=slots), 3000, 3e-3) for slots in (0, 8)),  # slots learn late
        *ablations(main, ours, seeds=(1,), rate=3e-3, points=15),
        one(STREAM, ZipfStream(20, 30), LearnedSketch(cells=8, hidden=64), **settings),
        planted_case(points=15),
    )


SMALL_SIZE: dict[str, Any] = {"layers": 4, "width": 32, "hidden": 256}
LARGE_STEPS = {"steps": 20_000, "rate": 3e-3}
AS_PUBLISHED = Index(lookups=7)
OF_OURS = replace(AS_PUBLISHED, answer="any", **SMALL_SIZE)


def paper() -> Sequence[Training | Case]:
    """The paper's sizes, what matters most first. It trains up to 500,000 steps with Adam; with Muon a fifth of that or
    less suffices for most of them, and not for all (docs/data-structures.md). Small networks, of a seventh of the
    weights that the same form has at the published size, find about as much in the plane; the published form has the
    published size.
    """
    hard, four_times, six = HardSearch(15, queries=QUERIES), replace(OF_OURS, lookups=4), replace(OF_OURS, lookups=6)
    square, ball = UniformSearch(100, dim=2, queries=QUERIES), SphereSearch(100, queries=QUERIES)
    hard_plane, published = HardSearch(15, dim=2, queries=QUERIES), replace(AS_PUBLISHED, lookups=4)
    return (
        one(PLANE, square, replace(six, folds=1), 12_000, 2e-3, (0, 1, 2), 32),
        one(HARD, hard, four_times, 20_000, 1e-2, exact=True),
        one(PLANE_HARD, hard_plane, four_times, 20_000, 1e-2, exact=True),
        *with_slots(),
        one(STREAM, ZipfStream(1000, 100), LearnedSketch(cells=32), 15_000, 2e-3),
        *of_pictures(),
        *on_a_line(),
        one(HARD_PUBLISHED, hard, published, **LARGE_STEPS, exact=True),
        one(SPHERE, ball, six, 6_000, 1e-3, batch=32),
        planted_case(points=15),
    )


def of_pictures() -> Sequence[Training]:
    """A search among numbers of which one feature is stored, as published, or four; and a stream of them. Both are seen
    as pictures of three digits, which are moved by up to two pixels to train with.
    """
    folder = {"folder": f"${MNIST}", "shift": 2}
    search, stream = NumberSearch(50, queries=QUERIES, **folder), NumberStream(100, 100, **folder)
    one_feature, four = ((*MNIST_PICTURE, features, CHANNELS) for features in (1, 4))
    sketch, settings = LearnedSketch(cells=16, picture=one_feature), {"rate": 3e-3, "batch": 16, "exact": True}
    made = (
        one(NUMBERS, search, replace(OF_OURS, picture=one_feature), 30_000, **settings),
        one(f"{NUMBERS}, {FOUR}", search, replace(OF_OURS, picture=four), 30_000, **settings),
        one(HITTERS, stream, sketch, 24_000, 1e-3, batch=16),
    )
    return [replace(each, needs=MNIST) for each in made]


def on_a_line() -> Sequence[Training]:
    """Uniform points: counted in the end, with what is lost without a part, and with a loss at every look-up, also for
    the most steps; as published; with queries that follow Zipf's law, and with many points.
    """
    line, three, brisk = UniformSearch(100, queries=QUERIES), (0, 1, 2), {"rate": 1e-2, "batch": 32}
    every = replace(OF_OURS, answer="each")
    main = one(OURS, line, OF_OURS, 12_000, **brisk, seeds=three)
    sharper = replace(every, softness=every.softness / 2)
    # Training that counts what is found in the end alone loses the order of so many (docs/log.md).
    pointers = replace(every, lookups=5, address="pointer", fourier_octaves=7)
    return (
        main,
        one(EVERY, line, every, 12_000, **brisk, seeds=three),
        one(LONGEST, line, sharper, MOST, 5e-3, three, 32, exact=True, weight_decay=DECAY),
        *ablations(main, OF_OURS, seeds=(0, 1), rate=1e-3, points=100),  # a fresh order is sorted in seed 0, not in 1
        one(PUBLISHED, line, AS_PUBLISHED, **LARGE_STEPS),
        one(ZIPF, ZipfSearch(100, queries=QUERIES), replace(every, fourier_octaves=6), 12_000, **brisk),
        one(LARGE, UniformSearch(500, queries=64), pointers, 3_000, 1e-2, batch=8),
    )


def with_slots() -> Sequence[Training]:
    """Two look-ups among 50 points with extra slots: free to be read, as published; by small networks with a bias, or
    addressed by tokens.
    """
    free, fifty = replace(AS_PUBLISHED, lookups=2), UniformSearch(50, queries=QUERIES)
    biased = replace(free, slots=8, address="slot_bias", fourier_octaves=5, **SMALL_SIZE)
    token, asked = replace(biased, address="token"), replace(fifty, queries=64)
    forms = ((BIASED, biased, 8, 1e-2), (TOKENS, token, 32, 1e-2), (TOKENS, token, 128, 5e-3))
    return (
        *(one(space(n), fifty, replace(free, slots=n), 40_000, 3e-3, exact=True) for n in (0, 8, 32, 128)),
        *(
            one(space(n, form), asked, replace(model, slots=n), MOST, rate, batch=32, exact=True)
            for form, model, n, rate in forms
        ),
    )


RUNS = {"smoke": smoke(), "laptop": laptop(), "paper": paper()}

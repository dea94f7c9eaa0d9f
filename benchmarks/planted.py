"""What the instrument is tried on, by family of tasks: planted algorithms, and models with nothing to find."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from algoscope import algorithms as known
from algoscope.algorithms import Algorithm, OnFeatures
from algoscope.controls import Planted
from algoscope.models import Disentangled, Index, Model, Recurrent, Transformer
from algoscope.tasks import (
    AutoregressiveRepresentation,
    ChainOfThought,
    Connectivity,
    HardSearch,
    LinearRegression,
    NumberSearch,
    NumberStream,
    RepresentationRegression,
    SphereSearch,
    Task,
    UniformSearch,
    ZipfSearch,
    ZipfStream,
)

LAYERS = 6
NOISES = (0.0, 0.1, 0.3)
ONCE: dict[str, Any] = {"seeds": 1, "absent": 0, "shuffled": 0}  # where a comparison takes long
FIRST = 100  # seed: those before it were looked at while the thresholds of the instrument were chosen


@dataclass(frozen=True)
class Planting:
    """Algorithms that are planted on a task, at each noise and with so many seeds; by default all that it names.

    With `absent` seeds they are also looked for where they are not on the list, and with `shuffled` ones, at all noises
    but the last, they run on shuffled prompts.
    """

    task: Task
    algorithms: Sequence[Algorithm] = ()
    seeds: int = 2
    absent: int = 1
    shuffled: int = 1


@dataclass(frozen=True)
class Untrained:
    """Fresh networks of some models, each with so many seeds."""

    task: Task
    models: Sequence[Model]
    seeds: int


@dataclass(frozen=True)
class Case:
    task: Task
    prompts: int  # seed of the prompts
    model: Planted | None = None
    untrained: Model | None = None
    seed: int = 0
    absent: bool = False  # the planted algorithm is not among those compared

    @property
    def left_out(self) -> str:
        return type(self.model.algorithm).__name__ if self.model is not None and self.absent else ""

    @property
    def compared(self) -> list[Algorithm]:
        return [algorithm for algorithm in self.task.algorithms() if type(algorithm).__name__ != self.left_out]


def iterations(dim: int) -> list[Algorithm]:
    """Newton, gradient descent and conjugate gradients at 1 to 3 steps a layer; online descent."""
    found: list[Algorithm] = [known.OnlineGradientDescent()]
    for per_layer in (1, 2, 3):
        steps = [per_layer * (k + 1) for k in range(LAYERS)]
        short = [step for step in steps if step <= dim]
        found += [known.Newton(steps), known.GradientDescent(steps), known.ConjugateGradients(short)]
    return found


def on_features(task: RepresentationRegression | AutoregressiveRepresentation | ChainOfThought) -> Planting:
    methods = (known.Newton(range(1, 5)), known.ConjugateGradients((1, 2, 3)), known.OnlineGradientDescent())
    return Planting(task, [OnFeatures(method, task) for method in methods], seeds=1, shuffled=0)


def regression() -> list[Planting]:
    tasks = {5: (LinearRegression(dim=5, examples=20), 5), 20: (LinearRegression(dim=20, examples=40), 2)}
    found = []
    for dim, (task, seeds) in tasks.items():
        often: dict[str, Any] = {
            "seeds": seeds,
            "absent": seeds if dim == 5 else 1,
            "shuffled": seeds if dim == 5 else 0,
        }
        found.append(Planting(task, iterations(dim), **often))
        found.append(Planting(replace(task, noise=0.5), [known.Ridge()], **often))
    features = (RepresentationRegression(dim=4, examples=16), AutoregressiveRepresentation(dim=4, examples=16))
    return [*found, *map(on_features, (*features, ChainOfThought(dim=4, examples=12, depth=2)))]


def walks(*steps: Sequence[int]) -> list[Algorithm]:
    """Steps of hops, squaring, tripling and label propagation; and the solution."""
    kinds = (known.Hops, known.Squaring, known.Tripling, known.LabelPropagation)
    return [*(kind(own) for kind, own in zip(kinds, steps, strict=True)), known.Components()]


def graphs() -> list[Planting]:
    eight = [*walks((1, 2, 3), (0, 1), (1,), (1, 2, 3)), known.Degree()]
    larger = [
        Planting(Connectivity(nodes=12, chance=0.14), walks((1, 2, 3, 4), (1, 2), (1,), (1, 2, 3, 4))),
        Planting(Connectivity(nodes=10, graphs="paths", parts=3), walks((2, 3, 4, 5), (1, 2), (1,), (1, 2, 3))),
        Planting(Connectivity(nodes=10, graphs="two chains"), walks((2, 3), (1,), (1,), (1, 2, 3))),
    ]
    return [Planting(Connectivity(nodes=8), eight, seeds=1), *(replace(each, **ONCE) for each in larger)]


def search() -> list[Planting]:
    on_a_line = (
        UniformSearch(size=15, queries=4),
        UniformSearch(size=63, queries=4),
        HardSearch(size=15, queries=4),
        ZipfSearch(size=30, universe=100, queries=4),
        NumberSearch(size=31, universe=100, queries=4, digits=2),
    )
    in_space = (UniformSearch(size=64, dim=2, queries=4), SphereSearch(size=64, dim=8, queries=4))
    return [*map(Planting, on_a_line), *(Planting(task, **ONCE) for task in in_space)]


def streams() -> list[Planting]:
    vectors = (
        ZipfStream(universe=200, items=40),
        ZipfStream(universe=500, items=40, exponent=0.8, ranks="fixed"),
    )
    pictures = NumberStream(universe=100, items=24, digits=2, ranks="random")
    return [*map(Planting, vectors), Planting(pictures, **ONCE)]


PLANTINGS = {"regression": regression, "graphs": graphs, "search": search, "streams": streams}
SHAPES = [Transformer(*shape) for shape in itertools.product((1, 3, 6), (1, 4), (16, 64))]
WHOLE = [Transformer(layers, 4, 32, mask="full") for layers in (1, 3)]  # every token sees every other
INDEXES = [Index(lookups=5, layers=layers, width=16, hidden=32) for layers in (1, 4)]
RECURRENT = [Recurrent(layers, width=32) for layers in (1, 3)]
UNTRAINED: dict[str, list[Untrained]] = {
    "regression": [Untrained(LinearRegression(dim=5, examples=20), SHAPES, 8)],
    "graphs": [Untrained(Connectivity(nodes=8), [*WHOLE, Disentangled(1), Disentangled(3)], 5)],
    "search": [
        Untrained(UniformSearch(size=15, queries=4), [*INDEXES, *WHOLE], 3),
        Untrained(UniformSearch(size=64, dim=2, queries=4), INDEXES, 2),
        Untrained(SphereSearch(size=64, dim=8, queries=4), INDEXES, 2),
    ],
    "streams": [
        Untrained(ZipfStream(universe=200, items=40), [*RECURRENT, *SHAPES[-2:]], 4),  # a fresh sketch is one already
    ],
}


def planted(family: str) -> Iterator[Case]:
    for given in PLANTINGS[family]():
        methods = given.algorithms or given.task.algorithms()
        for seed, noise, method in itertools.product(range(given.seeds), NOISES, methods):
            yield Case(given.task, FIRST + seed, Planted(method, given.task, noise, seed=FIRST + seed))


def absent(family: str) -> Iterator[Case]:
    """Planted models whose algorithm is not on the list: whatever is closest, it is not the answer."""
    often = {given.task: FIRST + given.absent for given in PLANTINGS[family]()}
    for case in planted(family):
        without = replace(case, absent=True)
        if case.prompts < often[case.task] and without.compared:
            yield without


def nulls(family: str) -> Iterator[Case]:
    """Planted models with shuffled prompts, and untrained networks."""
    often = {given.task: FIRST + given.shuffled for given in PLANTINGS[family]()}
    for case in planted(family):
        if case.model is not None and case.prompts < often[case.task] and case.model.noise < NOISES[-1]:
            yield replace(case, model=replace(case.model, shuffled=True))
    for fresh in UNTRAINED[family]:
        for model, seed in itertools.product(fresh.models, range(fresh.seeds)):
            yield Case(fresh.task, FIRST + seed % 5, untrained=model, seed=seed)


KINDS = {"planted": planted, "absent": absent, "nulls": nulls}

"""The lists of controls: by family of tasks, one to improve the instrument by, and one that is held out.

Graphs, searches and streams have few algorithms each, so what is planted there is planted on the list, and again where
its method was taken off. Those of regressions have a file of their own.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from algoscope import algorithms as known
from algoscope import arguments
from algoscope.constructions import Written
from algoscope.contracts import Algorithm, Model, Task
from algoscope.controls import regressions
from algoscope.controls.control import Control
from algoscope.controls.regressions import FIRST, HELD_OUT, NOISES, SHAPES
from algoscope.models import Disentangled, Index, Recurrent, Transformer
from algoscope.tasks import (
    Connectivity,
    HardSearch,
    NumberSearch,
    NumberStream,
    SphereSearch,
    UniformSearch,
    ZipfSearch,
    ZipfStream,
)

Set: TypeAlias = Literal["tuning", "held-out"]
SETS: tuple[Set, ...] = ("tuning", "held-out")


@dataclass(frozen=True)
class Planting:
    """Algorithms that are planted on a task, at each noise and with so many seeds; by default all that it names.

    With `absent` seeds they are also planted where their method is not on the list, and with `shuffled` ones, at all
    noises but the last, they run on shuffled prompts.
    """

    task: Task
    algorithms: Sequence[Algorithm] = ()
    seeds: int = 2
    absent: int = 1
    shuffled: int = 1
    noises: Sequence[float] = NOISES

    def controls(self, first: int = FIRST) -> Iterator[Control]:
        given = self.algorithms or self.task.algorithms()
        for seed, noise, each in itertools.product(range(self.seeds), self.noises, given):
            yield Control(self.task, "listed", each.method, first + seed, each, noise)
        for seed, noise, each in itertools.product(range(self.absent), self.noises, given):
            control = Control(self.task, "unlisted", "family", first + seed, each, noise, left_out=each.method)
            if control.compared:
                yield control
        for seed, noise, each in itertools.product(range(self.shuffled), self.noises[:-1], given):
            yield Control(self.task, "null", "shuffled", first + seed, each, noise)


ONCE: dict[str, Any] = {"seeds": 1, "absent": 0, "shuffled": 0}  # where a comparison takes long
BRIEF: dict[str, Any] = {"seeds": 1, "noises": NOISES[:-1]}  # on the held-out set
WHOLE = [Transformer(layers, 4, 32, mask="full") for layers in (1, 3)]  # every token sees every other
INDEXES = [Index(lookups=5, layers=layers, width=16, hidden=32) for layers in (1, 4)]
RECURRENT = [Recurrent(layers, width=32) for layers in (1, 3)]


def untrained(task: Task, models: Sequence[Model], seeds: int, first: int = FIRST) -> Iterator[Control]:
    """Fresh networks, each with so many seeds."""
    for seed, model in itertools.product(range(seeds), models):
        yield Control(task, "null", "untrained", first + seed, network=model)


def walks(*steps: tuple[int, ...]) -> list[Algorithm]:
    """Steps of hops, squaring, tripling and label propagation; and the solution."""
    kinds = (known.Hops, known.Squaring, known.Tripling, known.LabelPropagation)
    return [*(kind(own) for kind, own in zip(kinds, steps, strict=True)), known.Components()]


def connectivity(nodes: int, layers: int, seed: int, **graphs: Any) -> Control:
    """Tripling, by a network that is written by hand."""
    network, steps = Written("connectivity", (nodes, layers)), tuple(range(1, layers + 1))
    return Control(Connectivity(nodes, **graphs), "by hand", "connectivity", seed, known.Tripling(steps), 0.0, network)


def graphs() -> Iterator[Control]:
    eight = [*walks((1, 2, 3), (0, 1), (1,), (1, 2, 3)), known.Degree()]
    chains = walks((2, 3), (1,), (1,), (1, 2, 3))
    paths = walks((2, 3, 4, 5), (1, 2), (1,), (1, 2, 3))
    yield from Planting(Connectivity(nodes=8), eight, seeds=1).controls()
    yield from Planting(
        Connectivity(nodes=12, chance=0.14), walks((1, 2, 3, 4), (1, 2), (1,), (1, 2, 3, 4)), **ONCE
    ).controls()
    yield from Planting(Connectivity(nodes=10, graphs="paths", parts=3), paths, **ONCE).controls()
    yield from Planting(Connectivity(nodes=10, graphs="two chains"), chains, **ONCE).controls()
    yield from untrained(Connectivity(nodes=8), [*WHOLE, Disentangled(1), Disentangled(3)], 5)
    for layers, seed in itertools.product((1, 2), (FIRST, FIRST + 1)):
        yield connectivity(8, layers, seed)
        yield connectivity(10, layers, seed, graphs="paths", parts=3)


def graphs_held_out() -> Iterator[Control]:
    steps = walks((1, 2, 3), (1, 2), (1,), (1, 2, 3))
    yield from Planting(Connectivity(nodes=9, chance=0.18), steps, **BRIEF).controls(HELD_OUT)
    yield from untrained(Connectivity(nodes=9, chance=0.18), WHOLE, 2, HELD_OUT)
    yield connectivity(9, 2, HELD_OUT, chance=0.18)


def search() -> Iterator[Control]:
    line, square = UniformSearch(size=15, queries=4), UniformSearch(size=64, dim=2, queries=4)
    sphere = SphereSearch(size=64, dim=8, queries=4)
    for task in (
        line,
        UniformSearch(size=63, queries=4),
        HardSearch(size=15, queries=4),
        ZipfSearch(size=30, universe=100, queries=4),
        NumberSearch(size=31, universe=100, queries=4, digits=2),
    ):
        yield from Planting(task).controls()
    for task in (square, sphere):
        yield from Planting(task, **ONCE).controls()
    yield from untrained(line, [*INDEXES, *WHOLE], 3)
    for task in (square, sphere):
        yield from untrained(task, INDEXES, 2)


def search_held_out() -> Iterator[Control]:
    for task in (UniformSearch(size=31, queries=4), ZipfSearch(size=40, universe=150, queries=4)):
        yield from Planting(task, **BRIEF).controls(HELD_OUT)
        yield from untrained(task, INDEXES, 1, HELD_OUT)


def streams() -> Iterator[Control]:
    short = ZipfStream(universe=200, items=40)
    yield from Planting(short).controls()
    yield from Planting(ZipfStream(universe=500, items=40, exponent=0.8, ranks="fixed")).controls()
    yield from Planting(NumberStream(universe=100, items=24, digits=2, ranks="random"), **ONCE).controls()
    yield from untrained(short, [*RECURRENT, *SHAPES[-2:]], 4)  # a fresh sketch is one already


def streams_held_out() -> Iterator[Control]:
    task = ZipfStream(universe=300, items=32, exponent=1.0)
    yield from Planting(task, **BRIEF).controls(HELD_OUT)
    yield from untrained(task, RECURRENT, 2, HELD_OUT)


FAMILIES: dict[str, dict[Set, Callable[[], Iterator[Control]]]] = {
    "regression": {"tuning": regressions.tuning, "held-out": regressions.held_out},
    "graphs": {"tuning": graphs, "held-out": graphs_held_out},
    "search": {"tuning": search, "held-out": search_held_out},
    "streams": {"tuning": streams, "held-out": streams_held_out},
}


def controls_of(family: str, chosen: Set = "tuning") -> list[Control]:
    """All controls of a family of tasks: those to improve the instrument by, or those that are held out."""
    arguments.choice("family", family, FAMILIES)
    arguments.choice("set", chosen, SETS)
    return list(FAMILIES[family][chosen]())

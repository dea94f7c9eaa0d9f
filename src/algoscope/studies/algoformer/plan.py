"""The runs of the study: which models are trained on which tasks, at each scale, and for how long.

Runs stand in the order in which they should be carried out where time is short.
"""

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from algoscope.contracts import Task
from algoscope.models import AlgoFormer, Looped, Transformer
from algoscope.studies.algoformer import controls, names
from algoscope.studies.algoformer.costs import costs
from algoscope.studies.algoformer.measures import known, least
from algoscope.studies.algoformer.names import ALGOFORMER, CHAINS, LOOPED, LOUD, REPRESENTATION, SERIES, STANDARD
from algoscope.studies.study import Case, Training
from algoscope.tasks import AutoregressiveRepresentation, ChainOfThought, LinearRegression, RepresentationRegression
from algoscope.training import Curriculum, Settings

QUIET = 0.1  # noise of a series at which the paper's figure is possible


@dataclass(frozen=True)
class Size:
    """Of the prompts and the models, and how each kind of run is trained."""

    dim: int
    examples: int
    width: int
    heads: int
    layers: int  # of the standard transformer
    loops: int
    scored: int
    steps: Mapping[str, int]  # of any task, and of exceptions; runs of a sweep are never one
    settings: Settings
    rates: Mapping[str, float]  # of learning, by model
    depth: int = 6  # of chains of thought


# All the training that is planned, in steps. The paper has 500,000; whether these suffice, the curves of learning tell,
# and longer runs (names.LONGER, names.LONGEST).
STEPS = {
    "smoke": {"any": 12},
    "laptop": {"any": 1000, names.linear(1.0): 1500},
    "paper": {"any": 6_000, CHAINS: 2_500},
}
SIZES = {
    "smoke": Size(
        2, 5, 8, 2, 2, 3, 2, STEPS["smoke"], Settings(steps=1, batch=8, curriculum=None),
        {STANDARD: 1e-3, LOOPED: 1e-3, ALGOFORMER: 1e-3}, depth=2,
    ),
    "laptop": Size(
        5, 20, 32, 4, 6, 10, 5, STEPS["laptop"],
        Settings(steps=1000, warmup=100, curriculum=Curriculum(dims=1, points=11, interval=60)),
        {STANDARD: 1e-2, LOOPED: 1e-2, ALGOFORMER: 1e-2},
    ),
    "paper": Size(
        20, 40, 256, 8, 12, 20, 15, STEPS["paper"], Settings(steps=6_000),
        {STANDARD: 2e-3, LOOPED: 2e-3, ALGOFORMER: 2e-3},
    ),
}  # fmt: skip
SEEDS = (0, 1, 2)


class Planner:
    """Makes runs of one size."""

    def __init__(self, scale: str) -> None:
        self.size = SIZES[scale]

    def task(self, name: str) -> Task:
        """By what it is called."""
        dim, examples = self.size.dim, self.size.examples
        tasks: dict[str, Task] = {
            SERIES: AutoregressiveRepresentation(dim, examples, noise=QUIET),
            LOUD: AutoregressiveRepresentation(dim, examples, noise=1.0),
            CHAINS: ChainOfThought(dim, examples, self.size.depth),
            **{names.noisy(noise): RepresentationRegression(dim, examples, noise=noise) for noise in names.NOISES},
            **{names.linear(noise): LinearRegression(dim, examples, noise=noise) for noise in names.NOISES},
        }
        return tasks[name]

    def model(self, kind: str) -> Transformer:
        size = self.size
        kinds: dict[str, Transformer] = {
            STANDARD: Transformer(layers=size.layers),
            LOOPED: Looped(loops=size.loops, scored=size.scored),
            ALGOFORMER: AlgoFormer(loops=size.loops, scored=size.scored, injection=names.INJECTION),
        }
        return replace(kinds[kind], heads=size.heads, width=size.width)

    def train(self, kind: str, task: str, seeds: tuple[int, ...] = (0,), more: str = "", **changes: Any) -> Training:
        """`more` is what is told of the changes to the model; with it, the run is one of a sweep."""
        steps = self.size.steps.get("any" if more else task, self.size.steps["any"])
        settings, model = replace(self.size.settings, steps=steps), replace(self.model(kind), **changes)
        return Training(names.run(kind, task, more), self.task(task), model, settings, self.size.rates[kind], seeds)

    def longer(self, kind: str, task: str, seeds: tuple[int, ...] = (0,)) -> Training:
        """Whether what was found hangs on how short the training is."""
        run = self.train(kind, task, seeds, more=names.longer(task))
        return replace(run, settings=replace(run.settings, steps=names.LONGER[task]))

    def longest(self, kind: str, task: str) -> Training:
        """Where errors end."""
        steps, rate, seeds = names.LONGEST[kind, task]
        run = self.train(kind, task, seeds, more=names.longest(kind, task))
        return replace(run, settings=replace(run.settings, steps=steps), learning_rate=rate or run.learning_rate)

    def all_kinds(self, task: str, seeds: tuple[int, ...] = (0,)) -> Iterator[Training | Case]:
        for kind in names.KINDS:
            yield self.train(kind, task, seeds)
        yield self.known(task)
        yield self.least(task)

    def injections(self) -> Iterator[Training]:
        for injection in names.OTHER_INJECTIONS:
            yield self.train(ALGOFORMER, REPRESENTATION, more=names.injected(injection), injection=injection)

    def normed(self) -> Iterator[Training]:
        """Whether it is a norm at the end of each loop that lets loops go on beyond training."""
        for injection in names.NORMED_INJECTIONS:
            more = names.normed(injection)
            yield self.train(ALGOFORMER, REPRESENTATION, more=more, injection=injection, loop_norm=True)

    def rated(self) -> Iterator[Training]:
        """Whether the order hangs on the rate of learning."""
        for kind, rates in names.RATES.items():
            for rate in rates:
                yield replace(self.train(kind, REPRESENTATION, more=names.rated(rate)), learning_rate=rate)

    def planted(self, name: str) -> Case:
        task = self.task(name)
        assert isinstance(task, RepresentationRegression | ChainOfThought)
        return Case(names.planted(name), functools.partial(controls.planted, task))

    def windows(self, *sizes: tuple[int, int], task: str = REPRESENTATION) -> Iterator[Training]:
        for loops, scored in sizes:
            yield self.train(ALGOFORMER, task, more=names.window(loops, scored), loops=loops, scored=scored)

    def with_layers(self, kind: str, *counts: int) -> Iterator[Training]:
        """Of AlgoFormer, that many before, in and after the loop."""
        for count in counts:
            parts: dict[str, Any] = {"pre": count, "post": count} if kind == ALGOFORMER else {}
            yield self.train(kind, REPRESENTATION, more=names.layers(count), layers=count, **parts)

    def with_heads(self, *counts: int) -> Iterator[Training]:
        for count in counts:
            yield self.train(ALGOFORMER, REPRESENTATION, more=names.heads(count), heads=count)

    def known(self, task: str) -> Case:
        return Case(names.references(task), functools.partial(known, self.task(task)))

    def least(self, task: str) -> Case:
        return Case(names.least(task), functools.partial(least, self.task(task)))

    def checks(self, by_hand: Sequence[str] = controls.BY_HAND) -> Iterator[Case]:
        """What needs no training: what a step costs, and the controls."""
        models = tuple(self.model(kind) for kind in names.KINDS)
        yield Case(names.COSTS, functools.partial(costs, self.task(REPRESENTATION), models), timed=True)
        for name in by_hand:
            yield Case(names.by_hand(name), functools.partial(controls.by_hand, name))
        fresh = functools.partial(controls.fresh, self.task(REPRESENTATION), self.model(ALGOFORMER))
        yield Case(names.FRESH, fresh)


def _smoke(make: Planner) -> Iterator[Training | Case]:
    yield from make.all_kinds(REPRESENTATION)
    yield make.train(ALGOFORMER, names.linear(1.0))
    yield from make.checks(controls.BY_HAND[:1])


def _laptop(make: Planner) -> Iterator[Training | Case]:
    yield from make.all_kinds(REPRESENTATION)
    yield from make.injections()
    yield make.train(ALGOFORMER, names.linear(1.0))
    yield make.known(names.linear(1.0))
    yield from make.checks()
    yield make.planted(REPRESENTATION)


def _paper(make: Planner) -> Iterator[Training | Case]:
    for task in (REPRESENTATION, SERIES, CHAINS):
        yield from make.all_kinds(task, SEEDS)
    for noise in names.NOISES:
        yield make.train(ALGOFORMER, names.linear(noise), SEEDS)
        yield make.known(names.linear(noise))
        yield make.least(names.linear(noise))
    yield from make.checks()
    yield from map(make.planted, (REPRESENTATION, CHAINS))
    yield from make.windows((12, 5), (12, 10), (50, 5), (50, 15))
    yield from make.injections()
    yield from make.normed()
    yield from make.rated()
    yield from make.with_layers(STANDARD, 3, 14, 22)
    yield from make.with_heads(2, 4, 16)
    yield from make.with_layers(ALGOFORMER, 2)
    yield from make.all_kinds(LOUD)
    for task, kind in itertools.product(names.MAIN, names.KINDS):
        yield make.longer(kind, task, SEEDS)
    for noise in names.NOISES:
        yield make.longer(ALGOFORMER, names.linear(noise))
    for kind, task in names.LONGEST:
        yield make.longest(kind, task)
    for noise in names.NOISES[1:]:
        yield make.train(ALGOFORMER, names.noisy(noise))
        yield make.known(names.noisy(noise))
        yield make.least(names.noisy(noise))
    yield from make.windows((10, 10), task=names.linear(0.0))


RUNS = {
    scale: tuple(plan(Planner(scale))) for scale, plan in (("smoke", _smoke), ("laptop", _laptop), ("paper", _paper))
}

"""The runs of the study: which models are trained on which tasks, at each scale, and for how long.

Runs stand in the order in which they should be carried out where time is short.
"""

import functools
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from algoscope.contracts import Task
from algoscope.models import AlgoFormer, Looped, Transformer
from algoscope.studies.algoformer import controls, names
from algoscope.studies.algoformer.costs import costs
from algoscope.studies.algoformer.measures import known, least
from algoscope.studies.algoformer.names import (
    ALGOFORMER,
    AR_SERIES,
    CHAIN_OF_THOUGHT,
    LOOPED,
    LOUD,
    REPRESENTATION,
    STANDARD,
)
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
    settings: Settings
    rate: float  # of learning
    depth: int = 6  # of the chain of thought
    exceptions: Mapping[str, int] = field(default_factory=dict)  # steps of some tasks, but in a sweep


# The paper trains for 500,000 steps; longer runs (names.LONGER, names.LONGEST) show whether these suffice.
SIZES = {
    "smoke": Size(2, 5, 8, 2, 2, 3, 2, Settings(steps=12, batch=8, curriculum=None), rate=1e-3, depth=2),
    "laptop": Size(
        5, 20, 32, 4, 6, 10, 5,
        Settings(steps=1000, warmup=100, curriculum=Curriculum(dims=1, points=11, interval=60)),
        rate=1e-2, exceptions={names.linear(1.0): 1500},
    ),
    "paper": Size(20, 40, 256, 8, 12, 20, 15, Settings(steps=6_000), rate=2e-3, exceptions={CHAIN_OF_THOUGHT: 2_500}),
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
            AR_SERIES: AutoregressiveRepresentation(dim, examples, noise=QUIET),
            LOUD: AutoregressiveRepresentation(dim, examples, noise=1.0),
            CHAIN_OF_THOUGHT: ChainOfThought(dim, examples, self.size.depth),
            **{names.noisy(noise): RepresentationRegression(dim, examples, noise=noise) for noise in names.NOISES},
            **{names.linear(noise): LinearRegression(dim, examples, noise=noise) for noise in names.NOISES},
        }
        return tasks[name]

    def model(self, kind: str) -> Transformer:
        size = self.size
        kinds: dict[str, Transformer] = {
            STANDARD: Transformer(layers=size.layers),
            LOOPED: Looped(loops=size.loops, scored_loops=size.scored),
            ALGOFORMER: AlgoFormer(loops=size.loops, scored_loops=size.scored, injection=names.INJECTION),
        }
        return replace(kinds[kind], heads=size.heads, width=size.width)

    def train(
        self,
        kind: str = ALGOFORMER,
        task: str = REPRESENTATION,
        seeds: tuple[int, ...] = (0,),
        more: str = "",
        steps: int | None = None,
        **changes: Any,
    ) -> Training:
        """`more` names the changes to the model, or to the length of training; with it, the run is one of a sweep."""
        settings, model = self.size.settings, replace(self.model(kind), **changes)
        baseline = settings.steps if more else self.size.exceptions.get(task, settings.steps)
        settings, name = replace(settings, steps=steps or baseline), names.run(kind, task, more)
        return Training(name, self.task(task), model, settings, self.size.rate, seeds)

    def all_kinds(self, task: str, seeds: tuple[int, ...] = (0,)) -> Iterator[Training | Case]:
        for kind in names.KINDS:
            yield self.train(kind, task, seeds)
        yield self.case(names.references(task), known, task)
        yield self.case(names.least(task), least, task)

    def case(self, name: str, measure: Any, task: str, *more: Any) -> Case:
        return Case(name, functools.partial(measure, self.task(task), *more))

    def window(self, loops: int, scored: int, task: str = REPRESENTATION) -> Training:
        return self.train(task=task, more=names.window(loops, scored), loops=loops, scored_loops=scored)

    def checks(self) -> Iterator[Case]:
        """What needs no training: what a model costs, and an untrained one."""
        yield self.case(names.COSTS, costs, REPRESENTATION, {kind: self.model(kind) for kind in names.KINDS})
        yield self.case(names.FRESH, controls.fresh, REPRESENTATION, self.model(ALGOFORMER))


def _smoke(make: Planner) -> Iterator[Training | Case]:
    yield from make.all_kinds(REPRESENTATION)
    yield make.train(ALGOFORMER, names.linear(1.0))
    yield from make.checks()


def _laptop(make: Planner) -> Iterator[Training | Case]:
    yield from make.all_kinds(REPRESENTATION)
    for injection in names.OTHER_INJECTIONS:
        yield make.train(more=names.injected(injection), injection=injection)
    yield make.train(ALGOFORMER, names.linear(1.0))
    yield make.case(names.references(names.linear(1.0)), known, names.linear(1.0))
    yield from make.checks()
    yield make.case(names.planted(REPRESENTATION), controls.planted, REPRESENTATION)


def _paper(make: Planner) -> Iterator[Training | Case]:
    for task in names.MAIN:
        yield from make.all_kinds(task, SEEDS)
    for noise in names.NOISES:
        yield make.train(ALGOFORMER, names.linear(noise), SEEDS)
        yield make.case(names.references(names.linear(noise)), known, names.linear(noise))
    yield from make.checks()
    for task in (REPRESENTATION, CHAIN_OF_THOUGHT):
        yield make.case(names.planted(task), controls.planted, task)
    yield from itertools.starmap(make.window, ((12, 5), (12, 10), (50, 5), (50, 15)))
    for injection in names.OTHER_INJECTIONS:
        yield make.train(more=names.injected(injection), injection=injection)
    for injection in names.NORMED_INJECTIONS:  # is it a norm in each loop that lets loops go on beyond training?
        yield make.train(more=names.normed(injection), injection=injection, loop_norm=True)
    for count in (3, 14, 22):
        yield make.train(STANDARD, more=f"{count} layers", layers=count)
    for count in (2, 4, 16):
        yield make.train(more=f"{count} heads", heads=count)
    yield make.train(more="2 layers", layers=2, pre=2, post=2)
    yield from make.all_kinds(LOUD)
    for task, steps in names.LONGER.items():
        for kind in names.KINDS if task in names.MAIN else (ALGOFORMER,):
            yield make.train(kind, task, SEEDS if task in names.MAIN else (0,), names.longer(task), steps)
    for (kind, task), (steps, rate, seeds) in names.LONGEST.items():
        run = make.train(kind, task, seeds, names.longest(kind, task), steps)
        yield replace(run, learning_rate=rate or run.learning_rate)
    for noise in names.NOISES[1:]:
        yield make.train(ALGOFORMER, names.noisy(noise))
    yield make.window(10, 10, names.linear(0.0))


RUNS = {
    scale: tuple(plan(Planner(scale))) for scale, plan in (("smoke", _smoke), ("laptop", _laptop), ("paper", _paper))
}

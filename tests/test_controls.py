"""Models whose answer is known, for every family of tasks; and every task that can be trained can be identified."""

import functools
import itertools
import json

import pytest
import torch
from battery.tasks import SEARCHES, STREAMS, TASKS

import algoscope as ag
from algoscope import documents, registry, runs
from algoscope.algorithms import BinarySearch
from algoscope.controls import Control, Planted, controls_of
from algoscope.controls.catalog import FAMILIES
from algoscope.controls.scoring import Identify, outcome, summary
from algoscope.models import Transformer
from algoscope.tasks import Connectivity, Task, UniformSearch

ALL = [*TASKS, *SEARCHES, *STREAMS]
SMALL = {type(task): task for task in reversed(ALL)}  # the first of each kind
PROMPTS = {"regression": 1000, "graphs": 150, "search": 150, "streams": 150}
PLANTED, NULLS = 3, 1  # models of each family, and nulls of each group
CONTROLS = functools.cache(controls_of)


def few(family: str) -> list[Control]:
    """The first on the family's first task, with some noise; nulls of both groups."""
    first = CONTROLS(family)[0]
    cases = [each for each in CONTROLS(family) if (each.task, each.seed) == (first.task, first.seed)]
    noisy = [each for each in cases if each.noise == 0.1]
    listed, shuffled = ([each for each in noisy if each.kind == kind] for kind in ("listed", "null"))
    fresh = [each for each in cases if each.group == "untrained"]
    return [*listed[:PLANTED], *shuffled[:NULLS], *fresh[:NULLS]]


@pytest.fixture(scope="module")
def found() -> dict:
    methods = {family: Identify(PROMPTS[family]) for family in FAMILIES}
    return {family: [outcome(methods[family], control) for control in few(family)] for family in FAMILIES}


def of_kind(kind: str, models: list[dict]) -> list[dict]:
    return [model for model in models if model["kind"] == kind]


@pytest.mark.parametrize("family", FAMILIES)
def test_planted_models_are_named_rightly(found, family):
    stages = [row for model in of_kind("listed", found[family]) for row in model["stages"] if row["unsaturated"]]
    certain = [row for row in stages if row["certain"]]
    assert len(certain) >= len(stages) / 2
    assert all(row["right"] for row in stages if row["sure"])


@pytest.mark.parametrize("family", FAMILIES)
def test_nulls_raise_no_alarm(found, family):
    nulls = of_kind("null", found[family])
    assert len(nulls) == 2 * NULLS
    assert not any(row["alarm"] for model in nulls for row in model["stages"])


def test_what_is_measured_is_what_a_page_shows(found):
    for models in found.values():
        absent = [{**model, "kind": "unlisted"} for model in of_kind("listed", models)]
        assert documents.problem({"rates": {"x": summary([*models, *absent])}}, documents.CONTROLS) == ""


@pytest.mark.parametrize("family", FAMILIES)
def test_the_rates_on_file_hold_what_is_promised(family):
    """As `algoscope controls` measured them, on many more models."""
    rates = (runs.controls() or {})[family]
    assert rates["planted"]["models"] >= 60
    assert rates["planted"]["certain"]["rate"] >= 0.5
    assert rates["planted"]["right_when_certain"]["rate"] >= 0.95
    assert rates["false_alarms"]["models"] >= 20
    assert rates["false_alarms"]["rate"] == 0


@pytest.mark.parametrize("family", FAMILIES)
def test_a_planted_model_is_a_function_of_its_tokens(family):
    control = next(each for each in CONTROLS(family) if each.group == "shuffled")
    prompts, model = control.task.sample(5, seed=0), control.model()
    tokens = control.task.encode(prompts.x, prompts.y)
    assert isinstance(model, Planted)
    first, again, other = (model(each) for each in (tokens, tokens.clone(), tokens.flip(0)))
    assert list(first) == list(again) == list(model.stages)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)


@pytest.mark.parametrize("task", ALL, ids=repr)
def test_tokens_give_the_prompt_back(task):
    prompts = task.sample(5, seed=0)
    assert torch.allclose(task.decode(task.encode(prompts.x, prompts.y)).x, prompts.x, rtol=1e-6, atol=1e-9)


def test_a_look_up_that_is_nearly_always_right_is_saturated():
    """Interpolation search on a line needs fewer look-ups than there are."""
    task = UniformSearch(size=15, queries=4)
    binary, guess = (Planted(method, task).before_saturation() for method in task.algorithms())
    assert list(binary.values()) == [False, True, True, False]  # first it reads the middle, whatever is asked
    assert list(guess.values()) == [True, True, False, False]


def test_a_look_up_that_is_nearly_the_same_for_every_query_shows_no_search():
    """It is as near to the first step of binary search as that is to itself for another query."""
    task = UniformSearch(size=15, queries=4)
    verdict = ag.identify(Planted(BinarySearch(2), task, noise=0.2), task, prompts=150, fit_on=150)
    first, second = verdict.stages
    assert first.null
    assert second.agreed == (("BinarySearch", 2),)


def test_an_untrained_network_is_certain_of_no_step_but_its_own_prompt():
    """Its answers are near those of labels that are common, or alike on all graphs, and that is no algorithm."""
    task = Connectivity(nodes=8)
    model = Transformer(3, 4, 32)
    network = model.build(task.inputs, task.outputs, task.length, torch.Generator().manual_seed(0))
    verdict = ag.identify(network, task, prompts=150, fit_on=150)
    assert not any(stage.certain for stage in verdict.stages)
    constant = {("Hops", 0), ("LabelPropagation", 0), ("AllConnected", 0)}
    kept = itertools.chain.from_iterable(stage.agreed for stage in verdict.stages)
    assert not constant & set(kept)


@pytest.mark.parametrize("kind", registry.classes("tasks").values(), ids=registry.classes("tasks"))
@pytest.mark.usefixtures("as_users_run_it")
def test_every_task_that_can_be_trained_can_be_identified(kind, tmp_path):
    task: Task = SMALL[kind]
    run = ag.train(task, Transformer(1, 1, 8), steps=20, batch=8, device="cpu", out=tmp_path, progress=False)
    verdict = ag.identify(ag.load(run.path), task, prompts=50, fit_on=50)
    assert len(verdict.table()) == len(verdict.stages) >= 2
    assert verdict.text.endswith(".")
    page, numbers = (verdict.save(tmp_path / f"report.{suffix}") for suffix in ("html", "json"))
    assert all(f">{stage.stage}<" in page.read_text() for stage in verdict.stages)
    assert documents.problem(json.loads(numbers.read_text()), documents.VERDICT) == ""

"""Models whose answer is known, for every family of tasks; and every task that can be trained can be identified."""

import itertools
import json

import pytest
import torch
from battery.tasks import SEARCHES, STREAMS, TASKS

import algoscope as ag
from algoscope import documents, registry, runs
from algoscope.controls import Planted
from algoscope.models import Transformer
from algoscope.tasks import Connectivity, Task, UniformSearch
from benchmarks.controls import measured, summary
from benchmarks.planted import KINDS, PLANTINGS, Case, nulls, planted

ALL = [*TASKS, *SEARCHES, *STREAMS]
SMALL = {type(task): task for task in reversed(ALL)}  # the first of each kind
PROMPTS = 150
PLANTED, NULLS = 3, 1  # models of each family, and nulls of each kind


def few(family: str, kind: str) -> list[Case]:
    """On the family's first task, with some noise; nulls are shuffled or untrained."""
    first = next(iter(planted(family)))
    cases = [case for case in KINDS[kind](family) if (case.task, case.prompts) == (first.task, first.prompts)]
    noisy = [case for case in cases if case.model is not None and case.model.noise == 0.1]
    fresh = [case for case in cases if case.untrained is not None]
    return [*noisy[:NULLS], *fresh[:NULLS]] if kind == "nulls" else noisy[:PLANTED]


@pytest.fixture(scope="module")
def found() -> dict:
    return {
        family: {kind: measured(few(family, kind), PROMPTS) for kind in ("planted", "nulls")} for family in PLANTINGS
    }


@pytest.mark.parametrize("family", PLANTINGS)
def test_planted_models_are_named_rightly(found, family):
    stages = [row for model in found[family]["planted"] for row in model["stages"] if row["unsaturated"]]
    certain = [row for row in stages if row["certain"]]
    assert len(certain) >= len(stages) / 2
    assert all(row["right"] for row in certain)


@pytest.mark.parametrize("family", PLANTINGS)
def test_nulls_raise_no_alarm(found, family):
    assert len(found[family]["nulls"]) == 2 * NULLS
    assert not any(row["alarm"] for model in found[family]["nulls"] for row in model["stages"])


def test_what_is_measured_is_what_a_page_shows(found):
    for kinds in found.values():
        rates = summary(kinds["planted"], kinds["planted"], kinds["nulls"])
        assert documents.problem({"rates": {"x": rates}}, documents.CONTROLS) == ""


@pytest.mark.parametrize("family", PLANTINGS)
def test_the_rates_on_file_hold_what_is_promised(family):
    """As `python -m benchmarks.controls` measured them, on many more models."""
    rates = (runs.controls() or {})[family]
    assert rates["planted"]["models"] >= 60
    assert rates["planted"]["certain"]["rate"] >= 0.5
    assert rates["planted"]["right_when_certain"]["rate"] >= 0.95
    assert rates["false_alarms"]["models"] >= 20
    assert rates["false_alarms"]["rate"] == 0


@pytest.mark.parametrize("family", PLANTINGS)
def test_a_planted_model_is_a_function_of_its_tokens(family):
    case = next(iter(nulls(family)))
    prompts = case.task.sample(5, seed=0)
    tokens = case.task.encode(prompts.x, prompts.y)
    assert case.model is not None
    first, again, other = (case.model(each) for each in (tokens, tokens.clone(), tokens.flip(0)))
    assert list(first) == list(again) == list(case.model.stages)
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
    assert list(binary.values()) == [True, True, True, False]
    assert list(guess.values()) == [True, True, False, False]


def test_an_untrained_network_is_certain_of_no_step_but_its_own_prompt():
    """Its answers are near those of labels that are common, or alike on all graphs, and that is no algorithm."""
    task = Connectivity(nodes=8)
    model = Transformer(3, 4, 32)
    network = model.build(task.inputs, task.outputs, task.length, torch.Generator().manual_seed(0))
    verdict = ag.identify(network, task, prompts=PROMPTS, fit_on=PROMPTS)
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

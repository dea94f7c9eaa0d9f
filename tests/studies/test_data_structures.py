"""What the study measures, on models and traces whose answer is known."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
import torch
from browsing import opened
from torch.nn.functional import one_hot

from algoscope import files
from algoscope.algorithms import BinarySearch, Buckets, CountMin, InterpolationSearch, KDTree
from algoscope.algorithms.search import Lookups
from algoscope.constructions import binary_search
from algoscope.controls import Planted
from algoscope.instrument import identify
from algoscope.matching import found as has_found
from algoscope.models import Index, LearnedSketch
from algoscope.reading import in_place, lookups, order
from algoscope.report.charts import LACKING
from algoscope.studies import study
from algoscope.studies.data_structures.controls import CONTROL, controls
from algoscope.studies.data_structures.findings import (
    begins_unsorted,
    controls_right,
    is_called,
    loses,
    most_space,
)
from algoscope.studies.data_structures.measures import (
    agreement,
    called,
    first_reads,
    measure_search,
)
from algoscope.studies.data_structures.published import numbers, value
from algoscope.studies.data_structures.references import (
    BINARY,
    BUCKETS,
    INTERPOLATION,
    MINIMUM,
    MODEL,
    TREE,
    UNTRAINED,
    searches,
    table,
)
from algoscope.studies.data_structures.streams import SEEDS, measure_stream
from algoscope.studies.data_structures.trainings import EVERY, LONGEST, MOST, OURS, RUNS, space
from algoscope.studies.study import Training
from algoscope.tasks import HardSearch, SphereSearch, UniformSearch, ZipfSearch, ZipfStream
from algoscope.tasks.search import Search, nearest
from algoscope.trace import Prompts, Trace

LINE = UniformSearch(15, queries=8)


def traced(task, lookups: int = 4, sets: int = 100):
    prompts = task.sample(sets, seed=3)
    return prompts, {name: each.trace(prompts) for name, each in searches(task, lookups).items()}


@dataclass(frozen=True)
class Model:
    """Shows look-ups of slots and points: those of a search, changed in a way that may depend on the answers."""

    task: Search
    search: Lookups
    change: Callable[[Trace], torch.Tensor] = lambda trace: trace.values
    slots: int = 0

    def __call__(self, tokens):
        x = self.task.decode(tokens.double()).x
        prompts = Prompts(x, nearest(x[:, : self.task.size], x[:, self.task.size :]).double())
        weights = one_hot(self.change(self.search.trace(prompts)).long(), self.task.size + self.slots).float()
        empty = weights.new_zeros(*weights.shape[:2], self.task.size, weights.shape[-1])
        return {f"look-up {m + 1}": part for m, part in enumerate(torch.cat((empty, weights), 2))}


def compared(model, task, lookups: int = 4, slots: int = 0, sets: int = 300):
    """What the study measures of a model's look-ups."""
    prompts = task.sample(sets, seed=3)
    known = searches(task, lookups, slots)
    verdict = identify(model, task, list(known.values()), prompts, fit_on=50)
    return agreement(verdict, {name: each.trace(prompts) for name, each in known.items()})


@pytest.mark.parametrize("task", [LINE, HardSearch(15, queries=8), UniformSearch(12, queries=8)], ids=str)
def test_binary_search_in_the_weights_of_an_index_is_binary_search(task):
    prompts = task.sample(200, seed=5)
    network = binary_search(task, lookups=3)
    assert bool(in_place(order(network, task, prompts), prompts).all())
    assert torch.equal(lookups(network, task, prompts).values, BinarySearch(3).trace(prompts).values)


def test_controls_are_called_what_they_are():
    found = controls(points=15, scale="smoke")
    assert [row["called"] for row in found["controls"] if row["expected"]] == [BINARY, BINARY]
    assert {row["called"] for row in found["controls"] if not row["expected"]} == {None}
    assert found["called"] == BINARY
    assert all(row["value"] == 1.0 for row in table(found, "agreement", search=BINARY))
    for fresh in (False, True):
        judged = controls_right(CONTROL, fresh)({CONTROL: {"0": found}})
        assert judged is not None
        assert judged.verdict == "holds"


def test_a_search_is_called_by_its_own_name_and_no_other():
    for name, search in searches(LINE, 4).items():
        assert compared(Planted(search, LINE), LINE)["called"] == name
    plane = UniformSearch(31, dim=2, queries=8)
    assert compared(Planted(KDTree(4), plane), plane)["called"] == TREE


@pytest.mark.parametrize(
    "change",
    [
        lambda trace: trace.prompts.y.expand(4, *trace.prompts.y.shape),  # the answer at once
        lambda trace: trace.values[:1].expand(4, -1, -1),  # the middle
        lambda trace: trace.values.roll(1, -1),  # for another query
    ],
    ids=["answer", "middle", "another query"],
)
def test_what_is_no_search_is_called_nothing(change):
    """Reading the answer at once agrees with every search that succeeds, and reading the middle with binary search."""
    assert compared(Model(LINE, BinarySearch(4), change), LINE)["called"] is None


@pytest.mark.parametrize(("share", "name"), [(0.8, BINARY), (0.3, None)])
def test_a_search_that_often_reads_the_answer_instead_is_still_called_by_its_name(share, name):
    """Right reads do not matter; of the wrong ones more than half have to be those of the search."""

    def often(trace: Trace) -> torch.Tensor:
        noise = torch.rand(trace.values.shape, generator=torch.Generator().manual_seed(0))
        others = torch.where(noise < (1 + share) / 2, trace.prompts.y, (trace.prompts.y + 1) % LINE.size)
        return torch.where(noise < share, trace.values, others)

    assert compared(Model(LINE, BinarySearch(4), often), LINE)["called"] == name


def test_what_is_read_after_the_answer_does_not_matter():
    """A model that must not repeat itself goes elsewhere once it has the answer, where a search may stay."""

    def wander(trace: Trace) -> torch.Tensor:
        done = torch.cat([torch.zeros_like(has_found(trace)[:1]), has_found(trace)[:-1]])
        elsewhere = (trace.prompts.y + 1 + torch.arange(len(trace))[:, None, None]) % LINE.size
        return torch.where(done, elsewhere, trace.values)

    own = InterpolationSearch(4)
    row = compared(Model(LINE, own, wander), LINE)
    assert row["called"] == INTERPOLATION
    rows = table(row, "agreement", search=INTERPOLATION)
    assert all(row["value"] == 1.0 for row in rows)
    trace = own.trace(LINE.sample(300, seed=3))
    assert [row["wrong"] for row in rows] == pytest.approx((1 - has_found(trace).double().mean((1, 2))).tolist())


def test_a_look_up_of_a_slot_is_left_out():
    """A model that reads a slot first, and then the point that belongs to it, does what buckets do."""
    task = UniformSearch(16, queries=8)

    def first_a_slot(trace: Trace) -> torch.Tensor:
        return torch.cat([torch.full_like(trace.values[:1], task.size + 3), trace.values[:1]])

    found = compared(Model(task, Buckets(2, 8), first_a_slot, slots=8), task, lookups=2, slots=8)
    assert (found["called"], found["closest"]) == (BUCKETS, BUCKETS)


def test_what_two_searches_read_alike_is_called_by_neither():
    class Same(BinarySearch):
        """Another name for it."""

    twice, prompts = [BinarySearch(4), Same(4)], LINE.sample(300, seed=3)
    verdict = identify(Planted(twice[0], LINE), LINE, twice, prompts, fit_on=50)
    known = {name: each.trace(prompts) for name, each in zip(("one", "other"), twice, strict=True)}
    assert called(verdict, known) is None
    alone = identify(Planted(twice[0], LINE), LINE, twice[:1], prompts, fit_on=50)
    assert called(alone, {"one": known["one"]}) == "one"


def test_first_look_ups_are_in_the_middle_or_at_the_query():
    prompts = LINE.sample(200, seed=0)
    known = {BINARY: BinarySearch(2).trace(prompts), INTERPOLATION: InterpolationSearch(2).trace(prompts)}
    rows = {(row["what"], row["is"]): row["value"] for row in first_reads(known, LINE)}
    assert rows[BINARY, "in the middle"] == 1.0
    assert rows[INTERPOLATION, "off the expected place"] < 0.02 < 0.2 < rows[BINARY, "off the expected place"]


def test_examples_have_what_each_look_up_reads():
    network = binary_search(LINE, lookups=4)
    found = measure_search(LINE, network, None, "smoke")
    prompts = LINE.sample(200, seed=0, purpose="study")
    for i, example in enumerate(found["examples"]):
        points, query = [point[0] for point in example["points"]], example["query"][0]
        assert points == sorted(points)
        assert query == float(prompts.x[i, 15 + i, 0])
        assert min(points, key=lambda point: abs(point - query)) == points[example["nearest"]]
        assert example["reads"][MODEL] == example["reads"][BINARY]
        assert example["reads"][MODEL][0] == 7


@pytest.mark.parametrize(
    "task",
    [SphereSearch(32, dim=5, queries=4), ZipfSearch(20, 40, queries=4), HardSearch(15, dim=2, queries=4)],
    ids=str,
)
def test_every_task_has_searches_to_stand_beside(task):
    _, known = traced(task, lookups=3, sets=20)
    assert known
    assert all(len(trace) == 3 for trace in known.values())


def test_errors_of_sketches_are_those_of_their_traces():
    task = ZipfStream(12, 10)
    network = LearnedSketch(cells=4, hidden=8).build(task.inputs, 1, task.length, torch.Generator().manual_seed(0))
    prompts = task.sample(30, seed=0)
    found = measure_stream(task, network, prompts)
    errors = [(CountMin(4, seed=seed).trace(prompts).values[-1] - prompts.y).abs().mean() for seed in range(SEEDS)]
    row = table(found, "errors", what=MINIMUM)[0]
    own = table(found, "errors", what=MODEL)[0]
    assert row["value"] == pytest.approx(float(torch.stack(errors).mean()))
    assert row["ahead_value"] == pytest.approx(row["value"] - own["value"])


def test_intervals_of_sketches_are_those_of_streams_and_hash_functions():
    """Where frequent items are always the same, hash functions differ more than streams do."""
    task = ZipfStream(100, 100, ranks="fixed")
    prompts = task.sample(200, seed=0)
    network = LearnedSketch(cells=16, hidden=8).build(task.inputs, 1, task.length, torch.Generator().manual_seed(0))
    row = table(measure_stream(task, network, prompts), "errors", what=MINIMUM)[0]
    others = [(CountMin(16, seed=seed).trace(prompts).values[-1] - prompts.y).abs().mean() for seed in range(50, 150)]
    spread = float(torch.stack(others).std())
    assert (row["high"] - row["low"]) / 2 == pytest.approx(1.96 * spread / SEEDS**0.5, rel=0.3)
    assert row["low"] - spread / 10 < float(torch.stack(others).mean()) < row["high"] + spread / 10


@pytest.mark.parametrize(("fresh", "verdict"), [(0.5, "holds"), (1.0, None)])
def test_a_frozen_order_counts_only_if_it_is_not_sorted(fresh, verdict):
    order = [{"what": UNTRAINED, "value": fresh, "low": fresh, "high": fresh, "n": 10}]
    runs_of = {OURS: {"0": model(0.9)}, f"{OURS}, frozen": {"0": {**model(0.8), "sorted": order}}}
    found = loses(OURS, "frozen", begins_unsorted)(runs_of)
    assert (found.verdict if found else None) == verdict


def model(share: float, name: str | None = None) -> dict:
    row = {"value": share, "low": share - 0.01, "high": share + 0.01, "n": 10}
    return {"found": [{"what": MODEL, "lookup": 1, **row}], "mean": {BINARY: row}, "called": name}


def test_the_longest_training_differs_in_what_it_says():
    plans = {run.name: run for run in RUNS["paper"] if isinstance(run, Training)}
    every, longest = plans[EVERY], plans[LONGEST]
    assert isinstance(every.model, Index)
    changed = {"steps": MOST, "checkpoint_every": 10_000, "precision": "fp32", "weight_decay": 0.03}
    same = replace(every, model=replace(every.model, softness=every.model.softness / 2))
    settings = replace(every.settings, **changed)
    assert longest == replace(same, name=LONGEST, settings=settings, learning_rate=every.learning_rate / 2)


def test_findings_follow_from_the_numbers():
    runs_of = {OURS: {"0": model(0.9)}, f"{OURS}, without": {"0": model(0.8)}}
    lost = loses(OURS, "without")(runs_of)
    assert lost is not None
    assert (lost.verdict, lost.values[0].value) == ("holds", pytest.approx(0.1))
    assert loses(OURS, "another")(runs_of) is None
    assert most_space({space(0): {"0": model(0.5)}}) is None
    more = most_space({space(0): {"0": model(0.5)}, space(8): {"0": model(0.4)}, space(16): {"0": model(0.45)}})
    assert more is not None
    assert (more.verdict, more.values[0].value) == ("fails", pytest.approx(-0.05))
    for names, verdict in (((BINARY, BINARY), "holds"), ((BINARY, None), "undecided"), ((None, None), "fails")):
        judged = is_called(OURS, BINARY)({OURS: {str(i): model(0.7, name) for i, name in enumerate(names)}})
        assert judged is not None
        assert judged.verdict == verdict


def test_published_numbers_are_found_by_name():
    assert value(space(128)) == 0.913
    assert value(OURS, quantity="in place") == 0.995
    names = {run.name for run in study.find("data-structures").runs["paper"]}
    known = {number.run for number in numbers()}
    assert {space(slots) for slots in (0, 8, 32, 128)} <= names & known
    assert all(0 <= number.value <= 1 for number in numbers() if number.quantity != "error")


def test_a_reader_moves_from_look_up_to_look_up(browser, tmp_path):
    found = study.find("data-structures")
    known = {"provenance": {"commit": "none"}, "seconds": {"training": 0.0, "measuring": 0.0}}
    known |= {"run": "", "version": found.version}
    model = {**controls(points=15, scale="smoke"), **known}
    examples = [{**each, "reads": {MODEL: each["reads"][MODEL]}} for each in model["examples"]]
    measured = {CONTROL: {"0": model, "1": {**model, "examples": examples}}}  # of the second nothing but its own reads
    results = {"study": found.name, "version": found.version, "scale": "smoke", "runs": measured}
    files.write_json(tmp_path / study.RESULTS, study.shortened(results))
    shown, heard = opened(browser, study.build_page(tmp_path), 1280, "light")
    reads = shown.locator("[data-chart='player'] g.mark-text.role-mark text")
    slider, example = (shown.locator(f"[data-chart='player'] input[name={name}]") for name in ("lookup", "example"))
    assert [text for text in reads.all_text_contents() if text] == ["1", "look-up 1 of 4"]
    for lookup in (2, 3, 4):
        slider.fill(str(lookup))
        shown.wait_for_timeout(200)
        assert reads.all_text_contents() == [*(str(m + 1) for m in range(lookup)), f"look-up {lookup} of 4"]
    picture = shown.locator("[data-chart='player'] svg.marks").inner_html
    before = picture()
    example.fill("2")
    shown.wait_for_timeout(200)
    second = picture()
    assert second != before
    shown.select_option("[data-chart='player'] select", INTERPOLATION)
    shown.wait_for_timeout(200)
    assert picture() != second
    assert LACKING not in reads.all_text_contents()
    shown.select_option("#model", f"{CONTROL}, seed 1")
    shown.wait_for_timeout(200)
    shown.select_option("[data-chart='player'] select", INTERPOLATION)
    shown.wait_for_timeout(200)
    assert [text for text in reads.all_text_contents() if text] == [LACKING]
    assert not shown.locator("figure:has([data-chart='player-plane'])").is_visible()
    assert heard == []
    shown.close()

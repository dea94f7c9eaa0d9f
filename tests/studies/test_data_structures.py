"""What the study measures, on models and traces whose answer is known."""

from dataclasses import replace

import pytest
import torch
from browsing import opened

from algoscope import files
from algoscope.algorithms import BinarySearch, CountMin, InterpolationSearch, KDTree
from algoscope.matching import found as has_found
from algoscope.models import Index, LearnedSketch
from algoscope.reading import in_place, lookups, order
from algoscope.report.charts import LACKING
from algoscope.studies import study
from algoscope.studies.data_structures.claims import CLAIMS
from algoscope.studies.data_structures.controls import CONTROL, controls, written_binary_search
from algoscope.studies.data_structures.findings import (
    alike,
    begins_unsorted,
    changes,
    controls_right,
    gains,
    is_called,
    loses,
    most_space,
)
from algoscope.studies.data_structures.intervals import table
from algoscope.studies.data_structures.measures import agreement, first_reads, measure_search, neighbors, splits
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
)
from algoscope.studies.data_structures.streams import SEEDS, measure_stream
from algoscope.studies.data_structures.trainings import (
    APART,
    FAVORED,
    HASTY,
    MOST,
    OURS,
    RUNS,
    SMALL,
    WAVES,
    decayed,
    longer,
    sharp,
    space,
)
from algoscope.studies.study import Training
from algoscope.tasks import HardSearch, SphereSearch, UniformSearch, ZipfSearch, ZipfStream
from algoscope.trace import Trace

LINE = UniformSearch(15, queries=8)


def traced(task, lookups: int = 4, sets: int = 100):
    prompts = task.sample(sets, seed=3)
    return prompts, {name: each.trace(prompts) for name, each in searches(task, lookups).items()}


@pytest.mark.parametrize("task", [LINE, HardSearch(15, queries=8), UniformSearch(12, queries=8)], ids=str)
def test_binary_search_in_the_weights_of_an_index_is_binary_search(task):
    prompts = task.sample(200, seed=5)
    network = written_binary_search(task, lookups=3)
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
    prompts, known = traced(LINE)
    for name, trace in known.items():
        assert agreement(trace, known)["called"] == name
    prompts, known = traced(UniformSearch(31, dim=2, queries=8))
    assert agreement(KDTree(4).trace(prompts), known)["called"] == TREE


def test_what_is_no_search_is_called_nothing():
    """Reading the answer at once agrees with every search that succeeds, and reading the middle with binary search."""
    prompts, known = traced(LINE)
    answer = Trace("answer", prompts.y.expand(4, *prompts.y.shape), (1, 2, 3, 4), prompts)
    middle = Trace("middle", known[BINARY].values[:1].expand(4, -1, -1), (1, 2, 3, 4), prompts)
    other = Trace("another query", known[BINARY].values.roll(1, -1), (1, 2, 3, 4), prompts)
    for trace in (answer, middle, other):
        assert agreement(trace, known)["called"] is None
    noise = torch.rand(known[BINARY].values.shape, generator=torch.Generator().manual_seed(0))
    often, rarely = (
        Trace("noisy", torch.where(noise < share, known[BINARY].values, prompts.y), (1, 2, 3, 4), prompts)
        for share in (0.8, 0.3)
    )
    assert agreement(often, known)["called"] == BINARY
    assert agreement(rarely, known)["called"] is None


def test_what_is_read_after_the_answer_does_not_matter():
    """A model that must not repeat itself goes elsewhere once it has the answer, where a search may stay."""
    prompts, known = traced(LINE)
    trace = known[INTERPOLATION]
    done = torch.cat([torch.zeros_like(has_found(trace)[:1]), has_found(trace)[:-1]])
    elsewhere = (prompts.y + 1 + torch.arange(len(trace))[:, None, None]) % LINE.size
    wandering = Trace("wanders", torch.where(done, elsewhere, trace.values), trace.stages, prompts)
    told = agreement(wandering, known)
    assert told["called"] == INTERPOLATION
    rows = table(told, "agreement", search=INTERPOLATION)
    assert all(row["value"] == 1.0 for row in rows)
    assert [row["wrong"] for row in rows] == pytest.approx((1 - has_found(trace).double().mean((1, 2))).tolist())


def test_a_look_up_of_a_slot_is_left_out():
    """A model that reads a slot first, and then the point that belongs to it, does what buckets do."""
    task = UniformSearch(16, queries=8)
    prompts = task.sample(200, seed=0)
    known = {name: each.trace(prompts) for name, each in searches(task, 2, 8).items()}
    buckets = known[BUCKETS]
    slots = torch.full_like(buckets.values[:1], task.size + 3)
    told = agreement(replace(buckets, values=torch.cat([slots, buckets.values[:1]])), known)
    assert (told["called"], told["closest"]) == (BUCKETS, BUCKETS)


def test_agreement_needs_another_query():
    _, known = traced(replace(LINE, queries=1))
    with pytest.raises(ValueError, match="queries must be at least 2"):
        agreement(known[BINARY], known)


def test_what_two_searches_read_alike_is_a_tie():
    prompts = LINE.sample(50, seed=0)
    twice = {"one": BinarySearch(4).trace(prompts), "other": BinarySearch(4).trace(prompts)}
    found = agreement(twice["one"], twice)
    assert found["ties"] == ["one", "other"]
    assert found["called"] is None


def test_first_look_ups_are_in_the_middle_or_at_the_query():
    prompts = LINE.sample(200, seed=0)
    known = {BINARY: BinarySearch(2).trace(prompts), INTERPOLATION: InterpolationSearch(2).trace(prompts)}
    rows = {(row["what"], row["is"]): row["value"] for row in first_reads(known, LINE)}
    assert rows[BINARY, "in the middle"] == 1.0
    assert rows[INTERPOLATION, "off the expected place"] < 0.02 < 0.2 < rows[BINARY, "off the expected place"]


def test_an_order_may_be_sorted_but_for_where_it_begins():
    prompts = LINE.sample(50, seed=0)
    upwards = prompts.x[:, :15, 0].argsort(1)
    orders = {"sorted": upwards, "turned": upwards.roll(4, 1), "as they come": torch.arange(15).expand(50, -1)}
    shares = {row["what"]: row["value"] for row in neighbors(orders, prompts)}
    assert (shares["sorted"], shares["turned"]) == (1.0, pytest.approx(13 / 14))
    assert shares["as they come"] < 0.2


def test_a_k_d_tree_splits_one_coordinate_after_the_other():
    prompts = UniformSearch(15, dim=2, queries=2).sample(100, seed=0)
    points = prompts.x[:, :15]
    told = {(row["level"], row["coordinate"]): row["value"] for row in splits(KDTree.order(points), prompts)}
    assert told[1, 1] == told[2, 2] == 1.0
    assert told[1, 2] == pytest.approx(0.5, abs=0.1)
    either = splits(points[..., 1].argsort(1, descending=True), prompts)
    assert [row["value"] for row in either if row["coordinate"] == 2] == [1.0, 1.0]


def test_examples_tell_what_each_look_up_reads():
    network = written_binary_search(LINE, lookups=4)
    found = measure_search(LINE, network, None, "smoke")
    prompts = LINE.sample(40, seed=0, purpose="study")
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
    assert [each["item"] for each in found["cells"]] == list(range(12))
    assert all(0 <= each["cell"] < 4 for each in found["cells"])


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
def test_a_frozen_order_tells_something_only_if_it_is_not_sorted(fresh, verdict):
    order = [{"what": UNTRAINED, "value": fresh, "low": fresh, "high": fresh, "n": 10}]
    runs_of = {OURS: {"0": model(0.9)}, f"{OURS}, frozen": {"0": {**model(0.8), "sorted": order}}}
    found = loses(OURS, "frozen", begins_unsorted)(runs_of)
    assert (found.verdict if found else None) == verdict


@pytest.mark.parametrize(("steps", "verdict"), [(100, "holds"), (200, "undecided")])
def test_a_form_is_compared_with_another_of_the_same_size_and_training(steps, verdict):
    def trained(share: float, steps: int) -> dict:
        sizes = {"layers": 2, "width": 8, "hidden": 16}
        settings = {"steps": steps, "batch": 4}
        return {**model(share), "config": {"model": sizes, "settings": settings, "learning_rate": 0.1}}

    runs_of = {"a": {"0": trained(0.9, 100)}, "b": {"0": trained(0.5, steps)}}
    found = alike(gains("a", "b"), "a", "b")(runs_of)
    assert found is not None
    assert found.verdict == verdict


def model(share: float, called: str | None = None) -> dict:
    row = {"value": share, "low": share - 0.01, "high": share + 0.01, "n": 10}
    return {"found": [{"what": MODEL, "lookup": 1, **row}], "mean": {BINARY: row}, "called": called}


@pytest.mark.parametrize(
    ("after", "verdict"),
    [((0.30, 0.70, 0.99), "holds"), ((0.30, 0.62, 0.99), "fails"), ((0.32, 0.70, 0.99), "undecided")],
)
def test_longer_training_is_judged_where_it_changes_most(after, verdict):
    """What is found in the end alone, where nearly all is, would hide what changes before."""

    def found(*shares: float) -> dict:
        rows = [
            {"what": MODEL, "value": share, "low": share - 0.005, "high": share + 0.005, "n": 9} for share in shares
        ]
        return {"found": rows}

    numbers = {OURS: {"0": found(0.30, 0.70, 0.99)}, longer(OURS): {"0": found(*after), "1": found(0.1, 0.1, 0.1)}}
    judged = changes(longer(OURS), OURS, at_most=0.02)(numbers)
    assert judged is not None
    assert judged.verdict == verdict
    assert len(judged.values) == 1
    (claim,) = [claim for claim in CLAIMS if claim.id == "flat"]
    assert claim.record(numbers)["seeds"] == [value.value for value in judged.values]


def test_what_is_trained_for_longer_is_the_same_but_for_steps_rate_and_precision():
    plans = {run.name: run for run in RUNS["paper"] if isinstance(run, Training)}
    for name in (OURS, HASTY, WAVES):
        once, twice = plans[name], plans[longer(name)]
        assert (twice.settings.steps, twice.settings.precision) == (2 * once.settings.steps, "fp32")
        same = replace(once.settings, steps=1, checkpoint_every=100, precision="auto")
        assert replace(twice.settings, steps=1, checkpoint_every=100, precision="auto") == same
        assert twice.learning_rate == once.learning_rate / 2
        assert replace(twice, name=name, settings=once.settings, learning_rate=once.learning_rate) == once


def test_slots_in_favor_differ_in_how_they_are_read_and_for_how_long_alone():
    plans = {run.name: run for run in RUNS["paper"] if isinstance(run, Training)}
    apart, favored = plans[space(8, APART)], plans[space(8, FAVORED)]
    assert isinstance(apart.model, Index)
    free = replace(apart.model, before="all", favor=6.0, coldest=0.25)
    steps = {each: getattr(favored.settings, each) for each in ("steps", "checkpoint_every")}
    assert replace(apart, name=favored.name, model=free, settings=replace(apart.settings, **steps)) == favored


@pytest.mark.parametrize("name", [space(0, SMALL), space(8, FAVORED), longer(HASTY)])
def test_what_is_sorted_sharply_differs_in_the_blur_of_the_sort_and_then_in_decay_alone(name):
    plans = {run.name: run for run in RUNS["paper"] if isinstance(run, Training)}
    blurred, sharper, decaying = plans[name], plans[sharp(name)], plans[decayed(sharp(name))]
    assert isinstance(blurred.model, Index)
    model = replace(blurred.model, softness=blurred.model.softness / 2)
    assert replace(blurred, name=sharper.name, model=model) == sharper
    assert decaying.settings.weight_decay > 0
    assert replace(decaying, name=sharper.name, settings=replace(decaying.settings, weight_decay=0.0)) == sharper


def test_the_longest_training_differs_in_its_steps_alone():
    plans = {run.name: run for run in RUNS["paper"] if isinstance(run, Training)}
    less, most = (plans[decayed(sharp(longer(HASTY, steps)))] for steps in (None, MOST))
    assert most.settings.steps == MOST > less.settings.steps
    steps = {each: getattr(most.settings, each) for each in ("steps", "checkpoint_every")}
    assert replace(less, name=most.name, settings=replace(less.settings, **steps)) == most


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
    told = {"provenance": {"commit": "none"}, "seconds": {"training": 0.0, "measuring": 0.0}}
    told |= {"run": "", "version": found.version}
    model = {**controls(points=15, scale="smoke"), **told}
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

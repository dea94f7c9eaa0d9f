"""A study from nothing to its page, at the scale that only checks the way."""

import gzip
import html
import json
import math
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import filelock
import pytest
import torch
from browsing import REDRAWN, opened

from algoscope import files, runs
from algoscope.models import Index
from algoscope.report import page
from algoscope.studies import CATALOG, SCALES, configs, study
from algoscope.studies.claim import Claim, Finding, Value
from algoscope.tasks import UniformSearch
from algoscope.training import Settings

RESULTS = Path(__file__).parents[2] / "results"
NUMBERLESS = ("law-", "speeds-up-")  # claims about a law, which may be another that has no such number
KEYS = {
    "id",
    "sentence",
    "where",
    "convention",
    "headline",
    "what",
    "why",
    "paper",
    "ours",
    "low",
    "high",
    "n",
    "seeds",
    "bound",
    "verdict",
}


def changed_rate(numbers):
    numbers["config"]["learning_rate"] *= 2


def changed_steps(numbers):
    numbers["config"]["settings"]["steps"] += 1


@pytest.fixture(scope="module", params=list(CATALOG))
def folder(request, tmp_path_factory) -> Path:
    """Carried out once for all workers that test side by side: the first to come does it, and the others wait."""
    own = tmp_path_factory.getbasetemp()
    out = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "studies"
    place = out / request.param / "smoke"
    place.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(place / "lock"):
        if not (place / study.PAGE).exists():
            study.carry_out(study.find(request.param), "smoke", out, "cpu", progress=False)
    return place


def test_every_claim_is_told_with_its_numbers(folder):
    results = files.read_json(folder / study.RESULTS)
    claims = study.find(results["study"]).claims
    assert [claim["id"] for claim in results["claims"]] == [claim.id for claim in claims]
    assert len({claim.id for claim in claims}) == len(claims)
    for claim in results["claims"]:
        assert set(claim) == KEYS
        assert claim["verdict"] in ("holds", "fails", "undecided", "not run")
        if claim["id"].startswith(NUMBERLESS) and claim["verdict"] in ("fails", "undecided"):
            continue
        assert (claim["ours"] is None) == (claim["verdict"] == "not run")
    assert any(claim["ours"] is not None for claim in results["claims"])
    json.loads((folder / study.RESULTS).read_text(), parse_constant=pytest.fail)


def test_numbers_tell_how_their_model_was_trained(folder):
    results = files.read_json(folder / study.RESULTS)
    planned = study.find(results["study"]).runs["smoke"]
    trainings = {run.name: run for run in planned if isinstance(run, study.Training)}
    for name, seeds in results["runs"].items():
        for numbers in seeds.values():
            assert ("config" in numbers) == ("trained_on" in numbers) == (name in trainings)
            if name in trainings:
                task, model = (numbers["config"][part] for part in ("task", "model"))
                assert task == json.loads(json.dumps(runs.plain(trainings[name].task)))
                assert model == json.loads(json.dumps(runs.plain(trainings[name].model)))
                assert numbers["config"]["settings"]["steps"] == trainings[name].settings.steps
                assert numbers["trained_on"]["commit"] == numbers["provenance"]["commit"]
    assert ("How they were trained" in (folder / study.PAGE).read_text()) == bool(trainings)


def test_of_trainings_is_told_what_is_not_by_default():
    def numbers(model, **settings):
        training = study.Training("a", UniformSearch(7), model, Settings(**settings), 0.001)
        config = json.loads(json.dumps(configs.config(training)))
        return {"config": config, "seconds": {"training": 90.0}, "provenance": {"device": "cpu"}}

    one, two = numbers(Index(folds=1), steps=10), numbers(Index(picture=(8, 16, 1, 32)), steps=20, batch=8)
    two |= {"trained_on": {"device": "gpu", "commit": "0123456789"}, "learning": {"error": [9.0, None, 9.0, 4.0, 1.0]}}
    less = {**two, "learning": {"error": [9.0, 4.0, 3.0]}}
    other = {**one, "config": {**one["config"], "model": {"kind": "Forgotten", "layers": 2}}}
    rows = configs.rows({"a": {"0": one, "1": one}, "b": {"2": less, "3": two}, "c": {"0": other}, "known": {"0": {}}})
    assert rows == [
        ["a", "UniformSearch: size 7", "Index: folds 1", "Settings: steps 10", "0.001", 3.0, "cpu", "", ""],
        [
            "b",
            "UniformSearch: size 7",
            "Index: picture [8, 16, 1, 32]",
            "Settings: steps 20, batch 8",
            "0.001",
            3.0,
            "gpu",
            "0123456",
            "75%",
        ],
        ["c", "UniformSearch: size 7", "Forgotten: layers 2", "Settings: steps 10", "0.001", 1.5, "cpu", "", ""],
    ]


@pytest.mark.parametrize("name", ["trained_on", "seconds"])
def test_a_study_hides_nothing_that_is_told_of_every_model(tmp_path, name):
    """AlgoFormer's loops of training once gave way to the device of training, which had the same name."""
    found = study.find("data-structures")
    greedy = replace(found, measure=lambda *given: {name: 1})
    with pytest.raises(ValueError, match=f"must not measure what is recorded of every model by that name: {name}"):
        study.train_and_measure(greedy, "smoke", tmp_path, torch.device("cpu"), ["1D uniform"], progress=False)


def earlier_network(numbers):
    numbers["config"]["version"] = 0


@pytest.mark.parametrize("change", [changed_rate, changed_steps, earlier_network])
def test_what_was_trained_by_another_plan_is_told(folder, tmp_path, monkeypatch, change):
    """Neither charts nor the pages of models tell of it, so that none are made."""
    whole = study.find
    monkeypatch.setattr(study, "find", lambda name: replace(whole(name), figures=lambda numbers: {}))
    monkeypatch.setattr(page, "page", lambda record: "")
    results = files.read_json(folder / study.RESULTS)
    changed = [name for name, seeds in results["runs"].items() if "config" in next(iter(seeds.values()))][:1]
    for name in changed:
        for numbers in results["runs"][name].values():
            change(numbers)
    files.write_json(tmp_path / study.RESULTS, results)
    told = "Trained by an earlier plan, as stated below: "
    assert told not in (folder / study.PAGE).read_text()
    text = html.unescape(study.build_page(tmp_path).read_text())
    assert all(f"{told}{name}." in text for name in changed)


def test_what_is_finished_is_not_done_again(folder, monkeypatch):
    monkeypatch.setattr(study, "build_page", lambda place: place)
    name = files.read_json(folder / study.RESULTS)["study"]
    made = [path for path in folder.rglob("*") if path.name in ("model.safetensors", "state.safetensors")]
    made += list((folder / "measured").iterdir())
    before = {path: path.stat().st_mtime_ns for path in made}
    study.carry_out(study.find(name), "smoke", folder.parents[1], "cpu", progress=False)
    assert {path: path.stat().st_mtime_ns for path in made} == before


def test_a_study_can_be_split_over_processes(folder, tmp_path):
    found = study.find(files.read_json(folder / study.RESULTS)["study"])
    first, *others = [training.name for training in found.runs["smoke"]]
    for part in ("runs", "measured"):
        if (folder / part).exists():  # a study that trains nothing has no runs
            shutil.copytree(folder / part, tmp_path / found.name / "smoke" / part)
    (own,) = (tmp_path / found.name / "smoke" / "measured").glob(f"{runs.slug(others[-1])}-*")
    own.unlink()
    page = study.carry_out(found, "smoke", tmp_path, "cpu", [first], progress=False)
    assert others[-1] not in files.read_json(page.parent / study.RESULTS)["runs"]
    study.train_and_measure(found, "smoke", page.parent, torch.device("cpu"), others, progress=False)
    study.collect(found, "smoke", page.parent)  # the page of these numbers is that of the fixture
    assert set(files.read_json(page.parent / study.RESULTS)["runs"]) == {first, *others}
    with pytest.raises(ValueError, match="only must be one of"):
        study.carry_out(found, "smoke", tmp_path, "cpu", ["another"], progress=False)


def seeds_of(folder: Path) -> list[list[int]]:
    """Those of each run in a folder, in the order of their training."""
    made = sorted((folder / "runs").glob("*"), key=lambda run: (run / "config.json").stat().st_mtime_ns)
    return [[member["seed"] for member in files.read_json(run / "config.json")["members"]] for run in made]


def test_of_a_run_only_the_seeds_are_trained_that_are_not_on_file(tmp_path):
    def carry_out(folder, seeds, **changes):
        plan = [replace(run, seeds=seeds, **changes) for run in whole.runs["smoke"] if run.name == "1D uniform"]
        found = replace(whole, runs={"smoke": plan})
        study.train_and_measure(found, "smoke", folder, torch.device("cpu"), progress=False)
        study.collect(found, "smoke", folder)
        return found, files.read_json(folder / study.RESULTS)

    whole, known, here = study.find("data-structures"), tmp_path / "known", tmp_path / "here"
    plan, results = carry_out(known, (0, 1))
    both = dict(results["runs"]["1D uniform"])
    del results["runs"]["1D uniform"]["1"]
    files.write_json(known / study.RESULTS, results)
    assert study.take(plan, "smoke", here, known) == ["1D uniform"]
    told = carry_out(here, (0, 1))[1]["runs"]["1D uniform"]
    assert seeds_of(here) == [[1]]
    assert told["0"] == both["0"]
    assert [row["value"] for row in told["1"]["found"]] == pytest.approx([row["value"] for row in both["1"]["found"]])
    carry_out(here, (0, 1, 2))  # one more
    assert seeds_of(here) == [[1], [2]]
    (here / "measured" / "1d-uniform-2.json").unlink()  # as if it had been stopped between training and measuring
    carry_out(here, (0, 1, 2))
    (known / "measured" / "1d-uniform-1.json").unlink()
    told = carry_out(known, (0, 1))[1]["runs"]["1D uniform"]
    assert seeds_of(here) == [[1], [2]]
    assert seeds_of(known) == [[0, 1]]
    assert told["1"]["found"] == both["1"]["found"]
    carry_out(here, (0, 1), learning_rate=1e-4)  # another training
    assert seeds_of(here) == [[1], [2], [0, 1]]
    shutil.rmtree(here / "runs")  # what is measured needs no run
    carry_out(here, (0, 1), learning_rate=1e-4)
    assert not (here / "runs").exists()


def test_what_is_known_is_taken_and_only_the_rest_carried_out(folder, tmp_path, monkeypatch):
    results = files.read_json(folder / study.RESULTS)
    found, whole = study.find(results["study"]), dict(results["runs"])
    missing = found.runs["smoke"][-1].name
    del results["runs"][missing]
    (tmp_path / "known").mkdir()
    files.write_json(tmp_path / "known" / study.RESULTS, results)
    carried_out = []
    monkeypatch.setattr(study, "build_page", lambda place: place)
    monkeypatch.setattr(study, "train_and_measure", lambda *given: carried_out.extend(given[4]))
    page = study.carry_out(found, "smoke", tmp_path / "out", "cpu", known=tmp_path / "known")
    assert carried_out == [missing]
    assert files.read_json(page / study.RESULTS)["runs"] == {name: whole[name] for name in whole if name != missing}
    study.carry_out(found, "smoke", tmp_path / "all", "cpu", known=folder)
    assert carried_out == [missing]  # nothing more: all is known
    trained = [run.name for run in found.runs["smoke"] if isinstance(run, study.Training)][:1]
    for name in trained:
        changed_rate(results["runs"].setdefault(name, whole[name])["0"])
    files.write_json(tmp_path / "known" / study.RESULTS, {**results, "runs": {**whole, **results["runs"]}})
    study.carry_out(found, "smoke", tmp_path / "other", "cpu", known=tmp_path / "known")
    assert carried_out == [missing, *trained]  # of an earlier plan
    with pytest.raises(runs.RunError, match=f"holds {found.name} at smoke scale, not {found.name} at laptop"):
        study.carry_out(found, "laptop", tmp_path, "cpu", known=folder)


def test_seeds_that_are_not_on_file_are_told():
    run = study.Case("a run", lambda scale: {}, seeds=(0, 1, 2))
    told = {"": "0 1 2", "a run (seed 1)": "0 2", "a run (seeds 1 and 2)": "0", "a run": ""}
    for words, seeds in told.items():
        assert study._lacking(run, {seed: {} for seed in seeds.split()}) == words


def test_what_is_timed_is_given_the_device(tmp_path):
    """And nothing else is: it is measured on a processor, whatever the others are trained on."""
    given = {}

    def noted(name):
        return lambda *arguments: given.setdefault(name, arguments) and {}

    cases = [study.Case("timed", noted("timed"), timed=True), study.Case("known", noted("known"))]
    told = replace(study.find("constructions"), runs={"smoke": cases})
    study.train_and_measure(told, "smoke", tmp_path, torch.device("meta"), progress=False)
    assert given == {"timed": ("smoke", torch.device("meta")), "known": ("smoke",)}
    devices = [files.read_json(tmp_path / "measured" / f"{name}-0.json")["provenance"]["device"] for name in given]
    assert [device.split()[0] for device in devices] == ["meta", "cpu"]


@pytest.mark.parametrize("at_once", [1, 2])
def test_what_a_run_needs_is_looked_for_first(tmp_path, monkeypatch, capsys, at_once):
    monkeypatch.setattr(study, "build_page", lambda place: place)
    found = study.find("data-structures")
    first = found.runs["smoke"][0]
    assert isinstance(first, study.Training)
    needy = replace(found, runs={"smoke": [replace(first, needs="IMAGES_OF_THIS_TEST")]})
    for value in ("", None):
        monkeypatch.setenv("IMAGES_OF_THIS_TEST", value) if value is not None else monkeypatch.delenv(
            "IMAGES_OF_THIS_TEST"
        )
        place = study.carry_out(needy, "smoke", tmp_path, "cpu", at_once=at_once)
        assert capsys.readouterr().out == f"left out: {first.name} needs the variable IMAGES_OF_THIS_TEST\n"
        assert files.read_json(place / study.RESULTS)["runs"] == {}


def test_the_page_is_built_from_the_numbers_alone(folder, tmp_path, browser):
    shutil.copy(folder / study.RESULTS, tmp_path)
    file = study.build_page(tmp_path)
    found, results = study.read(tmp_path)
    figures = found.figures(results["runs"])
    chart = chosen_chart(figures)
    for width in (390, 1280):
        shown, heard = opened(browser, file, width, "light")
        assert heard == []
        assert shown.locator("#claims tbody tr").count() == len(results["claims"])
        assert shown.locator("figure").count() == len(figures)
        assert shown.locator("svg.marks").count() == shown.locator("figure:visible").count() > 0
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        before = shown.inner_html(f"[data-chart='{chart}']")
        shown.select_option("#model", index=-1 + shown.locator("#model option").count())
        shown.wait_for_function(REDRAWN, arg=[f"[data-chart='{chart}']", before])
        shown.close()
    links = shown_links(file)
    assert len(links) == sum("verdict" in model for seeds in results["runs"].values() for model in seeds.values())
    assert all((tmp_path / link).exists() for link in links)


@pytest.mark.parametrize(
    "shipped", sorted(path.parent for path in RESULTS.glob(f"*/{study.RESULTS}.gz")), ids=lambda p: p.name
)
def test_the_page_is_built_from_the_results_that_ship(shipped, tmp_path):
    shutil.copy(study.results_file(shipped), tmp_path)
    text = html.unescape(study.build_page(tmp_path).read_text())
    found, results = study.read(tmp_path)
    models = [model for seeds in results["runs"].values() for model in seeds.values()]
    assert (found.name, results["scale"]) == (shipped.name, "paper")
    planned = {run.name for run in found.runs["paper"]}
    assert set(results["runs"]) == planned
    lacking = [study._lacking(run, results["runs"][run.name]) for run in found.runs["paper"]]
    assert all(told in text for told in lacking)
    assert ("Planned, and not run" in text) == any(lacking)
    assert all("dirty" not in model["provenance"]["commit"] for model in models)
    assert all(f'data-chart="{name}"' in text for name in found.figures(results["runs"]))
    assert all(f"<td>{claim['sentence']}" in text for claim in results["claims"])
    many = len(results["claims"]) > page.MANY_CLAIMS
    assert (f"<details><summary>{len(results['claims'])} claims" in text) == many
    words = [
        cell for table in found.tables(results["runs"]) for row in table.rows for cell in row if isinstance(cell, str)
    ]
    assert all(word in text for word in words)
    assert len(list(tmp_path.glob("*.html"))) == 1 + sum("verdict" in model for model in models)


def test_results_of_another_version_are_refused(folder, tmp_path):
    results = files.read_json(folder / study.RESULTS)
    files.write_json(tmp_path / study.RESULTS, results | {"version": -1})
    with pytest.raises(runs.RunError, match="was measured by another version of the study: run algoscope study"):
        study.build_page(tmp_path)


def chosen_chart(figures) -> str:
    """The first figure that shows the model that is chosen."""
    return next(name for name, chart in figures.items() if "chosen_model" in json.dumps(chart.to_dict()))


def shown_links(file: Path) -> list[str]:
    return [part.split('"')[0] for part in file.read_text().split('<li><a href="')[1:]]


def test_every_scale_has_runs_of_different_names():
    for name in CATALOG:
        found = study.find(name)
        assert set(found.runs) == set(SCALES)
        for trainings in found.runs.values():
            names = [training.name for training in trainings]
            assert len(set(names)) == len(names) > 0


def test_a_claim_is_judged_by_every_seed():
    above, below, across = Value(2.0, 1.5, 2.5, 10), Value(0.0, -0.5, 0.5, 10), Value(1.0, 0.5, 1.5, 10)
    assert Finding.judged([above, above], at_least=1.0).verdict == "holds"
    assert Finding.judged([below, below], at_least=1.0).verdict == "fails"
    assert Finding.judged([above, below], at_least=1.0).verdict == "undecided"
    assert Finding.judged([above, across], at_least=1.0).verdict == "undecided"
    assert Finding.judged([above], at_least=1.0, at_most=2.0).verdict == "undecided"
    claim = Claim("id", "says", "where", lambda numbers: Finding.judged([above, across], at_least=1.0), paper=2.0)
    record = claim.record({})
    assert record["ours"] == pytest.approx(1.5)
    assert (record["low"], record["high"], record["n"]) == (0.5, 2.5, 10)
    assert record["seeds"] == [2, 1]
    nothing = Claim("id", "says", "where", lambda numbers: None).record({})
    assert nothing["verdict"] == "not run"
    assert math.isclose(record["paper"], 2.0)


def test_wrong_names_are_told():
    with pytest.raises(ValueError, match="study must be one of 'higher-order-icl', 'constructions', "):
        study.find("another")
    with pytest.raises(ValueError, match="scale must be one of 'smoke', 'laptop', 'paper'"):
        study.carry_out(study.find("higher-order-icl"), "huge", Path("nowhere"))


def test_the_list_of_studies_does_not_wait_for_torch():
    told = "import sys; from algoscope.cli import main; main(['studies']); assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert all(name in done.stdout for name in CATALOG)


def test_results_may_be_compressed_and_damage_is_told(folder, tmp_path):
    whole = gzip.compress((folder / study.RESULTS).read_bytes())
    (tmp_path / f"{study.RESULTS}.gz").write_bytes(whole)
    assert study.read(tmp_path)[1] == study.read(folder)[1]
    for damage in (whole[: len(whole) // 2], b"{}", whole[:20] + b"\0" * 20 + whole[40:]):
        (tmp_path / f"{study.RESULTS}.gz").write_bytes(damage)
        with pytest.raises(runs.RunError, match="damaged"):
            study.read(tmp_path)

"""What a new user meets first: saved verdicts, notebooks, answers to typing errors, help."""

import csv
import io
import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch

import algoscope as ag
from algoscope import files, registry, runs
from algoscope.cli import main
from algoscope.models import Transformer
from algoscope.tasks import LinearRegression, Task
from algoscope.training import Curriculum

ALGOSCOPE = Path(sys.executable).with_name("algoscope")
TASK = LinearRegression(dim=2, examples=4)
SMALL = {"batch": 4, "warmup": 2, "log_every": 5, "checkpoint_every": 5, "device": "cpu"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Two members, hardly trained."""
    out = tmp_path_factory.mktemp("runs")
    return ag.train(TASK, Transformer(layers=1, heads=1, width=8), 10, seed=[0, 1], out=out, curriculum=None, **SMALL)


@pytest.fixture(scope="module")
def verdict(run):
    return ag.identify(ag.load(run.path), TASK, prompts=40, fit_on=40)


def said(capfd, *arguments: str) -> tuple[int, str, str]:
    """The exit code of a command, and what it printed."""
    code = 0
    try:
        main(list(arguments))
    except SystemExit as end:
        code = int(end.code or 0)
    out, err = capfd.readouterr()
    return code, out, err


# Verdicts


@pytest.mark.parametrize(
    ("suffix", "begin"),
    [(".html", b"<!doctype html>"), (".json", b"{"), (".csv", b"stage,error,"), (".png", b"\x89PNG"), (".svg", b"<svg"),
     (".pdf", b"%PDF")],
)  # fmt: skip
def test_the_suffix_decides_what_is_saved(verdict, tmp_path, suffix, begin):
    saved = verdict.save(tmp_path / f"my.verdict{suffix}")
    assert saved.read_bytes().lower().startswith(begin.lower())
    assert list(tmp_path.iterdir()) == [saved]  # and nothing beside it


@pytest.mark.parametrize("name", ["x", "x.txt", "x.HTM", "x.json.gz", "no folder/x.html"])
def test_another_suffix_or_no_folder_is_an_error_and_leaves_nothing(verdict, tmp_path, name):
    with pytest.raises(ValueError, match="path must"):
        verdict.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_figures_are_chosen_by_name(verdict, tmp_path):
    one, two = (verdict.save(tmp_path / f"{name}.svg", figure=name) for name in ("map-errors", "errors-by-position"))
    assert one.read_text() != two.read_text()
    with pytest.raises(ValueError, match="did you mean 'map-errors'"):
        verdict.save(tmp_path / "x.svg", figure="map-eror")


def test_numbers_are_the_same_in_every_form(verdict, tmp_path):
    table = verdict.table()
    assert [row["stage"] for row in table] == list(verdict.trace.stages)
    assert [row["error"] for row in table] == [float(row[-1]) for row in verdict.trace.normalized_error()]
    frame = verdict.to_frame()
    assert list(frame["stage"]) == [row["stage"] for row in table]
    np.testing.assert_allclose(frame["error"], [row["error"] for row in table])
    read = list(csv.DictReader(io.StringIO(verdict.save(tmp_path / "x.csv").read_text())))
    assert [float(row["error"]) for row in read] == [row["error"] for row in table]
    record = files.read_json(verdict.save(tmp_path / "x.json"))
    assert [stage["error"] for stage in record["stages"]] == [row["error"] for row in table]
    assert record["text"] == verdict.text


def test_without_pandas_to_frame_says_what_to_do(verdict, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ValueError, match="pip install pandas"):
        verdict.to_frame()


def test_notebooks_show_tables(verdict):
    layers, prompts = verdict.trace, verdict.trace.prompts
    newton = ag.algorithms.Newton(steps=3).trace(prompts)
    for shown, rows in ((layers, 2), (newton, 4), (ag.compare(layers, newton), 2), (verdict, 2)):
        html = shown._repr_html_()
        assert html.count("<tr>") == rows + 1
        assert html.count("<table") == html.count("</table>") == 1
    last = float(newton.normalized_error()[-1, -1])
    assert f"<td>{last:.3g}</td>" in newton._repr_html_()


def test_names_are_escaped_in_notebooks():
    prompts = TASK.sample(2, seed=0)
    trace = ag.Trace("<script>", torch.zeros(1, *prompts.y.shape), ("a & b",), prompts)
    assert "<script>" not in trace._repr_html_()
    assert "a &amp; b" in trace._repr_html_()


def test_prompts_are_shown_in_one_short_line():
    shown = repr(TASK.sample(256, seed=0))
    assert len(shown) < 120
    assert "[256, 5, 2]" in shown
    assert "[256, 5]" in shown


# The command line


def test_output_that_is_closed_is_no_error(tmp_path):
    for words in ("-V", "studies", "train --help"):
        done = subprocess.run(f"{ALGOSCOPE} {words} >&-", shell=True, stderr=subprocess.PIPE, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_the_version_is_told(capfd):
    assert said(capfd, "--version") == (0, f"algoscope {ag.__version__}\n", "")


def test_studies_has_help(capfd):
    code, out, err = said(capfd, "studies", "--help")
    assert (code, err) == (0, "")
    assert "usage" in out


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["identfy", "x"], "'identify'"),
        (["train", "linear-regresion", "--steps", "3"], "'linear-regression'"),
        (["train", "linear-regression", "transfomer", "--steps", "3"], "'transformer'"),
        (["identify", "icl-linear-regresion"], "'icl-linear-regression'"),
        (["study", "algofomer"], "'algoformer'"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_typing_errors_are_answered_with_the_nearest_names(capfd, tmp_path, monkeypatch, arguments, meant):
    monkeypatch.chdir(tmp_path)
    code, _, err = said(capfd, *arguments)
    assert code == 2
    assert f"did you mean {meant}?" in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


class Mine(torch.nn.Module):
    """Someone's own network."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Linear(2, 1)

    def forward(self, tokens):
        return self.layers(tokens)


def test_stages_that_are_misspelt_are_answered_with_the_nearest(run, verdict):
    network = ag.load(run.path)
    for call in (
        lambda: ag.probe(network, TASK, TASK.sample(2, 0), stages=["layer1"]),
        lambda: verdict.trace.select(["layer1"]),
        lambda: ag.probe(Mine(), TASK, TASK.sample(2, 0), stages=["layer"]),
    ):
        with pytest.raises(ValueError, match="did you mean 'layer"):
            call()


def test_unknown_settings_are_answered_with_the_nearest(tmp_path):
    wrong: dict[str, Any] = {"lerning_rate": 1e-3}
    with pytest.raises(ValueError, match="no 'lerning_rate'"):
        ag.train(TASK, Transformer(), 10, out=tmp_path, **wrong)
    for name in ("interval", "points", "dims"):
        with pytest.raises(ValueError, match=rf"curriculum=Curriculum\({name}="):
            ag.train(TASK, Transformer(), 10, out=tmp_path, **dict[str, Any]({name: 5}))


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("none", None),
        ("dims=1", Curriculum(dims=1)),
        ("dims=1,points=2,interval=3", Curriculum(1, 2, 3)),
        ("interval=4", Curriculum(interval=4)),
    ],
)
def test_a_curriculum_means_the_same_in_python_and_on_the_command_line(capfd, tmp_path, monkeypatch, typed, value):
    monkeypatch.chdir(tmp_path)
    model = Transformer(layers=1, heads=1, width=4)
    options = "--dim 2 --examples 4 --layers 1 --heads 1 --width 4 --steps 12 --batch 2 --device cpu --curriculum"
    code, _, err = said(capfd, "train", "linear-regression", *options.split(), typed)
    assert code == 0, err
    again = ag.train(TASK, model, 12, batch=2, device="cpu", curriculum=value, out=tmp_path / "runs")
    assert list((tmp_path / "runs").iterdir()) == [again.path]  # one run, found again by its configuration


@pytest.mark.parametrize("typed", ["dims", "dims=x", "speed=3", "", "dims=1;points=2", "dims=0"])
@pytest.mark.usefixtures("as_users_run_it")
def test_what_is_no_curriculum_is_told_in_one_line(capfd, tmp_path, monkeypatch, typed):
    monkeypatch.chdir(tmp_path)
    code, _, err = said(capfd, "train", "linear-regression", "--steps", "5", "--curriculum", typed)
    assert code == 2
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_train_help_tells_every_task_and_every_model(capfd):
    code, out, _ = said(capfd, "train", "--help")
    assert code == 0
    for name in (*registry.classes("tasks"), *registry.classes("models")):
        (line,) = (line for line in out.splitlines() if line.strip().startswith(f"{name} "))
        assert len(line.split()) > 3, f"{name} is not described"


@pytest.mark.parametrize("kind", [*registry.classes("tasks").values(), *registry.classes("models").values()])
def test_every_option_of_train_is_described(capfd, kind):
    name = registry.spelled(kind)
    words = [name] if issubclass(kind, Task) else ["linear-regression", name]
    code, out, _ = said(capfd, "train", *words, "--help")
    assert code == 0
    text = " ".join(out.replace("│", " ").split())
    for field in fields(cast(Any, kind)):
        option = f"--{field.name.replace('_', '-')}"
        described = text.partition(f" {option}")[2].partition("(default")[0].partition("(required")[0]
        assert len([word for word in described.split() if word.islower()]) >= 1, f"{option} of {name}"


@pytest.mark.usefixtures("as_users_run_it")
def test_reports_of_two_members_do_not_overwrite_each_other(run, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for member in ("0", "1"):
        code, out, err = said(capfd, "identify", str(run.path), "--member", member, "--prompts", "30", "--fit-on", "30")
        assert code == 0, err
        assert f"report-member-{member}.html" in out
    records = [files.read_json(runs.Folder(run.path).report("json", member)) for member in (0, 1)]
    assert records[0]["stages"] != records[1]["stages"]
    assert ["member 0" in records[0]["title"], "member 1" in records[1]["title"]] == [True, True]
    code, out, err = said(capfd, "report", str(run.path))
    assert code == 0, err
    pages = sorted((tmp_path / "reports" / run.path.name).iterdir())
    assert [page.name for page in pages] == ["report-member-0.html", "report-member-1.html"]
    code, out, _ = said(capfd, "report", str(run.path), "--member", "1", "--out", "mine")
    assert [page.name for page in (tmp_path / "mine").iterdir()] == ["report-member-1.html"]
    assert (tmp_path / "mine" / "report-member-1.html").read_text() == pages[1].read_text()
    code, _, err = said(capfd, "report", str(run.path), "--member", "2")
    assert code == 2
    assert "identify" in err


@pytest.mark.usefixtures("as_users_run_it")
def test_a_damaged_report_is_refused(run, capfd, tmp_path, monkeypatch, verdict):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    file = tmp_path / "run" / "report.json"
    verdict.save(file)
    whole = json.loads(file.read_text())
    file.write_text(json.dumps(whole | {"confidence": 0.5}))
    code, _, err = said(capfd, "report", "run")
    assert (code, err.count("\n")) == (2, 1)
    assert "checksum" in err
    shorter = json.loads(json.dumps(whole["matches"]))
    del shorter["errors"]["Newton"]["low"][1][3]  # of the right structure, but not of the right length
    for broken in ({"stages": None}, {"matches": {"errors": {"Newton": {}}}}, {"laws": [1]}, {"matches": shorter}):
        content = {k: v for k, v in (whole | broken).items() if k != "sha256"}
        files.write_json(file, content)
        code, _, err = said(capfd, "report", "run")
        assert (code, err.count("\n")) == (2, 1)
        assert "damaged" in err
    assert not (tmp_path / "reports" / "run").exists()


@pytest.mark.usefixtures("as_users_run_it")
def test_the_output_folder_is_tried_before_anything_is_computed(run, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("algoscope.cli.identify.Instrument", lambda *given, **options: pytest.fail("computed first"))
    (tmp_path / "runs").write_text("in the way")
    code, _, err = said(capfd, "identify", "icl-linear-regression")
    assert (code, err.count("\n")) == (2, 1)
    assert "cannot be written" in err


@pytest.mark.usefixtures("as_users_run_it")
def test_the_verdict_is_printed_even_if_it_cannot_be_written(run, capfd, tmp_path, monkeypatch):
    def full(path, content):
        raise runs.RunError("the disk is full")

    monkeypatch.setattr(files, "write_bytes", full)
    code, out, err = said(capfd, "identify", str(run.path), "--prompts", "30", "--fit-on", "30")
    assert code == 2
    assert "the disk is full" in err
    assert "How far to trust this" in out


@pytest.mark.parametrize("options", [["--prompts", "1"], ["--fit-on", "0"], ["--member", "3"]])
@pytest.mark.usefixtures("as_users_run_it")
def test_a_failed_identify_leaves_no_folder(capfd, tmp_path, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    code, _, err = said(capfd, "identify", "icl-linear-regression", *options)
    assert (code, err.count("\n")) == (2, 1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("as_users_run_it")
def test_report_gives_no_circular_advice_and_leaves_nothing(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    for path in ("other", "nowhere", str(runs.CONTROLS.parent)):
        code, _, err = said(capfd, "report", path)
        assert (code, err.count("\n")) == (2, 1)
        assert "identify" not in err
    assert [each.name for each in tmp_path.iterdir()] == ["other"]


@pytest.mark.usefixtures("as_users_run_it")
def test_reports_of_shipped_results_are_written_to_a_folder_that_git_ignores(capfd, tmp_path, monkeypatch):
    results = runs.CONTROLS.parents[1] / "constructions"
    before = sorted(results.iterdir())
    monkeypatch.chdir(tmp_path)
    code, _, err = said(capfd, "report", str(results))
    assert code == 0, err
    assert (tmp_path / "reports" / "constructions" / "paper" / "index.html").exists()
    assert (tmp_path / "reports" / ".gitignore").read_text() == "*\n"
    assert sorted(results.iterdir()) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "linear-regression", "--steps", "5", "--device", "meta"],
        ["train", "linear-regression", "--steps", "5", "--device", "hpu"],
        ["train", "linear-regression", "--steps", "5", "--out", "\udcff"],
        ["train", "vector-search", "--steps", "5", "--path", "zip.npy"],
        ["train", "vector-search", "--steps", "5", "--path", "header.npy"],
        ["report", "two\nlines"],
        ["identify", "nul\0byte"],
        ["study", "data-structures", "--known", "nowhere", "--scale", "smoke"],
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_odd_input_is_told_in_one_line_and_leaves_nothing(capfd, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "zip.npy").write_bytes(b"PK\x03\x04")
    np.save(tmp_path / "header.npy", np.zeros((3, 2)))
    content = (tmp_path / "header.npy").read_bytes()
    (tmp_path / "header.npy").write_bytes(content.replace(b"}", b"{"))
    code, _, err = said(capfd, *arguments)
    assert (code, err.count("\n")) == (2, 1), err
    assert sorted(each.name for each in tmp_path.iterdir()) == ["header.npy", "zip.npy"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "linear-regression", "--steps", "5", "--dim", "99999999999999999999"],
        ["train", "linear-regression", "--steps", "5", "--width", "1000000000"],
        ["train", "linear-regression", "--steps", "5", "--layers", "1000000000"],
        ["train", "linear-regression", "--steps", "5", "--mlp-ratio", "1e300"],
        ["train", "linear-regression", "--steps", "5", "--batch", "99999999999999999999"],
        ["train", "linear-regression", "--steps", "1000000007"],
        ["train", "linear-regression", "--steps", "5", "--examples", "1000000", "--batch", "1000000"],
        ["train", "chain-of-thought", "--steps", "5", "--depth", "2147483648"],
        ["train", "uniform-search", "--steps", "5", "--dim", "2147483648"],
        ["train", "number-search", "index", "--steps", "5", "--digits", "70"],
        ["bench", "--members", "2147483648"],
        ["identify", "icl-linear-regression", "--prompts", "99999999999999999999"],
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_what_is_too_large_is_told_in_one_line(capfd, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    code, _, err = said(capfd, *arguments)
    assert (code, err.count("\n")) == (2, 1), err
    assert list(tmp_path.iterdir()) == []

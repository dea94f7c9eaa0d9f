"""The command line, run as a user runs it."""

import subprocess
import sys
from pathlib import Path

import pytest

from algoscope.cli import main

ALGOSCOPE = Path(sys.executable).with_name("algoscope")


def algoscope(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ALGOSCOPE, *arguments], capture_output=True, text=True, check=False, cwd=cwd)


def test_the_demo_trains_identifies_and_writes_its_page_which_can_be_built_again(tmp_path):
    done = algoscope("demo", "--steps", "20", "--prompts", "60", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "20/20 steps" in done.stderr
    said = " ".join(done.stdout.split())
    assert "layer 6" in said
    assert "How far to trust this" in said
    (folder,) = (tmp_path / "demo").iterdir()
    page = folder / "report.html"
    assert page.name in said
    again = algoscope("report", str(folder), "--figure", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    built = tmp_path / "reports" / folder.name
    assert (built / page.name).read_text() == page.read_text()
    assert {file.suffix for file in (built / "figures").iterdir()} == {".png", ".svg", ".pdf"}
    identified = algoscope("identify", str(folder), "--prompts", "50", "--fit-on", "50", cwd=tmp_path)
    assert identified.returncode == 0, identified.stderr
    assert "algoscope identify" in page.read_text()


@pytest.mark.parametrize(("option", "message"), [("--prompts", "prompts must be"), ("--steps", "steps must be")])
def test_bad_input_of_the_demo_is_one_line_and_leaves_nothing(tmp_path, option, message):
    done = algoscope("demo", option, "0", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("algoscope: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


SMALL = ["--dim", "2", "--examples", "3", "--layers", "1", "--heads", "1", "--width", "8", "--log-every", "5"]
SMALL += ["--checkpoint-every", "5", "--batch", "4", "--warmup", "2", "--device", "cpu"]


def test_train_writes_a_run_shows_its_progress_and_does_not_run_twice(tmp_path):
    command = [
        "train",
        "linear-regression",
        *SMALL,
        "--steps",
        "20",
        "--seed",
        "0",
        "1",
        "--covariance",
        "[[2,0],[0,1]]",
    ]
    done = algoscope(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name in "".join(done.stdout.split())
    assert "20/20 steps" in done.stderr
    assert "loss" in done.stderr
    assert "steps/s" in done.stderr
    again = algoscope(*command, cwd=tmp_path)
    assert again.stdout == done.stdout
    assert again.stderr == ""


def test_a_run_that_is_not_finished_or_damaged_is_not_identified(tmp_path):
    done = algoscope("train", "linear-regression", *SMALL, "--steps", "5", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    for damaged, message in ((whole[: len(whole) // 2], "damaged"), (None, "is not finished")):
        weights.unlink() if damaged is None else weights.write_bytes(damaged)
        told = algoscope("identify", str(folder), cwd=tmp_path)
        assert told.returncode == 2
        assert message in told.stderr
        assert told.stderr.count("\n") == 1
        assert not (folder / "report.html").exists()


def test_train_chooses_the_model_by_name(tmp_path):
    options = ["--dim", "2", "--examples", "3", "--layers", "1", "--width", "4", "--steps", "3", "--device", "cpu"]
    done = algoscope("train", "linear-regression", "recurrent", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    assert '"kind": "algoscope.models.Recurrent"' in (folder / "config.json").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train"], "needs a task: one of autoregressive-representation, chain-of-thought, connectivity"),
        (["train", "--steps", "5"], "needs a task"),
        (["train", "sorting"], "task must be one of 'autoregressive-representation', 'chain-of-thought'"),
        (["train", "linear-regression"], "--steps"),
        (["train", "linear-regression", "algoformr", "--steps", "5"], "model must be one of 'algo-former'"),
        (["train", "linear-regression", "--steps", "5", "--dim", "x"], "--dim"),
        (["train", "chain-of-thought", "--steps", "5", "--depth", "0"], "depth must be an integer >= 1, got 0"),
        (["train", "linear-regression", "--steps", "0"], "steps must be an integer >= 1, got 0"),
        (["train", "linear-regression", "--steps", "5", "--covariance", "round"], "covariance must be one of"),
        (["train", "linear-regression", "--steps", "5", "--device", "abacus"], "device must be one that this"),
        (["train", "linear-regression", "--steps", "5", "--seed", "1", "2", "3", "--learning-rate", "1", "2"], "one"),
        (["identify", "nowhere"], "there is no run folder nowhere"),
        (["report", "nowhere"], "there is no run folder nowhere"),
        (["bench", "--size", "huge"], "--size"),
        (["bench", "--members", "0"], "members must be an integer >= 1"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named_in_one_line(tmp_path, monkeypatch, capfd, arguments, message):
    """In this process: to load torch takes longer than all else. The tests around begin a process for each command."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        main(arguments)
    said = capfd.readouterr().err
    assert end.value.code == 2
    assert message in said
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_bench_compares_with_the_baseline_loop(tmp_path):
    done = algoscope("bench", "--size", "laptop", "--seconds", "0.2", "--members", "1", "--device", "cpu", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "baseline" in done.stdout
    assert "speed-up" in done.stdout


def test_help_lists_the_commands(tmp_path):
    done = algoscope("--help", cwd=tmp_path)
    assert done.returncode == 0
    assert all(name in done.stdout for name in ("demo", "train", "identify", "report", "bench"))


def test_an_unknown_command_names_the_known_ones(tmp_path):
    done = algoscope("fly", cwd=tmp_path)
    assert done.returncode == 2
    assert "demo" in done.stderr

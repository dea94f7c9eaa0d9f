"""The command line, run as a user runs it."""

import subprocess
import sys
from pathlib import Path

import pytest

from algoscope.cli import main

ALGOSCOPE = Path(sys.executable).with_name("algoscope")


def algoscope(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """In a process of its own, which takes seconds to load torch: where the process is the point."""
    return subprocess.run([ALGOSCOPE, *arguments], capture_output=True, text=True, check=False, cwd=cwd)


@pytest.fixture
def here(tmp_path, monkeypatch, capfd, as_users_run_it):
    """Runs a command in this process, in an empty folder: what it returns, and what it prints."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        code = 0
        try:
            main(list(arguments))
        except SystemExit as end:
            code = int(end.code or 0)
        return subprocess.CompletedProcess(arguments, code, *capfd.readouterr())

    return run


def test_the_demo_trains_identifies_and_writes_its_page_which_can_be_built_again(tmp_path, here):
    done = algoscope("demo", "--steps", "20", "--prompts", "60", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "20/20 steps" in done.stderr
    said = " ".join(done.stdout.split())
    assert "layer 6" in said
    assert "How far to trust this" in said
    (folder,) = (tmp_path / "demo").iterdir()
    page = folder / "report.html"
    assert page.name in said
    again = here("report", str(folder), "--figure")
    assert again.returncode == 0, again.stderr
    built = tmp_path / "reports" / folder.name
    assert (built / page.name).read_text() == page.read_text()
    assert {file.suffix for file in (built / "figures").iterdir()} == {".png", ".svg", ".pdf"}
    identified = here("identify", str(folder), "--prompts", "50", "--fit-on", "50", "--algorithms", "newton,gd")
    assert identified.returncode == 0, identified.stderr
    assert "algoscope identify" in page.read_text()


@pytest.mark.parametrize(("option", "message"), [("--prompts", "prompts must be"), ("--steps", "steps must be")])
def test_bad_input_of_the_demo_is_one_line_and_leaves_nothing(tmp_path, here, option, message):
    done = here("demo", option, "0")
    assert done.returncode == 2
    assert done.stderr.startswith("algoscope: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


SMALL = ["--dim", "2", "--examples", "3", "--layers", "1", "--heads", "1", "--width", "8", "--log-every", "5"]
SMALL += ["--checkpoint-every", "5", "--batch", "4", "--warmup", "2", "--device", "cpu"]


def test_train_writes_a_run_shows_its_progress_and_does_not_run_twice(tmp_path, here):
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
    again = here(*command)
    assert again.stdout == done.stdout
    assert again.stderr == ""


def test_a_run_that_is_not_finished_or_damaged_is_not_identified(tmp_path, here):
    done = here("train", "linear-regression", *SMALL, "--steps", "5")
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    for damaged, message in ((whole[: len(whole) // 2], "damaged"), (None, "is not finished")):
        weights.unlink() if damaged is None else weights.write_bytes(damaged)
        told = here("identify", str(folder))
        assert told.returncode == 2
        assert message in told.stderr
        assert told.stderr.count("\n") == 1
        assert not (folder / "report.html").exists()


def test_train_chooses_the_model_by_name(tmp_path, here):
    options = ["--dim", "2", "--examples", "3", "--layers", "1", "--width", "4", "--steps", "3", "--device", "cpu"]
    done = here("train", "linear-regression", "recurrent", *options)
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
def test_bad_arguments_are_named_in_one_line(tmp_path, here, arguments, message):
    done = here(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_bench_compares_with_the_baseline_loop(here):
    done = here("bench", "--size", "laptop", "--seconds", "0.2", "--members", "1", "--device", "cpu")
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

"""Signals: nothing is lost, no process is left behind, and no traceback is shown."""

import math
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from algoscope import files, runs, stopping
from algoscope.cli import main

ALGOSCOPE = str(Path(sys.executable).with_name("algoscope"))
LONG = ["train", "linear-regression", "--dim", "2", "--examples", "3", "--layers", "1", "--heads", "1", "--width", "8"]
LONG += ["--steps", "1000000", "--log-every", "10", "--checkpoint-every", "1000000", "--batch", "4", "--device", "cpu"]
SLOW_IMPORT = """
import time
print("importing", flush=True)
try:
    time.sleep(60)
except BaseException:  # as some modules do
    pass
"""
STUDY = """
from algoscope.models import Transformer
from algoscope.studies import Entry
from algoscope.studies.study import Section, Study, Training
from algoscope.tasks import LinearRegression
from algoscope.training import Settings

ENTRY = Entry("long-study", __name__, "Long", "nobody", ("1 h", "1 h", "1 h"))
LONG = Settings(steps=1_000_000, log_every=10, checkpoint_every=1_000_000, batch=4)
TRAININGS = [Training(f"{dim} inputs", LinearRegression(dim, 3), Transformer(1, 1, 8), LONG) for dim in (1, 2)]
RUNS = {scale: TRAININGS for scale in ("smoke", "laptop", "paper")}
STUDY = Study("long-study", 1, "It trains.", RUNS, [], lambda numbers: {}, Section("Numbers", "None."))
"""


@pytest.fixture(autouse=True)
def no_signal_yet(monkeypatch):
    monkeypatch.setattr(stopping, "_latest", [-math.inf])


def started(*arguments: str, cwd: Path, **environment: str) -> subprocess.Popen[str]:
    """In a session of its own, as a shell would start it in a terminal."""
    return subprocess.Popen(
        [ALGOSCOPE, *arguments], cwd=cwd, text=True, start_new_session=True, env=os.environ | environment,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def wait_for(condition, process: subprocess.Popen[str], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if process.poll() is not None or time.monotonic() > end:
            process.kill()  # it would train for hours
            pytest.fail(f"it has ended, or never begins: {process.communicate()}")
        time.sleep(0.02)


def has_records(*folders: Path) -> bool:
    """Whether training has begun in all of them: a header and a record are in the metrics."""
    metrics = [runs.Folder(folder).metrics for folder in folders]
    return bool(metrics) and all(file.exists() and file.read_text().count("\n") > 1 for file in metrics)


def has_saved(folder: Path, said: str) -> None:
    """That a training which was stopped said that it is saved, and is."""
    assert "is saved" in said
    assert "Traceback" not in said
    (path,) = (folder / "runs").iterdir()
    assert int(files.read_tensors(runs.Folder(path).state)[0]["step"]) > 0


def test_a_training_that_is_stopped_saves_and_says_so(tmp_path):
    process = started(*LONG, cwd=tmp_path)
    wait_for(lambda: has_records(*(tmp_path / "runs").glob("*")), process)
    process.send_signal(signal.SIGTERM)
    time.sleep(0.05)
    process.send_signal(signal.SIGTERM)  # the same request, sent twice: a checkpoint is not given up for it
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    has_saved(tmp_path, said)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_so_it_is_with_other_signals(tmp_path, monkeypatch, capfd, number):
    """In this process, which has loaded torch: a signal is sent to it as to the one above."""
    monkeypatch.chdir(tmp_path)

    def send() -> None:
        end = time.monotonic() + 60
        while not has_records(*(tmp_path / "runs").glob("*")) and time.monotonic() < end:
            time.sleep(0.02)
        for _ in range(2):
            os.kill(os.getpid(), number)
            time.sleep(0.05)

    before = signal.signal(number, lambda *_: None)  # for a signal that comes when the command has ended
    sender = threading.Thread(target=send)
    sender.start()
    try:
        with pytest.raises(SystemExit) as end:
            main(LONG)
    finally:
        sender.join()
        signal.signal(number, before)
    assert end.value.code == 128 + number
    has_saved(tmp_path, capfd.readouterr().err)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_modules_are_imported_ends_in_one_line(tmp_path, number):
    """Of a module that swallows exceptions, too."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(SLOW_IMPORT)
    process = started("identify", "nowhere", cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert process.stdout is not None
    assert process.stdout.readline() == "importing\n"
    process.send_signal(number)
    _, said = process.communicate(timeout=10)
    assert process.returncode == 128 + number
    assert said.strip() == "algoscope: stopped"


def test_a_signal_while_arguments_are_read_is_told_as_one(tmp_path):
    """The parser of arguments ends in a SystemExit of its own where they are wrong."""
    code = """
import os, signal, algoscope.cli.train as train
from algoscope import cli
def slow(*given, **named):
    os.kill(os.getpid(), signal.SIGTERM)
import algoscope.tasks.regression as regression
regression.LinearRegression.__post_init__ = slow
cli.main(["train", "linear-regression", "--steps", "5"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 128 + signal.SIGTERM
    assert done.stderr.strip() == "algoscope: stopped"


def study_with_workers(tmp_path: Path) -> tuple[subprocess.Popen[str], Path]:
    """Two runs of a study that take hours, each in a process of its own, both in training."""
    (tmp_path / "long_study.py").write_text(STUDY)
    options = ["--scale", "smoke", "--at-once", "2", "--device", "cpu", "--out", str(tmp_path / "studies")]
    plugin = ["--plugin", str(tmp_path / "long_study.py")]
    process = started("study", "long-study", *options, *plugin, cwd=tmp_path, OMP_NUM_THREADS="1")
    place = tmp_path / "studies" / "long-study" / "smoke" / "runs"
    wait_for(lambda: place.exists() and len(list(place.iterdir())) == 2 and has_records(*place.iterdir()), process)
    return process, place


def workers(folder: Path) -> list[int]:
    """Processes whose command names the folder, but not the one that started them."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if b"algoscope.studies.worker" in command and str(folder).encode() in command:
            found.append(int(entry.name))
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_workers_of_a_study_save_and_end_with_it(tmp_path, number):
    """Ctrl-C reaches every process of the terminal's session; SIGTERM and SIGKILL the first one alone."""
    process, place = study_with_workers(tmp_path)
    assert len(workers(place.parent)) == 2
    os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)
    end = time.monotonic() + 20
    while workers(place.parent):
        assert time.monotonic() < end, "workers are left behind"
        time.sleep(0.05)
    for folder in map(runs.Folder, place.iterdir()):
        assert int(files.read_tensors(folder.state)[0]["step"]) > 0


def test_a_second_signal_aborts_only_seconds_later(monkeypatch):
    monkeypatch.setattr(stopping, "REPEATED", 0.2)
    with stopping.graceful_stop() as asked:
        assert asked() is None
        for _ in range(3):
            signal.raise_signal(signal.SIGTERM)
        assert asked() == signal.SIGTERM
        time.sleep(0.25)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_cleaning_up_is_not_interrupted_by_a_signal_sent_twice(monkeypatch):
    monkeypatch.setattr(stopping, "REPEATED", 0.2)
    cleaned = []

    def work():
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(signal.SIGTERM)
            cleaned.append(True)

    with stopping.unwinding(), pytest.raises(stopping.Terminated) as end:
        work()
    assert cleaned
    assert end.value.code == 143


def test_signals_that_are_ignored_stay_ignored():
    """As under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stopping.unwinding():
            signal.raise_signal(signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_handlers_are_put_back():
    before = [signal.getsignal(number) for number in stopping.SIGNALS]
    with stopping.unwinding(), stopping.graceful_stop():
        pass
    assert [signal.getsignal(number) for number in stopping.SIGNALS] == before

"""Runs of a study in several processes, and what they share a GPU with."""

import os
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest
import torch

from algoscope import files, runs
from algoscope.studies import processes, study, worker

CPU, GPU = torch.device("cpu"), torch.device("cuda")
STUDY = "data-structures"


def test_runs_at_once_measure_what_runs_in_turn_do(tmp_path, monkeypatch):
    """All but times, to the last digit."""
    monkeypatch.setattr(study, "build_page", lambda place: place)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    found = study.find(STUDY)
    names = [run.name for run in found.runs["smoke"][:2]]
    results = []
    for count in (1, 2):
        place = study.carry_out(found, "smoke", tmp_path / str(count), "cpu", names, progress=False, at_once=count)
        results.append(files.read_json(place / study.RESULTS)["runs"])
    for name in names:
        one, two = (result[name]["0"] for result in results)
        assert {key: one[key] for key in one if key != "seconds"} == {key: two[key] for key in two if key != "seconds"}


def test_a_run_that_fails_is_told_and_does_not_stop_the_others(tmp_path, capsys, monkeypatch):
    """Its results cannot be written: where they belong there is a folder."""
    monkeypatch.setattr(study, "build_page", lambda place: place / study.PAGE)
    good, bad = (run.name for run in study.find(STUDY).runs["smoke"][-2:])
    folder = tmp_path / STUDY / "smoke"
    (folder / "measured" / f"{runs.slug(bad)}-0.json" / "taken").mkdir(parents=True)
    monkeypatch.setattr(study, "collect", lambda *given: None)  # it would stumble over that folder
    with pytest.raises(runs.RunError, match=rf"1 of 2 runs failed \({bad}\): see .*logs; .* has the others"):
        study.carry_out(study.find(STUDY), "smoke", tmp_path, "cpu", [good, bad], at_once=2)
    told = capsys.readouterr().out
    assert f"{bad}, failed" in told
    assert f"{good}, done" in told
    assert (folder / "measured" / f"{runs.slug(good)}-0.json").is_file()
    assert "Error" in (folder / processes.LOGS / f"{runs.slug(bad)}.log").read_text()


def service(folder: Path, code: int) -> Path:
    """In place of NVIDIA's: notes how it was called, and where it was told to be."""
    program, notes = folder / processes.SERVICE, folder / "notes"
    program.write_text(f'#!/bin/sh\necho "$@ $CUDA_MPS_PIPE_DIRECTORY $(timeout 1 cat)" >> {notes}\nexit {code}\n')
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    return notes


def test_processes_share_a_gpu_by_a_service_of_their_own(tmp_path, monkeypatch):
    notes = service(tmp_path, code=0)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr("sys.stdin", None)
    with processes.sharing(GPU) as shared:
        place = Path(shared["CUDA_MPS_PIPE_DIRECTORY"])
        assert place.is_dir()
    assert notes.read_text().split("\n")[:2] == [f"-d {place} ", f" {place} quit"]
    assert not place.exists()


def test_a_service_that_is_named_already_is_used_as_it_is(tmp_path, monkeypatch):
    notes = service(tmp_path, code=0)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
    with processes.sharing(GPU) as shared:
        assert shared == {}
    assert not notes.exists()


@pytest.mark.parametrize("there", [True, False])
def test_without_the_service_they_take_turns(tmp_path, monkeypatch, there):
    if there:
        service(tmp_path, code=1)  # it may not be allowed
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    for device in (GPU, CPU):
        with processes.sharing(device) as shared:
            assert shared == {}


def test_stopped_it_stops_its_processes(tmp_path, monkeypatch):
    begun, asleep = [], time.sleep

    def tired(seconds: float) -> None:
        monkeypatch.setattr(time, "sleep", asleep)
        raise KeyboardInterrupt

    start = processes._started
    monkeypatch.setattr(processes, "_started", lambda *given: begun.append(start(*given)) or begun[-1])
    monkeypatch.setattr(time, "sleep", tired)
    with pytest.raises(KeyboardInterrupt):
        processes.at_once(STUDY, "smoke", tmp_path, CPU, ["1D uniform"], count=2, progress=False)
    assert [process.poll() is not None for process in begun] == [True]


def test_a_process_that_does_not_listen_is_ended(monkeypatch):
    """Closing the pipe to it asks it to stop: it writes what it has to. One that goes on all the same is killed."""
    monkeypatch.setattr(worker, "PATIENCE", 0.5)
    deaf, polite = "echo; while true; do sleep 0.1; done", "echo; cat; exit 3"
    begun = [
        subprocess.Popen(["bash", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for script in (deaf, polite)
    ]
    with begun[0], begun[1]:
        for process in begun:
            assert process.stdout is not None
            process.stdout.readline()  # it listens, or does not, from now on
        processes._end(begun)
    assert [process.returncode for process in begun] == [-signal.SIGKILL, 3]

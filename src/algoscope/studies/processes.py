"""Runs of a study in several processes at once.

The kernels of a small network are too short to fill a GPU, and processes of their own take turns on it. NVIDIA's
Multi-Process Service, which comes with the driver, runs them side by side: where it is there, it is started for these
processes alone, and ended with them. One that the environment names already is used as it is: so runs of several
studies can share a GPU.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import torch

from algoscope import registry, runs, stopping
from algoscope.studies import worker

SERVICE, PLACE, LOGS = "nvidia-cuda-mps-control", "CUDA_MPS_PIPE_DIRECTORY", "logs"
LOOK = 0.2  # seconds between two looks at the processes
OWN_GROUP = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)  # what Windows has instead of sessions


def at_once(
    study: str, scale: str, folder: Path, device: torch.device, names: Sequence[str], count: int, progress: bool
) -> list[str]:
    """Carries out the named runs, so many at a time, and returns those that failed; the others go on."""
    logs = folder / LOGS
    logs.mkdir(parents=True, exist_ok=True)
    threads = {"OMP_NUM_THREADS": str(max((os.cpu_count() or 1) // count, 1))}
    left, running, failed = list(names), dict[str, subprocess.Popen[bytes]](), list[str]()
    begin = time.monotonic()
    with sharing(device) as shared:
        try:
            while left or running:
                while left and len(running) < count:
                    name = left.pop(0)
                    command = [sys.executable, "-m", worker.__name__, study, scale, str(folder), str(device), name]
                    command += registry.plugins()
                    running[name] = _started(
                        command, logs / f"{runs.slug(name)}.log", {**threads, **os.environ, **shared}
                    )
                time.sleep(LOOK)
                for name in [name for name, process in running.items() if process.poll() is not None]:
                    ended = running.pop(name)
                    failed += [name] if ended.returncode else []
                    _close(ended)
                    done = len(names) - len(left) - len(running)
                    if progress:
                        how = "failed" if name in failed else "done"
                        print(
                            f"{done} of {len(names)} after {time.monotonic() - begin:.0f} s: {name}, {how}", flush=True
                        )
        finally:
            if running:
                print(f"\nstopping: {len(running)} runs write their checkpoints …", file=sys.stderr, flush=True)
            with stopping.graceful_stop():  # an impatient second Ctrl-C does not interrupt that
                _end(running.values())
    return failed


def _end(processes: Collection[subprocess.Popen[bytes]]) -> None:
    """Closes the pipes to them, which asks them to stop: each writes a checkpoint, and resumes there the next time. One
    that compiles has nothing to write, and may not listen.
    """
    for process in processes:
        _close(process)
    end = time.monotonic() + worker.PATIENCE
    for process in processes:
        try:
            process.wait(max(end - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _started(command: Sequence[str], log: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """In a session of its own, so that Ctrl-C in a terminal reaches us alone; and with a pipe that closes when we are
    gone, however we ended, so that no process is left behind (see `stopping.end_with_parent`).
    """
    with log.open("wb") as file:
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=file, stderr=file, env=environment, start_new_session=True,
            creationflags=OWN_GROUP,
        )  # fmt: skip


def _close(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()


@contextlib.contextmanager
def sharing(device: torch.device) -> Iterator[dict[str, str]]:
    """What has to be in the environment of processes that share a GPU; nothing where they cannot."""
    if device.type != "cuda" or PLACE in os.environ or shutil.which(SERVICE) is None:
        yield {}
        return
    with tempfile.TemporaryDirectory() as place:
        own = {PLACE: place, "CUDA_MPS_LOG_DIRECTORY": place}
        environment = {**os.environ, **own}
        began = subprocess.run([SERVICE, "-d"], env=environment, capture_output=True, check=False)
        if began.returncode:
            yield {}  # it may not be allowed here: processes take turns then
            return
        try:
            yield own
        finally:
            subprocess.run([SERVICE], input=b"quit\n", env=environment, capture_output=True, check=False)

"""Runs can be stopped at any moment, and damage is noticed."""

import json
import multiprocessing
import os
import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import torch

import algoscope as ag
from algoscope import files, runs
from algoscope.models import Transformer
from algoscope.tasks import LinearRegression
from algoscope.training import Curriculum, Diverged, Settings

TASK = LinearRegression(dim=2, examples=3)
MODEL = Transformer(layers=1, heads=1, width=8)


def small(out: Path, steps: int = 300, **changes):
    options = {"batch": 4, "warmup": 10, "log_every": 10, "checkpoint_every": 20, "curriculum": Curriculum(1, 2)}
    return ag.train(TASK, MODEL, steps, seed=[0, 1], learning_rate=1e-3, out=out, device="cpu", **(options | changes))


def content(run) -> dict[str, bytes]:
    folder = runs.Folder(run.path)
    return {file.name: file.read_bytes() for file in (folder.metrics, folder.model, folder.state, folder.summary)}


@pytest.fixture(scope="module")
def context() -> Any:
    """Of processes that begin with everything imported, whichever test is the first to start one."""
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(["algoscope.training"])
    return found


def test_a_run_killed_at_twenty_random_moments_ends_with_the_same_bits(tmp_path, context):
    expected = content(small(tmp_path / "straight"))
    chance, killed, folder = random.Random(0), 0, tmp_path / "killed"
    while killed < 20:
        process = context.Process(target=small, args=(folder,))
        process.start()
        process.join(chance.uniform(0.1, 0.5))
        process.kill()  # which does nothing to one that has just ended
        process.join()
        killed += process.exitcode == -signal.SIGKILL
        if any(folder.glob("*/summary.json")):  # it was faster: judge it and begin another
            assert content(small(folder)) == expected
            shutil.rmtree(folder)
    assert content(small(folder)) == expected


def test_a_run_that_is_told_to_stop_writes_a_checkpoint_first(tmp_path, context):
    folder = tmp_path / "told"
    process = context.Process(target=small, args=(folder, 500), kwargs={"checkpoint_every": 500})
    process.start()
    while not any(path.read_text().count("\n") > 1 for path in folder.glob("*/metrics.jsonl")):
        assert process.is_alive()
        time.sleep(0.01)
    os.kill(process.pid or 0, signal.SIGTERM)
    process.join()
    assert process.exitcode == 128 + signal.SIGTERM
    (path,) = folder.iterdir()
    stopped_at = int(files.read_tensors(runs.Folder(path).state)[0]["step"])
    assert 0 < stopped_at < 500
    straight = small(tmp_path / "straight", 500, checkpoint_every=500)
    assert content(small(folder, 500, checkpoint_every=500)) == content(straight)


def test_a_run_goes_on_only_on_the_kind_of_device_that_it_began_on(tmp_path):
    folder = interrupted(tmp_path)
    begun = files.read_json(folder.environment)
    assert begun["device"].startswith("cpu")
    assert begun["commit"]
    files.write_json(folder.environment, begun | {"device": "cuda (another)"})
    with pytest.raises(runs.RunError, match="started on cuda; cannot resume on cpu"):
        small(tmp_path, steps=60)


def test_a_finished_run_is_not_run_again(tmp_path):
    first = small(tmp_path, steps=20)
    stamp = runs.Folder(first.path).model.stat().st_mtime_ns
    assert small(tmp_path, steps=20) == first
    assert runs.Folder(first.path).model.stat().st_mtime_ns == stamp


def test_a_run_knows_how_long_it_took_with_all_its_attempts(tmp_path):
    def stop(records):
        time.sleep(0.05)
        if records[0]["step"] == 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        small(tmp_path, progress=stop)
    (path,) = tmp_path.iterdir()
    first = files.read_json(runs.Folder(path).clock)["seconds"]
    whole = small(tmp_path).seconds
    assert 0.3 <= first < whole
    assert small(tmp_path).seconds == whole  # which is not run again


def test_metrics_and_configuration_are_written(tmp_path):
    run = small(tmp_path, steps=45)
    header, *lines = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    assert header == {"config": runs.Folder(run.path).read_config().hash}
    assert [(line["step"], line["member"]) for line in lines] == [(s, m) for s in (10, 20, 30, 40, 45) for m in (0, 1)]
    config = json.loads((run.path / "config.json").read_text())
    assert config["model"]["kind"] == "algoscope.models.Transformer"
    assert [member["seed"] for member in config["members"]] == [0, 1]
    assert run.final == lines[-2:]


def interrupted(tmp_path: Path) -> runs.Folder:
    """A run folder with a checkpoint at step 40 of 60."""

    def stop(records: list[dict[str, float]]) -> None:
        if records[0]["step"] == 50:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        small(tmp_path, steps=60, progress=stop)
    (path,) = tmp_path.iterdir()
    return runs.Folder(path)


@pytest.mark.parametrize(
    "damage", ["truncated", "bit-flipped", "foreign", "other shape", "no random numbers", "short random numbers"]
)
def test_a_damaged_checkpoint_is_refused_and_left_as_it_is(tmp_path, damage):
    folder = interrupted(tmp_path)
    good = folder.state.read_bytes()
    if damage == "truncated":
        folder.state.write_bytes(good[: len(good) // 2])
    elif damage == "bit-flipped":
        folder.state.write_bytes(good[:-100] + bytes([good[-100] ^ 1]) + good[-99:])
    elif damage == "foreign":
        folder.state.write_bytes(b"not a checkpoint")
    else:
        tensors, metadata = files.read_tensors(folder.state)
        draws = tensors.pop("generator 1")
        other = {
            "other shape": {"generator 1": draws, "parameters": torch.zeros(2, 3)},
            "no random numbers": {},
            "short random numbers": {"generator 1": draws[:-1]},
        }
        files.write_tensors(folder.state, tensors | other[damage], **metadata)
    before = folder.state.read_bytes()
    with pytest.raises(runs.RunError, match=r"damaged|does not fit") as refusal:
        small(tmp_path, steps=60)
    assert "\n" not in str(refusal.value)
    assert folder.state.read_bytes() == before
    folder.state.write_bytes(good)
    assert content(small(tmp_path, steps=60)) == content(small(tmp_path / "straight", steps=60))


@pytest.mark.parametrize(
    ("name", "content"),
    [("environment", "{}"), ("metrics", "not a record}\n"), ("metrics", "{}\n"), ("clock", "[]"), ("clock", "{}")],
)
def test_other_files_of_a_run_that_are_damaged_are_named(tmp_path, name, content):
    folder = interrupted(tmp_path)
    file = getattr(folder, name)
    file.write_text(content)
    with pytest.raises(runs.RunError, match=r"damaged|no checksum|does not belong") as refusal:
        small(tmp_path, steps=60)
    assert file.name in str(refusal.value)


def test_a_summary_that_says_nothing_is_named(tmp_path):
    run = small(tmp_path, steps=60)
    folder = runs.Folder(run.path)
    files.write_json(folder.summary, {"config": folder.read_config().hash, "steps": 60})
    with pytest.raises(runs.RunError, match=r"summary.json is damaged: it lacks final"):
        small(tmp_path, steps=60)


def test_a_full_disk_leaves_the_older_checkpoint(tmp_path, monkeypatch):
    folder = interrupted(tmp_path)
    good = folder.state.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        runs.RunError, match=r"could not be written .No space left on device.; the older one is untouched"
    ):
        files.write_tensors(folder.state, {"parameters": torch.zeros(3)})
    monkeypatch.undo()
    assert folder.state.read_bytes() == good
    assert not list(folder.path.glob(".*"))


@pytest.mark.parametrize("what", ["metrics", "checkpoint"])
def test_a_disk_that_is_full_in_the_middle_of_training_leaves_what_was_good(tmp_path, what):
    """The system itself says that there is no space: files are directed to a device that is always full."""

    def fill(records: list[dict[str, float]]) -> None:
        if records[0]["step"] == 30:
            (folder,) = map(runs.Folder, tmp_path.iterdir())
            good.append(folder.state.read_bytes())
            if what == "metrics":
                folder.metrics.rename(tmp_path.with_suffix(".before"))
            name = folder.metrics if what == "metrics" else folder.state.with_name(f"{writing}{os.getpid()}")
            name.symlink_to("/dev/full")

    good, writing = list[bytes](), f"{files.TEMPORARY}state.safetensors."
    file = {"metrics": "metrics.jsonl", "checkpoint": "state.safetensors"}[what]
    with pytest.raises(
        runs.RunError, match=rf"{file} could not be written .No space left on device.; the .* untouched"
    ):
        small(tmp_path, steps=60, progress=fill)
    (folder,) = map(runs.Folder, tmp_path.iterdir())
    assert folder.state.read_bytes() == good[0]
    if what == "metrics":
        tmp_path.with_suffix(".before").replace(folder.metrics)
    assert content(small(tmp_path, steps=60)) == content(small(tmp_path / "straight", steps=60))


def test_what_a_killed_writer_left_is_cleared_away(tmp_path):
    folder = interrupted(tmp_path)
    left = folder.path / f"{files.TEMPORARY}state.safetensors.12345"
    left.write_bytes(b"half")
    small(tmp_path, steps=60)
    assert not left.exists()


def test_a_run_that_goes_on_with_other_threads_says_so(tmp_path):
    folder = interrupted(tmp_path)
    begun = files.read_json(folder.environment)
    files.write_json(folder.environment, begun | {"threads": 99, "torch": "1.0"})
    with pytest.warns(UserWarning, match=r"started with torch 1.0, now .*; threads 99, now \d+: it may end with other"):
        small(tmp_path, steps=60)


def test_a_folder_has_one_writer_at_a_time(tmp_path):
    folder = interrupted(tmp_path)
    config = folder.read_config()
    with (
        folder.writing(config.parts, config.version or 1),
        pytest.raises(runs.RunError, match="is being written by another process"),
    ):
        small(tmp_path, steps=60)


def test_a_loss_that_is_not_finite_stops_the_run_and_keeps_the_last_good_checkpoint(tmp_path):
    settings = {"batch": 4, "warmup": 0, "log_every": 5, "checkpoint_every": 5, "curriculum": None}
    with pytest.raises(Diverged, match=r"diverged at step \d+ .*: lower learning_rate, or raise warmup; there is no"):
        ag.train(TASK, MODEL, 200, learning_rate=1e30, out=tmp_path, device="cpu", **settings)
    late = settings | {"weight_decay": 3.0, "schedule": "constant"}  # at a rate of 1 weights double with each step
    with pytest.raises(
        Diverged, match=r"the last good checkpoint is (.*)state.safetensors: ag.load\(.*, step=(\d+)\)"
    ) as told:
        ag.train(TASK, MODEL, 200, learning_rate=1.0, out=tmp_path / "late", device="cpu", **late)
    (path,) = (tmp_path / "late").iterdir()
    state, _ = files.read_tensors(runs.Folder(path).state)
    assert int(state["step"]) > 0
    assert bool(state["parameters"].isfinite().all())
    with pytest.raises(runs.RunError, match="is not finished"):
        ag.load(path)
    good = ag.load(path, step=int(state["step"]))
    assert f"step={int(state['step'])}" in str(told.value)
    assert all(bool(weight.isfinite().all()) for weight in good.parameters())


def test_weights_that_are_not_finite_are_neither_kept_nor_handed_out(tmp_path):
    """One step can be so long that no number holds the weights, while the loss, from before, is fine."""
    settings = {"batch": 4, "warmup": 0, "log_every": 1, "checkpoint_every": 1, "curriculum": None}
    for steps in (1, 3):
        with pytest.raises(Diverged, match="there is no checkpoint yet"):
            ag.train(TASK, MODEL, steps, learning_rate=1e39, out=tmp_path, device="cpu", **settings)
    together = ag.train(TASK, MODEL, 2, [0, 1], [1e-3, 1e39], tmp_path / "two", "cpu", **settings)
    assert together.final[0]["stopped_at"] == -1
    with pytest.raises(runs.RunError, match=r"member 1 of .* diverged"):
        ag.load(together.path, member=1)
    rare = {**settings, "log_every": 10, "checkpoint_every": 10, "checkpoint_steps": (1, 2)}
    together = ag.train(TASK, MODEL, 2, [0, 1], [1e-3, 1e39], tmp_path / "kept", "cpu", **rare)
    for step in (1, 2):
        assert all(bool(own.isfinite().all()) for own in ag.load(together.path, step=step).parameters())
        with pytest.raises(runs.RunError, match=r"member 1 of .* diverged"):
            ag.load(together.path, member=1, step=step)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"task": "linear-regression"}, r"task must be one such as LinearRegression.*, got 'linear-regression'"),
        ({"task": LinearRegression}, r"task must be one such as LinearRegression.*, got <class"),
        ({"learning_rate": "1e-3"}, r"learning_rate must be a finite number > 0, got '1e-3'"),
    ],
)
def test_what_is_no_task_and_no_number_is_refused(arguments, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        ag.train(**({"task": TASK, "model": MODEL, "steps": 10, "out": tmp_path} | arguments))


@pytest.mark.usefixtures("as_users_run_it")
def test_what_is_no_model_or_has_no_steps_is_refused(tmp_path):
    name: Any = "transformer"
    with pytest.raises(ValueError, match=r"model must be one such as Transformer.*, got 'transformer'"):
        ag.train(TASK, name, 10, out=tmp_path)
    with pytest.raises(ValueError, match="steps must be an integer"):
        ag.train(TASK, MODEL, out=tmp_path)


def test_lists_of_different_lengths_are_refused(tmp_path):
    with pytest.raises(ValueError, match="must be single or lists of one length, got lengths"):
        ag.train(TASK, MODEL, 10, seed=[0, 1, 2], learning_rate=[1e-3, 1e-4], out=tmp_path)


def test_settings_are_given_as_a_value_or_one_by_one(tmp_path):
    options = {"batch": 4, "log_every": 10, "checkpoint_every": 10, "curriculum": None}
    one = ag.train(TASK, MODEL, 10, out=tmp_path, device="cpu", **options)
    whole = ag.train(TASK, MODEL, out=tmp_path / "whole", device="cpu", settings=Settings(steps=10, **options))
    assert content(one) == content(whole)
    with pytest.raises(ValueError, match="settings must be given alone, got steps, batch beside them"):
        ag.train(TASK, MODEL, 10, out=tmp_path, settings=Settings(steps=10), batch=4)

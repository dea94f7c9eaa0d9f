"""Run folders: files that are damaged, edited, swapped, of another run or far too large are refused."""

import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save

import algoscope as ag
from algoscope import files, formats, runs
from algoscope.models import Transformer
from algoscope.studies import study
from algoscope.tasks import LinearRegression
from algoscope.training import Configuration, Curriculum

TASK = LinearRegression(dim=2, examples=3)
MODEL = Transformer(layers=1, heads=2, width=8)


def trained(out: Path, seed: int = 0, **changes):
    options: dict[str, Any] = {
        "batch": 4,
        "warmup": 2,
        "log_every": 5,
        "checkpoint_every": 10,
        "checkpoint_steps": (5, 15),
    }
    options |= {"curriculum": Curriculum(1, 2), "device": "cpu"}
    return ag.train(TASK, MODEL, 20, seed=[seed, 7], out=out, **(options | changes))


@pytest.fixture
def folder(tmp_path) -> runs.Folder:
    return runs.Folder(trained(tmp_path / "runs").path)


def refused(path: Path, *words: str, **options) -> str:
    """What `ag.load` says, in one line."""
    with pytest.raises(runs.RunError) as refusal:
        ag.load(path, **options)
    said = str(refusal.value)
    assert "\n" not in said
    assert not words or any(word in said for word in words), said
    return said


# Configurations


@pytest.mark.parametrize("change", [{"heads": 1}, {"activation": "relu"}, {"norm": "after"}])
@pytest.mark.parametrize("stamped", [False, True])
def test_an_edited_configuration_is_refused(folder, change, stamped):
    """All of these have weights of the same shapes. With a checksum of its own, it is not the one of the weights."""
    found = files.read_json(folder.config)
    found["model"] |= change
    files.write_json(folder.config, found) if stamped else folder.config.write_text(json.dumps(found))
    refused(folder.path, "does not belong" if stamped else "no checksum")
    text = json.dumps({**found, "sha256": "0" * 64})
    folder.config.write_text(text)
    refused(folder.path, "checksum does not fit")


def test_no_flipped_bit_is_read_as_another_configuration(folder):
    whole, good = folder.config.read_bytes(), folder.read_config()
    noticed = 0
    for place in range(len(whole)):
        for bit in range(8):
            folder.config.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
            try:
                assert folder.read_config() == good  # white space
            except runs.RunError:
                noticed += 1
    assert noticed > 6 * len(whole)


def test_files_of_another_run_are_refused(folder, tmp_path):
    other = runs.Folder(trained(tmp_path / "others", seed=1).path)
    for name in ("model", "summary", "metrics", "state"):
        mine, theirs = getattr(folder, name), getattr(other, name)
        whole = mine.read_bytes()
        shutil.copy(theirs, mine)
        if name == "metrics":
            with pytest.raises(runs.RunError, match="does not belong"):
                folder.read_metrics()
        else:
            refused(folder.path, "does not belong", **({"step": 20} if name == "state" else {}))
        if name == "state":
            folder.summary.unlink()
        with pytest.raises(runs.RunError, match="does not belong"):
            trained(tmp_path / "runs")
        mine.write_bytes(whole)
    ag.load(other.path)


def test_weights_of_another_step_are_refused(folder):
    shutil.copy(folder.at_step(5), folder.at_step(15))
    refused(folder.path, "was written as model-5.safetensors", step=15)
    shutil.copy(folder.at_step(5), folder.model)
    refused(folder.path, "was written as")


def test_the_name_of_a_folder_is_free(folder, tmp_path):
    moved = tmp_path / "a name of my own"
    folder.path.rename(moved)
    assert ag.load(moved, member=1).parameter_count > 0


def as_format_1(folder: runs.Folder) -> runs.Folder:
    """The folder as it was before configurations had a format: no hashes, and a checksum of tensors alone. Classes had
    no modules.
    """
    found = files.read_json(folder.config)
    parts = formats.in_format({name: found[name] for name in runs.PARTS}, 1)
    folder.config.write_text(json.dumps(parts, indent=2) + "\n")
    for file in (folder.summary, folder.clock, folder.environment):
        if file.exists():
            rest = {k: v for k, v in files.read_json(file).items() if k not in ("config", "metrics")}
            file.write_text(json.dumps(rest, indent=2) + "\n")
    for file in folder.path.glob("*.safetensors"):
        tensors, _ = files.read_tensors(file)
        file.write_bytes(save(tensors, {"sha256": files._checksum(tensors, {})}))
    folder.metrics.write_text("".join(folder.metrics.read_text().splitlines(keepends=True)[1:]))
    name = folder.path.name.rpartition("-")[0]
    return runs.Folder(folder.path.rename(folder.path.with_name(runs.identity(name, parts))))


def test_a_run_of_format_1_is_loaded_and_verified(tmp_path):
    folder = runs.Folder(trained(tmp_path, optimizer="sgd").path)
    weights = ag.load(folder.path).state_dict()
    folder = as_format_1(folder)
    assert Configuration.read(folder.path).settings.optimizer == "sgd"
    assert Configuration.read(folder.path).settings.checkpoint_steps == (5, 15)
    assert all(torch.equal(weights[name], part) for name, part in ag.load(folder.path).state_dict().items())
    assert len(folder.read_metrics()) == 8


def test_an_interrupted_run_of_format_1_resumes_to_the_same_bits(tmp_path):
    def stop(records):
        if records[0]["step"] == 15:
            raise KeyboardInterrupt

    straight = runs.Folder(trained(tmp_path / "straight").path)
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "stopped", progress=stop)
    (path,) = (tmp_path / "stopped").iterdir()
    path = as_format_1(runs.Folder(path)).path
    assert trained(tmp_path / "stopped").path == path
    one, two = (files.read_tensors(folder.model)[0] for folder in (straight, runs.Folder(path)))
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_the_table_of_formats_renames_classes_fields_and_values(monkeypatch):
    rename = formats.Renamed(
        kinds={"Old": "New"}, fields={("Old", "size"): "width"}, values={("Old", "form", "round"): "circle"}
    )
    monkeypatch.setattr(formats, "FORMATS", {1: rename})
    monkeypatch.setattr(formats, "FORMAT", 2)
    old = {"a": [{"kind": "Old", "size": 3, "form": "round"}], "size": 1, "form": "round"}
    new = {"a": [{"kind": "New", "width": 3, "form": "circle"}], "size": 1, "form": "round"}
    assert formats.up_to_date(old, 1) == new
    assert formats.up_to_date(old, 2) == old
    assert formats.in_format(new, 1) == old
    assert formats.in_format(new, 2) == new


def test_fields_of_format_2_are_renamed():
    loops = [{"kind": kind, "loops": 3, "scored": 2} for kind in ("AlgoFormer", "Looped")]
    old = {"model": loops, "settings": {"kind": "Settings", "keep": [5], "optimizer": "sgd"}}
    found = formats.up_to_date(old, 2)
    assert [model["scored_loops"] for model in found["model"]] == [2, 2]
    assert found["settings"] == {"kind": "algoscope.training.Settings", "checkpoint_steps": [5], "optimizer": "sgd"}
    assert formats.in_format(found, 2) == old


@pytest.mark.parametrize(("changes", "words"), [({"format": 99}, "format 99"), ({"version": 99}, "version 99")])
def test_what_a_later_version_wrote_is_refused(folder, changes, words):
    files.write_json(folder.config, files.read_json(folder.config) | changes)
    refused(folder.path, words)


@pytest.mark.parametrize(
    "content",
    [
        "", "[]", "null", "{}", '{"model": 3}', '{"model": {}, "members": [], "settings": {}}', "[" * 200_000,
        '{"model": ' + "[" * 200_000 + "]" * 200_000 + "}", '{"model": ' * 900 + "1" + "}" * 900,
        '{"model": {"kind": "Settings", "steps": 3}, "members": [], "settings": {"kind": "Settings", "steps": 3}}',
        '{"model": {"kind": "Transformer"}, "members": [], "settings": {"kind": "Settings", "steps": 3}}',
        '{"model": {"kind": "Transformer"}, "members": null, "settings": {"kind": "Settings", "steps": 3}}',
        '{"model": {"kind": "Transformer", "layers": null}, "members": [{"kind": "Member"}], "settings": {"kind": ""}}',
        '{"model": {"kind": ["Transformer"]}, "members": [{"kind": "Member"}], "settings": {"kind": "Settings"}}',
    ],
)  # fmt: skip
@pytest.mark.usefixtures("as_users_run_it")
def test_a_configuration_of_a_wrong_structure_is_refused(tmp_path, content):
    """Of format 1, which has no checksum."""
    (tmp_path / "config.json").write_text(content)
    for name in ("summary.json", "model.safetensors"):
        (tmp_path / name).write_text("{}")
    begin = time.monotonic()
    refused(tmp_path, "config.json", "configuration")
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize(("name", "value"), [("width", 10**9), ("layers", 10**9), ("width", 10**6)])
@pytest.mark.usefixtures("as_users_run_it")
def test_a_configuration_of_a_giant_is_refused_in_bounded_time_and_memory(tmp_path, name, value):
    folder = runs.Folder(trained(tmp_path).path)
    folder = as_format_1(folder)
    found = json.loads(folder.config.read_text())
    found["model"] |= {name: value}
    folder.config.write_text(json.dumps(found))
    begin = time.monotonic()
    refused(folder.path)
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize("model", [{"width": 10**9}, {"width": 10**5, "layers": 100}, {"width": 10**9, "heads": 10**9}])
def test_a_giant_is_not_trained(tmp_path, model):
    with pytest.raises(ValueError, match=r"too large|too many"):
        ag.train(TASK, Transformer(**({"heads": 1, "layers": 1} | model)), 10, out=tmp_path, device="cpu")
    assert list(tmp_path.iterdir()) == []


# A finished run


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "foreign"])
@pytest.mark.parametrize("name", ["model", "summary", "metrics"])
def test_a_finished_run_is_verified_and_the_advice_mends_it(tmp_path, name, damage):
    run = trained(tmp_path)
    folder = runs.Folder(run.path)
    good = {file.name: file.read_bytes() for file in (folder.model, folder.summary, folder.metrics)}
    file, chance = getattr(folder, name), random.Random(0)
    whole = good[file.name]
    place = chance.randrange(len(whole) // 2, len(whole) - 2)
    if name == "metrics":  # in a number
        place = next(k for k in range(place, len(whole)) if whole[k : k + 1].isdigit())
    flipped = whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
    contents = {"truncated": whole[: len(whole) // 2], "flipped": flipped, "empty": b"", "foreign": b"not of us"}
    file.write_bytes(contents[damage])
    with pytest.raises(runs.RunError, match=r"delete .*summary.json and run the same command") as refusal:
        trained(tmp_path)
    assert file.name in str(refusal.value)
    folder.summary.unlink()
    if name == "metrics":  # what was measured on the way is lost, and nothing else
        with pytest.raises(runs.RunError, match="delete it to resume without the earlier metrics"):
            trained(tmp_path)
        file.unlink()
        with pytest.warns(UserWarning, match="without its earlier metrics"):
            assert trained(tmp_path).final == run.final
    else:
        assert trained(tmp_path).final == run.final
        assert {each: (folder.path / each).read_bytes() for each in good} == good


def test_a_folder_of_another_configuration_is_not_trained_on(folder, tmp_path):
    files.write_json(folder.config, files.read_json(folder.config) | {"version": 99})
    with pytest.raises(runs.RunError, match="is of another run"):
        trained(tmp_path / "runs")


@pytest.mark.parametrize("name", ["model", "state", "metrics"])
def test_what_is_no_file_is_not_waited_for(folder, tmp_path, name):
    """Of a pipe that no one writes to, reading would never end."""
    file = getattr(folder, name)
    file.unlink()
    os.mkfifo(file)
    if name == "metrics":
        with pytest.raises(runs.RunError, match="is not a file"):
            folder.read_metrics()
    else:
        refused(folder.path, "is not a file", step=20 if name == "state" else None)


def interrupted(out: Path) -> runs.Folder:
    """With a checkpoint at step 10 of 20, and metrics up to 15."""

    def stop(records):
        if records[0]["step"] == 15:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trained(out, progress=stop)
    (path,) = out.iterdir()
    return runs.Folder(path)


@pytest.mark.parametrize(
    "damage", [lambda lines: lines[:1] + lines[2:], lambda lines: [*lines[:2], lines[1], *lines[2:]], lambda lines: [],
               lambda lines: [line.replace('"loss": ', '"loss": 1') for line in lines]],
)  # fmt: skip
def test_metrics_of_an_interrupted_run_are_checked(tmp_path, damage):
    folder = interrupted(tmp_path)
    lines = folder.metrics.read_text().splitlines(keepends=True)
    folder.metrics.write_text("".join(damage(lines)))
    with pytest.raises(runs.RunError, match=r"metrics.jsonl"):
        trained(tmp_path)
    folder.metrics.write_text("".join(lines))
    assert trained(tmp_path).final[0]["step"] == 20


@pytest.mark.parametrize(
    "change",
    [{"step": torch.tensor(-1)}, {"step": torch.tensor(99)}, {"stopped_at": torch.tensor([99, -1])},
     {"generator 0": torch.zeros(5056, dtype=torch.uint8)}, {"parameters": None}],
)  # fmt: skip
def test_a_checkpoint_that_no_run_can_have_left_is_refused(tmp_path, change):
    folder = interrupted(tmp_path)
    tensors, metadata = files.read_tensors(folder.state)
    if "generator 0" in change:
        assert tensors["generator 0"].shape == change["generator 0"].shape
    change = {
        name: torch.full_like(tensors[name], torch.nan) if part is None else part for name, part in change.items()
    }
    files.write_tensors(folder.state, tensors | change, **metadata)
    with pytest.raises(runs.RunError, match=r"state.safetensors is damaged"):
        trained(tmp_path)


@pytest.mark.usefixtures("as_users_run_it")
def test_integers_of_numpy_are_pythons(tmp_path):
    four: Any = np.int64(4)
    done = ag.train(TASK, MODEL, four, batch=np.int32(2), curriculum=None, out=tmp_path, device="cpu")
    assert ag.load(done.path).parameter_count > 0
    assert type(LinearRegression(dim=four).dim) is int


def test_known_results_cannot_write_elsewhere(tmp_path):
    """A seed is part of a file's name."""
    found, results = study.read(runs.CONTROLS.parents[1] / "constructions")
    name = next(iter(results["runs"]))
    results["runs"][name] = {"/../../../../escaped": next(iter(results["runs"][name].values()))}
    files.write_json(tmp_path / "results.json", results)
    with pytest.raises(runs.RunError, match="is no seed"):
        study.carry_out(found, "paper", tmp_path / "a/b/c", known=tmp_path)
    assert not list(tmp_path.rglob("*escaped*"))


def test_metrics_that_are_gone_are_missed(folder, tmp_path):
    folder.metrics.unlink()
    with pytest.raises(runs.RunError, match=r"metrics.jsonl .* checksum"):
        trained(tmp_path / "runs")


@pytest.mark.parametrize(
    "change",
    [{"step": None}, {"stopped_at": None}, {"parameters": None}, {"stopped_at": torch.zeros(0, dtype=torch.int64)},
     {"step": torch.zeros(2, dtype=torch.int64)}, {"step": torch.tensor(float("nan"))},
     {"parameters": torch.zeros(2, 3)}],
)  # fmt: skip
def test_a_checkpoint_with_other_tensors_is_refused(folder, change):
    tensors, metadata = files.read_tensors(folder.state)
    tensors = {name: part for name, part in (tensors | change).items() if part is not None}
    files.write_tensors(folder.state, tensors, **metadata)
    refused(folder.path, "does not fit its configuration", step=20)


def test_weights_of_another_kind_are_refused(folder):
    tensors, metadata = files.read_tensors(folder.model)
    files.write_tensors(folder.model, {name: part.long() for name, part in tensors.items()}, **metadata)
    refused(folder.path, "does not fit its configuration")


@pytest.mark.parametrize(
    "about", ["", "[]", "null", '{"sha256": 3}', '{"sha256": "x", "config": "\\ud800"}', "{" * 10**5]
)
def test_metadata_that_cannot_be_read_are_refused(folder, about):
    folder.model.write_bytes(save(files.read_tensors(folder.model)[0], {"algoscope": about}))
    refused(folder.path, "damaged", "no checksum")


# The lock


def test_a_writer_whose_lock_was_deleted_stops_before_it_writes(tmp_path):
    """Another process may have come in: that must not go unnoticed."""
    kept = []

    def delete(records):
        if records[0]["step"] == 15:
            (path,) = tmp_path.iterdir()
            folder = runs.Folder(path)
            (path / "lock").unlink()
            config = folder.read_config()
            kept.append(folder.state.read_bytes())
            entered = folder.writing(config.parts, config.version or 1)
            entered.__enter__()
            kept.append(entered)

    with pytest.raises(runs.RunError, match="lock was deleted"):
        trained(tmp_path, progress=delete)
    (path,) = tmp_path.iterdir()
    assert runs.Folder(path).state.read_bytes() == kept[0]
    kept[1].__exit__(None, None, None)
    assert trained(tmp_path).final[0]["step"] == 20


def test_training_is_imported_where_there_is_no_fcntl(tmp_path):
    """As on Windows."""
    code = "import sys; sys.modules['fcntl'] = None; import algoscope.training, algoscope.cli.train"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

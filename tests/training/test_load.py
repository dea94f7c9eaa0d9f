"""From a run folder back to the network, or a clear word about why not."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

import algoscope as ag
from algoscope import files, runs
from algoscope.models import Recurrent, Transformer
from algoscope.randomness import stream
from algoscope.tasks import LinearRegression
from algoscope.training import Configuration, Curriculum

TASKS = [LinearRegression(dim=2, examples=4, noise=0.1), LinearRegression(2, 4, covariance=[[2.0, 0.5], [0.5, 1.0]])]
MODELS = [Transformer(layers=1, heads=1, width=8, activation="bilinear", mask=3), Recurrent(layers=2, width=4)]


def run(out, model=MODELS[0], **changes):
    options = {"batch": 8, "warmup": 2, "log_every": 5, "checkpoint_every": 5, "curriculum": Curriculum(1, 2, 3)}
    return ag.train(TASKS, model, 10, seed=[3, 4], out=out, device="cpu", **(options | changes))


def test_a_loaded_network_has_the_loss_that_training_logged(tmp_path):
    """A run of eleven steps logs, as its last, the loss of the weights after ten steps on the eleventh batch."""
    task, model = LinearRegression(dim=2, examples=4), Transformer(layers=2, heads=1, width=16)
    options = {
        "batch": 8,
        "warmup": 2,
        "log_every": 1,
        "checkpoint_every": 10,
        "schedule": "constant",
        "curriculum": None,
    }
    ten, eleven = (ag.train(task, model, n, seed=3, out=tmp_path, device="cpu", **options) for n in (10, 11))
    generator = stream("training prompts", 3)
    x, y = [task.draw(8, [generator], torch.float32) for _ in range(11)][-1]
    with torch.no_grad():
        losses = [
            float((task.read(network(task.encode(x, y))) - y).square().mean())
            for network in (ag.load(ten.path), ag.load(eleven.path))
        ]
    assert losses[0] == pytest.approx(eleven.final[0]["loss"], rel=1e-5)
    assert losses[1] != pytest.approx(eleven.final[0]["loss"], rel=1e-3)  # weights of another step would not do


def test_weights_kept_on_the_way_are_those_of_a_shorter_run(tmp_path):
    options = {"schedule": "constant", "curriculum": None, "batch": 8, "warmup": 2, "log_every": 5, "out": tmp_path}

    def trained(steps: int, **more):
        return ag.train(TASKS, MODELS[0], steps, seed=[3, 4], device="cpu", checkpoint_every=5, **options, **more).path

    whole = trained(10, checkpoint_steps=(4, 7))
    for step in (4, 7):
        part = trained(step)
        for i in range(2):
            found, wanted = ag.load(whole, i, step=step).state_dict(), ag.load(part, i).state_dict()
            assert all(torch.equal(found[name], wanted[name]) for name in wanted)
    with pytest.raises(
        ValueError, match="step must be one whose weights were saved, 4, 7 or 10 of the last checkpoint, got 5"
    ):
        ag.load(whole, step=5)
    for i in range(2):  # the last checkpoint is the end
        found, wanted = ag.load(whole, i, step=10).state_dict(), ag.load(whole, i).state_dict()
        assert all(torch.equal(found[name], wanted[name]) for name in wanted)
    runs.Folder(whole).state.rename(tmp_path / "away")
    with pytest.raises(ValueError, match="step must be one whose weights were saved, 4, 7, got 10"):
        ag.load(whole, step=10)
    with pytest.raises(ValueError, match="step must be an integer >= 0, got -1"):
        ag.load(whole, step=-1)
    (tmp_path / "away").rename(runs.Folder(whole).state)
    edited(whole, layers=2)
    with pytest.raises(
        runs.RunError, match=r"state.safetensors does not fit its configuration: parameters is .2, \d+. .* instead"
    ):
        ag.load(whole, step=10)
    with pytest.raises(ValueError, match="checkpoint_steps must be at most steps = 10, got 11"):
        trained(10, checkpoint_steps=(11,))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_each_member_of_a_population_is_loaded_by_its_number(tmp_path, model):
    done = run(tmp_path, model)
    for name, tensor in files.read_tensors(runs.Folder(done.path).model)[0].items():
        for i in range(2):
            found = dict(ag.load(done.path, member=i).named_parameters())[name]
            torch.testing.assert_close(found.detach(), tensor[i])


def test_the_configuration_comes_back_as_it_was(tmp_path):
    found = Configuration.read(run(tmp_path).path)
    assert found.model == MODELS[0]
    assert [member.task for member in found.members] == TASKS
    assert [member.seed for member in found.members] == [3, 4]
    assert found.settings.curriculum == Curriculum(1, 2, 3)


def edited(path, **changes):
    """Another model in the configuration, and everything else as if it had been trained so: what a run of format 1, in
    which no file says to which configuration it belongs, lets one do.
    """
    folder = runs.Folder(path)
    config = files.read_json(folder.config)
    config["model"] |= changes
    files.write_json(folder.config, config)
    owner = folder.read_config().hash if "kind" not in changes else ""
    for file in (folder.summary, folder.environment, folder.clock):
        files.write_json(file, files.read_json(file) | {"config": owner})
    for file in folder.path.glob("*.safetensors"):
        tensors, metadata = files.read_tensors(file)
        files.write_tensors(file, tensors, **metadata | {"config": owner})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 16}, "does not fit its configuration: positions is .2, 9, 8. .* instead of .2, 9, 16."),
        ({"width": 10**9}, "is too large: it has more parameters than can be counted"),
        ({"layers": 2}, "does not fit its configuration: blocks.1.* is missing"),
        ({"kind": "Oracle"}, "unknown kind 'Oracle'; known are .*Transformer"),
        ({"heads": 3}, "the configuration of Transformer cannot be used: width must be a multiple of heads"),
        ({"color": "red"}, "the configuration of Transformer cannot be used: .*color"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_a_configuration_that_does_not_fit_is_named(tmp_path, changes, message):
    path = run(tmp_path).path
    edited(path, **changes)
    with pytest.raises(runs.RunError, match=message) as refusal:
        ag.load(path)
    assert "\n" not in str(refusal.value)


@dataclass(frozen=True)
class Mine(LinearRegression):
    """A task of someone else."""


def test_a_task_of_ones_own_comes_back(tmp_path):
    done = ag.train(Mine(2, 4), MODELS[0], 10, batch=4, log_every=5, checkpoint_every=5, out=tmp_path, device="cpu")
    assert Configuration.read(done.path).members[0].task == Mine(2, 4)
    assert isinstance(ag.load(done.path), torch.nn.Module)


def test_a_member_that_diverged_is_not_handed_out(tmp_path):
    done = run(tmp_path, learning_rate=[1e-3, 1e36])
    assert done.final[1]["stopped_at"] != -1
    ag.load(done.path, member=0)
    with pytest.raises(runs.RunError, match=r"member 1 of .* diverged at step"):
        ag.load(done.path, member=1)
    json.loads(runs.Folder(done.path).summary.read_text(), parse_constant=pytest.fail)  # no NaN, which is not JSON


@pytest.mark.usefixtures("as_users_run_it")
def test_integers_of_numpy_are_taken(tmp_path):
    seeds: list[Any] = list(np.arange(2))
    done = ag.train(TASKS[0], MODELS[0], steps=6, seed=seeds, batch=4, out=tmp_path, device="cpu")
    assert [member.seed for member in Configuration.read(done.path).members] == [0, 1]


def test_what_is_not_a_finished_run_is_named(tmp_path):
    with pytest.raises(runs.RunError, match=r"is not a run folder: it has no config\.json"):
        ag.load(tmp_path)
    path = run(tmp_path).path
    with pytest.raises(ValueError, match="member must be between 0 and 1, got 2"):
        ag.load(path, member=2)
    runs.Folder(path).model.unlink()
    with pytest.raises(runs.RunError, match="is not finished: run the same training again"):
        ag.load(path)
    assert run(tmp_path).path == path  # as it says
    ag.load(path)
    folder = runs.Folder(path)
    files.write_json(folder.summary, files.read_json(folder.summary) | {"final": []})
    with pytest.raises(runs.RunError, match=r"summary.json is damaged: it is not about 2 members"):
        ag.load(path)


def test_the_model_that_ships_is_loaded_by_its_name_and_solves_its_task():
    name = "icl-linear-regression"
    network, task = ag.load(name), Configuration.read(name).members[0].task
    assert network.parameter_count == 9_504_001
    prompts = task.sample(64, seed=0)
    with torch.no_grad():
        answers = task.read(network(task.encode(prompts.x, prompts.y).float()))
    errors = (answers - prompts.y).square().mean(0) / task.power
    assert float(errors[40]) < 1e-3
    assert float(errors[20]) < 0.04
    folder = runs.Folder(runs.located(name))
    assert folder.model.stat().st_size < 20e6
    assert {tensor.dtype for tensor in files.read_tensors(folder.model)[0].values()} == {torch.float16}


def test_a_folder_of_one_s_own_comes_before_one_that_ships(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "icl-linear-regression").mkdir()
    with pytest.raises(runs.RunError, match="is not a run folder"):
        ag.load("icl-linear-regression")
    with pytest.raises(runs.RunError, match="is not a run folder"):
        ag.load("../shipped/icl-linear-regression")

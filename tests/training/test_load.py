"""From a run folder back to the network, or a clear word about why not."""

import json

import pytest
import torch

import algoscope as ag
from algoscope import runs
from algoscope.models import Recurrent, Transformer
from algoscope.tasks import LinearRegression
from algoscope.training import Configuration, Curriculum

TASKS = [LinearRegression(dim=2, examples=4, noise=0.1), LinearRegression(2, 4, covariance=[[2.0, 0.5], [0.5, 1.0]])]
MODELS = [Transformer(layers=1, heads=1, width=8, activation="bilinear", mask=3), Recurrent(layers=2, width=4)]


def run(out, model=MODELS[0], **changes):
    options = {"batch": 8, "warmup": 2, "log_every": 5, "checkpoint_every": 5, "curriculum": Curriculum(1, 2, 3)}
    return ag.train(TASKS, model, 10, seed=[3, 4], out=out, device="cpu", **(options | changes))


def test_a_loaded_network_has_the_error_that_training_logged(tmp_path):
    task, model = LinearRegression(dim=1, examples=4), Transformer(layers=2, heads=1, width=16)
    options = {"batch": 64, "warmup": 50, "log_every": 100, "checkpoint_every": 500, "curriculum": None}
    done = ag.train(task, model, 500, learning_rate=5e-3, out=tmp_path, device="cpu", **options)
    prompts = task.sample(2000, seed=5, dtype=torch.float32)
    errors = []
    for network in (ag.load(done.path), model.build(task.inputs, task.outputs, task.length, torch.Generator())):
        with torch.no_grad():
            predictions = task.read(network(task.encode(prompts.x, prompts.y)))
        errors.append(float((predictions - prompts.y)[:, -1].square().mean()) / task.power)
    assert errors[0] == pytest.approx(done.final[0]["error"], rel=0.3)
    assert errors[1] > 1.2 * errors[0]  # the network before training


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_each_member_of_a_population_is_loaded_by_its_number(tmp_path, model):
    done = run(tmp_path, model)
    for name, tensor in runs.read_tensors(runs.Folder(done.path).model)[0].items():
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
    file = runs.Folder(path).config
    config = json.loads(file.read_text())
    config["model"] |= changes
    file.write_text(json.dumps(config))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 16}, "does not fit its configuration: positions is .9, 8. instead of .9, 16."),
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


def test_what_is_not_a_finished_run_is_named(tmp_path):
    with pytest.raises(runs.RunError, match=r"is not a run folder: it has no config\.json"):
        ag.load(tmp_path)
    path = run(tmp_path).path
    with pytest.raises(ValueError, match="member must be between 0 and 1, got 2"):
        ag.load(path, member=2)
    runs.Folder(path).model.unlink()
    with pytest.raises(runs.RunError, match="is not finished: train with the same arguments again"):
        ag.load(path)

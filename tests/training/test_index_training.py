"""Search tasks and indexes in the engine: recordable steps, run folders, and the baseline loop."""

import battery
import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

import algoscope as ag
from algoscope.models import Index
from algoscope.models.index import IndexNetwork
from algoscope.tasks import UniformSearch
from algoscope.training import Member, Settings
from algoscope.training.bench import baseline_step
from algoscope.training.population import Population

CPU = torch.device("cpu")
MODEL = Index(lookups=2, slots=1, layers=1, width=8, hidden=16)
TASK = UniformSearch(size=6, queries=2)


def test_a_fake_tensor_notices_who_waits_for_the_device():
    with FakeTensorMode(), pytest.raises(DataDependentOutputException):
        torch.ones(3).sum().item()


@pytest.mark.parametrize("task", [*battery.SEARCHES, *battery.STREAMS], ids=str)
def test_drawing_never_waits_for_the_device(task):
    """So that it can be recorded as part of a step; what it keeps on the device is there after the first time."""
    generators = [torch.Generator().manual_seed(seed) for seed in (0, 1)]
    task.draw(2, generators, torch.float32)
    with FakeTensorMode(allow_non_fake_inputs=True):
        x, y = task.draw(4, generators, torch.float32)
        tokens = task.encode(x, y)
    assert tokens.shape == (4, task.length, task.inputs)


@pytest.mark.parametrize("model", [*battery.INDEXES, *battery.COUNTERS], ids=str)
@pytest.mark.parametrize("members", [1, 2])
def test_a_step_never_waits_for_the_device(model, members):
    settings = Settings(steps=10, batch=4, curriculum=None)
    population = Population.of(model, [Member(battery.task_for(model), seed) for seed in range(members)], settings, CPU)
    with FakeTensorMode(allow_non_fake_inputs=True):
        population.step()


@pytest.mark.parametrize("model", [battery.INDEXES[-1], battery.COUNTERS[-1]], ids=str)
def test_pictures_are_encoded_in_16_bits_and_their_features_are_not(model):
    settings = Settings(steps=4, batch=4, precision="bf16", curriculum=None)
    population = Population.of(model, [Member(battery.task_for(model), seed) for seed in (0, 1)], settings, CPU)
    population.step()
    assert bool(population.state.losses[0].isfinite().all())
    tensors = population.layout.tensors(population.layout.low_and_high(population.state.parameters))
    kinds = {name: tensor.dtype for name, tensor in tensors.items() if name.startswith("encoder.")}
    exact = {name for name, kind in kinds.items() if kind == torch.float32}
    assert exact == {"encoder.last.weight", "encoder.last.bias"}
    assert population.layout.muon >= sum(
        tensors[f"encoder.{name}.weight"][0].numel() for name in ("first.patches", "second.patches", "hidden")
    )


def test_a_run_is_saved_resumed_and_loaded(tmp_path):
    """The noise goes on where it was: a run that was stopped ends with the weights of one that was not."""
    settings = {"batch": 8, "curriculum": None, "log_every": 5, "checkpoint_every": 5}

    def stop(records: list[dict]) -> None:
        if records[0]["step"] == 10:
            raise KeyboardInterrupt

    whole = ag.train(TASK, MODEL, 15, seed=[0, 1], out=tmp_path / "whole", **settings)
    with pytest.raises(KeyboardInterrupt):
        ag.train(TASK, MODEL, 15, seed=[0, 1], out=tmp_path / "parts", progress=stop, **settings)
    parts = ag.train(TASK, MODEL, 15, seed=[0, 1], out=tmp_path / "parts", **settings)
    for member in range(2):
        one, other = (ag.load(run.path, member) for run in (whole, parts))
        assert isinstance(one, IndexNetwork)
        for name, tensor in one.state_dict().items():
            assert torch.equal(tensor, other.state_dict()[name])
    assert whole.final == parts.final
    assert whole.final[0]["error"] is not None
    assert 0 < whole.final[0]["error"] < 3  # in units of a blind guess


def test_the_baseline_loop_trains_an_index_too():
    network = MODEL.build(TASK.inputs, TASK.outputs, TASK.length, torch.Generator().manual_seed(0))
    before = network.read_out.weight.clone()
    baseline_step(TASK, network, 8, CPU)()
    assert not torch.equal(before, network.read_out.weight)

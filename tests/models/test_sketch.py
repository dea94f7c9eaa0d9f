"""The learned sketch: its memory against a plain loop, populations, and a training that beats count-min."""

import battery
import pytest
import torch

from algoscope import testing
from algoscope.algorithms import CountMin
from algoscope.models import LearnedSketch
from algoscope.tasks import ZipfStream
from algoscope.training import Member, Settings
from algoscope.training.population import Population

CPU = torch.device("cpu")


@pytest.mark.parametrize("model", battery.COUNTERS, ids=str)
def test_contract(model):
    testing.check_model(model, battery.task_for(model))


@pytest.mark.parametrize("model", battery.COUNTERS, ids=str)
@pytest.mark.parametrize("check", battery.COUNTER_CHECKS, ids=lambda check: check.__name__)
def test_battery(model, check):
    check(model)


@pytest.mark.parametrize("model", battery.COUNTERS, ids=str)
def test_the_memory_holds_what_was_written_before(model):
    """One item after the other, as a stream is met: read, say the count, and only then write."""
    network, tokens = battery.scrambled(model), battery.draw_tokens(2, battery.LENGTH, inputs=battery.form(model)[0])
    outputs, states = network.run(tokens, network.stages)
    for b in range(2):
        memory = torch.zeros(network.training_needs.noise_shape[2], dtype=torch.float64)
        for t in range(battery.LENGTH):
            reads = torch.stack([memory[int(states[name][b, t].argmax())] for name in network.stages[1:]])
            said = reads.mean() + network.blocks[-1](reads[None, None])[0, 0]
            torch.testing.assert_close(outputs[b, t], said)
            memory = memory + states["write"][b, t]


@pytest.mark.parametrize("model", battery.COUNTERS, ids=str)
def test_a_member_equals_the_same_model_trained_alone(model):
    members = [Member(battery.task_for(model), seed, 1e-3) for seed in (0, 1)]
    settings = Settings(steps=10, batch=4, precision="fp64", curriculum=None, log_every=10)
    runs = [Population.of(model, own, settings, CPU) for own in (members, members[:1], members[1:])]
    for population in runs:
        for _ in range(10):
            population.step()
    together, *alone = (population.state for population in runs)
    for i, own in enumerate(alone):
        torch.testing.assert_close(together.losses[:, i], own.losses[:, 0], rtol=1e-7, atol=1e-9)
        torch.testing.assert_close(together.parameters[i], own.parameters[0], rtol=1e-5, atol=1e-7)


def test_it_learns_to_count_frequent_items_better_than_count_min():
    """Frequent items get cells of their own, which a hash function does not know to give them."""
    task, model = ZipfStream(universe=20, items=30, ranks="fixed"), LearnedSketch(cells=8, hidden=64)
    settings = Settings(steps=200, batch=32, curriculum=None)
    population = Population.of(model, [Member(task, 1, 2e-3)], settings, CPU)
    for _ in range(200):
        population.step()
    network = model.build(task.inputs, task.outputs, task.length, torch.Generator())
    network.load_state_dict(population.layout.full(population.state.parameters))
    prompts = task.sample(200, seed=5)
    with torch.no_grad():
        said = task.read(network(task.encode(prompts.x, prompts.y).float()))
    ours = float((said - prompts.y).abs().mean())
    known = [CountMin(8, seed=seed).trace(prompts).values[-1] - prompts.y for seed in range(20)]
    assert ours < 0.5
    assert min(float(errors.abs().mean()) for errors in known) > ours


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"cells": 0}, "cells must be an integer >= 1, got 0"),
        ({"accesses": 0}, "accesses must be an integer >= 1, got 0"),
        ({"cells": 2, "accesses": 4}, "accesses must be at most cells, got 4 and 2"),
        ({"hidden": 0}, "hidden must be an integer >= 1"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named(bad, message):
    with pytest.raises(ValueError, match=message):
        LearnedSketch(**bad)

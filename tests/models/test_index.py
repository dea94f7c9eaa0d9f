"""The index against its formulas, alone and in a population."""

from dataclasses import replace

import battery
import numpy as np
import pytest
import torch
from torch.func import functional_call

from algoscope import testing
from algoscope.models import Disentangled, Index, LearnedSketch
from algoscope.models.index import IndexNetwork, QueryMLP
from algoscope.tasks import HardSearch, LinearRegression, UniformSearch, ZipfStream
from algoscope.training import Curriculum, Member, Settings, train
from algoscope.training.population import Population

SMALL = Index(lookups=2, layers=1, width=8, hidden=16)
CPU = torch.device("cpu")


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("model", battery.INDEXES, ids=str)
def test_contract(model):
    testing.check_model(model, battery.task_for(model))


@pytest.mark.parametrize("model", battery.INDEXES, ids=str)
@pytest.mark.parametrize("check", battery.INDEX_CHECKS, ids=lambda check: check.__name__)
def test_battery(model, check):
    check(model)


def test_stages_are_the_order_the_slots_and_the_look_ups():
    assert battery.build(SMALL).stages == ("order", "look-up 1", "look-up 2")
    assert battery.build(Index(1, 2, 1, 4, 8)).stages == ("order", "slots", "look-up 1")


def test_a_fresh_network_tells_queries_apart_by_more_than_their_sign():
    """A norm takes the length of what it is given: without biases all positive queries would be looked up alike."""
    network = Index(lookups=1, layers=1, width=8, hidden=64).build(1, 40, 140, generator())
    queries = torch.linspace(0.01, 1, 100)[None, :, None]
    (weights,) = network.lookups(queries, torch.zeros(1, 40, 1), torch.full((1, 1, 100, 40), 0.5))
    assert float(weights.detach().std(1).max()) > 0.1


@pytest.mark.parametrize("address", ["logit", "pointer"])
def test_where_any_look_up_may_answer_no_place_is_read_twice(address):
    model = Index(lookups=battery.OUTPUTS + 2, layers=1, width=8, hidden=16, address=address)
    tokens = battery.draw_tokens(50, battery.LENGTH)
    counts = []
    for answer in ("any", "each", "last"):
        network = battery.scrambled(replace(model, answer=answer))
        for block in network.blocks:
            if isinstance(block, QueryMLP):  # always the same logits
                block.last.weight.data.zero_()
                block.last.bias.data.copy_(torch.arange(len(block.last.bias)))
        _, states = network.run(tokens, network.stages)
        read = torch.stack([states[f"look-up {m + 1}"].argmax(-1) for m in range(battery.OUTPUTS)])
        counts.append([len(reads.unique()) for reads in read.flatten(1).unbind(1)])
    assert set(counts[0]) == set(counts[1]) == {battery.OUTPUTS}
    assert set(counts[2]) == {1}


@pytest.mark.parametrize("slots", [0, 2])
def test_training_may_count_what_is_found_after_each_look_up(slots):
    """Each answer weighs a point by the mean of the look-ups so far; the last is what a network answers that counts it
    alone."""
    models = [Index(3, slots, 1, 8, 16, answer=answer) for answer in ("each", "any")]
    each, at_the_end = (battery.scrambled(model) for model in models)
    assert isinstance(each, IndexNetwork)
    tokens = battery.draw_tokens(4, battery.LENGTH)
    noise = torch.rand(4, *each.training_needs.noise_shape, generator=generator(), dtype=tokens.dtype)
    _, states = each.run(tokens, each.stages, noise=noise)
    weights = np.stack([states[f"look-up {m + 1}"].detach().numpy() for m in range(3)])[..., : battery.OUTPUTS]
    means = np.cumsum(weights, 0) / np.arange(1, 4).reshape(3, 1, 1, 1)
    np.testing.assert_allclose(each(tokens, every=True, noise=noise).exp().detach().numpy(), means, rtol=1e-12)
    torch.testing.assert_close(each(tokens, noise=noise), at_the_end(tokens, noise=noise))
    assert [network.training_needs.n_scored_outputs for network in (each, at_the_end)] == [3, 1]


def test_without_a_permutation_what_is_read_stands_for_the_nearest_point():
    """Nothing is stored but slots; a point belongs to the one nearest to it."""
    model = Index(lookups=2, slots=4, layers=1, width=8, hidden=16, without="points")
    network, tokens = battery.scrambled(model), battery.draw_tokens(20, battery.LENGTH)
    assert isinstance(network, IndexNetwork)
    points, queries = tokens[:, : battery.OUTPUTS], tokens[:, battery.OUTPUTS :]
    _, states = network.run(tokens, network.stages)
    slots = states["slots"].detach()
    read = [each.argmax(-1) for each in network.lookups(queries, slots)]  # of slots: no points are given
    nearest = torch.cdist(slots, points).argmin(-1)
    for m, places in enumerate(read):
        assert torch.equal(states[f"look-up {m + 1}"].argmax(-1), nearest.gather(1, places))
    noise = torch.rand(20, *network.training_needs.noise_shape, generator=generator(), dtype=tokens.dtype)
    first = next(iter(network.lookups(queries, slots, noise))).exp().detach().numpy()
    near = 1 / (((first @ slots.numpy())[:, :, None] - points.numpy()[:, None]) ** 2).sum(-1)
    weighed = network.run(tokens, ["look-up 1"], noise)[1]["look-up 1"].detach().numpy()
    np.testing.assert_allclose(weighed, near / near.sum(-1, keepdims=True), rtol=1e-6)
    assert torch.equal(states["order"][..., 0].long(), torch.cdist(points, slots).argmin(-1))
    with pytest.raises(ValueError, match="slots must be at least 1 without points"):
        Index(without="points")
    with pytest.raises(ValueError, match="folds must be 0 without points"):
        Index(without="points", slots=4, folds=1)
    for address in ("slot_bias", "token"):
        with pytest.raises(ValueError, match="where no look-up has both slots and points"):
            Index(without="points", slots=4, address=address)


def test_without_feedback_look_ups_do_not_depend_on_what_was_read():
    model = Index(lookups=3, layers=0, width=8, hidden=16, without="feedback")
    network = model.build(1, 8, 9, generator()).double()
    tokens = torch.randn(50, 9, 1, generator=generator(), dtype=torch.float64)
    tokens[:, -1] = 0.3  # one query for all
    scores = network.run(tokens, ["order"])[1]["order"][..., 0].argsort(-1)
    for stage in network.stages[1:]:
        read = network.run(tokens, [stage])[1][stage].argmax(-1)
        places = scores.argsort(-1).gather(1, read)
        assert len(places.unique()) == 1


@pytest.mark.parametrize(
    ("progress", "temperature"), [(0.0, 2.0), (0.3, 2.0), (0.6, 2**-0.5), (0.9, 0.25), (1.0, 0.25)]
)
def test_look_ups_before_the_last_are_cooled(progress, temperature):
    """By equal factors from .3 to .9 of the training; the last one, and hard ones, do not change."""
    model = Index(lookups=3, slots=2, layers=1, width=8, hidden=16, address="slot_bias")
    tokens = battery.draw_tokens(5, battery.LENGTH)
    network, other = battery.scrambled(model), battery.scrambled(model)
    assert isinstance(network, IndexNetwork)
    assert isinstance(other, IndexNetwork)
    other.visit.look.temperature = temperature
    noise = torch.rand(5, *network.training_needs.noise_shape, generator=generator(), dtype=tokens.dtype)
    outputs, states = network.run(tokens, network.stages, noise, torch.tensor(progress, dtype=tokens.dtype))
    colder, known = other.run(tokens, network.stages, noise)
    for stage in ("look-up 1", "look-up 2"):
        torch.testing.assert_close(states[stage], known[stage])
    torch.testing.assert_close(states["look-up 3"], (known["look-up 3"].log() * temperature / 2).softmax(-1))
    torch.testing.assert_close(outputs, (colder * temperature / 2).log_softmax(-1))
    assert torch.equal(network(tokens), other(tokens))
    assert (
        network.training_needs.needs_progress,
        battery.scrambled(replace(model, address="logit")).training_needs.needs_progress,
    ) == (True, False)


def test_training_tells_the_network_how_much_of_it_is_over():
    """Up to the third part of it a cooled network trains as others do, and from then on otherwise."""
    losses, model = [], replace(SMALL, slots=2, address="token")
    for cooled in (False, True):
        settings = Settings(steps=20, batch=8, precision="fp64", curriculum=None, log_every=20)
        population = Population.of(model, [Member(UniformSearch(5), 0, 1e-2)], settings, CPU)
        population.network.training_needs = replace(population.network.training_needs, needs_progress=cooled)
        for _ in range(20):
            population.step()
        losses.append(population.state.losses[:, 0])
    equal = (losses[0] == losses[1]).tolist()
    assert equal[:7] == [True] * 7
    assert equal[7:] == [False] * 13


@pytest.mark.parametrize("without", [None, "learned order"])
def test_an_order_that_is_not_trained_stays_as_it_is(without):
    model = replace(SMALL, without=without)
    settings = Settings(steps=10, batch=16, precision="fp64", curriculum=None)
    population = Population.of(model, [Member(UniformSearch(5), 0, 1e-2)], settings, CPU)
    before = {name: part.clone() for name, part in population.layout.full(population.state.parameters).items()}
    for _ in range(3):
        population.step()
    after = population.layout.full(population.state.parameters)
    for name in ("read_in.weight", "read_out.weight", "blocks.0.attention.output.weight"):
        assert torch.equal(before[name], after[name]) == (without is not None)


@pytest.mark.parametrize("model", battery.INDEXES, ids=str)
def test_a_member_equals_the_same_model_trained_alone(model):
    """Noise and all: every member draws what it would draw alone."""
    settings = Settings(steps=10, batch=8, precision="fp64", curriculum=None, log_every=10)
    every = [Member(battery.task_for(model), seed, rate) for seed, rate in ((0, 1e-3), (1, 2e-3), (0, 5e-4))]
    runs = [Population.of(model, members, settings, CPU) for members in (every, *([member] for member in every))]
    for population in runs:
        for _ in range(10):
            population.step()
    together, *alone = (population.state for population in runs)
    for i, own in enumerate(alone):
        torch.testing.assert_close(together.losses[:, i], own.losses[:, 0], rtol=1e-7, atol=1e-9)
        torch.testing.assert_close(together.parameters[i], own.parameters[0], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("model", battery.INDEXES, ids=str)
def test_hard_look_ups_of_a_population_are_those_of_its_members(model):
    networks = [battery.scrambled(model, seed) for seed in range(3)]
    each = [dict(network.named_parameters()) for network in networks]
    stacked = {name: torch.stack([own[name] for own in each]).detach() for name in each[0]}
    tokens = battery.draw_tokens(3, 4, battery.LENGTH, inputs=battery.form(model)[0])
    together = functional_call(networks[0], stacked, (tokens,))
    for outputs, network, own in zip(together, networks, tokens, strict=True):
        torch.testing.assert_close(outputs, network(own), rtol=1e-12, atol=1e-12)


def test_close_neighbors_are_told_apart_in_16_bits():
    """The first and last layer of a query network are handed over in 32 bits, the rest of its matrices in 16."""
    settings = Settings(steps=4, batch=4, precision="bf16", curriculum=None)
    population = Population.of(SMALL, [Member(UniformSearch(5))], settings, CPU)
    dtypes = {name: part.dtype for name, part in population.layout.tensors(
        population.layout.low_and_high(population.state.parameters)).items()}  # fmt: skip
    low = {name for name, dtype in dtypes.items() if dtype == torch.bfloat16}
    assert "blocks.1.middle.weight" in low
    assert "blocks.0.mlp.up.weight" in low
    assert not low & {"blocks.1.first.weight", "blocks.1.first.bias", "blocks.1.last.weight", "read_in.weight"}
    population.step()
    assert bool(population.state.losses[0].isfinite().all())


def test_pointers_do_not_grow_with_the_set():
    sizes = [
        Index(lookups=3, address="pointer", hidden=64).build(1, points, points + 1, generator()).parameter_count
        for points in (100, 500)
    ]
    assert sizes[1] - sizes[0] == 400 * 64  # a vector for each place
    every = [
        Index(lookups=3, hidden=64).build(1, points, points + 1, generator()).parameter_count for points in (100, 500)
    ]
    assert every[1] - every[0] > 400 * 64 * 5


def test_one_shared_network_serves_all_look_ups():
    shared, own = (battery.build(Index(3, 0, 1, 8, 16, answer=answer)) for answer in ("any", "last"))
    assert [len(network.blocks) for network in (shared, own)] == [2, 4]


def test_tasks_of_several_scales_fit():
    task = HardSearch(size=15, dim=2)
    network = SMALL.build(task.inputs, task.outputs, task.length, generator())
    prompts = task.sample(7, seed=0, dtype=torch.float32)
    losses = task.loss(task.read(network(task.encode(prompts.x, prompts.y))), prompts.y)
    assert losses.shape == (7, 1)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"lookups": 0}, "lookups must be an integer >= 1, got 0"),
        ({"slots": -1}, "slots must be an integer >= 0, got -1"),
        ({"hidden": 0}, "hidden must be an integer >= 1"),
        ({"width": 30}, "width must be a multiple of 8, the units of a head, got 30"),
        ({"address": "each"}, "address must be one of 'logit', 'pointer', 'slot_bias', 'token', got 'each'"),
        ({"address": "token"}, 'address must be "logit" or "pointer" where no look-up has both .* got "token"'),
        ({"address": "slot_bias", "slots": 2, "lookups": 1}, "where no look-up has both slots and points"),
        ({"answer": "first"}, "answer must be one of 'last', 'any', 'each', got 'first'"),
        ({"softness": -1.0}, "softness must be a finite number > 0"),
        ({"without": "order"}, "without must be one of 'noise', 'learned order', 'feedback', 'points', got 'order'"),
        ({"picture": (8, 8)}, "picture must be a height, a width, features and channels, or None"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named(bad, message):
    with pytest.raises(ValueError, match=message):
        Index(**bad)


def test_an_index_needs_a_search_task():
    task = LinearRegression(dim=2, examples=0)
    with pytest.raises(ValueError, match="Index needs a search task: 1 points and at least one query, got 1 tokens"):
        SMALL.build(task.inputs, task.outputs, task.length, generator())


@pytest.mark.parametrize(
    ("model", "task", "families"),
    [
        (SMALL, LinearRegression(dim=2, examples=5), ("search", "regression")),
        (SMALL, ZipfStream(10, 8), ("search", "streams")),
        (LearnedSketch(cells=4, hidden=8), UniformSearch(6), ("streams", "search")),
        (Disentangled(), UniformSearch(6), ("graphs", "search")),
    ],
)
def test_a_model_names_the_tasks_that_it_is_made_for(model, task, families, tmp_path):
    message = "{} needs a task of the family '{}', got one of '{}'".format(type(model).__name__, *families)
    with pytest.raises(ValueError, match=message):
        train(task, model, steps=1, out=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("field", ["fourier_octaves", "folds", "slots"])
def test_negative_sizes_are_refused(field):
    with pytest.raises(ValueError, match=f"{field} must be an integer >= 0, got -1"):
        replace(SMALL, **{field: -1})


def test_a_curriculum_is_no_obstacle():
    settings = Settings(steps=40, batch=4, curriculum=Curriculum(dims=1, points=1, interval=2))
    population = Population.of(SMALL, [Member(UniformSearch(4, dim=2, queries=3))], settings, CPU)
    population.step()
    assert bool(population.state.losses[0].isfinite().all())

"""Reading an index: one that is written by hand comes back as what it was written to be, and so does a trained one."""

import functools

import pytest
import torch

import algoscope as ag
from algoscope.matching import found
from algoscope.models import Index, Transformer
from algoscope.models.index import IndexNetwork
from algoscope.randomness import stream
from algoscope.reading import in_place, landing, lookups, order, slots
from algoscope.tasks import UniformSearch
from algoscope.training import Member, Settings
from algoscope.training.population import Population

TASK = UniformSearch(size=8, queries=8)
SEEDS = (149, 212)  # fresh networks with these seeds store less than a fifth of the points in place


def fresh(model: Index, seed: int = 0, task: UniformSearch = TASK) -> IndexNetwork:
    return model.build(task.inputs, task.outputs, task.length, torch.Generator().manual_seed(seed))


def written(downwards: bool = False) -> IndexNetwork:
    """It sorts by the first coordinate and always looks at place 2 and then at place 5."""
    network = fresh(Index(lookups=2, layers=0, width=2, hidden=1)).double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
        network.read_in.weight[0], network.read_in.bias[1] = 1.0, 3.0
        network.norm.weight.fill_(1.0)
        network.read_out.weight[0, 0] = -1.0 if downwards else 1.0
        for asker, place in zip(network.blocks, (2, 5), strict=True):
            asker.get_parameter("last.bias")[place] = 1.0
    return network


@pytest.mark.parametrize("downwards", [False, True])
def test_a_written_index_is_read_as_it_was_written(downwards):
    network, prompts = written(downwards), TASK.sample(50, seed=0)
    stored = order(network, TASK, prompts)
    assert torch.equal(stored, prompts.x[:, :8, 0].argsort(1, descending=downwards))
    assert bool(in_place(stored, prompts).all())
    trace = lookups(network, TASK, prompts, "written")
    assert (trace.name, trace.stages) == ("written", (1, 2))
    for stage, place in enumerate((2, 5)):
        assert torch.equal(trace.values[stage], stored[:, place, None].expand(-1, 8).double())
        table = landing(trace, stored, lookup=stage + 1, bins=4)
        assert table.share[:, place].tolist() == [1.0] * 4
        assert table.mean.tolist() == [float(place)] * 4
        assert int(table.counts.sum()) == 400


def test_a_search_lands_where_the_algorithm_says():
    """Interpolation search begins in proportion to the query, binary search in the middle."""
    prompts = UniformSearch(size=20, queries=50).sample(100, seed=0)
    stored = prompts.x[:, :20, 0].argsort(1)
    knowing = landing(ag.algorithms.InterpolationSearch(2).trace(prompts), stored)
    assert bool((knowing.mean.diff() > 1).all())
    assert float(knowing.mean[0]) < 1
    halving = landing(ag.algorithms.BinarySearch(2).trace(prompts), stored)
    assert halving.share[:, 9].tolist() == [1.0] * 10
    torch.testing.assert_close(halving.share.sum(1), torch.ones(10, dtype=torch.float64))


def test_slots_are_numbered_behind_the_points():
    network = fresh(Index(lookups=2, slots=2, layers=0, width=4, hidden=4))
    with torch.no_grad():
        network.blocks[0].get_parameter("last.bias")[9] = 100.0
    prompts = TASK.sample(20, seed=0)
    trace = lookups(network, TASK, prompts)
    assert trace.values[0].unique().tolist() == [9.0]
    assert float(trace.values[1].max()) < 8
    held = slots(network, TASK, prompts)
    assert held.shape == (20, 2, 1)
    assert landing(trace, order(network, TASK, prompts)).share[:, 9].tolist() == [1.0] * 10
    assert not bool(found(trace)[0].any())


def test_equal_points_may_change_places():
    x = torch.tensor([[[0.5], [0.5], [-1.0], [0.0]]], dtype=torch.float64)
    prompts = ag.Prompts(x, torch.zeros(1, 1, dtype=torch.float64))
    assert in_place(torch.tensor([[2, 1, 0]]), prompts).tolist() == [[True] * 3]
    assert in_place(torch.tensor([[1, 2, 0]]), prompts).tolist() == [[False, False, True]]


@functools.cache
def trained(steps: int) -> tuple[IndexNetwork, IndexNetwork]:
    """Two indexes trained side by side: the answer is any point looked up, on one core in half a minute."""
    model = Index(lookups=3, layers=2, width=32, hidden=64, answer="any")
    settings = Settings(steps=steps, batch=64, curriculum=None)
    population = Population.of(model, [Member(TASK, seed, 3e-3) for seed in SEEDS], settings, torch.device("cpu"))
    for _ in range(steps):
        population.step()
    weights, networks = population.layout.full(population.state.parameters), []
    for member in range(2):
        networks.append(fresh(model))
        networks[-1].load_state_dict({name: part[member] for name, part in weights.items()})
    return networks[0], networks[1]


def test_an_index_learns_to_sort_and_to_search():
    """From a fresh network that sorts nothing to one that beats binary search at every look-up."""
    prompts = TASK.sample(500, seed=11)
    binary = found(ag.algorithms.BinarySearch(3).trace(prompts)).double().mean((1, 2))
    model = Index(lookups=3, layers=2, width=32, hidden=64, answer="any")
    for seed, network in zip(SEEDS, trained(200), strict=True):
        untrained = model.build(TASK.inputs, TASK.outputs, TASK.length, stream("weights", seed))
        before = in_place(order(untrained, TASK, prompts), prompts).double().mean()
        after = in_place(order(network, TASK, prompts), prompts).double().mean()
        assert before < 0.2
        assert after > 0.95
        shares = found(lookups(network, TASK, prompts)).double().mean((1, 2))
        assert bool((shares > binary + 0.05).all())
        assert shares[-1] > 0.92


def test_what_is_no_index_is_named():
    prompts = TASK.sample(3, seed=0)
    other = Transformer(1, 1, 8).build(TASK.inputs, TASK.outputs, TASK.length, torch.Generator())
    with pytest.raises(ValueError, match="model must be the network of an Index, got TransformerNetwork"):
        lookups(other, TASK, prompts)
    with pytest.raises(ValueError, match="model must be an Index with extra slots; this one has none"):
        slots(written(), TASK, prompts)
    more = UniformSearch(size=9)
    with pytest.raises(ValueError, match="prompts must give 8 points, as the model was built for, got 9"):
        order(written(), more, more.sample(3, seed=0))
    with pytest.raises(ValueError, match="coordinate must be below 1, the dimension of the points, got 1"):
        in_place(order(written(), TASK, prompts), prompts, coordinate=1)
    with pytest.raises(ValueError, match="stages must be among"):
        landing(lookups(written(), TASK, prompts), order(written(), TASK, prompts), lookup=3)

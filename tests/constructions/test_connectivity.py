"""The construction reaches 3^L hops, and not one more."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import algoscope as ag
from algoscope import reachability
from algoscope.constructions import Written, beyond_reach, connectivity
from algoscope.reading import channels
from algoscope.tasks import Connectivity


def says(network: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return network(x) > 0


@pytest.mark.parametrize(("layers", "nodes"), [(1, 8), (2, 24), (3, 64), (4, 100)])
def test_it_reaches_3_to_the_layers_and_not_more(layers, nodes):
    """A path shows every distance."""
    path = Connectivity(nodes, "paths", parts=1).sample(1, seed=0).x
    distances = reachability.distances(path.bool())
    assert torch.equal(says(connectivity(nodes, layers), path), distances <= 3**layers)


@given(st.integers(1, 20), st.floats(0.0, 0.4), st.integers(1, 3), st.integers(0, 2**20))
@settings(deadline=None, max_examples=40)
def test_it_says_the_support_of_a_power(nodes, chance, layers, seed):
    x = Connectivity(nodes, chance=chance).sample(3, seed=seed).x
    power = [np.linalg.matrix_power(own.astype(object), 3**layers) > 0 for own in x.numpy()]
    assert torch.equal(says(connectivity(nodes, layers), x), torch.tensor(np.stack(power).astype(bool)))


@pytest.mark.parametrize(("nodes", "layers", "limit"), [(8, 1, 3), (20, 2, 9)])
def test_it_is_perfect_within_its_capacity(nodes, layers, limit):
    prompts = Connectivity(nodes, chance=1.6 / nodes, largest=limit).sample(300, seed=0)
    assert torch.equal(says(connectivity(nodes, layers), prompts.x), prompts.y.bool())


@pytest.mark.parametrize(("layers", "nodes"), [(1, 5), (1, 9), (2, 11), (2, 24), (3, 29), (3, 64)])
def test_it_fails_one_hop_beyond(layers, nodes):
    graph = beyond_reach(nodes, layers)[None]
    assert int(reachability.diameters(graph.bool())) == 3**layers + 1
    wrong = says(connectivity(nodes, layers), graph) != reachability.connected(graph.bool())
    assert wrong[0].nonzero().tolist() == [[0, 3**layers + 1], [3**layers + 1, 0]]
    assert not bool((says(connectivity(nodes, layers + 1), graph) != reachability.connected(graph.bool())).any())


@pytest.mark.parametrize(("layers", "nodes"), [(1, 8), (2, 24), (3, 64)])
def test_the_smallest_sum_is_as_large_as_the_bound_says(layers, nodes):
    """0.125, 3e-6 and 3e-24: reached by a path, whose ends are joined by a single walk."""
    network = connectivity(nodes, layers)
    path = Connectivity(nodes, "paths", parts=1).sample(1, seed=0).x
    with torch.no_grad():
        total = network.read_out.total(network.run(path, [f"layer {layers}"])[1][f"layer {layers}"])
    smallest = float(total[total > 0].min())
    assert smallest == pytest.approx(nodes ** -((3**layers - 1) / 2), rel=1e-9)


def test_its_weights_are_all_algorithm():
    for block in connectivity(8, 2).blocks:
        found = channels(block.get_parameter("weight"), 8)
        assert [float(found.algorithm_share), float(found.error)] == pytest.approx([1, 0])


def test_it_is_saved_and_loaded_and_trains_further(tmp_path):
    run = ag.train(Connectivity(8, largest=3), Written("connectivity", (8, 1)), 3, learning_rate=1e-12, out=tmp_path,
                   batch=4, optimizer="sgd", precision="fp64", curriculum=None, warmup=0, device="cpu")  # fmt: skip
    x = Connectivity(8, largest=3).sample(20, seed=0).x
    assert torch.equal(says(ag.load(run.path).double(), x), says(connectivity(8, 1), x))


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="nodes must be an integer >= 1"):
        connectivity(0, 1)
    with pytest.raises(ValueError, match="layers must be an integer >= 1"):
        connectivity(8, 0)
    with pytest.raises(ValueError, match="layers must be fewer for 64 nodes"):
        connectivity(64, 5)
    with pytest.raises(ValueError, match="nodes must be an integer >= 5, got 4"):
        beyond_reach(4, 1)

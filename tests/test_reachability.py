"""Who reaches whom, against networkx."""

import nodes
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from algoscope import reachability
from algoscope.tasks import Connectivity

GRAPHS = [
    Connectivity(1),
    Connectivity(2, chance=0.5),
    Connectivity(8, chance=0.2),
    Connectivity(20, chance=0.08),
    Connectivity(33, "paths", parts=3),
    Connectivity(64, chance=0.03),
]


def edges_of(task: Connectivity, count: int, seed: int = 0) -> torch.Tensor:
    return task.sample(count, seed=seed).x


@pytest.mark.parametrize("task", GRAPHS, ids=str)
def test_distances_and_diameters_are_those_of_networkx(task):
    x = edges_of(task, 60)
    found, widest = reachability.distances(x.bool()), reachability.diameters(x.bool())
    for graph, own, diameter in zip(x, found, widest, strict=True):
        assert torch.equal(own, nodes.distances(graph))
        assert int(diameter) == nodes.diameter(graph)


@given(st.integers(1, 40), st.floats(0.0, 0.3), st.integers(0, 12), st.integers(0, 2**20))
@settings(deadline=None, max_examples=60)
def test_all_ways_to_ask_agree(size, chance, hops, seed):
    edges = edges_of(Connectivity(size, chance=chance), 5, seed).bool()
    distances = reachability.distances(edges)
    near = (distances >= 0) & (distances <= hops)
    assert torch.equal(reachability.within(edges, hops), near)
    assert torch.equal(reachability.connected(edges), distances >= 0)
    assert torch.equal(reachability.at_most(edges, hops), distances.amax((1, 2)) <= hops)
    assert torch.equal(reachability.after(near, near), reachability.within(edges, 2 * hops))


@pytest.mark.parametrize("size", [2, 3, 4, 5, 9, 17, 64, 65, 256])
def test_the_ends_of_the_longest_path_are_connected(size):
    """One squaring too few, or a count of walks that overflows, is seen here."""
    edges = torch.diag(torch.ones(size - 1), diagonal=1)
    edges = (edges + edges.mT + torch.eye(size)).bool()
    assert bool(reachability.connected(edges).all())
    assert int(reachability.diameters(edges)) == size - 1
    assert bool(reachability.at_most(edges, size - 1))
    assert not bool(reachability.at_most(edges, size - 2))

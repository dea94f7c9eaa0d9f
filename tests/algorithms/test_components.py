"""Algorithms for connectivity against networkx and against products of matrices."""

import networkx
import nodes
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import algoscope as ag
from algoscope.algorithms import AllConnected, Degree, Hops, LabelPropagation, Squaring, Tripling
from algoscope.tasks import Connectivity, LinearRegression

TASKS = [Connectivity(8, chance=0.2), Connectivity(20, chance=0.08), Connectivity(17, "paths", parts=2)]


def powers(x: torch.Tensor, power: int) -> torch.Tensor:
    """Support of a power of each matrix, in exact integers."""
    matrices = x.numpy().astype(object)
    return torch.tensor(np.stack([np.linalg.matrix_power(own, power) for own in matrices]) > 0).double()


@pytest.mark.parametrize("task", TASKS, ids=str)
@pytest.mark.parametrize(
    ("method", "hops"), [(Hops, [0, 1, 2, 3]), (Squaring, [1, 2, 4, 8]), (Tripling, [1, 3, 9, 27])]
)
def test_stages_are_supports_of_powers(task, method, hops):
    prompts = task.sample(20, seed=0)
    trace = method(steps=3).trace(prompts)
    for values, power in zip(trace.values, hops, strict=True):
        assert torch.equal(values, powers(prompts.x, power))


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_hops_are_distances(task):
    prompts = task.sample(20, seed=1)
    trace = Hops(steps=task.nodes).trace(prompts)
    for b, x in enumerate(prompts.x):
        distances = nodes.distances(x)
        for k in trace.stages:
            assert torch.equal(trace.values[int(k), b], ((distances >= 0) & (distances <= int(k))).double())


@given(st.integers(1, 25), st.floats(0.0, 0.4), st.integers(0, 2**20))
@settings(deadline=None, max_examples=40)
def test_label_propagation_is_that_of_a_plain_loop(size, chance, seed):
    prompts = Connectivity(size, chance=chance).sample(2, seed=seed)
    trace = LabelPropagation(steps=size).trace(prompts)
    for b, x in enumerate(prompts.x):
        graph, labels = nodes.graph(x), list(range(size))
        for k in range(size + 1):
            same = torch.tensor([[float(one == other) for other in labels] for one in labels], dtype=torch.float64)
            assert torch.equal(trace.values[k, b].reshape(size, size), same)
            labels = [min([labels[i], *(labels[j] for j in graph.neighbors(i))]) for i in range(size)]


def test_label_propagation_knows_what_hops_do_not_and_the_other_way_round():
    """On the path 1 – 0 – 2 the ends have one label after a round, but are two hops apart; a path 0 – 1 – … is slow."""
    middle = torch.tensor([[1.0, 1, 1], [1, 1, 0], [1, 0, 1]], dtype=torch.float64)[None]
    one = ag.Prompts(middle, torch.ones_like(middle))
    assert LabelPropagation([1]).trace(one).values[0, 0, 1, 2] == 1
    assert Hops([1]).trace(one).values[0, 0, 1, 2] == 0
    path = torch.diag(torch.ones(4, dtype=torch.float64), diagonal=1)
    path = (path + path.mT + torch.eye(5))[None]
    other = ag.Prompts(path, torch.ones_like(path))
    assert LabelPropagation([3]).trace(other).values[0, 0, 3, 4] == 0
    assert Hops([1]).trace(other).values[0, 0, 3, 4] == 1


@pytest.mark.parametrize("threshold", [0, 1, 4, 10**9])
def test_the_degree_heuristic_is_a_product_of_degrees(threshold):
    prompts = Connectivity(12, chance=0.15).sample(10, seed=0)
    trace = Degree((threshold,)).trace(prompts)
    for values, x in zip(trace.values[0], prompts.x, strict=True):
        graph = nodes.graph(x)
        for i in range(12):
            for j in range(12):
                likely = graph.degree(i) * graph.degree(j) >= threshold
                assert bool(values[i, j]) == (likely or i == j or graph.has_edge(i, j))


def test_the_degree_heuristic_joins_two_cliques_and_hops_do_not():
    prompts = Connectivity(10, "two cliques").sample(3, seed=0)
    assert bool((Degree((1,)).trace(prompts).values == 1).all())
    assert torch.equal(Hops([1]).trace(prompts).values[0], prompts.y)
    assert torch.equal(AllConnected().trace(prompts).values[0], torch.ones_like(prompts.y))


@given(st.integers(2, 15), st.integers(0, 2**20))
@settings(deadline=None, max_examples=30)
def test_the_order_of_the_nodes_matters_to_label_propagation_alone(size, seed):
    prompts = Connectivity(size, chance=0.2).sample(1, seed=seed)
    order = torch.randperm(size, generator=torch.Generator().manual_seed(seed))
    x, y = (part[:, order][:, :, order] for part in (prompts.x, prompts.y))
    moved = ag.Prompts(x, y)
    for algorithm in (Hops(3), Squaring(2), Tripling(2), Degree((2,)), AllConnected()):
        expected = algorithm.trace(prompts).values[:, :, order][:, :, :, order]
        assert torch.equal(algorithm.trace(moved).values, expected)


def test_agreement_tells_reach_from_reach():
    """A trace agrees with itself and with no other stage, and beats the null."""
    prompts = Connectivity(20, "paths", parts=3).sample(50, seed=0)
    match = ag.compare(Hops([1, 2, 4, 9]).trace(prompts), Hops(steps=12).trace(prompts), measure="agreement")
    assert match.best == (1, 2, 4, 9)
    assert match.ties == ((1,), (2,), (4,), (9,))
    assert not any(match.none)


def test_a_single_node_is_connected_with_itself():
    prompts = Connectivity(1).sample(2, seed=0)
    for algorithm in (Hops(2), Squaring(2), Tripling(2), LabelPropagation(2), Degree(), AllConnected()):
        trace = algorithm.trace(prompts)
        assert bool((trace.values == 1).all())
        assert trace.values.shape[1:] == prompts.y.shape


@pytest.mark.parametrize("method", [Hops, Squaring, Tripling, LabelPropagation])
def test_what_is_no_graph_is_refused(method):
    with pytest.raises(ValueError, match="prompts must hold graphs, symmetric matrices of 0 and 1"):
        method(2).trace(LinearRegression(dim=3, examples=2).sample(1, seed=0))
    one_way = torch.eye(3, dtype=torch.float64)[None].repeat(1, 1, 1)
    one_way[0, 0, 1] = 1
    with pytest.raises(ValueError, match="prompts must hold graphs, symmetric"):
        method(2).trace(ag.Prompts(one_way, one_way))
    bare = torch.tensor(networkx.to_numpy_array(networkx.path_graph(3)))[None]
    with pytest.raises(ValueError, match="the diagonal of x must be 1"):
        method(2).trace(ag.Prompts(bare, bare))


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named():
    for method in (Hops, Squaring, Tripling, LabelPropagation):
        with pytest.raises(ValueError, match="steps must be an integer >= 0"):
            method(steps=-1)
    with pytest.raises(ValueError, match="steps must be"):
        Degree(thresholds=(-1,))

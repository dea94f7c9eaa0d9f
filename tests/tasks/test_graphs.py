"""Graph connectivity: labels against networkx, distributions against their definitions, and requests that cannot be."""

import math
from collections import Counter

import networkx
import nodes
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch._subclasses.fake_tensor import FakeTensorMode

from algoscope import reachability
from algoscope.tasks import Connectivity, graphs
from algoscope.training import Settings


@pytest.mark.parametrize(
    ("task", "count"),
    [
        (Connectivity(1), 3),
        (Connectivity(2, chance=0.5), 500),
        (Connectivity(8, chance=0.2), 4800),
        (Connectivity(20, chance=0.08), 3000),
        (Connectivity(20, chance=0.08, largest=9, beyond=0.5), 200),
        (Connectivity(33, "paths"), 600),
        (Connectivity(40, "two chains", size=17), 100),
        (Connectivity(40, "two cliques"), 100),
        (Connectivity(64, chance=0.02), 650),
        (Connectivity(256, chance=0.003), 40),
        (Connectivity(256, "paths", parts=2), 20),
    ],
    ids=str,
)
def test_labels_are_the_components_of_networkx(task, count):
    prompts = task.sample(count, seed=3)
    for x, y in zip(prompts.x, prompts.y, strict=True):
        assert torch.equal(y.reshape(x.shape), nodes.components(x))


@given(st.integers(1, 30), st.floats(0.0, 1.0), st.integers(0, 2**20))
@settings(deadline=None, max_examples=40)
def test_graphs_are_symmetric_with_self_loops_and_labels_are_an_equivalence(size, chance, seed):
    prompts = Connectivity(size, chance=chance).sample(4, seed=seed)
    x, y = prompts.x, prompts.y.reshape(prompts.x.shape)
    assert torch.equal(x, x.mT)
    assert bool((x.diagonal(dim1=1, dim2=2) == 1).all())
    assert torch.equal(y, y.mT)
    assert bool((y >= x).all())
    assert torch.equal((y @ y > 0).double(), y)


def test_edges_of_random_graphs_are_independent_coins():
    task = Connectivity(6, chance=0.3)
    x = task.sample(20_000, seed=0).x
    upper = x[:, *torch.triu_indices(6, 6, offset=1)]
    assert torch.allclose(upper.mean(0), torch.full((15,), 0.3, dtype=torch.float64), atol=0.015)
    correlation = torch.corrcoef(upper.T) - torch.eye(15)
    assert float(correlation.abs().max()) < 0.03
    counts = Counter(upper.sum(1).int().tolist())
    expected = [20_000 * stats.binom.pmf(k, 15, 0.3) for k in range(11)]
    assert stats.chisquare([counts[k] for k in range(11)], expected, sum_check=False).pvalue > 1e-3


@pytest.mark.parametrize("size", [1, 2, 9])
def test_no_chance_gives_no_edges_and_certainty_all(size):
    none, whole = (Connectivity(size, chance=chance).sample(3, seed=0) for chance in (0.0, 1.0))
    assert torch.equal(none.x, torch.eye(size, dtype=torch.float64).expand(3, -1, -1))
    assert torch.equal(none.x, none.y.reshape(none.x.shape))
    assert bool((whole.x == 1).all())
    assert bool((whole.y == 1).all())


@pytest.mark.parametrize(("size", "part"), [(20, None), (20, 10), (21, 10), (9, 3), (2, 1), (8, 1)])
def test_two_chains_and_two_cliques_are_what_they_are_called(size, part):
    each = size // 2 if part is None else part
    alone = networkx.empty_graph(size - 2 * each)
    chains, cliques = Connectivity(size, "two chains", size=part), Connectivity(size, "two cliques", size=part)
    for task, piece in ((chains, networkx.path_graph(each)), (cliques, networkx.complete_graph(each))):
        expected, x = networkx.disjoint_union_all([piece, piece, alone]), task.sample(8, seed=1).x
        assert all(networkx.is_isomorphic(nodes.graph(own), expected) for own in x)
        assert len({tuple(own.flatten().tolist()) for own in x}) > 1 or each == 1  # in an order of its own


def test_paths_are_cut_into_as_many_pieces_each_number_as_likely():
    x = Connectivity(10, "paths", parts=4).sample(3000, seed=0).x
    pieces = Counter()
    for own in x:
        graph = nodes.graph(own)
        assert networkx.is_forest(graph)
        assert max(degree for _, degree in graph.degree()) <= 2
        pieces[networkx.number_connected_components(graph)] += 1
    assert set(pieces) == {1, 2, 3, 4}
    assert stats.chisquare(list(pieces.values())).pvalue > 1e-3
    assert int(Connectivity(3, "paths", parts=9).sample(200, seed=0).y.sum((1, 2)).min()) == 3  # no more than nodes


@pytest.mark.parametrize(
    ("limits", "allowed"),
    [
        ({"largest": 3}, {0, 1, 2, 3}),
        ({"smallest": 4}, {4, 5, 6, 7}),
        ({"smallest": 3, "largest": 3}, {3}),
        ({"largest": 0}, {0}),
        ({"largest": 3, "beyond": 1.0}, {4, 5, 6, 7}),
        ({"largest": 3, "beyond": 0.4}, set(range(8))),
        ({"largest": 50}, set(range(8))),
    ],
)
def test_restricted_graphs_have_the_distribution_given_their_diameter(limits, allowed):
    """Each diameter as often, relative to others of its kind, as without the restriction."""
    chance = 0.05 if limits == {"largest": 0} else 0.2
    task = Connectivity(8, chance=chance, **limits)
    found = reachability.diameters(task.sample(4000, seed=0).x.bool())
    free = reachability.diameters(Connectivity(8, chance=chance).sample(20_000, seed=1).x.bool())
    assert set(found.tolist()) <= allowed
    expected = torch.bincount(free, minlength=8).double()
    past = torch.arange(8) > limits.get("largest", 7)
    share = limits.get("beyond", 0.0)
    fits = ~past & (torch.arange(8) >= limits.get("smallest", 0))
    rates = torch.zeros(8, dtype=torch.float64)
    for kind, part in ((fits, 1 - share), (past, share)):
        rates += part * torch.where(kind, expected, 0.0) / torch.where(kind, expected, 0.0).sum().clamp(min=1)
    counts = torch.bincount(found, minlength=8)
    assert bool(((counts - 4000 * rates).abs() < 5 * (4000 * rates).sqrt() + 20).all())


def test_the_share_beyond_is_kept():
    for share in (0.0, 0.15, 0.6, 1.0):
        x = Connectivity(8, largest=3, beyond=share).sample(4000, seed=2).x
        past = float((~reachability.at_most(x.bool(), 3)).double().mean())
        assert past == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / 4000) + 1e-9)


def test_restricting_does_not_repeat_graphs():
    """Accepted graphs are new ones: the reserve is for what never happens."""
    x = Connectivity(20, chance=0.08, largest=9).sample(500, seed=0).x
    assert len({tuple(own.flatten().tolist()) for own in x}) > 495


@pytest.mark.parametrize("limits", [{"largest": 3}, {"smallest": 6}, {"largest": 4, "beyond": 0.1}, {"largest": 7}])
@pytest.mark.parametrize("share", [1, 2, 16, 1000])
def test_pools_are_large_enough_almost_surely(limits, share):
    task = Connectivity(8, **limits)
    size = graphs._pool(task, share)
    for part, rate in zip((1 - task.beyond, task.beyond), graphs._tried(task)[0], strict=True):
        wanted = stats.binom.isf(1e-12, share, part) if part else 0  # no more are asked for
        assert stats.binom.cdf(wanted - 1, size, rate) < 1e-10
    assert size < 20 * (share + 20) / min(rate for rate in graphs._tried(task)[0] if rate)


def test_a_pool_that_is_too_small_stays_within_the_restriction():
    """With all of a pool refused, and with fewer accepted than wanted."""
    task = Connectivity(8, largest=2)
    pool = torch.stack([Connectivity(8, "paths", parts=1).sample(6, seed=0).x, task.sample(6, seed=0).x]).bool()
    fits, above, reached = graphs._fits(task, pool)
    assert torch.equal(reached[1], reachability.connected(pool[1]))
    assert fits.tolist() == [[False] * 6, [True] * 6]
    assert torch.equal(above, ~fits)
    fits[1, 2:] = False  # two are left, which are taken in turn
    taken = graphs._first(fits, torch.arange(5).expand(2, -1))
    assert taken[1].tolist() == [0, 1, 0, 1, 0]
    inside, outside = graphs._reserve(Connectivity(8, largest=2, beyond=0.5), torch.device("cpu"))
    assert bool(reachability.at_most(inside, 2).all())
    assert not bool(reachability.at_most(outside, 2).any())
    assert len(inside) == len(outside) == graphs.RESERVE


def test_a_pool_of_only_refused_graphs_takes_from_the_reserve(monkeypatch):
    task = Connectivity(8, largest=2)
    expected = graphs._reserve(task, torch.device("cpu"))[0]
    longest = Connectivity(8, "paths", parts=1)
    draw = graphs._graphs
    monkeypatch.setattr(graphs, "_graphs", lambda task, *rest: draw(longest, *rest))
    x, _ = task.draw(4, [torch.Generator().manual_seed(0)])
    assert torch.equal(x.bool(), expected[:4])


@pytest.mark.parametrize(
    "task",
    [
        Connectivity(8),
        Connectivity(8, largest=3),
        Connectivity(8, smallest=3, largest=3),
        Connectivity(8, largest=3, beyond=0.2),
        Connectivity(9, "two chains", size=3),
        Connectivity(8, "two cliques"),
        Connectivity(12, "paths"),
        Connectivity(8, collection=32),
    ],
    ids=str,
)
def test_drawing_never_looks_at_what_was_drawn(task):
    """So that a GPU can record it: tensors without values stop whoever asks for one."""
    generators = [torch.Generator().manual_seed(seed) for seed in (0, 1)]
    task.draw(6, generators)  # what is kept for later is made here
    with FakeTensorMode(allow_non_fake_inputs=True):
        x, y = task.draw(6, generators)
    assert x.shape == y.shape == (6, task.nodes, task.nodes)


def test_a_collection_is_all_there_is():
    task = Connectivity(8, largest=3, collection=50, collected=4)
    first, again, other = (
        task.draw(50, [torch.Generator().manual_seed(0)])[0],
        task.draw(50, [torch.Generator().manual_seed(1)])[0],
        Connectivity(8, largest=3, collection=50, collected=5).draw(50, [torch.Generator().manual_seed(0)])[0],
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    whole = {tuple(own.flatten().tolist()) for own in first}
    few = task.sample(200, seed=0)
    assert {tuple(own.flatten().tolist()) for own in few.x} <= whole
    assert all(torch.equal(y, nodes.components(x)) for x, y in zip(few.x[:20], few.y[:20], strict=True))
    assert bool(reachability.at_most(few.x.bool(), 3).all())


def test_power_is_the_share_of_connected_pairs():
    for task in (Connectivity(8), Connectivity(8, largest=3), Connectivity(20, "two chains")):
        assert task.power == pytest.approx(float(task.sample(4000, seed=5).y.mean()), abs=0.02)
    assert Connectivity(20, "two cliques").power == 0.5


def test_there_is_no_curriculum_of_graphs():
    task = Connectivity(8)
    assert Settings(steps=40).on(torch.device("cpu"), task).curriculum is None
    with pytest.raises(ValueError, match="dims must be None: graphs have no coordinates"):
        task.draw(2, [torch.Generator()], dims=torch.tensor(3))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"nodes": 0}, "nodes must be an integer >= 1, got 0"),
        ({"graphs": "trees"}, "graphs must be one of 'random', 'two chains', 'two cliques', 'paths', got 'trees'"),
        ({"chance": -0.1}, "chance must be a finite number >= 0"),
        ({"chance": 1.5}, "chance must be between 0 and 1, got 1.5"),
        ({"chance": float("nan")}, "chance must be a finite number >= 0"),
        ({"graphs": "two chains", "size": 5}, "size must be at most half of the nodes = 8, got 5"),
        ({"graphs": "two cliques", "nodes": 1}, "size must be an integer >= 1, got 0"),
        ({"parts": 0}, "parts must be an integer >= 1"),
        ({"smallest": 8}, "smallest must be less than nodes = 8: no path is longer, got 8"),
        ({"smallest": 3, "largest": 2}, "largest must be an integer >= 3, got 2"),
        ({"largest": -1}, "largest must be an integer >= 0, got -1"),
        ({"beyond": 0.5}, "beyond needs largest"),
        ({"beyond": 1.2, "largest": 3}, "beyond must be between 0 and 1"),
        ({"beyond": 0.2, "largest": 7}, "beyond must be 0: no graph of 8 nodes has a diameter above 7"),
        ({"collection": 0}, "collection must be an integer >= 1"),
        ({"collected": -1}, "collected must be an integer >= 0"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named(bad, message):
    with pytest.raises(ValueError, match=message):
        Connectivity(**bad)


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (Connectivity(8, chance=0.0, smallest=1), "a diameter from 1 to 7 are too rare among these, 0 in 4096"),
        (Connectivity(8, chance=1.0, smallest=2, largest=5), "a diameter from 2 to 5 are too rare"),
        (Connectivity(8, chance=1.0, largest=0), "a diameter from 0 to 0 are too rare"),
        (Connectivity(20, "two chains", largest=3), "a diameter from 0 to 3 are too rare"),
        (Connectivity(20, "two cliques", smallest=4), "a diameter from 4 to 19 are too rare"),
        (Connectivity(64, chance=0.03, largest=27, beyond=0.1), "a diameter above 27 are too rare among these, 0 in"),
        (Connectivity(8, chance=0.02, smallest=7), "change the diameters or the graphs of Connectivity"),
        (Connectivity(8, chance=0.0, smallest=1, collection=10), "are too rare"),
    ],
    ids=str,
)
def test_impossible_diameters_are_refused(task, message):
    with pytest.raises(ValueError, match=message):
        task.sample(1, seed=0)

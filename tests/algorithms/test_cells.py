"""Cells of points: the mechanics against a plain loop, k-means against scikit-learn, and published baselines."""

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans

from algoscope.algorithms import IterativeQuantization, KMeansCells, RangeCells, SimHash
from algoscope.algorithms.cells import Cells, code, means, placed, quantizer
from algoscope.matching import found
from algoscope.tasks import NumberSearch, SphereSearch
from algoscope.trace import Prompts

SPHERE = SphereSearch(size=100, dim=30, queries=4)


def accuracy(algorithm: Cells, batch: int = 1000) -> float:
    """Percent of the queries whose neighbor is found in the end."""
    return 100 * float(found(algorithm.trace(SPHERE.sample(batch, seed=0)))[-1].double().mean())


def pool(points: int) -> torch.Tensor:
    """Points of the same distribution, from other prompts."""
    return SphereSearch(size=points, dim=30).sample(1, seed=9).x[:, :points]


def test_a_point_whose_cell_is_full_goes_into_one_with_room():
    generator = torch.Generator().manual_seed(0)
    wanted = torch.randint(3, (50, 11), generator=generator)
    cells, slots = placed(wanted, cells=4, size=2, seed=0)
    for want, cell, slot in zip(wanted.tolist(), cells.tolist(), slots.tolist(), strict=True):
        filled = [0] * 4
        for own, got, place in zip(want, cell, slot, strict=True):
            if sum(filled) == 8:
                assert (got, place) == (-1, -1)
                continue
            assert got == own or filled[own] == 2
            assert filled[got] == place < 2
            filled[got] += 1


def test_the_points_of_the_query_s_cell_are_read_first():
    prompts = SPHERE.sample(20, seed=1)
    algorithm = SimHash(lookups=100, bits=4)
    points, queries = prompts.x[:, :100], prompts.x[:, 100:]
    cells, slots = placed(algorithm.assign(points, queries)[0], 16, 6, 0)
    asked = algorithm.assign(points, queries)[1]
    reads = algorithm.trace(prompts).values.long()
    for b in range(20):
        for k in range(4):
            assert sorted(reads[:, b, k].tolist()) == list(range(100))  # in the end all, none twice
            inside = [int(i) for i in reads[:, b, k] if cells[b, i] == asked[b, k]]
            assert inside == reads[: len(inside), b, k].tolist()
            assert [int(slots[b, i]) for i in inside] == list(range(len(inside)))


def test_hashes_are_the_signs_of_products():
    values = torch.tensor([[0.5, -1.0, 2.0], [-0.1, -1.0, -2.0], [1.0, 1.0, 1.0]])
    assert code(values).tolist() == [0b101, 0, 0b111]
    x = torch.randn(1, 4000, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    near, _ = SimHash(bits=6).assign(x, x + 1e-9)
    far, _ = SimHash(bits=6, seed=1).assign(x, x)
    assert len(near.unique()) == 64
    assert float((near == far).double().mean()) < 0.1


def test_the_chance_that_two_points_share_a_bit_is_that_of_their_angle():
    """1 − angle/π (Goemans and Williamson; Charikar 2002)."""
    angle = 0.7
    pair = torch.tensor([[[1.0, 0.0], [np.cos(angle), np.sin(angle)]]], dtype=torch.float64)
    same = [SimHash(bits=1, seed=seed).assign(pair, pair)[0].unique().numel() == 1 for seed in range(3000)]
    assert np.mean(same) == pytest.approx(1 - angle / np.pi, abs=0.03)


def test_centers_are_those_of_scikit_learn():
    points = torch.randn(3, 60, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for ours, own in zip(means(points, 5), points.numpy(), strict=True):
        fitted = KMeans(5, init=own[:5], n_init="auto", tol=0, max_iter=50).fit(own)
        np.testing.assert_allclose(ours, fitted.cluster_centers_, atol=1e-9)


def test_a_quantizer_is_an_orthonormal_basis_that_loses_less_than_principal_components():
    points = pool(400)
    basis = quantizer(points, 4)[0]
    torch.testing.assert_close(basis.T @ basis, torch.eye(4, dtype=torch.float64))
    axes = torch.linalg.eigh(points[0].T @ points[0]).eigenvectors[:, -4:]
    torch.testing.assert_close(basis @ basis.T, axes @ axes.T)  # the same subspace
    turned, plain = (points[0] @ each for each in (basis, axes))
    losses = [float((each - each.sign()).square().sum()) for each in (turned, plain)]
    assert losses[0] <= losses[1]


# Percent in the end, at N = 100, M = 6 in 30 dimensions: simulated by others, and published (Salemohamed et al.)
@pytest.mark.parametrize(("bits", "known"), [(3, 22.5), (4, 29.7), (5, 22.9)])
def test_hashing_is_as_good_as_others_found(bits, known):
    ours = np.mean([accuracy(SimHash(bits=bits, seed=seed), 250) for seed in range(6)])
    assert ours == pytest.approx(known, abs=2.0)


def test_cells_learned_once_for_all_are_as_good_as_others_found():
    centers = means(pool(5000), 16)[0]
    assert accuracy(KMeansCells(centers=centers)) == pytest.approx(35.2, abs=2.0)


def test_cells_learned_for_each_set_of_points_are_much_better():
    """An index may look at its points before it stores them; the published k-means, at 35.3, did not.

    The published ITQ, at 34.4, lies between ours: learned once for all, which on a sphere can be no better than chance
    directions, and learned for each set.
    """
    assert accuracy(KMeansCells(), 300) > 60
    once = IterativeQuantization(basis=quantizer(pool(5000), 4)[0])
    assert 28 < accuracy(once) < 34.4 < 40 < accuracy(IterativeQuantization(), 300)


def test_equal_points_are_stored_all_the_same():
    x = torch.ones(2, 9, 3, dtype=torch.float64)
    prompts = Prompts(x, torch.zeros(2, 1, dtype=torch.float64))
    for algorithm in (SimHash(bits=2), IterativeQuantization(bits=2), KMeansCells(count=3)):
        assert bool(found(algorithm.trace(prompts)).all())


@pytest.mark.parametrize(
    ("kind", "bad", "message"),
    [
        (SimHash, {"bits": 0}, "bits must be an integer >= 1"),
        (RangeCells, {"count": 0}, "count must be an integer >= 1"),
        (RangeCells, {"low": 1.0}, "low must be less than high, got 1.0 and 1.0"),
        (KMeansCells, {"count": 0}, "count must be an integer >= 1"),
        (KMeansCells, {"count": 3, "centers": [[0.0, 1.0]]}, "centers must be a matrix 3 x dim, got shape"),
        (KMeansCells, {"count": 1, "centers": [[float("nan")]]}, "centers must hold finite numbers"),
        (IterativeQuantization, {"bits": 2, "basis": [[1.0]]}, "basis must be a matrix dim x 2, got shape"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named(kind, bad, message):
    with pytest.raises(ValueError, match=message):
        kind(**bad)


@pytest.mark.usefixtures("as_users_run_it")
def test_what_does_not_fit_the_points_is_named():
    prompts = SphereSearch(size=9, dim=3).sample(2, seed=0)
    with pytest.raises(ValueError, match="bits must be at most 3, the dimension of the points, got 4"):
        IterativeQuantization(bits=4, basis=None).assign(prompts.x[:, :9], prompts.x[:, 9:])
    with pytest.raises(ValueError, match="centers must be for points of 3 coordinates, got 2"):
        KMeansCells(count=1, centers=[[0.0, 1.0]]).trace(prompts)
    with pytest.raises(ValueError, match="needs points with one coordinate, got 3"):
        RangeCells(count=2).trace(prompts)
    with pytest.raises(ValueError, match="seed must be an integer >= 0"):
        SimHash(bits=1, seed=-1).trace(prompts)


def test_ranges_of_numbers_are_as_good_as_others_found():
    """Published at 76.2, simulated elsewhere at 79 to 81."""
    task = NumberSearch(size=50, universe=200, queries=4)
    trace = RangeCells(lookups=7, count=8, low=-0.5, high=199.5).trace(task.sample(1000, seed=0))
    assert 100 * float(found(trace)[-1].double().mean()) == pytest.approx(80, abs=2.5)


def test_ranges_are_equal():
    points = torch.linspace(-0.99, 0.99, 12, dtype=torch.float64)[None, :, None]
    queries = torch.tensor([[[-7.0], [-1.0], [0.0], [0.49], [0.51], [9.0]]], dtype=torch.float64)
    cells, asked = RangeCells(count=4).assign(points, queries)
    assert cells.tolist() == [[k // 3 for k in range(12)]]
    assert asked.tolist() == [[0, 0, 2, 2, 3, 3]]

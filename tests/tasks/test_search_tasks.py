"""Search tasks: neighbors against scipy, distributions against their descriptions, files against what they hold."""

import gzip

import battery
import numpy as np
import pytest
import torch
from scipy import stats
from scipy.spatial import cKDTree  # pyright: ignore[reportAttributeAccessIssue]
from sklearn.decomposition import PCA

from algoscope.tasks import HardSearch, SphereSearch, UniformSearch, VectorSearch, ZipfSearch
from algoscope.tasks.search import nearest, zipf


@pytest.mark.parametrize("task", battery.SEARCHES, ids=str)
def test_targets_are_the_nearest_points(task):
    prompts = task.sample(50, seed=1)
    for x, y in zip(prompts.x.numpy(), prompts.y.numpy(), strict=True):
        points, queries = x[: task.size], x[task.size :]
        distances, _ = cKDTree(points).query(queries)
        found = np.linalg.norm(points[y.astype(int)] - queries, axis=1)
        np.testing.assert_allclose(found, distances, rtol=1e-9, atol=1e-12)


def test_of_equally_near_points_the_first_is_the_target():
    points = torch.tensor([[[2.0], [1.0], [1.0], [3.0]]])
    queries = torch.tensor([[[1.0], [2.5], [0.0], [9.0]]])
    assert nearest(points, queries).tolist() == [[1, 0, 1, 3]]


def test_uniform_points_and_queries_fill_the_cube():
    prompts = UniformSearch(size=20, dim=2).sample(500, seed=0)
    assert stats.kstest(prompts.x.numpy().ravel(), stats.uniform(-1, 2).cdf).pvalue > 1e-3


def test_the_hard_distribution_is_a_tree_of_distances():
    """The sum of n independent terms has a known mean: the nodes lie on both sides of the root alike."""
    task = HardSearch(size=15)
    assert task.levels == 4
    assert task.reach == 2401 + 343 + 49 + 7
    x = task.sample(4000, seed=0).x
    points, queries = x[:, :15, 0], x[:, 15:, 0]
    assert float(points.abs().max()) < task.reach
    assert float(points.mean()) == pytest.approx(2401 / 2, rel=0.03)
    gaps = (points[..., None] - queries[:, None]).abs().amin(1)
    assert float((gaps < 3).double().mean()) > 0.99  # a query is a point plus a standard normal number
    ranks = points.argsort(-1).double().mean(0)
    assert bool(((ranks - 7).abs() < 0.3).all())  # in random order


def test_a_tree_that_is_not_full_has_as_many_nodes_as_there_are_points():
    for points in (1, 2, 3, 6, 16):
        assert HardSearch(size=points).sample(2, seed=0).x.shape == (2, points + 1, 1)


def test_coordinates_of_the_hard_distribution_are_independent():
    x = HardSearch(size=15, dim=2).sample(2000, seed=0).x[:, :15]
    centered = x - x.mean(1, keepdim=True)
    pooled = (centered[..., 0] * centered[..., 1]).mean() / (centered[..., 0].std() * centered[..., 1].std())
    assert abs(float(pooled)) < 0.03


def test_zipf_queries_have_zipf_s_chances_and_points_differ():
    prompts = ZipfSearch(size=100, universe=200, queries=4).sample(2000, seed=0)
    points, queries = prompts.x[:, :100, 0], prompts.x[:, 100:, 0].flatten()
    assert all(len(row.unique()) == 100 for row in points[:50])
    assert float(points.min()) == 1
    assert float(points.max()) == 200
    chances = np.arange(1, 201) ** -1.2
    counts = np.bincount(queries.long().numpy(), minlength=201)[1:]
    expected = chances / chances.sum() * len(queries)
    assert stats.chisquare([*counts[:20], counts[20:].sum()], [*expected[:20], expected[20:].sum()]).pvalue > 1e-3


def test_every_number_between_0_and_1_is_an_item():
    assert zipf(torch.tensor([0.0, 1 - 1e-16, 1.0], dtype=torch.float64), 5, 1.0).tolist() == [0, 4, 4]


def test_queries_on_the_sphere_have_the_stated_inner_product_with_their_target():
    prompts = SphereSearch(size=100, dim=30, correlation=0.8).sample(300, seed=0)
    torch.testing.assert_close(prompts.x.norm(dim=-1), torch.ones(300, 101, dtype=torch.float64))
    target = prompts.x.gather(1, prompts.y.long()[..., None].expand(-1, -1, 30))
    products = (target * prompts.x[:, 100:]).sum(-1)
    torch.testing.assert_close(products, torch.full_like(products, 0.8))


def test_vectors_of_a_file_are_its_principal_components():
    task = VectorSearch(battery.VECTORS, size=8, dim=3)
    known = np.load(battery.VECTORS)
    components = PCA(3).fit(known).transform(known)
    scaled = components / np.sqrt((components**2).sum(1).mean())
    ours = task.vectors(torch.device("cpu"), torch.float64).numpy()
    assert len(ours) == len(scaled)
    for row in ours:  # in another order, and axes may be turned around
        assert np.isclose(np.abs(row), np.abs(scaled), atol=1e-9).all(1).any()
    prompts = task.sample(200, seed=0)
    assert all(len(points.unique(dim=0)) == 9 for points in prompts.x)
    for drawn in (prompts.x[:, :8], prompts.x[:, 8:]):  # each is a point at times, and at times a query
        assert len(drawn.flatten(0, 1).unique(dim=0)) == len(known)


@pytest.mark.parametrize("compressed", [False, True])
def test_images_and_fvecs_are_vectors_too(tmp_path, compressed):
    images = np.random.default_rng(0).integers(0, 255, (30, 2, 3), dtype=np.uint8)
    content = b"\0\0\x08\x03" + np.array(images.shape, ">i4").tobytes() + images.tobytes()
    idx = tmp_path / ("images-idx3-ubyte" + (".gz" if compressed else ""))
    idx.write_bytes(gzip.compress(content) if compressed else content)
    rows = images.reshape(30, 6).astype(np.float32)
    fvecs = tmp_path / "vectors.fvecs"
    sizes = np.full((30, 1), 6, "<i4").view("<f4")
    fvecs.write_bytes(np.hstack([sizes, rows]).astype("<f4").tobytes())
    both = [VectorSearch(str(file), size=4, dim=2).sample(5, seed=0) for file in (idx, fvecs)]
    assert both[0].same_as(both[1])


def test_test_vectors_use_the_components_of_the_training_vectors(tmp_path):
    other = tmp_path / "test.npy"
    np.save(other, np.load(battery.VECTORS)[:20])
    own, shared = (VectorSearch(str(other), 4, 2, basis=basis) for basis in (None, battery.VECTORS))
    device = torch.device("cpu")
    whole = VectorSearch(battery.VECTORS, 4, 2).vectors(device, torch.float64)
    part = shared.vectors(device, torch.float64)
    assert all(bool(torch.isclose(row, whole).all(1).any()) for row in part)
    assert not torch.allclose(own.vectors(device, torch.float64), part)


@pytest.mark.parametrize(
    ("kind", "bad", "message"),
    [
        (UniformSearch, {"size": 0}, "size must be an integer >= 1, got 0"),
        (UniformSearch, {"queries": 0}, "queries must be an integer >= 1, got 0"),
        (UniformSearch, {"dim": 0}, "dim must be an integer >= 1, got 0"),
        (HardSearch, {"size": -1}, "size must be an integer >= 1"),
        (HardSearch, {"base": 0.5}, "base must be a finite number >= 1"),
        (ZipfSearch, {"size": 5, "universe": 4}, "size must be at most universe = 4: they differ, got 5"),
        (ZipfSearch, {"exponent": -1.0}, "exponent must be a finite number >= 0"),
        (SphereSearch, {"dim": 1}, "dim must be an integer >= 2"),
        (SphereSearch, {"correlation": 1.5}, "correlation must be a number from -1 to 1, got 1.5"),
        (VectorSearch, {"path": "nowhere.npy"}, "path must be a file of vectors, got 'nowhere.npy'"),
        (VectorSearch, {"path": battery.VECTORS, "dim": 9}, "dim must be at most 5, the size of the vectors"),
        (VectorSearch, {"path": battery.VECTORS, "size": 40, "dim": 2}, "size and queries must be at most the 40"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named(kind, bad, message):
    with pytest.raises(ValueError, match=message):
        kind(**bad)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("flat.npy", np.zeros(5), "must hold rows of finite numbers, got an array of shape"),
        ("empty.npy", np.zeros((0, 3)), "must hold rows of finite numbers, got an array of shape"),
        ("nan.npy", np.full((9, 2), np.nan), "must hold rows of finite numbers"),
        ("same.npy", np.ones((9, 2)), "the vectors of .* must differ"),
        ("names.npy", np.array([["a", "b"]]), "must hold vectors as .npy, .fvecs or IDX"),
        ("short.fvecs", b"\x03\0\0\0\0\0\0\0", "8 bytes are not vectors of 3 numbers"),
        ("none.fvecs", b"", "0 bytes are no vector"),
        (
            "mixed.fvecs",
            np.array([1, 5, 7, 5], "<i4").tobytes(),
            "its vectors must all have 1 numbers",
        ),
        ("complex.npy", np.ones((9, 2)) * 1j, "must hold vectors as .npy, .fvecs or IDX: its numbers are complex128"),
        (
            "negative-idx2-ubyte",
            b"\0\0\x08\x02\xff\xff\xff\xff\0\0\0\x02\x01\x02",
            "must hold vectors as .npy, .fvecs or",
        ),
        ("text.txt", b"hello", "does not begin like an IDX file"),
        ("broken.npy", b"\x93NUMPY", "must hold vectors as .npy, .fvecs or IDX"),
        ("broken.gz", b"hello", "cannot be read"),
        ("cut.npy.gz", gzip.compress(b"\x93NUMPY", mtime=0)[:-4], "cannot be read"),
        ("wide.fvecs", b"\xff\xff\xff\xff\0\0\0\0", "8 bytes are not vectors of -1 numbers"),
        ("cut-idx3-ubyte", b"\0\0\x08\x02\0\0\0\x02\0\0\0\x03\x01", "must hold vectors as .npy, .fvecs or IDX"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_files_of_the_wrong_shape_are_named(tmp_path, name, content, message):
    file = tmp_path / name
    file.write_bytes(content) if isinstance(content, bytes) else np.save(file, content)
    with pytest.raises(ValueError, match=message):
        VectorSearch(str(file), size=3, dim=1)


def test_a_curriculum_uses_the_first_coordinates_only():
    task, generator = UniformSearch(size=6, dim=3), torch.Generator().manual_seed(0)
    x, y = task.draw(4, [generator], dims=torch.tensor(1))
    assert not bool(x[..., 1:].any())
    assert torch.equal(nearest(x[:, :6], x[:, 6:]).double(), y)


@pytest.mark.parametrize("task", battery.SEARCHES, ids=str)
def test_networks_see_numbers_of_about_size_1(task):
    prompts = task.sample(100, seed=0)
    tokens = task.encode(prompts.x, prompts.y)
    assert tokens.shape[-1] == task.inputs
    assert 0.05 < float(tokens.square().mean().sqrt()) < 2
    assert float(tokens.abs().max()) < 10

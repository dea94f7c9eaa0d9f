"""Numbers as pictures: the digits shown, which image is taken, and folders of other images."""

import gzip
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import ndimage, stats
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

from algoscope.tasks import NumberSearch, NumberStream, numerals

DIGITS: Any = load_digits()
CPU = torch.device("cpu")
NAMES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def as_idx(array: np.ndarray) -> bytes:
    sizes = b"".join(struct.pack(">i", size) for size in array.shape)
    return b"\0\0\x08" + bytes([array.ndim]) + sizes + array.astype(np.uint8).tobytes()


@pytest.fixture
def folder(tmp_path) -> Path:
    """Ten images of 28 x 28 in each file, and digit d is a field of gray 20 d + 30."""
    labels = np.array([3, 1, 4, 0, 5, 9, 2, 6, 8, 7])
    images = np.broadcast_to((20 * labels + 30)[:, None, None], (10, 28, 28))
    for name, array in zip(NAMES, (images, labels, images, labels), strict=True):
        (tmp_path / name).write_bytes(as_idx(array))
    return tmp_path


def test_the_shipped_digits_are_those_of_scikit_learn():
    train, test = (numerals.handwritten(numerals.SHIPPED, split, CPU) for split in ("train", "test"))
    for digit in range(10):
        ours = [
            part.images[part.starts[digit] : part.starts[digit] + part.counts[digit]] * 16 for part in (train, test)
        ]
        assert np.array_equal(torch.cat(ours).numpy(), DIGITS.images[DIGITS.target == digit])
    assert (len(train.images), len(test.images)) == (1297, 500)
    shipped = sum(file.stat().st_size for file in Path(numerals.SHIPPED).iterdir())
    assert shipped < 60_000


@pytest.mark.parametrize("task", [NumberSearch(size=9, queries=5), NumberStream(items=13)], ids=str)
def test_pictures_show_the_digits_of_the_number(task):
    """Read by a classifier that was trained on the same images."""
    classifier = KNeighborsClassifier(n_neighbors=1).fit(DIGITS.data, DIGITS.target)
    prompts = task.sample(20, seed=0)
    tokens = task.encode(prompts.x, prompts.y)
    parts = tokens.view(*tokens.shape[:2], 8, 3, 8).transpose(2, 3).reshape(-1, 64) * 16
    read = classifier.predict(parts.numpy()).reshape(-1, 3) @ (100, 10, 1)
    assert np.array_equal(read, prompts.x.flatten().numpy())


def test_images_to_test_with_are_never_those_to_train_with():
    seen = []
    for split in ("train", "test"):
        task = NumberSearch(size=20, universe=100, digits=2, split=split)
        prompts = task.sample(50, seed=0)
        halves = task.encode(prompts.x, prompts.y).view(-1, 8, 2, 8).transpose(1, 2).reshape(-1, 64)
        seen.append({tuple(row) for row in halves.tolist()})
    assert len(seen[0]) > 1000
    assert len(seen[1]) > 400
    assert not seen[0] & seen[1]


@pytest.mark.parametrize("task", [NumberSearch(size=9, queries=5), NumberStream(items=13)], ids=str)
def test_images_to_train_with_are_moved(task):
    """Each is one of the 25 that scipy's shifts by up to two pixels make of it, and all shifts are as likely."""
    prompts = task.sample(40, seed=0)
    still, moved = (
        replace(task, shift=shift).encode(prompts.x, prompts.y).view(-1, 8, 3, 8).transpose(1, 2).reshape(-1, 8, 8)
        for shift in (0, 2)
    )
    steps = [(down, right) for down in range(-2, 3) for right in range(-2, 3)]
    counts = np.zeros(len(steps))
    for before, after in zip(still.numpy(), moved.numpy(), strict=True):
        like = [k for k, step in enumerate(steps) if np.array_equal(ndimage.shift(before, step, order=0), after)]
        assert like
        counts[like] += 1 / len(like)
    assert stats.chisquare(counts).pvalue > 1e-4
    others = replace(task, shift=2, split="test"), replace(task, split="test")
    assert torch.equal(*(each.encode(prompts.x, prompts.y) for each in others))


def test_how_far_an_image_is_moved_says_nothing_of_which_it_is_nor_of_where_it_stands(tmp_path):
    """Five images of each digit, told apart by the gray of the one pixel in their middle that is not black."""
    labels, grays = np.repeat(np.arange(10), 5), np.tile(51 * np.arange(1, 6), 10)
    images = np.zeros((50, 9, 9))
    images[:, 4, 4] = grays
    for name, array in zip(NAMES, (images, labels, images, labels), strict=True):
        (tmp_path / name).write_bytes(as_idx(array))
    task = NumberSearch(size=30, queries=10, folder=str(tmp_path), shift=2)
    tokens = [task.encode(prompts.x, prompts.y) for prompts in (task.sample(100, seed=seed) for seed in (0, 1))]
    shown = [each.view(100, 40, 9, 3, 9).transpose(2, 3).reshape(-1, 81).max(-1) for each in tokens]
    image, place = (shown[0].values * 5).round().long() - 1, shown[0].indices
    down, right = place // 9 - 2, place % 9 - 2
    for moved in (down, right, (down + right) % 5, (down - right) % 5):
        table = np.histogram2d(image, moved, bins=(np.arange(6), np.arange(6)))[0]
        assert table.sum() == 12_000
        expected = np.outer(table.sum(1), table.sum(0)) / table.sum()
        assert stats.chisquare(table.ravel(), expected.ravel(), ddof=8).pvalue > 1e-4  # 16 degrees of freedom
    again = float((place == shown[1].indices).double().mean())  # at the same place of another batch
    assert again == pytest.approx(1 / 25, abs=0.01)


def test_every_image_is_as_likely():
    numbers = torch.randint(200, (400, 30), generator=torch.Generator().manual_seed(0))
    for options in (128, 131, 7):
        counts = torch.bincount((numerals.choices(numbers, 3) % options).flatten(), minlength=options)
        assert stats.chisquare(counts.numpy()).pvalue > 1e-4


def test_any_other_number_changes_all_images():
    """So prompts that differ in one point say nothing about each other's images."""
    numbers = torch.randint(200, (50, 20), generator=torch.Generator().manual_seed(0))
    other = numbers.clone()
    other[:, 7] += 1
    before, after = (numerals.choices(part, 3) for part in (numbers, other))
    assert float((before == after).double().mean()) < 0.001
    assert stats.kstest((before - after).double().flatten().numpy() % 2**32 / 2**32, "uniform").pvalue > 1e-4
    swapped = numbers.flip(1)
    assert float((numerals.choices(swapped, 3) == before).double().mean()) < 0.001
    assert torch.equal(numerals.choices(numbers, 3), before)


def test_numbers_are_uniform_and_those_of_a_set_differ():
    prompts = NumberSearch(size=30, universe=60, queries=4).sample(500, seed=0)
    points, queries = (part.long().numpy() for part in (prompts.x[:, :30, 0], prompts.x[:, 30:, 0]))
    assert all(len(set(row)) == 30 for row in points)
    assert stats.chisquare(np.bincount(queries.ravel(), minlength=60)).pvalue > 1e-3
    counts = np.bincount(points.ravel(), minlength=60)
    assert counts.min() > 200
    assert counts.max() < 300


def test_a_variable_may_name_the_folder(folder, monkeypatch):
    """So that a plan with such images can be read by those who do not have them."""
    task = NumberSearch(size=3, universe=1000, folder="$DIGITS_OF_THIS_TEST")
    with pytest.raises(ValueError, match=r"folder is \$DIGITS_OF_THIS_TEST: set that variable"):
        task.inputs  # noqa: B018
    monkeypatch.setenv("DIGITS_OF_THIS_TEST", str(folder))
    prompts = task.sample(2, seed=0)
    named = replace(task, folder=str(folder))
    assert torch.equal(task.encode(prompts.x, prompts.y), named.encode(prompts.x, prompts.y))
    monkeypatch.setenv("DIGITS_OF_THIS_TEST", "nowhere")
    with pytest.raises(ValueError, match="there is none in 'nowhere'"):
        NumberSearch(size=3, folder="$DIGITS_OF_THIS_TEST")


@pytest.mark.parametrize("compressed", [False, True])
def test_a_folder_with_the_files_of_mnist_will_do(folder, compressed):
    if compressed:
        for name in NAMES:
            (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes()))
            (folder / name).unlink()
    task = NumberSearch(size=3, universe=1000, folder=str(folder), split="test")
    assert task.inputs == 28 * 84
    assert numerals.height_and_width(3, str(folder)) == (28, 84)
    prompts = task.sample(4, seed=0)
    tokens = task.encode(prompts.x, prompts.y).view(4, 4, 28, 3, 28)
    gray = torch.tensor([[int(d) for d in f"{int(n):03}"] for n in prompts.x.flatten()]).view(4, 4, 3)
    torch.testing.assert_close(tokens.mean((2, 4)) * 210, 20.0 * gray.double() + 30)
    assert bool((tokens == tokens[:, :, :1, :, :1]).all())


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (NAMES[0], None, "folder must hold train-images-idx3-ubyte or train-images-idx3-ubyte.gz"),
        (NAMES[1], None, "folder must hold train-labels-idx1-ubyte"),
        (NAMES[0], b"hello", "must be an IDX file of bytes: it does not begin like an IDX file"),
        (NAMES[0], as_idx(np.zeros((10, 28))), r"images and n labels to train with, got \[10, 28\] and \[10\]"),
        (NAMES[1], as_idx(np.zeros(9)), r"got \[10, 28, 28\] and \[9\]"),
        (NAMES[1], as_idx(np.zeros(10)), r"must be 0 to 9, each at least once, got \[0\]"),
        (NAMES[1], as_idx(np.arange(10) + 1), "must be 0 to 9, each at least once"),
        (NAMES[0], as_idx(np.zeros((10, 28, 28)))[:-5], "must be an IDX file of bytes"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_wrong_files_are_named(folder, name, content, message):
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        NumberSearch(size=3, folder=str(folder))


@pytest.mark.usefixtures("as_users_run_it")
def test_broken_archives_are_named(folder):
    (folder / NAMES[0]).unlink()
    (folder / f"{NAMES[0]}.gz").write_bytes(b"not compressed")
    with pytest.raises(ValueError, match="cannot be read"):
        NumberSearch(size=3, folder=str(folder))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"size": 201}, "size must be at most universe = 200"),
        ({"universe": 1001}, "universe must be at most 1000, as numbers have 3 digits, got 1001"),
        ({"digits": 0}, "digits must be an integer >= 1"),
        ({"shift": -1}, "shift must be an integer >= 0"),
        ({"shift": 8}, "shift must be less than the sides of images, 8 x 8, got 8"),
        ({"split": "validation"}, "split must be one of 'train', 'test'"),
        ({"folder": "nowhere"}, "there is none in 'nowhere'"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named(bad, message):
    with pytest.raises(ValueError, match=message):
        NumberSearch(**bad)
    if "size" not in bad:
        with pytest.raises(ValueError, match=message):
            NumberStream(**bad)


@pytest.mark.usefixtures("as_users_run_it")
def test_compiled_pictures_are_the_same():
    """A compiled step takes the images for constants."""
    task = NumberSearch(size=4, queries=2, shift=2)
    prompts = task.sample(3, seed=0)
    compiled = torch.compile(task.encode, dynamic=False, fullgraph=True, backend="eager")
    assert torch.equal(compiled(prompts.x, prompts.y), task.encode(prompts.x, prompts.y))

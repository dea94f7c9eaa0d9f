"""Tasks that must pass `algoscope.testing.check_task`. New ones are added to the lists here."""

from pathlib import Path

import pytest
import torch

from algoscope.tasks import (
    AutoregressiveRepresentation,
    ChainOfThought,
    Connectivity,
    HardSearch,
    LinearRegression,
    NumberSearch,
    NumberStream,
    RepresentationRegression,
    SphereSearch,
    Task,
    UniformSearch,
    VectorSearch,
    ZipfSearch,
    ZipfStream,
)

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]

TASKS: list[Task] = [
    LinearRegression(dim=4, examples=9),
    LinearRegression(dim=1, examples=3),
    LinearRegression(dim=3, examples=0),
    LinearRegression(dim=3, examples=1, noise=0.5),
    LinearRegression(dim=4, examples=8, covariance="ill-conditioned", rescale=True),
    LinearRegression(dim=2, examples=5, covariance=((2.0, 0.5), (0.5, 1.0)), targets=3),
    RepresentationRegression(dim=4, examples=9),
    RepresentationRegression(dim=1, examples=0, depth=1, noise=0.3, targets=2, representation=1),
    AutoregressiveRepresentation(dim=4, examples=9),
    AutoregressiveRepresentation(dim=1, examples=1, order=1, depth=1, noise=0.0),
    ChainOfThought(dim=4, examples=3, depth=2),
    ChainOfThought(dim=1, examples=0, depth=1),
    Connectivity(nodes=8),
    Connectivity(nodes=7, chance=0.3, largest=3),
    Connectivity(nodes=8, smallest=3, largest=3),
    Connectivity(nodes=8, largest=3, beyond=0.3),
    Connectivity(nodes=8, collection=64, largest=3),
    Connectivity(nodes=9, graphs="two chains", size=3),
    Connectivity(nodes=8, graphs="two cliques"),
    Connectivity(nodes=12, graphs="paths", parts=3),
]

VECTORS = str(Path(__file__).parents[1] / "vectors.npy")  # 40 normal vectors, longer in the first two of 5 directions

SEARCHES: list[Task] = [
    UniformSearch(size=9, queries=2),
    UniformSearch(size=1),
    UniformSearch(size=6, dim=2, queries=3),
    HardSearch(size=15, queries=2),
    HardSearch(size=6, dim=2),
    ZipfSearch(size=5, universe=12, queries=2),
    NumberSearch(size=6, universe=20, queries=2, digits=2),
    SphereSearch(size=7, dim=4),
    VectorSearch(VECTORS, size=8, dim=3, queries=2),
]

STREAMS: list[Task] = [
    ZipfStream(universe=20, items=12),
    ZipfStream(universe=3, items=1, exponent=0.0, ranks="fixed"),
    NumberStream(universe=12, items=9, split="test"),
]


def check_wrong_numbers(task: Task) -> None:
    """Of prompts and of a seed."""
    with pytest.raises(ValueError, match="batch must be an integer >= 1"):
        task.sample(0, seed=0)
    with pytest.raises(ValueError, match="seed must be an integer >= 0"):
        task.sample(1, seed=-1)
    with pytest.raises(ValueError, match="dtype must be a floating-point type"):
        task.sample(1, seed=0, dtype=torch.int64)

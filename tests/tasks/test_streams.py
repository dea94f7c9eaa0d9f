"""Streams: counts against a plain loop, frequencies against Zipf's."""

from collections import Counter

import battery
import numpy as np
import pytest
import torch
from scipy import stats

from algoscope.tasks import ZipfStream


@pytest.mark.parametrize("task", battery.STREAMS, ids=str)
def test_targets_count_what_was_seen_before(task):
    prompts = task.sample(20, seed=0)
    for items, counts in zip(prompts.x[..., 0].tolist(), prompts.y.tolist(), strict=True):
        seen: Counter[float] = Counter()
        for item, count in zip(items, counts, strict=True):
            assert count == seen[item]
            seen[item] += 1


def test_frequencies_are_zipf_s():
    items = ZipfStream(universe=50, items=99, exponent=1.2, ranks="fixed").sample(200, seed=0).x.flatten().long()
    chances = np.arange(1, 51) ** -1.2
    counts, expected = np.bincount(items.numpy(), minlength=50), chances / chances.sum() * len(items)
    assert stats.chisquare(counts, expected).pvalue > 1e-3


def test_random_ranks_make_all_items_alike_over_streams():
    items = ZipfStream(universe=10, items=49).sample(3000, seed=0).x[..., 0].long()
    first = np.bincount(items[:, 0].numpy(), minlength=10)
    assert stats.chisquare(first).pvalue > 1e-3
    largest = torch.stack([torch.bincount(row, minlength=10).amax() for row in items[:200]])
    assert float(largest.double().mean()) > 15  # but not within one


@pytest.mark.parametrize("task", battery.STREAMS, ids=str)
def test_power_is_the_mean_square_of_the_counts(task):
    assert task.power == pytest.approx(float(task.sample(20_000, seed=5).y.square().mean()), rel=0.05)


def test_tokens_are_one_hot():
    task = ZipfStream(universe=6, items=4)
    prompts = task.sample(3, seed=0)
    tokens = task.encode(prompts.x, prompts.y)
    assert torch.equal(tokens.argmax(-1).double(), prompts.x[..., 0])
    assert torch.equal(tokens.sum(-1), torch.ones(3, 5, dtype=torch.float64))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"items": 0}, "items must be an integer >= 1, got 0"),
        ({"universe": 0}, "universe must be an integer >= 1, got 0"),
        ({"exponent": -0.1}, "exponent must be a finite number >= 0"),
        ({"ranks": "new"}, "ranks must be one of 'random', 'fixed', got 'new'"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named(bad, message):
    with pytest.raises(ValueError, match=message):
        ZipfStream(**bad)

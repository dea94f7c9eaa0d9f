"""The benchmark of the index runs where there is no GPU, and its ratios are those of its speeds."""

import pytest
import torch

from benchmarks.index import MEMBERS, SMOKE, queries, training

CPU = torch.device("cpu")


def test_ratios_are_those_of_the_speeds():
    found = training(SMOKE, CPU, seconds=0.01)
    assert [row["members"] for row in found["ours"]] == list(MEMBERS)
    for row in found["ours"]:
        assert row["model_steps_per_s"] == pytest.approx(row["members"] * row["steps_per_s"])
        for name, speed in found["plain_steps_per_s"].items():
            assert row["ratios"][name] == pytest.approx(row["model_steps_per_s"] / speed)


def test_queries_are_counted_for_every_size():
    found = queries(SMOKE, CPU, seconds=0.01)
    assert (found["ours"]["points"], found["ours"]["lookups"]) == (7, 3)
    assert [(row["points"], row["lookups"], row["published"]) for row in found["table"]] == [(8, 3, None)]
    assert all(row["queries_per_s_eager"] > 0 for row in (found["ours"], *found["table"]))

"""What look-ups have found: the nearest read so far, whatever is read again, and no slot."""

import pytest
import torch

import algoscope as ag
from algoscope.matching import compare, found
from algoscope.tasks import LinearRegression, UniformSearch
from algoscope.trace import Prompts, Trace

PROMPTS = Prompts(
    torch.tensor([[[0.0], [1.0], [1.0], [5.0], [1.2], [4.0]]], dtype=torch.float64),
    torch.tensor([[1.0, 3.0]], dtype=torch.float64),
)  # four points, and two queries


def reads(*numbers: tuple[int, int]) -> Trace:
    values = torch.tensor(numbers, dtype=torch.float64)[:, None]
    return Trace("reads", values, tuple(range(1, len(numbers) + 1)), PROMPTS)


def test_a_neighbor_that_was_read_is_found_and_its_copy_counts():
    assert found(reads((3, 0), (2, 3), (0, 0)))[:, 0].tolist() == [[False, False], [True, True], [True, True]]


def test_slots_are_no_points():
    trace = reads((4, 7), (0, 3))
    assert found(trace)[:, 0].tolist() == [[False, False], [False, True]]


def test_searches_can_be_compared_look_up_by_look_up():
    """Binary search agrees with itself and with a k-d tree on a line, and not with a search that knows more."""
    prompts = UniformSearch(size=31).sample(300, seed=0)
    binary, tree, knowing = (
        algorithm.trace(prompts)
        for algorithm in (
            ag.algorithms.BinarySearch(4),
            ag.algorithms.KDTree(4),
            ag.algorithms.InterpolationSearch(4),
        )
    )
    match = compare(tree, binary, measure="agreement")
    assert match.best == (1, 2, 3, 4)
    assert match.similarity.diagonal().tolist() == [1.0] * 4
    assert not any(match.none)
    other = compare(knowing, binary, measure="agreement")
    assert float(other.similarity.diagonal()[:2].max()) < 0.5
    assert float(other.similarity[0, 0]) < 0.2


def test_other_traces_are_named():
    prompts = LinearRegression(dim=2, examples=3).sample(2, seed=0)
    with pytest.raises(ValueError, match="the trace of Zero is not one of look-ups"):
        found(ag.algorithms.Zero().trace(prompts))

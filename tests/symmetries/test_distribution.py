"""Changes that are in distribution give prompts as likely as those of the task: no statistic tells them apart."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from scipy import stats
from torch import Tensor

import algoscope as ag
from algoscope.symmetries import AddQueries, changed
from algoscope.tasks import Connectivity, LinearRegression, NumberSearch, UniformSearch
from algoscope.trace import Prompts

COUNT = 1500
MATRIX = ((2.0, 0.5, 0.0), (0.5, 1.0, 0.0), (0.0, 0.0, 0.3))
TASKS = [
    LinearRegression(dim=3, examples=6),
    LinearRegression(dim=3, examples=4, noise=0.5, targets=2),
    LinearRegression(dim=3, examples=5, covariance="ill-conditioned"),
    LinearRegression(dim=3, examples=5, covariance=MATRIX, noise=0.2),
    UniformSearch(size=5, queries=2),
    NumberSearch(size=4, universe=9, queries=2),
    Connectivity(nodes=6, chance=0.25),
    Connectivity(nodes=7, graphs="paths", parts=3),
    Connectivity(nodes=7, graphs="two chains", size=3),
]
CASES = [
    pytest.param(task, symmetry, id=f"{task}-{symmetry.name}")
    for task in TASKS
    for symmetry in task.symmetries
    if symmetry.in_distribution
]


def statistics(prompts: Prompts) -> dict[str, Tensor]:
    """Numbers of each prompt; those of a graph include how far its nodes reach."""
    x, y = prompts.x, prompts.target_columns
    if prompts.before:
        points, query = x[:, : prompts.before, 0], x[:, prompts.before :, 0]
        known = {"query": query[:, 0], "between": query.diff(dim=-1)[:, 0], "equal": (points == query[:, :1]).sum(1)}
        below = (points < query[:, :1]).sum(1)
        return known | {"first": points[:, 0], "below": below, "nearest": y[:, 0, 0], "spread": points.std(1)}
    if x.shape[1] == x.shape[2] and bool(((x == 0) | (x == 1)).all()):
        known = {"edges": x.sum((1, 2)), "connected": y.sum((1, 2)), "largest": y.sum(2).amax(1)}
        return known | {"first degree": x[:, 0].sum(1), "first component": y[:, 0].sum(1), "first pair": y[:, 0, 1]}
    both, products = torch.cat((x, y), 2), (x[:, :-1].mT @ y[:, :-1])[..., 0]
    known = {"largest": torch.linalg.svdvals(both)[:, 0], "smallest": torch.linalg.svdvals(x)[:, -1]}
    known |= {"first x": x[:, 0, 0], "last x": x[:, -1, 1], "first y": y[:, 0, 0], "last y": y[:, -1, -1]}
    known |= {
        "last size": x[:, -1].norm(dim=1),
        "two": (x[:, 0] * x[:, 1]).sum(1),
        "query": (x[:, 0] * x[:, -1]).sum(1),
    }
    return known | {"mean": (products * x[:, -1]).sum(1), "second": (x[:, :, 0] * x[:, :, 1]).mean(1)}


def smallest_p(found: Prompts, expected: Prompts) -> float:
    pairs = zip(statistics(found).values(), statistics(expected).values(), strict=True)
    tests: list[Any] = [stats.ks_2samp(a.double().numpy(), b.double().numpy(), method="asymp") for a, b in pairs]
    return min(float(each.pvalue) for each in tests)


@pytest.mark.parametrize(("task", "symmetry"), CASES)
def test_changed_prompts_have_the_distribution_of_the_task(task, symmetry):
    change = changed(symmetry, task.sample(COUNT, seed=0))
    for prompts in change.prompts[1:]:
        fresh, found = task.sample(COUNT, seed=1), prompts
        if isinstance(symmetry, AddQueries):  # the last target is that of another query
            fresh, found = (replace(each, y=each.y * (each.y != each.y[:, -1:])) for each in (fresh, found))
        assert smallest_p(found, fresh) > 1e-4


@pytest.mark.parametrize(("task", "symmetry"), CASES)
def test_changed_prompts_are_answered_as_those_of_the_task(task, symmetry):
    """Where they say what the answer is, it is right; and they say so in the numbers of the task."""
    for prompts in changed(symmetry, task.sample(16, seed=3)).prompts:
        assert prompts.power == task.power
        assert prompts.noise == task.noise
        if task.family == "search":
            points, queries = prompts.x[:, : prompts.before, 0], prompts.x[:, prompts.before :, 0]
            distances = (queries[:, :, None] - points[:, None]).abs()
            chosen = distances.gather(2, prompts.y.long()[..., None])[..., 0]
            torch.testing.assert_close(chosen, distances.amin(2))
        if task.family == "graphs":
            right = ag.algorithms.Components().trace(prompts).values[0]
            assert torch.equal(right, prompts.y)


def test_the_statistics_see_what_is_out_of_distribution():
    task = LinearRegression(dim=3, examples=6)
    for symmetry in task.symmetries:
        if not symmetry.in_distribution:
            assert smallest_p(changed(symmetry, task.sample(COUNT, 0)).prompts[1], task.sample(COUNT, 1)) < 1e-6
    stretched = LinearRegression(dim=3, examples=6, covariance=MATRIX)
    turned = changed(ag.symmetries.RotateInputs(), stretched.sample(COUNT, 0)).prompts[1]
    assert smallest_p(turned, stretched.sample(COUNT, 1)) < 1e-6
    assert ag.symmetries.RotateInputs() not in stretched.symmetries
    assert Connectivity(nodes=8, collection=64).symmetries == ()
    assert ag.symmetries.RedrawOutsideComponent() not in Connectivity(nodes=8, largest=3).symmetries

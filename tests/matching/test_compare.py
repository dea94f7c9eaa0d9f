"""Intervals, ties, the null and the errors of the comparison."""

import numpy as np
import pytest
import torch
from scipy import stats

from algoscope.algorithms import ConjugateGradients, GradientDescent, Newton
from algoscope.matching import compare
from algoscope.tasks import LinearRegression
from algoscope.trace import Prompts, Trace

TASK = LinearRegression(dim=5, examples=12)


@pytest.mark.parametrize("method", [Newton(9), GradientDescent(30), ConjugateGradients(5)], ids=str)
@pytest.mark.parametrize("measure", ["errors", "distance", "weights"])
def test_a_trace_compared_with_itself_has_the_diagonal_as_best_match(method, measure):
    trace = method.trace(TASK.sample(64, seed=0))
    match = compare(trace, trace, measure=measure)
    first = 1 if measure == "weights" and method.name != "Newton" else 0  # without weights there is nothing to match
    assert match.best[first:] == match.stages[first:]
    assert match.ties[first:] == tuple((stage,) for stage in match.stages[first:])


def test_the_intervals_are_those_of_a_percentile_bootstrap():
    prompts = TASK.sample(200, seed=1)
    match = compare(Newton(3).trace(prompts), GradientDescent(3).trace(prompts), resamples=4000)
    for i in range(4):
        judge = stats.bootstrap(
            (match.per_sequence[:, i, 2].numpy(),), np.mean, n_resamples=4000, method="percentile", rng=0
        ).confidence_interval
        width = judge.high - judge.low
        assert float(match.low[i, 2]) == pytest.approx(judge.low, abs=0.1 * width)
        assert float(match.high[i, 2]) == pytest.approx(judge.high, abs=0.1 * width)


def test_intervals_cover_the_truth():
    """The mean over 20,000 prompts lies in the 95% interval of 60 others about 95 times in 100."""
    newton, gradient = Newton([3]), GradientDescent([5])
    large = TASK.sample(20_000, seed=10_000)
    truth = float(compare(newton.trace(large), gradient.trace(large), resamples=100).similarity)
    covered = 0
    for trial in range(200):
        prompts = TASK.sample(60, seed=trial)
        match = compare(newton.trace(prompts), gradient.trace(prompts), resamples=500)
        covered += bool(match.low[0, 0] <= truth <= match.high[0, 0])
    assert 0.88 <= covered / 200 <= 0.99


def planted(trace: Trace, steps: list[int], noise: float, seed: int) -> Trace:
    """Some stages of a trace, plus noise of the given size relative to the targets."""
    chosen = trace.select(steps)
    generator = torch.Generator().manual_seed(seed)
    disturbance = torch.randn(chosen.values.shape, generator=generator, dtype=torch.float64)
    values = chosen.values + noise * trace.prompts.normalizer() ** 0.5 * disturbance
    return Trace("planted", values, chosen.stages, trace.prompts)


@pytest.mark.parametrize("noise", [0.02, 0.2])
@pytest.mark.parametrize(
    ("method", "steps"),
    [(Newton(12), [1, 3, 5, 7]), (GradientDescent(20), [1, 3, 8]), (ConjugateGradients(5), [1, 2, 3, 4])],
    ids=["Newton", "GradientDescent", "ConjugateGradients"],
)
def test_a_planted_step_is_in_the_tie_set_and_the_tie_set_is_small(method, steps, noise):
    found, sizes = dict.fromkeys(steps, 0), {step: [] for step in steps}
    for trial in range(100):
        trace = method.trace(TASK.sample(256, seed=1000 + trial))
        match = compare(planted(trace, steps, noise, trial), trace, resamples=300)
        for step, ties in zip(steps, match.ties, strict=True):
            found[step] += step in ties
            sizes[step].append(len(ties))
    assert min(found.values()) >= 95
    assert max(np.median(size) for size in sizes.values()) <= 3


def test_ties_stay_honest_when_there_is_little_evidence():
    """With 16 prompts and heavy noise many steps fit: the set grows, and the planted step stays in it."""
    found, sizes = 0, []
    for trial in range(100):
        trace = GradientDescent(30).trace(TASK.sample(16, seed=3000 + trial))
        match = compare(planted(trace, [10], 0.5, trial), trace, resamples=300)
        found += 10 in match.ties[0]
        sizes.append(len(match.ties[0]))
    assert found >= 95
    assert np.median(sizes) > 5


@pytest.mark.parametrize("method", [Newton(12), GradientDescent(30), ConjugateGradients(5)], ids=str)
def test_a_random_trace_matches_nothing(method):
    """Neither predictions that ignore x, large or small, nor those of random weights; by errors nor by weights."""
    none = {"large": 0, "small": 0, "random weights": 0, "by weights": 0}
    for trial in range(100):
        prompts = TASK.sample(128, seed=2000 + trial)
        known = method.trace(prompts)
        generator = torch.Generator().manual_seed(trial)
        weights = torch.randn(1, *prompts.x.shape, generator=generator, dtype=torch.float64)
        noise = torch.randn(1, *prompts.y.shape, generator=generator, dtype=torch.float64) * prompts.normalizer() ** 0.5
        values = {"large": noise, "small": 0.1 * noise, "random weights": (weights * prompts.x).sum(-1)}
        randoms = {kind: Trace("random", value, (0,), prompts, weights) for kind, value in values.items()}
        for kind, random in randoms.items():
            none[kind] += compare(random, known, measure="errors", resamples=300).none[0]
        none["by weights"] += compare(randoms["large"], known, measure="weights", resamples=300).none[0]
    assert min(none.values()) >= 95


def test_a_trace_beats_the_null_where_it_should():
    trace = Newton(8).trace(TASK.sample(128, seed=0))
    assert not any(compare(planted(trace, [2, 4, 6], 0.1, 0), trace).none)


def test_records_hold_every_cell_once():
    prompts = TASK.sample(32, seed=0)
    match = compare(Newton(2).trace(prompts), GradientDescent([0, 4]).trace(prompts))
    records = match.records()
    assert [(record["stage"], record["step"]) for record in records] == [(i, j) for i in range(3) for j in (0, 4)]
    assert sum(bool(record["best"]) for record in records) == 3
    assert records[5]["similarity"] == float(match.similarity[2, 1])


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"measure": "vibes"}, "measure must be one of 'errors', 'weights', 'distance', 'agreement', got 'vibes'"),
        ({"positions": "t>5"}, "positions must be one of 'all', 't<dim', 't>=dim' or a single position t"),
        ({"positions": 13}, "positions 13 .* these prompts, with t = 0..12, have none"),
        ({"positions": -1}, "positions must be an integer >= 0"),
        ({"first": 13}, "positions 'all' from first = 13 on: these prompts"),
        ({"first": -1}, "first must be an integer >= 0"),
        ({"confidence": 1.0}, "confidence must be between 0 and 1"),
        ({"confidence": 0.0}, "confidence must be a finite number > 0"),
        ({"resamples": 10}, "resamples must be an integer >= 100"),
        ({"seed": -1}, "seed must be an integer >= 0"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    trace = Newton(2).trace(TASK.sample(4, seed=0))
    with pytest.raises(ValueError, match=message):
        compare(trace, trace, **arguments)


def test_traces_of_different_prompts_cannot_be_compared():
    a, b = (Newton(2).trace(TASK.sample(4, seed=seed)) for seed in (0, 1))
    with pytest.raises(ValueError, match="a and b must be traces of the same prompts"):
        compare(a, b)
    same = Prompts(a.prompts.x.clone(), a.prompts.y.clone())
    assert compare(a, Newton(2).trace(same)).best == (0, 1, 2)


def test_one_prompt_is_too_few_for_an_interval():
    trace = Newton(2).trace(TASK.sample(1, seed=0))
    with pytest.raises(ValueError, match="at least 2 prompts"):
        compare(trace, trace)

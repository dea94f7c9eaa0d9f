"""Intervals, ties, the null and the errors of the comparison."""

import numpy as np
import pytest
import torch

from algoscope.algorithms import (
    Chebyshev,
    ConjugateGradients,
    GradientDescent,
    GradientDescentPlusPlus,
    HeavyBall,
    Newton,
    OnlineGradientDescent,
    OrdinaryLeastSquares,
    PreconditionedGradientDescent,
    Ridge,
)
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


def test_the_intervals_are_those_of_a_studentized_bootstrap():
    prompts = TASK.sample(200, seed=1)
    match = compare(Newton(3).trace(prompts), GradientDescent(3).trace(prompts), resamples=4000)
    for i in range(4):
        values = match.per_sequence[:, i, 2].numpy()
        draws = values[np.random.default_rng(0).integers(200, size=(4000, 200))]
        ratios = (draws.mean(1) - values.mean()) / (draws.std(1, ddof=1) / 200**0.5)
        error = values.std(ddof=1) / 200**0.5
        low, high = (values.mean() - error * np.quantile(ratios, tail) for tail in (0.975, 0.025))
        assert float(match.low[i, 2]) == pytest.approx(low, abs=0.1 * (high - low))
        assert float(match.high[i, 2]) == pytest.approx(high, abs=0.1 * (high - low))


@pytest.mark.parametrize(("measure", "sequences"), [("errors", 10), ("errors", 60), ("distance", 20)])
def test_intervals_cover_the_truth(measure, sequences):
    """The mean over 20,000 prompts lies in the 95% interval of a few others about 95 times in 100."""
    newton, gradient = Newton([3]), GradientDescent([5])
    large = TASK.sample(20_000, seed=10_000)
    truth = float(compare(newton.trace(large), gradient.trace(large), measure=measure, resamples=100).similarity)
    covered = 0
    for trial in range(200):
        prompts = TASK.sample(sequences, seed=trial)
        match = compare(newton.trace(prompts), gradient.trace(prompts), measure=measure, resamples=500)
        covered += bool(match.low[0, 0] <= truth <= match.high[0, 0])
    assert 0.9 <= covered / 200 <= 0.99


def test_two_prompts_say_next_to_nothing():
    trace = Newton(8).trace(TASK.sample(2, seed=0))
    match = compare(trace, trace)
    assert bool((match.low[3, :3] == -1).all())
    assert bool((match.high[3, :3] == 1).all())
    assert len(match.ties[3]) == 9


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
    for trial in range(60):
        trace = method.trace(TASK.sample(256, seed=1000 + trial))
        match = compare(planted(trace, steps, noise, trial), trace, resamples=300)
        for step, ties in zip(steps, match.ties, strict=True):
            found[step] += step in ties
            sizes[step].append(len(ties))
    assert min(found.values()) >= 57
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


METHODS = [
    Newton(12),
    GradientDescent(30),
    GradientDescent(30, start="uniform/sqrt(dim)"),
    PreconditionedGradientDescent(10),
    HeavyBall(10),
    Chebyshev(10),
    GradientDescentPlusPlus(6),
    ConjugateGradients(5),
    OnlineGradientDescent(),
    OrdinaryLeastSquares(),
    Ridge(ridge=0.5),
]

TRIALS = 60


def test_a_random_trace_matches_nothing():
    """Neither predictions that ignore x, large or small, nor those of random weights; by errors nor by weights."""
    none = {(method.name, kind): 0 for method in METHODS for kind in ("large", "small", "random weights", "by weights")}
    for trial in range(TRIALS):
        prompts = TASK.sample(100, seed=2000 + trial)
        generator = torch.Generator().manual_seed(trial)
        weights = torch.randn(1, *prompts.x.shape, generator=generator, dtype=torch.float64)
        noise = torch.randn(1, *prompts.y.shape, generator=generator, dtype=torch.float64) * prompts.normalizer() ** 0.5
        values = {"large": noise, "small": 0.1 * noise, "random weights": (weights * prompts.x).sum(-1)}
        stacked = Trace(
            "random", torch.cat(list(values.values())), tuple(values), prompts, weights.expand(3, -1, -1, -1)
        )
        alone = stacked.select(["random weights"])  # all have the same weights
        for method in METHODS:
            known = method.trace(prompts)
            match = compare(stacked, known, measure="errors", resamples=200)
            for kind, said in zip(values, match.none, strict=True):
                none[method.name, kind] += said
            none[method.name, "by weights"] += compare(alone, known, measure="weights", resamples=200).none[0]
    assert min(none.values()) >= 0.95 * TRIALS, none


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
        ({"measure": "vibes"}, "measure must be one of 'errors', .*'agreement', .* got 'vibes'"),
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


@pytest.mark.usefixtures("as_users_run_it")
def test_only_traces_can_be_compared():
    prompts = TASK.sample(4, seed=0)
    with pytest.raises(ValueError, match="a must be a Trace, got Prompts"):
        compare(prompts, prompts)  # pyright: ignore[reportArgumentType]


def test_a_stage_that_could_not_be_measured_has_no_best_step():
    trace = Newton(2).trace(TASK.sample(8, seed=0))
    broken = Trace("broken", torch.full_like(trace.values[:1], torch.nan), ("layer",), trace.prompts)
    match = compare(broken, trace)
    assert (match.best, match.ties, match.none) == ((None,), ((),), (True,))


def test_one_prompt_is_too_few_for_an_interval():
    trace = Newton(2).trace(TASK.sample(1, seed=0))
    with pytest.raises(ValueError, match="at least 2 prompts"):
        compare(trace, trace)

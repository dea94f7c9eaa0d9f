"""Rate laws and candidates, on pairs of algorithms whose relation is known."""

import functools
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.interpolate import CubicSpline

from algoscope.algorithms import (
    ConjugateGradients,
    GradientDescent,
    Newton,
    OnlineGradientDescent,
    OrdinaryLeastSquares,
    Ridge,
)
from algoscope.matching import MEASURES, candidates, compare, rate_law
from algoscope.matching.rates import RateLaw, spline, stopped
from algoscope.tasks import LinearRegression
from algoscope.trace import Trace

PROMPTS = LinearRegression().sample(256, seed=0)
NEWTON = Newton(24).trace(PROMPTS)
GRADIENT = GradientDescent([0, *(2**k for k in range(13))]).trace(PROMPTS)
CONJUGATE = ConjugateGradients(40).trace(PROMPTS)


@pytest.mark.parametrize("trace", [NEWTON, GRADIENT, CONJUGATE], ids=lambda trace: trace.name)
def test_every_method_follows_itself_one_step_a_step(trace):
    law = rate_law(compare(trace, trace))
    assert law.law == "linear"
    assert law.growth == pytest.approx(1, abs=0.01)
    assert law.low <= 1 <= law.high
    assert law.low < law.growth < law.high


def test_a_step_that_predicts_nothing_does_not_bend_the_way_between_the_others():
    """Steps 1 to 5 are the best, alike steps are nearly as good, and step 0 is the null itself, far below."""
    prompts = LinearRegression(3, 6).sample(200, seed=0)
    steps = GradientDescent(11, rate=0.02).trace(prompts)
    match = compare(steps.select([1, 2, 3, 4, 5]), steps)
    stage, step = torch.arange(1, 6).double()[:, None], torch.arange(1, 12).double()
    alike = torch.cat([torch.full((5, 1), 0.5).double(), 1 - 0.02 * torch.log(step / stage).square()], dim=1)
    noise = 0.01 * torch.randn(200, 1, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    values = alike + noise
    law = rate_law(replace(match, per_sequence=values, null_per_sequence=values[:, :, :1]))
    assert law.law == "linear"
    assert law.start == pytest.approx(1, abs=0.1)
    assert law.growth == pytest.approx(1, abs=0.1)


def test_newton_against_gradient_descent_is_exponential():
    law = rate_law(compare(NEWTON, GRADIENT))
    assert law.law == "exponential"
    assert 1.35 < law.low < law.growth < law.high < 1.55  # published: 50 steps for Newton's 10 and 1,300 for its 21
    assert law.lost["linear"] > 10 * law.lost["exponential"]


@pytest.mark.parametrize("every", [1, 2, 3])
def test_the_growth_is_the_planted_number_of_steps_per_stage(every):
    """A model whose layers make `every` Newton steps each, with noise, read against Newton."""
    generator = torch.Generator().manual_seed(0)
    chosen = NEWTON.select(list(range(2, 21, every)))
    noise = 0.05 * 20**0.5 * torch.randn(chosen.values.shape, generator=generator, dtype=torch.float64)
    layers = tuple(f"layer {i + 1}" for i in range(len(chosen)))
    law = rate_law(compare(Trace("model", chosen.values + noise, layers, PROMPTS), NEWTON))
    assert law.law == "linear"
    assert law.growth == pytest.approx(every, abs=0.15)
    assert law.high - law.low < 0.5


def test_a_trace_that_stands_still_is_constant():
    generator = torch.Generator().manual_seed(1)
    noise = torch.randn(6, *PROMPTS.y.shape, generator=generator, dtype=torch.float64)
    law = rate_law(compare(Trace("still", NEWTON.select([8]).values + noise, tuple(range(6)), PROMPTS), NEWTON))
    assert law.law == "constant"
    assert law.low <= 0 <= law.high


def test_a_growth_that_is_neither_is_not_called_either():
    """Gradient descent's steps against Newton's grow like a logarithm."""
    law = rate_law(compare(GRADIENT, NEWTON))
    assert law.law == "undecided"
    assert law.recovered < 0.9


SLOWING = (1, 10, 50, 150, 600, 2000, 4000, 6000)  # ten, five, three, four, three times as many, then 2 and 1.5


@functools.cache
def drawn(seed):
    """The same prompts for all, whose decomposition is found once."""
    return LinearRegression().sample(200, seed=seed)


@functools.cache
def traced(prompts, steps):
    return GradientDescent(steps).trace(prompts)


def descent(steps, last, noise=0.05, seed=0):
    """A model whose layers hold these steps of gradient descent, with noise, against a list to a power of 2."""
    task, prompts = LinearRegression(), drawn(seed)
    listed = (*range(1, 9), 10, 12, 16, 20, 24, 32, 48, 64, 96, *(2**k for k in range(7, last + 1)))
    values = GradientDescent(steps).trace(prompts).values
    disturbance = torch.randn(values.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    model = Trace("model", values + noise * task.power**0.5 * disturbance, tuple(range(len(steps))), prompts)
    return compare(model, traced(prompts, listed), resamples=200)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_a_path_that_slows_down_has_no_law(noise, seed):
    """Equal factors lose little similarity there: late steps are alike, so the path may go far beyond them."""
    law = rate_law(descent(SLOWING, 20, noise, seed))
    assert law.law == "undecided"
    assert law.reason.startswith("the path leaves the best steps where that costs little")
    assert law.recovered > 0.95
    assert law.denied == "linear"  # it is not one of equal factors, but certainly none of equal steps
    assert law.step(7.0) > 20 * SLOWING[-1]


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.2])
def test_a_path_that_runs_into_the_end_of_the_list_has_no_law(noise):
    law = rate_law(descent(SLOWING, 16, noise))
    assert law.law == "undecided"
    assert law.reason == "the path ends with the list of steps, which may have stopped it"
    assert law.step(7.0) == pytest.approx(2**16, rel=0.05)


@pytest.mark.parametrize("last", [14, 20])
@pytest.mark.parametrize(
    ("steps", "expected", "growth"),
    [
        ([2**k for k in range(1, 11)], "exponential", 2),
        ([3**k for k in range(8)], "exponential", 3),
        ([4**k for k in range(7)], "exponential", 4),
        (list(range(2, 32, 3)), "linear", 3),
        (list(range(20, 420, 40)), "linear", 40),
    ],
)
def test_the_same_descent_by_equal_factors_or_steps_has_its_law(steps, expected, growth, last):
    law = rate_law(descent(steps, last))
    assert law.law == expected
    assert law.growth == pytest.approx(growth, rel=0.02)


def test_best_steps_that_noise_scatters_do_not_cost_the_law():
    """At no layer can the bootstrap tell the straight path from the best step."""
    law = rate_law(descent(list(range(20, 420, 40)), 16, noise=0.5, seed=10))
    assert law.law == "linear"
    assert law.growth == pytest.approx(40, rel=0.1)


def test_a_path_ends_with_the_list_where_its_last_step_is_the_nearest():
    straight = RateLaw("linear", "", (), "linear", start=1.0, growth=1.0)
    assert not stopped(straight, 22.0, range(25))
    assert stopped(straight, 22.8, range(25))
    doubling = RateLaw("exponential", "", (), "exponential", start=1.0, growth=2.0)
    powers = [2**k for k in range(11)]
    assert not stopped(doubling, 9.8, powers)  # 891, more than a tenth below 1,024
    assert stopped(doubling, 9.9, powers)
    assert stopped(RateLaw("exponential", "", (), "exponential", start=1024.0, growth=0.5), 3.0, powers)
    assert not stopped(doubling, 9.9, ())


def test_the_growth_does_not_depend_on_the_grid_of_steps():
    """One and eight gradient steps an octave, on the same prompts."""
    newton = Newton(10).trace(PROMPTS)
    laws = []
    for per_octave in (1, 8):
        steps = sorted({0, *(round(2 ** (k / per_octave)) for k in range(11 * per_octave + 1))})
        laws.append(rate_law(compare(newton, GradientDescent(steps).trace(PROMPTS))))
    assert laws[0].growth == pytest.approx(laws[1].growth, rel=0.01)
    assert max(law.low for law in laws) < min(law.high for law in laws)


def test_the_order_of_the_steps_does_not_matter():
    backwards = GRADIENT.select(list(reversed(GRADIENT.stages)))
    law, same = rate_law(compare(NEWTON, backwards)), rate_law(compare(NEWTON, GRADIENT))
    assert (law.law, law.used) == (same.law, same.used)
    assert law.growth == pytest.approx(same.growth)


@pytest.mark.parametrize("steps", [[1, 2, 3, 4, 5, 6], [2, 5, 3, 6, 2, 5]], ids=["rising", "up and down"])
def test_little_evidence_is_not_called_constant(steps):
    """Sixteen prompts and noise as large as the targets: nothing can be said, and nothing is."""
    for seed in range(10):
        trace = Newton(14).trace(LinearRegression(dim=5, examples=12).sample(16, seed=seed))
        generator = torch.Generator().manual_seed(seed)
        values = torch.stack([trace.values[k] for k in steps])
        values = values + 5**0.5 * torch.randn(values.shape, generator=generator, dtype=torch.float64)
        assert rate_law(compare(Trace("model", values, tuple("abcdef"), trace.prompts), trace)).law == "undecided"


def test_the_spline_is_the_natural_cubic_spline():
    nodes, points = torch.tensor([0.0, 0.7, 1.1, 2.0, 3.5], dtype=torch.float64), torch.linspace(0, 3.5, 50).double()
    values = torch.tensor([1.0, -2.0, 0.5, 3.0, 1.0], dtype=torch.float64)
    expected = CubicSpline(nodes.numpy(), values.numpy(), bc_type="natural")(points.numpy())
    np.testing.assert_allclose(spline(nodes, points) @ values, expected, atol=1e-12)


def test_two_stages_decide_nothing():
    law = rate_law(compare(NEWTON.select([3, 6]), NEWTON))
    assert law.law == "undecided"
    assert law.reason.startswith("needs 3 stages before saturation")
    assert np.isnan(law.growth)


def test_stages_at_the_null_or_beyond_the_last_step_are_left_out():
    short = NEWTON.select(list(range(0, 11)))
    law = rate_law(compare(NEWTON, short))
    assert law.used == tuple(range(10))  # from step 10 on the best match is the last there is
    zeros = Trace("idle", torch.zeros(2, *PROMPTS.y.shape, dtype=torch.float64), ("a", "b"), PROMPTS)
    values = torch.cat([zeros.values, NEWTON.values[2:10]])
    idle = Trace("idle first", values, tuple(f"layer {i}" for i in range(10)), PROMPTS)
    law = rate_law(compare(idle, NEWTON))
    assert law.used == tuple(f"layer {i}" for i in range(2, 10))
    assert law.growth == pytest.approx(1, abs=0.05)


def noisy(trace: Trace, noise: float) -> Trace:
    generator = torch.Generator().manual_seed(0)
    disturbance = torch.randn(trace.values.shape, generator=generator, dtype=torch.float64)
    return Trace("model", trace.values + noise * 20**0.5 * disturbance, trace.stages, trace.prompts)


def test_the_planted_algorithm_is_the_only_candidate():
    others = [
        NEWTON,
        GRADIENT,
        CONJUGATE,
        OnlineGradientDescent().trace(PROMPTS),
        OrdinaryLeastSquares().trace(PROMPTS),
    ]
    for truth, stage in ((NEWTON, 8), (CONJUGATE, 5), (GRADIENT, 32)):
        model = noisy(truth.select([stage]), 0.05)
        for measure in ("errors", "distance"):
            found = candidates({b.name: compare(model, b, measure=measure) for b in others}, stage)
            assert (found[0].name, found[0].step) == (truth.name, stage)
            assert {row.name for row in found} == {truth.name}
            assert all(row.low <= row.similarity <= row.high for row in found)


def test_algorithms_that_predict_the_same_are_tied():
    """Without noise ridge with λ = 0 is least squares, and so are conjugate gradients at the end."""
    model = noisy(OrdinaryLeastSquares().trace(PROMPTS), 0.05)
    others = {
        "least squares": OrdinaryLeastSquares().trace(PROMPTS),
        "ridge": Ridge(ridge=0.0).trace(PROMPTS),
        "conjugate gradients": CONJUGATE,
        "gradient descent": GRADIENT,
    }
    found = candidates({name: compare(model, b) for name, b in others.items()}, 0)
    assert {row.name for row in found if not row.behind} == {"least squares", "ridge", "conjugate gradients"}
    assert {row.name for row in found if row.behind} == {"gradient descent"}  # by less than the floor


def test_more_steps_to_choose_from_are_no_advantage():
    """The model is pure noise around the null; a method with 200 steps would find one that fits by luck."""
    generator = torch.Generator().manual_seed(0)
    prompts = LinearRegression(dim=3, examples=3).sample(24, seed=0)
    alarms = 0
    for _ in range(50):
        values = torch.randn(1, *prompts.y.shape, generator=generator, dtype=torch.float64)
        many = torch.randn(200, *prompts.y.shape, generator=generator, dtype=torch.float64) * 0.5
        model = Trace("model", values, (0,), prompts)
        fortunate = Trace("fortunate", many, tuple(range(200)), prompts)
        alarms += bool(candidates({"fortunate": compare(model, fortunate, resamples=100)}, 0))
    assert alarms < 10


def test_what_is_common_to_all_prompts_is_no_candidate():
    """Labels that are mostly zero agree with zeros everywhere, on other prompts as well."""
    generator = torch.Generator().manual_seed(0)
    shape = PROMPTS.y.shape
    truth, lost, luck = (torch.rand(shape, generator=generator) < share for share in (0.1, 0.0, 0.14))
    model, step, zeros = (
        Trace(name, labels.double()[None], (0,), PROMPTS)
        for name, labels in (("model", truth), ("step", truth & ~lost | luck), ("zeros", torch.zeros(shape)))
    )
    found = candidates({each.name: compare(model, each, "agreement") for each in (step, zeros)}, 0)
    assert [each.name for each in found] == ["step"]
    assert found[0].similarity < float((truth == 0).double().mean())


def test_a_stage_must_explain_more_of_what_its_null_leaves_than_it_leaves_open():
    agreement, reads, variance, errors = (
        MEASURES[name] for name in ("agreement", "wrong reads", "unexplained variance", "errors")
    )
    assert agreement.bar(0.6) == pytest.approx(0.8)
    assert reads.bar(0.1) == 0.5
    assert variance.bar(1.0) == 0.5
    assert errors.bar(0.0) is None
    assert [agreement.passes(each, 0.6) for each in (0.79, 0.81)] == [False, True]
    assert [variance.passes(each, 1.0) for each in (0.49, 0.51)] == [True, False]
    assert errors.passes(-1.0, 0.0)


def test_candidates_need_comparisons_of_one_kind():
    with pytest.raises(ValueError, match="matches must hold at least one comparison"):
        candidates({}, 0)
    with pytest.raises(ValueError, match="stage must be one of"):
        candidates({"Newton": compare(NEWTON, NEWTON)}, 99)
    with pytest.raises(ValueError, match=r"they differ in \['measure'\]; pass the same measure to each compare"):
        candidates({"a": compare(NEWTON, NEWTON), "b": compare(NEWTON, NEWTON, measure="distance")}, 3)
    elsewhere = Newton(24).trace(LinearRegression().sample(256, seed=1))
    with pytest.raises(ValueError, match=r"matches must compare one trace in one way; they differ in \['prompts'\]"):
        candidates({"a": compare(NEWTON, NEWTON), "b": compare(elsewhere, elsewhere)}, 3)


def test_a_rival_that_diverged_is_no_candidate():
    wild = GradientDescent([4000], rate=1.0).trace(PROMPTS)
    found = candidates({"wild": compare(NEWTON, wild), "Newton": compare(NEWTON, NEWTON)}, 3)
    assert [row.name for row in found] == ["Newton"]
    assert candidates({"wild": compare(NEWTON, wild)}, 3) == []

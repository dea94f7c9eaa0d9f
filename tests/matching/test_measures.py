"""The measures against their formulas in plain numpy."""

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cosine

from algoscope.algorithms import ConjugateGradients, GradientDescent, Newton, OrdinaryLeastSquares, Zero
from algoscope.matching import compare
from algoscope.tasks import LinearRegression
from algoscope.trace import Prompts, Trace

PROMPTS = LinearRegression(dim=4, examples=8, noise=0.3).sample(12, seed=0)
SEVERAL = LinearRegression(dim=3, examples=6, noise=0.3, targets=2).sample(12, seed=0)


def traces(prompts: Prompts) -> tuple[Trace, Trace]:
    return Newton(3).trace(prompts), GradientDescent(4, rate="best").trace(prompts)


@pytest.mark.parametrize("prompts", [PROMPTS, SEVERAL], ids=["one target", "two targets"])
@pytest.mark.parametrize("first", [0, 1, 3])
def test_similarity_of_errors_is_the_mean_cosine_of_the_residual_sequences(prompts, first):
    a, b = traces(prompts)
    match = compare(a, b, measure="errors", first=first)
    y = prompts.y.numpy()[:, first:]
    for i in range(len(a)):
        for j in range(len(b)):
            ea, eb = (trace.values[k].numpy()[:, first:] - y for trace, k in ((a, i), (b, j)))
            cosines = [1 - cosine(ea[s].ravel(), eb[s].ravel()) for s in range(prompts.batch)]
            np.testing.assert_allclose(match.per_sequence[:, i, j], cosines, atol=1e-12)
            assert float(match.similarity[i, j]) == pytest.approx(np.mean(cosines))


@pytest.mark.parametrize("prompts", [PROMPTS, SEVERAL], ids=["one target", "two targets"])
def test_similarity_of_weights_is_the_mean_cosine_over_positions(prompts):
    a, b = traces(prompts)
    assert a.weights is not None
    assert b.weights is not None
    match = compare(a, b, measure="weights")
    for i in range(len(a)):
        for j in range(1, len(b)):  # step 0 of gradient descent has no direction
            pairs = [
                (a.weights[i, s, t].ravel(), b.weights[j, s, t].ravel())
                for s in range(12)
                for t in range(1, a.prompts.positions)
            ]
            assert float(match.similarity[i, j]) == pytest.approx(np.mean([1 - cosine(u, v) for u, v in pairs]))
    assert match.similarity[:, 0].tolist() == [0.0] * len(a)


def test_distance_is_the_mean_squared_difference_in_units_of_the_targets():
    a, b = traces(PROMPTS)
    match = compare(a, b, measure="distance")
    assert PROMPTS.power == pytest.approx(4.09)
    for i in range(len(a)):
        for j in range(len(b)):
            expected = ((a.values[i, :, 1:] - b.values[j, :, 1:]) ** 2).mean() / 4.09
            assert float(match.similarity[i, j]) == pytest.approx(float(expected))


def test_distance_sees_the_scale_that_a_cosine_hides():
    """At t = 0 of one sequence both predict half and a third of y: same direction of error, different distance."""
    y = PROMPTS.y
    a, b = (Trace(name, y[None] * share, (0,), PROMPTS) for name, share in (("half", 0.5), ("third", 1 / 3)))
    assert float(compare(a, b, measure="errors").similarity) == pytest.approx(1)
    assert float(compare(a, b, measure="distance").similarity) > 0.01


def test_agreement_is_the_share_of_equal_values_and_its_null_are_the_labels_of_another_prompt():
    generator = torch.Generator().manual_seed(0)
    y = (torch.rand(40, 6, generator=generator) < 0.8).long()
    prompts = Prompts(torch.rand(40, 6, 1, generator=generator), y)
    flips = (torch.rand(2, 40, 6, generator=generator) < torch.tensor([0.1, 0.6])[:, None, None]).long()
    right = Trace("right", y[None], (0,), prompts)
    noisy = Trace("noisy", (y[None] + flips) % 2, (1, 2), prompts)
    match = compare(noisy, right, measure="agreement", first=0)
    for i in range(2):
        assert float(match.similarity[i, 0]) == pytest.approx(float((noisy.values[i] == y).double().mean()))
        assert float(match.null[i]) == pytest.approx(float((noisy.values[i] == y.roll(20, 0)).double().mean()))
    assert match.none == (False, True)


def test_at_a_single_position_the_cosine_is_taken_over_the_batch():
    a, b = traces(PROMPTS)
    match = compare(a, b, measure="errors", positions=5)
    for i in range(len(a)):
        for j in range(len(b)):
            ea, eb = (trace.values[k, :, 5] - PROMPTS.y[:, 5] for trace, k in ((a, i), (b, j)))
            assert float(match.similarity[i, j]) == pytest.approx(1 - cosine(ea, eb))


def test_the_interval_at_a_single_position_is_that_of_the_pooled_cosine():
    """The per-sequence influences resample like the cosine itself."""
    prompts = LinearRegression(dim=4, examples=8, noise=0.3).sample(400, seed=1)
    a, b = traces(prompts)
    match = compare(a, b, measure="errors", positions=5, resamples=4000)
    ea, eb = (trace.values[1, :, 5].numpy() - prompts.y[:, 5].numpy() for trace in (a, b))
    draws = np.random.default_rng(0).integers(400, size=(4000, 400))
    plain = (ea[draws] * eb[draws]).sum(1) / np.sqrt((ea[draws] ** 2).sum(1) * (eb[draws] ** 2).sum(1))
    width = np.quantile(plain, 0.975) - np.quantile(plain, 0.025)
    assert float(match.high[1, 1] - match.low[1, 1]) == pytest.approx(width, rel=0.1)


def test_where_residuals_vanish_distance_takes_over():
    """Noiseless least squares makes no error from t = dim on: what is left is rounding, which has no direction."""
    prompts = LinearRegression(dim=4, examples=8).sample(12, seed=0)
    exact, newton = OrdinaryLeastSquares().trace(prompts), Newton(8).trace(prompts)
    for view, measure in (
        ("all", "errors"),
        ("t<dim", "errors"),
        (3, "errors"),
        ("t>=dim", "distance"),
        (6, "distance"),
    ):
        match = compare(newton, exact, positions=view)
        assert match.measure == measure
        assert bool(match.similarity.isfinite().all())
    strict = compare(newton, exact, measure="errors", positions="t>=dim")
    assert bool(strict.similarity.isnan().all())
    assert all(strict.none)


def test_views_keep_the_positions_they_name():
    a, b = traces(PROMPTS)
    below, above = (compare(a, b, measure="distance", positions=view).similarity for view in ("t<dim", "t>=dim"))
    squares = (a.values[:, None] - b.values[None]).square().mean(2) / 4.09
    torch.testing.assert_close(below, squares[:, :, 1:4].mean(-1))
    torch.testing.assert_close(above, squares[:, :, 4:].mean(-1))


def test_a_stage_that_diverged_matches_nothing():
    prompts = LinearRegression(dim=4, examples=8).sample(12, seed=0)
    wild = GradientDescent([1, 2, 5000], rate=1.0).trace(prompts)
    assert not bool(wild.values[2].isfinite().all())
    match = compare(Newton(4).trace(prompts), wild)
    assert bool(match.similarity[:, 2].isnan().all())
    assert 5000 not in {label for ties in match.ties for label in ties}
    assert all(compare(wild, Newton(4).trace(prompts)).none[2:])


def test_the_null_is_what_the_zero_algorithm_predicts():
    a, _ = traces(PROMPTS)
    for measure in ("errors", "distance"):
        match = compare(a, Zero().trace(PROMPTS), measure=measure)
        torch.testing.assert_close(match.null, match.similarity[:, 0])
        assert all(match.none)


def test_weights_are_needed_for_the_similarity_of_weights():
    bare = Trace("bare", torch.zeros(1, *PROMPTS.y.shape), (0,), PROMPTS)
    with pytest.raises(ValueError, match="measure 'weights' needs traces with weights; the trace of bare has none"):
        compare(ConjugateGradients(2).trace(PROMPTS), bare, measure="weights")

"""Intervals hold the truth as often as they say; benchmarks/coverage.py counts it for every kind and at all sizes."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from algoscope.matching import Agreement, compare
from algoscope.matching.bootstrap import interval, ratio_interval, resampling
from algoscope.matching.measures import ErrorSimilarity, UnexplainedVariance
from algoscope.matching.statistics import bounded_means
from algoscope.trace import Prompts, Trace
from benchmarks import populations as of

SETS = 400
ENDS = (0.93 - 0.025, 0.97 + 0.02)  # two standard errors of so many data sets
ONE, TEN = torch.ones(1, dtype=torch.bool), torch.ones(10, dtype=torch.bool)
KINDS = {
    "cosine at one position": of.similarity(ErrorSimilarity(), *of.residuals(0.8, 0.0), ONE),
    "the same of residuals of many sizes": of.similarity(ErrorSimilarity(), *of.residuals(0.8, 0.5), ONE),
    "unexplained variance": of.similarity(UnexplainedVariance(), *of.residuals(0.8, 0.0, 10), TEN),
    "agreement": of.similarity(Agreement(), *of.labels(0.99, 1.0), TEN),
    "ratio": of.ratio(0.0, 1.0),
    "shares": of.bounded(0.9, 10, 1.0),
}


@pytest.mark.parametrize("kind", KINDS)
def test_intervals_of_100_prompts_hold_the_truth(kind):
    low, high, truth = KINDS[kind](100, SETS, torch.Generator().manual_seed(0))
    assert ENDS[0] <= float(((low <= truth) & (truth <= high)).double().mean()) <= ENDS[1]


@pytest.mark.parametrize(("chance", "answers"), [(0.99, 1), (0.999, 10), (0.01, 1)])
def test_an_interval_of_shares_does_not_end_where_all_are_equal(chance, answers):
    low, high, truth = of.bounded(chance, answers, 0.0)(100, SETS, torch.Generator().manual_seed(0))
    assert float(((low <= truth) & (truth <= high)).double().mean()) >= ENDS[0]


def test_equal_shares_leave_room_for_as_many_failures_as_may_have_been_missed():
    """Of 100 sequences without a failure, three in a hundred may fail; the ends are those of Agresti and Coull."""
    ((value, low, high, _),) = bounded_means(torch.ones(100, 1, dtype=torch.float64))
    middle, trials = (100 + 1.96**2 / 2) / (100 + 1.96**2), 100 + 1.96**2
    assert (value, high) == (1.0, 1.0)
    assert low == pytest.approx(middle - 1.96 * (middle * (1 - middle) / trials) ** 0.5, abs=1e-4)
    ((_, low, high, _),) = bounded_means(torch.zeros(100, 1, dtype=torch.float64), least=-1.0)
    assert low == pytest.approx(-high)  # the middle of other bounds


def test_a_match_of_equal_labels_is_not_said_to_be_certain():
    a, b = of.labels(0.9, 0.0)
    chosen = torch.arange(200)
    match = compare(of.some(b, chosen), of.some(b, chosen), measure="agreement", first=0)
    assert float(match.similarity) == float(match.high) == 1
    assert 0.96 < float(match.low) < 0.99
    assert float(compare(of.some(a, chosen), of.some(b, chosen), measure="agreement", first=0).high) < 1


def test_the_interval_of_a_ratio_is_a_studentized_bootstrap_with_the_jackknife():
    """Against plain numpy, resample by resample and with each sequence left out."""
    generator = np.random.default_rng(0)
    above, below = generator.exponential(size=(2, 60))
    draws = resampling(60, 2000, 0)
    columns = torch.tensor(above)[:, None], torch.tensor(below)[:, None]
    ratio, *ends = (float(each) for each in ratio_interval(columns[0], columns[1], draws, 0.95))
    weights, whole = draws.numpy(), above.mean() / below.mean()
    changed = (weights @ above) / (weights @ below)
    influences = (above - changed[:, None] * below) / (weights @ below)[:, None]
    studentized = (changed - whole) / np.sqrt((weights * influences**2).sum(1) / 59)
    left = np.array([np.delete(above, k).mean() / np.delete(below, k).mean() for k in range(60)])
    error = np.sqrt(59 / 60 * ((left - left.mean()) ** 2).sum())
    assert ratio == pytest.approx(whole)
    assert ends == pytest.approx([whole - error * np.quantile(studentized, tail) for tail in (0.975, 0.025)])


def test_a_ratio_to_equal_numbers_is_a_mean():
    values, draws = torch.randn(50, 3, generator=torch.Generator().manual_seed(0)).double(), resampling(50, 500, 0)
    for one, other in zip(
        interval(values, draws, 0.95), interval(values, draws, 0.95, torch.full_like(values, 7.0)), strict=True
    ):
        torch.testing.assert_close(one, other)


def test_unexplained_variance_is_still_one_minus_r_squared():
    a, b = (of.some(each, torch.arange(500)) for each in of.residuals(0.8, 0.5, 10))
    found = float(compare(a, b, measure="unexplained variance", first=0).similarity)
    one, other = ((each.values[0] - each.values[0].mean(0)).flatten().numpy() for each in (a, b))
    assert found == pytest.approx(1 - np.corrcoef(one, other)[0, 1] ** 2, abs=1e-6)


def test_a_match_keeps_what_the_lower_mean_is_made_of():
    prompts = Prompts(torch.ones(40, 3, 1, dtype=torch.float64), torch.zeros(40, 3, dtype=torch.float64), power=1.0)
    values = torch.randn(2, 40, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    a, b = (Trace(name, part[None], (0,), prompts) for name, part in zip("ab", values, strict=True))
    assert compare(a, b, first=0).below is None  # a mean of cosines
    below = compare(a, b, positions=1).below
    assert below is not None
    shares = values[:, :, 1].square() / values[:, :, 1].square().sum(1, keepdim=True)
    torch.testing.assert_close(below[:, 0, 0], shares.mean(0))


def test_the_numbers_on_file_are_within_what_is_wanted():
    """From 100 prompts on, up to three standard errors of the count; shares near 0 or 1 may hold the truth more often.

    Exempt are populations that are marked as heavy, and Wilson's interval, whose dips are known.
    """
    found = json.loads((Path(__file__).parents[2] / "results/controls/coverage.json").read_text())
    low, _ = found["wanted"]
    rows = [row for row in found["rows"] if row["n"] >= 100 and not row["heavy"] and "Wilson" not in row["kind"]]
    assert len(rows) > 80
    short = [(row["kind"], row["data"], row["n"]) for row in rows if row["coverage"] < low - 3 * row["error"]]
    assert short == []

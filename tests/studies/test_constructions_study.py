"""The study of the constructions can fail: a network that is off is said to be."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from scipy.stats import binomtest

from algoscope import algorithms, constructions
from algoscope.instrument import Instrument
from algoscope.studies import study
from algoscope.studies.constructions.claims import CLAIMS, everywhere, exactness, law, nowhere, order_in_c
from algoscope.studies.constructions.controls import CONTROLS, GRADIENT_DESCENT, PLAIN, coinciding, counted, identified
from algoscope.studies.constructions.controls import named as judged_by_the_instrument
from algoscope.studies.constructions.measures import errors, grid, sizes
from algoscope.studies.constructions.subjects import SUBJECTS, Comparison, Size

NEWTON = next(subject for subject in SUBJECTS if subject.name == "Newton")
SIZE = Size(2, 4, 2, 16)


def test_an_error_is_measured_in_the_unit_of_the_answers():
    exact = torch.randn(2, 16, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    network = constructions.newton(2, 4, 2, 1e-3)
    rows = list(errors(Comparison(network, [0, 1], exact * 1.001, exact), seed=0))
    assert [row["step"] for row in rows] == [0, 1]
    for row in rows:
        assert row["error"] == pytest.approx(1e-3)
        assert 0 < row["low"] < row["error"] < row["high"]
    silent = Comparison(network, [0, 1], exact, exact * torch.tensor([0.0, 1.0])[:, None, None])
    assert [row["step"] for row in errors(silent, seed=0)] == [1]  # where nothing is predicted there is no unit


def test_what_is_not_a_number_is_as_bad_as_any():
    exact = torch.ones(1, 16, dtype=torch.float64)
    (row,) = errors(Comparison(constructions.newton(2, 4, 2, 1e-3), [1], exact * torch.nan, exact), seed=0)
    assert row["error"] == row["high"] == 1e6


@pytest.mark.parametrize(
    ("name", "prompts"),
    [("Newton, looped", 1000), ("gradient descent", 1000), ("AR series", 250), ("chain of thought", 200)],
)
def test_the_instrument_names_what_was_planted(name, prompts):
    found = judged_by_the_instrument(CONTROLS[name], prompts, prompts)
    counts, law = found["named"], found["law"]
    assert counts["kept"] == counts["named"] == counts["computes"] == counts["expected"] == 5
    assert counts["alarms"] == counts["denied"] == counts["wrong"] == 0
    assert law["law"] == "linear"
    assert law["low"] <= 1 <= law["high"]


def test_being_sure_of_what_is_not_so_is_told():
    """Of gradient descent at half its rate, where the instrument was told that it is at that rate."""
    control = CONTROLS["gradient descent"]
    shifted = {f"loop {k}": (GRADIENT_DESCENT.name, k + 1) for k in range(2, 5)}
    counts = judged_by_the_instrument(replace(control, expected=shifted, empty=()), 1000, 1000)["named"]
    assert counts["wrong"] == counts["expected"] == 3
    assert counts["kept"] == counts["computes"] == 0


def test_first_steps_of_gradient_descent_at_two_rates_are_one():
    """Both are Xᵀy times a number, and later ones are not; methods that have converged are what they came to."""
    slow, fast = (algorithms.GradientDescent(4, rate=rate) for rate in (0.004, 0.011))
    newton, exact = algorithms.Newton(30, start=1.3e-4), algorithms.OrdinaryLeastSquares()
    instrument = Instrument(PLAIN, [slow, fast, newton, exact], 50, 50, positions=20, others=())
    assert coinciding(instrument, (fast.name, 1)) == {(fast.name, 1), (slow.name, 1)}
    assert coinciding(instrument, (fast.name, 3)) == {(fast.name, 3)}
    assert coinciding(instrument, (newton.name, 2)) == {(newton.name, 2)}
    assert coinciding(instrument, (newton.name, 30)) == {(exact.name, 0)}


def test_a_tie_of_steps_that_coincide_is_right_and_another_is_not():
    slow, fast = (algorithms.GradientDescent(4, rate=rate) for rate in (0.004, 0.011))
    control = CONTROLS["gradient descent"]
    tied = replace(control, listed=[slow, fast], expected={"loop 1": (fast.name, 1)}, empty=())
    instrument, verdict = identified(tied, 1000, 1000)
    (row,) = counted(tied, instrument, verdict)[1]
    assert row["named"]
    assert row["same"] == [[slow.name, 1]]
    wrong = replace(tied, expected={"loop 1": (fast.name, 2)})
    (row,) = counted(wrong, instrument, verdict)[1]
    assert not row["named"]


@pytest.mark.parametrize(("error", "verdict"), [(1e-12, "holds"), (1e-6, "fails")])
def test_a_network_that_is_off_fails_its_theorem(error, verdict):
    rows = [{"seed": s, "step": 1, "error": error, "low": error, "high": error, "n": 16} for s in (0, 1, 2)]
    found = exactness(NEWTON)({"Newton": {"0": {"errors": rows}}})
    assert found is not None
    assert found.verdict == verdict


@pytest.mark.parametrize("how", ["named", "computes"])
def test_a_stage_that_is_named_wrongly_fails_the_control(how):
    right = {"0": {"named": {how: 7, "expected": 7, "wrong": 0}}}
    for count, wrong, verdict in ((7, 0, "holds"), (6, 0, "fails"), (7, 1, "fails")):
        counts = {"0": {"named": {how: count, "expected": 7, "wrong": wrong}}}
        found = everywhere(how)({"Newton": counts, "decoder": right, "sum of tokens": {"0": {}}})
        assert found is not None
        assert found.verdict == verdict
        between = binomtest(count - wrong, 7).proportion_ci(method="wilson")
        assert found.values[0][1:3] == pytest.approx((between.low, between.high), abs=1e-4)
    assert everywhere(how)({"sum of tokens": {"0": {}}}) is None


def test_a_name_for_a_stage_that_holds_nothing_is_an_alarm():
    """As is one of which it is said that there is more to it than the step that it holds."""
    for what, among in (("alarms", "empty"), ("denied", "expected")):
        for alarms, verdict in ((0, "holds"), (1, "fails")):
            counts = {"Newton": {"0": {"named": {what: alarms, among: 10}}}, "sum of tokens": {"0": {}}}
            found = nowhere(what, among)(counts)
            assert found is not None
            assert found.verdict == verdict
            between = binomtest(alarms, 10).proportion_ci(method="wilson")
            assert found.values[0][1:3] == pytest.approx((between.low, between.high), abs=1e-4)


@pytest.mark.parametrize(
    ("told", "low", "verdict"),
    [("linear", 0.9, "holds"), ("linear", 1.1, "fails"), ("undecided", 0.9, "undecided"), ("constant", 0.9, "fails")],
)
def test_another_law_is_wrong(told, low, verdict):
    def measured(told: str, low: float, growth: float | None = 1.2):
        return {"0": {"law": {"law": told, "growth": growth, "low": low, "high": 1.3}, "verdict": {"prompts": 100}}}

    found = law({"Newton": measured(told, low), "decoder": measured("linear", 0.9), "AR series": measured("", 0, None)})
    assert found is not None
    assert (found.verdict, len(found.values)) == (verdict, 2)


def test_an_error_of_first_order_is_told_from_one_of_second():
    rows = [{"c": c, "C": 40.0, "error": c} for c in (1e-2, 1e-3)]
    found = order_in_c({"decoder": {"0": {"grid": rows}}})
    assert found is not None
    assert found.verdict == "fails"
    subject = next(subject for subject in SUBJECTS if subject.name == "gradient descent")
    found = order_in_c({subject.name: {"0": {"grid": list(grid(subject, SIZE, (1e-2, 1e-3), (40.0,)))}}})
    assert found is not None
    assert found.verdict == "holds"


def test_sizes_are_those_of_the_network():
    found = sizes(NEWTON, NEWTON.compared(SIZE, 0), SIZE)
    assert (found["layers"], found["before"], found["looped"], found["after"]) == (5, 5, 0, 0)
    assert (found["stated"], found["stated_heads"]) == (10, None)
    looped = next(subject for subject in SUBJECTS if subject.name == "chain of thought")
    found = sizes(looped, looped.compared(SIZE, 0), SIZE)
    assert (found["before"], found["looped"], found["after"], found["stated"]) == (2, 1, 1, 9)
    assert found["heads"] == found["stated_heads"] == 2


def test_every_theorem_has_a_claim():
    told = " ".join(claim.where for claim in CLAIMS)
    for theorem in (
        "Theorem 1",
        "Lemma 1",
        "B.3",
        "Lemma A.2",
        *(f"Theorem {k}" for k in ("3.1", "3.2", "3.3", "4.1", "4.2")),
    ):
        assert theorem in told


def test_what_the_results_that_ship_say():
    _, results = study.read(Path(__file__).parents[2] / "results" / "constructions")
    assert results["scale"] == "paper"
    assert {claim["id"]: claim["ours"] for claim in results["claims"] if claim["verdict"] != "holds"} == {}
    named = next(claim for claim in results["claims"] if claim["id"] == "named")
    assert named["seeds"] == [1.0] * len(CONTROLS)

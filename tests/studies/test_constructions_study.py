"""The study of the constructions can fail: a network that is off is said to be."""

import shutil
from pathlib import Path

import pytest
import torch

from algoscope import constructions
from algoscope.studies import study
from algoscope.studies.constructions.claims import CLAIMS, exactness, named, order_in_c
from algoscope.studies.constructions.controls import CONTROLS
from algoscope.studies.constructions.controls import named as judged_by_the_instrument
from algoscope.studies.constructions.measures import errors, grid, sizes
from algoscope.studies.constructions.subjects import DEFAULTS, SUBJECTS, Comparison, Size

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


@pytest.mark.parametrize("name", ["Newton, looped", "decoder"])
def test_the_instrument_keeps_what_was_planted(name):
    counts = judged_by_the_instrument(CONTROLS[name], 300, 300)["named"]
    assert counts["kept"] == counts["expected"]
    assert counts["alarms"] == 0


@pytest.mark.parametrize(("error", "verdict"), [(1e-12, "holds"), (1e-6, "fails")])
def test_a_network_that_is_off_fails_its_theorem(error, verdict):
    rows = [{"seed": s, "step": 1, "error": error, "low": error, "high": error, "n": 16} for s in (0, 1, 2)]
    found = exactness(NEWTON)({"Newton": {"0": {"errors": rows}}})
    assert found is not None
    assert found.verdict == verdict


def test_a_stage_that_is_named_wrongly_fails_the_control():
    for kept, alarms, verdict in ((7, 0, "holds"), (6, 0, "fails"), (7, 1, "fails")):
        counts = {"kept": kept, "alone": 5, "expected": 7, "alarms": alarms}
        found = named("Newton", "kept")({"Newton": {"0": {"named": counts}}})
        assert found is not None
        assert found.verdict == verdict


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
    found = sizes(NEWTON, NEWTON.compare(SIZE, 0, *DEFAULTS), SIZE)
    assert (found["layers"], found["before"], found["looped"], found["after"]) == (5, 5, 0, 0)
    assert found["stated"] == 10
    looped = next(subject for subject in SUBJECTS if subject.name == "chains of thought")
    found = sizes(looped, looped.compare(SIZE, 0, *DEFAULTS), SIZE)
    assert (found["before"], found["looped"], found["after"], found["stated"]) == (2, 1, 1, 9)


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


def test_the_page_is_built_from_the_results_that_ship(tmp_path):
    shutil.copy(Path(__file__).parents[2] / "results" / "constructions" / study.RESULTS, tmp_path)
    text = study.build_page(tmp_path).read_text()
    _, results = study.read(tmp_path)
    assert results["scale"] == "paper"
    verdicts = {claim["id"]: claim["verdict"] for claim in results["claims"]}
    assert {verdict for name, verdict in verdicts.items() if not name.startswith("alone")} == {"holds"}
    assert verdicts["alone-newton-causal"] == verdicts["alone-regression-on-features"] == "holds"
    assert verdicts["alone-chains-of-thought"] == "fails"  # its steps are nearly multiples of each other
    assert "changes keep by level, wanted, all; last by end, place, point" in text  # a row of the table of parts

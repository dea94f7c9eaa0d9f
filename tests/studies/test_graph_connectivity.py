"""What the study measures, on models whose answer is known."""

import pytest
import torch

from algoscope.constructions import connectivity
from algoscope.instrument import Instrument
from algoscope.matching.statistics import wilson
from algoscope.models import Disentangled
from algoscope.studies.graph_connectivity import findings, published
from algoscope.studies.graph_connectivity.claims import CLAIMS
from algoscope.studies.graph_connectivity.figures import CENTER, figures
from algoscope.studies.graph_connectivity.measures import (
    BEYOND,
    PATHS,
    WITHIN,
    Sizes,
    asked,
    chains,
    measured,
    moved,
)
from algoscope.studies.graph_connectivity.plan import RUNS
from algoscope.studies.study import Case
from algoscope.tasks import Connectivity

FEW = Sizes(asked=400, traced=60)


@pytest.fixture(scope="module")
def by_hand():
    return {"model": "by hand", "layers": 1} | measured(connectivity(8, 1), 8, FEW)


def test_the_construction_is_named_tripling_and_reaches_three_hops(by_hand):
    paths = Instrument(Connectivity(8), prompts=Connectivity(8, "paths").sample(60, seed=0), fit_on=200)
    layer = next(found for found in paths.identify(connectivity(8, 1)).stages if found.stage == "layer 1")
    assert {found.name for found in layer.candidates if found.step == 1} == {"Tripling"}
    tripled = findings.first_step("Tripling")(by_hand)
    assert tripled is not None
    assert tripled.value == 1
    squared = findings.first_step("Squaring")(by_hand)
    assert squared is not None
    assert squared.value < 1
    assert findings.reach(PATHS)(by_hand).value == 3
    beyond = findings.at_distance(PATHS, 1)(by_hand)
    assert beyond is not None
    assert beyond.value == 0


def test_the_construction_knows_all_within_its_capacity_and_nothing_beyond(by_hand):
    found = {row["graphs"]: row["exact"] for row in by_hand["answers"]}
    assert found[WITHIN] == found[chains(2)] == found[chains(3)] == 1
    assert found[BEYOND] == 0
    assert by_hand["channels"][0]["algorithm"] == pytest.approx(1)
    assert by_hand["channels"][0]["heuristic"] == pytest.approx(0, abs=1e-12)
    assert by_hand["channels"][0]["A"] == [[1, 0], [0, 1]]
    assert moved(connectivity(8, 1), Connectivity(8).sample(60, seed=0))[-1]["cosine"] == pytest.approx(1)


def test_weights_without_a_plan_are_in_no_channel():
    network = Disentangled(1).build(8, 8, 8, torch.Generator().manual_seed(0))
    found = measured(network, 8, Sizes(40, 20))
    assert found["channels"][0]["error"] > 0.9
    tripled = findings.first_step("Tripling")(found)
    assert tripled is not None
    assert tripled.high < 1
    assert [len(found["weights"]["layer 1"]), len(found["weights"]["layer 1"][0])] == [16, 16]


def test_graphs_that_cannot_be_are_not_asked_about():
    assert WITHIN not in asked(4, 3)  # no path is longer than 3
    assert BEYOND in asked(8, 3)
    assert BEYOND not in asked(12, 9)  # too rare
    assert set(asked(20, 9)) >= {chains(9), PATHS}


def test_an_interval_of_a_share_knows_how_many_were_tried():
    assert wilson(1.0, 10)[0] < wilson(1.0, 1000)[0] < wilson(1.0, 1000)[1] == 1
    low, high = wilson(0.5, 100)
    assert (low, high) == pytest.approx((0.404, 0.596), abs=1e-3)


def told(exact: float, right: float = 1.0) -> dict:
    row = {"exact": exact, "low": exact, "high": exact, "n": 100, "accuracy": right}
    return {"answers": [{"graphs": findings.LONG, **row}, {"graphs": WITHIN, **row}]}


def arm(*exact: float, right: float = 1.0) -> dict:
    return {str(seed): told(share, right) for seed, share in enumerate(exact)}


def test_an_arm_is_judged_by_the_spread_of_its_seeds():
    judge = findings.lifts_on_average(findings.exact(findings.LONG), "one", "other", at_least=0.5)
    verdicts = [
        judge({"one": arm(1, 0.9, 1, 1), "other": arm(0, 0, 0.1, 0)}),
        judge({"one": arm(1, 0, 1, 0), "other": arm(0, 0, 1, 0)}),
        judge({"one": arm(0.1, 0, 0.1, 0), "other": arm(0, 0, 0, 0)}),
        judge({"one": arm(1, 1, 1, right=0.6), "other": arm(0, 0, 0)}),  # what has not learned is not judged
    ]
    assert [found.verdict for found in verdicts if found] == ["holds", "undecided", "fails", "undecided"]
    assert judge({}) is None


def test_a_reach_that_is_too_short_proves_nothing_and_one_too_long_refutes():
    def model(right: dict[int, float]) -> dict:
        rows = [{"graphs": PATHS, "distance": d, "accuracy": r, "low": r, "high": r, "n": 9} for d, r in right.items()]
        return {"capacity": 3, "by_distance": rows}

    short, full, far = ({d: float(d <= most) for d in range(6)} for most in (2, 3, 4))
    found = [findings.reaches("run")({"run": {"0": model(right)}}) for right in (short, full, far)]
    assert [one.verdict for one in found if one] == ["undecided", "holds", "fails"]


def test_the_published_curves_are_read():
    assert published.chains(3, 3)[0.2] == 1
    assert published.chains(3, None)[0.2] == 0
    assert len(published.mixtures("exact")) == 21
    assert published.mixtures("algorithm_share")[0.4] == 0.813
    assert published.reach("3 layers")[1_000_000] == 27


def test_the_study_has_what_the_issue_asks_for():
    paper = {run.name: run for run in RUNS["paper"]}
    sweep = [run for run in paper.values() if not isinstance(run, Case) and run.task.collection]
    for limit in (3, 4, None):
        same = {run.task.chance for run in sweep if run.task.largest == limit and not run.task.beyond}
        assert len(same) >= 7
    assert len({run.task.beyond for run in sweep} - {0}) >= 7
    assert [len(paper[f"small standard, {norm}, limit"].seeds) for norm in ("pre-norm", "post-norm")] == [8, 8]
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS)


def test_the_centerpiece_shows_the_two_matrices(by_hand):
    free = {**by_hand, "model": "disentangled", "chance": 0.2, "largest": None, "beyond": 0.0, "steps": 1}
    made = figures({"1 layer, no limit": {"0": free}, "1 layer, limit 3": {"0": {**free, "largest": 3}}})
    assert set(CENTER) <= set(made)
    assert "by-distance" in made

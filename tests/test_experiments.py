"""Changed prompts decide between methods that predict alike: a planted one has its own defect, and no other's."""

import numpy as np
import pytest
import torch

import algoscope as ag
from algoscope import algorithms as known
from algoscope.algorithms import ConjugateGradients, Newton
from algoscope.contracts import Change, Symmetry
from algoscope.controls import Planted
from algoscope.instrument import Instrument
from algoscope.tasks import Connectivity, LinearRegression, UniformSearch
from algoscope.verdict import StageVerdict

TASK = LinearRegression(dim=5, examples=20)
LISTED = [
    Newton(8),
    ConjugateGradients(5),
    known.Lasso(range(1, 9), penalty=4.0),
    known.OnlineGradientDescent(),
    known.Kaczmarz(range(1, 4)),
    known.KernelSmoother(),
    known.NearestNeighbors(),
    known.OrdinaryLeastSquares(),
]
BROKEN = {  # by whom, and the law
    "ConjugateGradients": "add targets",
    "Lasso(penalty=4.0)": "add targets",
    "OnlineGradientDescent": "permute examples",
    "Kaczmarz": "permute examples",
    "KernelSmoother": "flip examples",
    "NearestNeighbors": "flip examples",
}


@pytest.fixture(scope="module")
def instrument() -> Instrument:
    return Instrument(TASK, LISTED, prompts=300, fit_on=300, others=())


def outcomes(found: StageVerdict) -> dict[tuple[str, str], str]:
    return {(each.algorithm, each.law): each.outcome for each in found.tested.experiments}


PLANTED = [
    Newton([2]),
    ConjugateGradients([2]),
    known.Lasso([3], penalty=4.0),
    known.OnlineGradientDescent(),
    known.KernelSmoother(),
    known.NearestNeighbors(),
]


@pytest.mark.parametrize("planted", PLANTED, ids=lambda each: each.name)
def test_a_planted_method_has_its_own_defect(instrument, planted):
    """And those that keep its law are contradicted, while those whose law it keeps are excluded."""
    (found,) = instrument.identify(Planted(planted, TASK, 0.05, seed=2), weights=False).stages
    seen = outcomes(found)
    for name, law in BROKEN.items():
        if name == planted.name:
            assert seen[name, law] == "present"
            assert found.tested.contradicts("OrdinaryLeastSquares")
    for each in found.tested.experiments:
        if BROKEN.get(planted.name) != each.law in BROKEN.values():  # it keeps the law
            assert each.outcome == "absent" if each.own > 0.2 else each.outcome != "present"
    assert planted.name not in found.tested.excluded


def test_what_experiments_exclude_is_no_candidate(instrument):
    """However close it is."""
    verdict = instrument.identify(Planted(Newton([2]), TASK, 0.05), weights=False)
    assert "Excluded by experiment: " in verdict.text
    for found in verdict.stages:
        assert found.tested.excluded
        assert not {each.name for each in found.candidates} & set(found.tested.excluded)


@pytest.mark.parametrize(("planted", "lookup", "outcome"), [("binary", 1, "absent"), ("interpolation", 0, "present")])
def test_binary_and_interpolation_search_are_told_apart_by_fresh_values(planted, lookup, outcome):
    """The first look-up of binary search is the same for all queries and shows no search."""
    task = UniformSearch(size=15, queries=4)
    methods = {"binary": known.BinarySearch(4), "interpolation": known.InterpolationSearch(4)}
    verdict = Instrument(task, list(methods.values()), 200, 200).identify(Planted(methods[planted], task, 0.05))
    found = verdict.stages[lookup]
    assert outcomes(found)["InterpolationSearch", "fresh values (low=-1.0, high=1.0, whole=False)"] == outcome


@pytest.mark.parametrize(("planted", "outcome"), [(known.Components(), "absent"), (known.Degree((2,)), "present")])
def test_the_degree_heuristic_is_told_from_algorithms_by_what_is_outside(planted, outcome):
    task = Connectivity(nodes=8)
    listed = [known.Hops(4), known.Degree((2,)), known.Components()]
    found = Instrument(task, listed, 200, 200, others=()).identify(Planted(planted, task))
    seen = {law: own for (name, law), own in outcomes(found.stages[0]).items() if name.startswith("Degree")}
    assert seen["redraw outside component (chance=0.2)"] == outcome


WALKS = {"Hops": (known.Hops(11), 8), "Squaring": (known.Squaring(4), 4), "Tripling": (known.Tripling(3), 3)}


@pytest.fixture(scope="module")
def of_graphs() -> Instrument:
    listed = [*(walk for walk, _ in WALKS.values()), known.Components()]
    return Instrument(Connectivity(nodes=12, chance=0.14), listed, 150, 150, others=())


@pytest.mark.parametrize("method", WALKS)
def test_ways_to_walk_a_graph_are_told_apart_by_long_paths_and_by_their_steps(of_graphs, method):
    """On the graphs of the task a reach of 7 is as good as any; and each step of squaring is one of hops as well."""
    walk, layer = WALKS[method]
    verdict = of_graphs.identify(Planted(walk, of_graphs.task, 0.05), weights=False)
    assert next(each for each in verdict.methods if each in WALKS) == method
    stage = next(found for found in verdict.stages if found.stage == f"layer {layer}")
    assert stage.agreed == (("Components", 0),)
    (left,) = stage.separated.values()
    assert set(left) == {"Hops", method}
    assert f"On long paths, {' and '.join(left)}" in verdict.text


def test_prompts_that_separate_do():
    """On them Newton and gradient descent at the best rate differ more, by the cosine of their errors in numpy."""

    def apart(task: ag.Task) -> float:
        """From the closest step of gradient descent."""
        prompts = task.sample(200, seed=0)
        newton, gradient = (
            method.trace(prompts).residuals()[:, :, 1:, 0].numpy()
            for method in (known.Newton([4]), known.GradientDescent(range(1, 60), rate="best"))
        )
        units = [rows / np.linalg.norm(rows, axis=-1, keepdims=True) for rows in (newton, gradient)]
        return 1 - float((units[0] * units[1]).sum(-1).mean(-1).max())

    task = LinearRegression(dim=10, examples=20)
    (separating,) = task.separating().values()
    assert separating.power == pytest.approx(task.power)
    assert apart(separating) > 2 * apart(task)


class Shifted(Symmetry):
    """A law of a user: answers stay where all targets grow by 1, which they do not."""

    def change(self, prompts: ag.Prompts, generator: torch.Generator) -> Change:
        return Change((prompts, ag.Prompts(prompts.x, prompts.y + 1)), lambda answers: (answers[1], answers[0]))


def test_a_symmetry_of_ones_own_is_tested():
    class Own(LinearRegression):
        @property
        def symmetries(self):
            return (Shifted(),)

    task = Own(dim=3, examples=8)
    verdict = ag.identify(Planted(Newton([2]), task), task, [Newton(4)], prompts=100, fit_on=100, weights=False)
    assert outcomes(verdict.stages[0]) == {("Newton", "shifted"): "present"}

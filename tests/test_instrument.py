"""The instrument on models whose answer is known."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from huggingface import gpt2

import algoscope as ag
from algoscope.algorithms import (
    ConjugateGradients,
    GradientDescent,
    Newton,
    OnlineGradientDescent,
    OrdinaryLeastSquares,
    Ridge,
)
from algoscope.controls import Planted
from algoscope.instrument import Instrument
from algoscope.matching.statistics import Estimate
from algoscope.models import Transformer
from algoscope.tasks import LinearRegression
from algoscope.wording import spans

TASK = ag.tasks.LinearRegression(dim=5, examples=20)
NOISY = ag.tasks.LinearRegression(dim=5, examples=20, noise=0.5)


@pytest.fixture(scope="module")
def precise() -> Instrument:
    """With prompts enough to tell Newton's third step from Halley's second."""
    return Instrument(TASK, prompts=800, fit_on=300)


@pytest.fixture(scope="module")
def instrument() -> Instrument:
    return Instrument(TASK, prompts=400, fit_on=300)


# Where it is not the whole list that is tested: what is not compared is still in the mixtures.
FEW = [Newton(8), ConjugateGradients(5), GradientDescent(range(1, 60), rate="best"), OrdinaryLeastSquares()]
NEAR = 13  # of the task's list, those of second order, conjugate gradients and gradient methods, which come first


@pytest.mark.parametrize("noise", [0.0, 0.05])
@pytest.mark.parametrize("algorithm", [Newton([1, 3, 5]), ConjugateGradients([1, 2, 3]), OnlineGradientDescent()])
def test_planted_steps_are_named(precise, algorithm, noise):
    planted = Planted(algorithm, TASK, noise, seed=3)
    verdict = precise.identify(planted, weights=False)
    truth = [((algorithm.name, step),) for step in planted.stages.values()]
    assert [found.agreed for found in verdict.stages] == truth
    assert verdict.named == (algorithm.name,)
    assert all(found.certain for found in verdict.stages)
    assert f"compute{'s' if len(verdict.stages) == 1 else ''} {algorithm.name}" in verdict.text


def test_the_shift_of_a_probe_is_not_taken_for_an_algorithm():
    """An exact step misses only the error of the probe itself: of a mixture, no part of that is to be had."""
    verdict = Instrument(TASK, FEW, prompts=600, fit_on=600, seed=1000).identify(
        Planted(Newton([1, 2, 3, 4]), TASK, seed=1000), weights=False
    )
    assert all(found.misfit.gain.high < 0.01 for found in verdict.stages)
    assert all(found.certain for found in verdict.stages)


def test_the_rate_of_a_planted_model_is_found(instrument):
    verdict = instrument.identify(Planted(Newton([2, 4, 6, 8]), TASK, 0.1), weights=False)
    law = verdict.laws["Newton"]
    assert law.law == "linear"
    assert law.growth == pytest.approx(2, abs=0.1)
    assert verdict.laws["GradientDescent"].law == "exponential"


def test_the_same_step_of_several_methods_has_one_name(instrument):
    """The first steps of three methods are the same function up to its scale, and a converged method is its limit."""
    first = instrument.identify(Planted(GradientDescent([1], rate="best"), TASK), weights=False).stages[0]
    assert {("GradientDescent(rate=best)", 1), ("Chebyshev", 1), ("GradientDescentPlusPlus", 1)} <= set(first.spellings)
    assert len(first.agreed) == 1
    assert first.certain
    last = instrument.identify(Planted(ConjugateGradients([5]), TASK), weights=False).stages[0]
    assert last.agreed == (("OrdinaryLeastSquares", 0),)


@pytest.mark.parametrize("algorithm", [Newton([1, 3, 5]), ConjugateGradients([2, 3])])
def test_what_is_not_on_the_list_is_not_claimed(algorithm):
    """The closest of the others is found, and said to be only that."""
    others = [other for other in TASK.algorithms() if type(other) is not type(algorithm)]
    instrument = Instrument(TASK, others[:NEAR], prompts=300, fit_on=300, others=others)
    verdict = instrument.identify(Planted(algorithm, TASK, 0.1), weights=False)
    assert all(found.candidates for found in verdict.stages)
    assert not any(found.certain or found.misfit.noise for found in verdict.stages)
    assert "The match is incomplete" in verdict.text
    assert "compute" not in verdict.text.split("The match is incomplete")[0]


@pytest.mark.parametrize("few", [[OnlineGradientDescent()], [GradientDescent([4])]], ids=str)
def test_a_short_list_does_not_make_certain(few):
    """What else applies is in the mixtures, also where it is not compared."""
    verdict = ag.identify(Planted(Newton([2, 4]), TASK), TASK, algorithms=few, prompts=200, fit_on=200, weights=False)
    assert list(verdict.algorithms) == [few[0].name]
    assert not any(found.misfit.noise for found in verdict.stages if not found.null)
    assert "compute" not in verdict.text


def test_too_little_evidence_is_said_to_be_that(instrument):
    verdict = instrument.identify(Planted(Newton([2, 4]), TASK, 0.05), weights=False)
    first = verdict.stages[0]
    assert first.certain

    def text(**misfit: Estimate) -> str:
        unsure = replace(first, misfit=replace(first.misfit, **misfit))
        assert not unsure.certain
        return replace(verdict, stages=(unsure, *verdict.stages[1:])).text

    assert "More prompts are needed" in text(gain=Estimate(-0.9, -3.1, 0.002, 400))  # fitted to too little
    assert "More prompts are needed" in text(systematic=Estimate(0.01, -0.08, 0.06, 400))
    assert "The match is incomplete" in text(gain=Estimate(0.3, 0.2, 0.4, 400))
    assert "Prompts differ in the step" in text(spread=Estimate(0.3, 0.2, 0.4, 400))


def test_prompts_that_follow_different_steps_are_noticed(instrument):
    """A coin between two steps is near the step between them."""

    def coin(tokens: torch.Tensor) -> dict[str, torch.Tensor]:
        low, high = (Planted(Newton([step]), TASK)(tokens)["layer 1"] for step in (2, 4))
        heads = tokens[:, 0, 0] > 0
        return {"layer 1": torch.where(heads[:, None, None], low, high)}

    found = instrument.identify(coin, weights=False).stages[0]
    assert found.misfit.varies
    assert not found.certain


@pytest.mark.parametrize("growing", [False, True])
def test_gains_that_depend_on_the_position_do_not_change_the_step(instrument, growing):
    planted = Planted(Newton([3]), TASK)
    gains = torch.arange(1, 42) / 10 if growing else torch.ones(41)
    scaled = instrument.identify(lambda t: {"layer 1": gains[:, None] * planted(t)["layer 1"]}, weights=False)
    assert scaled.stages[0].agreed == (("Newton", 3),)


def test_closed_forms_are_found_on_noisy_labels():
    """The predictions of least squares have no finite variance where there are as many examples as dimensions."""
    instrument = Instrument(NOISY, prompts=800, fit_on=300)
    for algorithm in (OrdinaryLeastSquares(), Ridge()):
        found = instrument.identify(Planted(algorithm, NOISY), weights=False).stages[0]
        assert found.agreed == ((algorithm.name, 0),)
    assert found.certain  # of ridge regression


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"algorithms": Newton(3)}, "algorithms must be a list of algorithms"),
        ({"algorithms": ["newton"]}, "algorithms must be a list of algorithms"),
        ({"algorithms": []}, "algorithms must be at least one"),
        ({"stages": "layer 1"}, "stages must be a list of names"),
        ({"model": lambda tokens: {}}, "the model must show its states as tensors by name"),
        ({"model": lambda tokens: tokens}, "the model must show its states as tensors by name"),
        ({"model": lambda tokens: {"a": tokens.numpy()}}, "the model must show its states as tensors by name"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_what_cannot_be_identified_is_told_at_once(bad, message):
    given = {"model": Planted(Newton([1]), TASK), **bad}
    with pytest.raises(ValueError, match=message) as refusal:
        ag.identify(given.pop("model"), TASK, prompts=31, fit_on=31, **given)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "task",
    [
        ag.tasks.LinearRegression(dim=4, examples=10, covariance="ill-conditioned"),  # gradient descent diverges
        ag.tasks.LinearRegression(dim=3, examples=8, targets=2),
        ag.tasks.LinearRegression(dim=1, examples=1),
    ],
    ids=str,
)
def test_tasks_of_all_kinds_are_taken(task):
    network = Transformer(layers=1, heads=1, width=8).build(
        task.inputs, task.outputs, task.length, torch.Generator().manual_seed(0)
    )
    verdict = ag.identify(network, task, prompts=31, fit_on=51)
    assert [found.stage for found in verdict.stages] == ["embedding", "layer 1"]
    assert verdict.record()["text"]


@pytest.mark.parametrize("view", ["t<dim", "t>=dim", 7])
def test_views_by_position(view):
    instrument = Instrument(TASK, FEW, prompts=300, fit_on=300, positions=view)
    verdict = instrument.identify(Planted(Newton([3]), TASK, 0.1))
    assert ("Newton", 3) in verdict.stages[0].agreed


def test_every_stage_that_holds_something_is_in_the_words(instrument):
    class Changing:
        def __call__(self, tokens: torch.Tensor) -> dict[str, torch.Tensor]:
            first = Planted(ConjugateGradients([1]), TASK)(tokens)["layer 1"]
            return {"layer 1": first, **{f"layer {k + 2}": s for k, s in enumerate(
                Planted(Newton([3, 4, 5, 6]), TASK)(tokens).values())}}  # fmt: skip

    text = instrument.identify(Changing(), weights=False).text
    assert "Layer 1 computes ConjugateGradients, step 1." in text
    assert "Layers 2–5 compute Newton" in text
    assert "The steps are 3, 4, 5, 6." in text


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_found_where_nothing_is(instrument, seed):
    shuffled = Planted(Newton([1, 3, 5]), TASK, seed=seed, shuffled=True)
    network = Transformer(layers=2, heads=2, width=16).build(
        TASK.inputs, TASK.outputs, TASK.length, torch.Generator().manual_seed(seed)
    )
    for model in (shuffled, network):
        verdict = instrument.identify(model, weights=False)
        assert all(found.null for found in verdict.stages)
        assert verdict.named == ()
        assert verdict.text.startswith("No stage beats the null")


def test_induced_weights_are_a_kind_of_evidence(instrument):
    verdict = instrument.identify(Planted(Newton([3, 6]), TASK))
    assert [match.best for match in (verdict.matches["weights"]["Newton"],)] == [(3, 6)]
    assert all(found.linearity > 0.9 for found in verdict.stages)


def test_planted_models_are_functions_and_hide_what_they_hold():
    planted, tokens = Planted(Newton([4]), TASK), TASK.encode(*(getattr(TASK.sample(8, seed=0), n) for n in "xy"))
    state = planted(tokens)["layer 1"]
    assert torch.equal(state, planted(tokens)["layer 1"])
    exact = Newton([4]).trace(TASK.sample(8, seed=0)).values[0]
    by_coordinate = [
        torch.corrcoef(torch.stack([state[:, ::2, k].flatten(), exact.flatten()]))[0, 1].abs()
        for k in range(state.shape[-1])
    ]
    assert float(torch.stack(by_coordinate).max()) < 0.7  # rotated: no coordinate is the prediction


def test_a_model_of_ones_own_is_identified_through_the_public_interface():
    class Own(torch.nn.Module):
        """Runs two Newton steps by matrix products and shows them in a wide state."""

        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = torch.nn.Identity(), torch.nn.Identity()

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            prompts = ag.Prompts(tokens[:, ::2, :5], torch.nn.functional.pad(tokens[:, 1::2, 0], (0, 1)))
            values = Newton([3, 6]).trace(prompts).values
            state = torch.zeros(*tokens.shape[:2], 3, dtype=torch.float64)
            for value, stage in zip(values, (self.first, self.second), strict=True):
                state[:, ::2, 1] = value
                state = stage(state.clone())
            return state

    verdict = ag.identify(Own(), TASK, FEW, stages=["first", "second"], prompts=200, fit_on=200)
    assert [found.agreed for found in verdict.stages] == [(("Newton", 3),), (("Newton", 6),)]


def test_the_gpt2_of_huggingface_is_identified_through_the_public_interface():
    """With our weights in it, fed with continuous inputs, it is told what ours is told."""
    model = Transformer(layers=2, heads=2, width=16)
    ours = model.build(TASK.inputs, TASK.outputs, TASK.length, torch.Generator().manual_seed(0)).eval()

    class Theirs(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.read_in, self.gpt2 = ours.read_in, gpt2(ours, layers=2, heads=2)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return self.gpt2(inputs_embeds=self.read_in(tokens)).last_hidden_state

    theirs = ag.identify(Theirs().eval(), TASK, FEW, stages=["gpt2.h.0", "gpt2.h.1"], prompts=60, fit_on=60)
    same = ag.identify(ours, TASK, FEW, stages=["layer 1", "layer 2"], prompts=60, fit_on=60)
    torch.testing.assert_close(theirs.trace.values, same.trace.values, rtol=1e-3, atol=1e-4)
    assert theirs.text == same.text


@pytest.mark.parametrize(
    ("stages", "words"),
    [
        (["layer 1", "layer 2", "layer 4"], "layers 1–2 and layer 4"),
        (["embedding", "layer 1"], "embedding to layer 1"),
        (["layer 3"], "layer 3"),
    ],
)
def test_stages_in_words(stages, words):
    assert spans(stages, ("embedding", "layer 1", "layer 2", "layer 3", "layer 4")) == words


@pytest.mark.usefixtures("as_users_run_it")
def test_wrong_use_is_named_in_one_line():
    planted = Planted(Newton([1]), TASK)
    with pytest.raises(ValueError, match="algorithms must be at least one, and different"):
        ag.identify(planted, TASK, algorithms=[Newton(3), Newton(5)])
    with pytest.raises(ValueError, match="algorithms must be at least one"):
        ag.identify(planted, TASK, algorithms=[])
    with pytest.raises(ValueError, match="algorithms must be of the family of the task, regression; Hops are not"):
        ag.identify(planted, TASK, algorithms=[Newton(3), ag.algorithms.Hops(3)])
    with pytest.raises(ValueError, match="prompts must be an integer >= 2"):
        ag.identify(planted, TASK, prompts=1)
    with pytest.raises(ValueError, match="confidence must be between 0 and 1"):
        ag.identify(planted, TASK, prompts=20, fit_on=20, confidence=1.5)
    with pytest.raises(ValueError, match="task must be a task"):
        ag.identify(planted, "regression")  # pyright: ignore[reportArgumentType]
    for task in (ag.tasks.UniformSearch(7), ag.tasks.ZipfStream(10, 8)):
        with pytest.raises(ValueError, match="task must be one of the family 'regression'"):
            Planted(Newton([1]), task)


@dataclass(frozen=True)
class Half(ag.Algorithm):
    """Of someone else: half of what least squares predicts."""

    def trace(self, prompts):
        exact = OrdinaryLeastSquares().trace(prompts)
        return replace(exact, name=self.name, values=exact.values / 2, weights=None, converged=None)


@dataclass(frozen=True)
class Halved(LinearRegression):
    """A task of someone else, with an algorithm of theirs."""

    def algorithms(self):
        return [Half(), Newton(steps=3)]


def test_a_task_names_the_algorithms_that_its_models_are_compared_with():
    task = Halved(dim=3, examples=8)
    verdict = ag.identify(Planted(Half(), task), task, prompts=100, fit_on=100, weights=False)
    assert list(verdict.algorithms) == ["Half", "Newton"]
    assert verdict.stages[0].steps("Half")


def test_a_task_that_names_none_must_be_given_some():
    class Nameless(LinearRegression):
        def algorithms(self):
            return []

    with pytest.raises(ValueError, match="algorithms must be given: Nameless names none"):
        Instrument(Nameless(dim=2, examples=3), prompts=10, fit_on=10)


def test_applicable_algorithms_are_all_different():
    for task in (TASK, NOISY):
        names = [algorithm.name for algorithm in task.algorithms()]
        assert len(set(names)) == len(names)
    assert "Ridge" not in {algorithm.name for algorithm in TASK.algorithms()}


def test_the_measured_rates_of_the_instrument_hold_what_is_promised():
    """The numbers that `algoscope identify` prints, measured by `algoscope controls`."""
    from algoscope import files, runs

    families = files.read_json(Path(runs.CONTROLS))["rates"]
    assert {"regression", "graphs", "search", "streams"} <= families.keys()
    for rates in families.values():
        assert rates["planted"]["models"] >= 60
        assert rates["planted"]["certain"]["rate"] >= 0.5
        assert rates["planted"]["right_when_certain"]["rate"] >= 0.95
        assert rates["false_alarms"]["models"] >= 20
        assert rates["false_alarms"]["rate"] <= 0.05
    regression = families["regression"]
    assert regression["planted"]["models"] >= 200
    assert regression["planted"]["certain"]["rate"] >= 0.6
    assert regression["false_alarms"]["models"] >= 200

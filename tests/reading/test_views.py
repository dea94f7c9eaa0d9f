"""What is read of a state where it is not the state itself."""

import pytest
import torch

import algoscope as ag
from algoscope.algorithms import ConjugateGradients, GradientDescent, Newton, OrdinaryLeastSquares, Ridge
from algoscope.instrument import Instrument
from algoscope.models import Transformer
from algoscope.reading import LinearProbe, views
from algoscope.tasks import LinearRegression

TASK = LinearRegression(dim=3, examples=10)
GRADIENT = GradientDescent(range(1, 12), rate="best")
LIST = [Newton(6), ConjugateGradients(3), GRADIENT, OrdinaryLeastSquares(), Ridge(0.5)]
HELD = [Newton([2]), ConjugateGradients([2]), OrdinaryLeastSquares(), Ridge(0.5)]
WIDTH = 12


def shown(algorithm, weights: bool):
    """A function to states that hold all steps so far of an algorithm, rotated among distractors: its predictions, or
    its weights.
    """

    def show(tokens: torch.Tensor) -> dict[str, torch.Tensor]:
        trace = algorithm.trace(TASK.decode(tokens.double()))
        values = trace.weights if weights else trace.values[..., None]
        drawn = torch.Generator().manual_seed(int(tokens.abs().sum() * 1e6))
        rotation, _ = torch.linalg.qr(torch.randn(WIDTH, WIDTH, generator=torch.Generator().manual_seed(0)))
        state, states = torch.zeros(*tokens.shape[:2], WIDTH, dtype=torch.float64), {}
        state[..., -3:] = torch.randn(*tokens.shape[:2], 3, generator=drawn)
        for k, value in enumerate(values):
            own = slice(k * value.shape[-1], (k + 1) * value.shape[-1])
            state[:, list(TASK.answering), own] = value
            states[f"layer {k + 1}"] = state @ rotation.double()
        return states

    return show


def instrument(**options: bool) -> Instrument:
    return Instrument(TASK, LIST, prompts=300, fit_on=300, others=(), reader=LinearProbe(**options))


@pytest.mark.parametrize("most", [views.LARGEST, 10], ids=["all products", "of a part"])
@pytest.mark.parametrize("algorithm", HELD, ids=str)
def test_states_that_hold_weights_are_read_through_their_products_with_x(monkeypatch, algorithm, most):
    monkeypatch.setattr(views, "LARGEST", most)
    step = algorithm.trace(TASK.sample(1, seed=0)).stages[0]
    found = instrument(contains_weights=True).identify(shown(algorithm, weights=True), weights=False).stages[0]
    assert found.agreed == ((algorithm.name, step),)
    plain = instrument().identify(shown(algorithm, weights=True), weights=False).stages[0]
    assert plain.null


def test_a_stream_that_keeps_earlier_steps_is_read_by_what_each_stage_adds():
    """The best linear prediction from several steps of gradient descent is none of them."""
    model = shown(GradientDescent([1, 2, 4], rate="best"), weights=False)
    added = instrument(increments=True).identify(model, weights=False)
    assert [found.agreed for found in added.stages] == [((GRADIENT.name, k),) for k in (1, 2, 4)]
    whole = instrument().identify(model, weights=False)
    assert whole.stages[0].agreed == added.stages[0].agreed
    assert not any(found.certain for found in whole.stages[1:])


def test_a_model_that_sees_the_answer_is_refused(monkeypatch):
    def network(mask):
        model = Transformer(layers=1, heads=1, width=8, mask=mask)
        return model.build(TASK.inputs, TASK.outputs, TASK.length, torch.Generator().manual_seed(0))

    few = {"algorithms": [OrdinaryLeastSquares()], "prompts": 31, "fit_on": 31}
    with pytest.raises(ValueError, match="sees the target that it is asked for, that of position 6"):
        ag.identify(network("full"), TASK, positions="all", **few)
    assert ag.identify(network("full"), TASK, positions=10, **few).stages
    assert ag.identify(network("causal"), TASK, **few).stages

    def shows_targets(task, x, y):
        tokens = encode(task, x, y)
        tokens[:, list(task.answering), -1] += y
        return tokens

    encode = LinearRegression.encode
    monkeypatch.setattr(LinearRegression, "encode", shows_targets)
    with pytest.raises(ValueError, match="sees the target that it is asked for, that of position 10"):
        ag.identify(network("causal"), TASK, **few)


class Sees(torch.nn.Module):
    """Its state is the next token, which shows the target, beside a large number; or its own token, with noise."""

    def __init__(self, noise: float = 0.0) -> None:
        super().__init__()
        self.noise, self.own = noise, torch.nn.Identity()

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        state = torch.nn.functional.pad(tokens.roll(-1, 1), (0, 1), value=3e4)
        return self.own(tokens + self.noise * torch.randn_like(tokens) if self.noise else state)


def test_a_leak_is_noticed_beside_a_large_number_and_noise_is_none():
    few = {"stages": ["own"], "algorithms": [OrdinaryLeastSquares()], "prompts": 31, "fit_on": 31}
    with pytest.raises(ValueError, match="stage 'own' sees the target"):
        ag.identify(Sees(), TASK, **few)
    assert ag.identify(Sees(noise=0.1), TASK, **few).stages


def test_increments_are_of_states_as_they_are_and_of_one_width():
    tokens = TASK.encode(TASK.sample(2, seed=0).x, TASK.sample(2, seed=0).y)
    with pytest.raises(ValueError, match="increments need stages of one width"):
        views.increments({"a": tokens, "b": tokens[..., :1]}, tokens)
    network = Transformer(layers=1, heads=1, width=8).build(TASK.inputs, TASK.outputs, TASK.length, torch.Generator())
    with pytest.raises(ValueError, match="norm must be 'none'"):
        instrument(increments=True).identify(network, norm="each")

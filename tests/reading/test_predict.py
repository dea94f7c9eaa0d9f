"""What a model answers, and what its tokens are."""

import math

import pytest
import torch
from battery.models import COUNTERS, INDEXES, task_for

import algoscope as ag
from algoscope.models import Disentangled, Transformer
from algoscope.tasks import Connectivity, LinearRegression

TASK = LinearRegression(dim=2, examples=4)


class Mine(torch.nn.Module):
    """Someone's own network, with dropout."""

    def __init__(self, outputs: int = 1) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Dropout(0.5), torch.nn.Linear(16, outputs))

    def forward(self, tokens):
        return self.layers(tokens)


def test_predictions_are_what_the_network_answers_at_the_tokens_that_answer():
    generator = torch.Generator().manual_seed(0)
    network = Transformer(layers=1, heads=1, width=8).build(TASK.inputs, TASK.outputs, TASK.length, generator)
    prompts = TASK.sample(300, seed=3)
    tokens = TASK.encode(prompts.x, prompts.y).float()
    with torch.no_grad():
        wanted = network(tokens)[:, ::2, 0]  # x and y in turn: x asks
    found = ag.predict(network, TASK, prompts)
    assert found.shape == prompts.y.shape
    assert found.dtype == prompts.y.dtype
    torch.testing.assert_close(found, wanted.double())


@pytest.mark.parametrize(
    "model", [*INDEXES[:2], INDEXES[-1], *COUNTERS, Disentangled(2)], ids=lambda m: type(m).__name__
)
def test_networks_that_answer_fewer_tokens_or_with_choices_predict(model):
    task = Connectivity(nodes=5) if isinstance(model, Disentangled) else task_for(model)
    prompts = task.sample(3, seed=0)
    network = model.build(task.inputs, task.outputs, task.length, torch.Generator().manual_seed(0))
    y_hat = ag.predict(network, task, prompts)
    options = [task.outputs] if task.answer == "choice" else []
    assert list(y_hat.shape) == [*prompts.y.shape, *options]
    assert task.loss(y_hat, prompts.y).isfinite().all()


def test_a_model_of_ones_own_predicts_as_in_evaluation():
    model, prompts = Mine(), TASK.sample(10, seed=0)
    first, second = (ag.predict(model, TASK, prompts) for _ in range(2))
    assert torch.equal(first, second)
    assert model.layers[1].training  # it is left as it was
    doubled = ag.predict(lambda tokens: 2 * model.eval()(tokens), TASK, prompts)
    torch.testing.assert_close(doubled, 2 * first)


def test_chances_are_logits():
    task = Connectivity(nodes=5)
    prompts = task.sample(50, seed=0)
    model = Transformer(layers=1, heads=1, width=8).build(task.inputs, task.outputs, task.length, torch.Generator())
    assert ag.predict(model, task, prompts).shape == prompts.y.shape

    def oracle(tokens):
        x = tokens.double()
        return torch.where(torch.linalg.matrix_power(x, 5) > 0, 3.0, -3.0).to(tokens)

    right = (ag.predict(oracle, task, prompts) > 0) == (prompts.y > 0.5)
    assert bool(right.all())


@pytest.mark.parametrize(
    ("model", "task", "prompts", "words"),
    [
        (3, TASK, TASK.sample(2, 0), "model must be"),
        (Mine(), "linear", TASK.sample(2, 0), "task must be"),
        (Mine(), TASK, 3, "prompts must be Prompts"),
        (Mine(), TASK, LinearRegression(3, 4).sample(2, 0), "prompts must be of the task"),
        (Mine(2), TASK, TASK.sample(2, 0), "must answer with a tensor"),
        (lambda tokens: tokens.mean(), TASK, TASK.sample(2, 0), "must answer with a tensor"),
        (lambda tokens: None, TASK, TASK.sample(2, 0), "must answer with a tensor"),
        (torch.nn.Linear(7, 1), TASK, TASK.sample(2, 0), "cannot take the tokens"),
        (lambda tokens: tokens[..., :1] * math.nan, TASK, TASK.sample(2, 0), "finite"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_what_cannot_predict_is_told(model, task, prompts, words):
    with pytest.raises(ValueError, match=words):
        ag.predict(model, task, prompts)


def test_tokens_are_as_documented():
    """x and y in turn, y in the first coordinate, the last y left out; the tokens of x answer."""
    prompts = TASK.sample(3, seed=0)
    tokens = TASK.encode(prompts.x, prompts.y)
    assert tokens.shape == (3, TASK.length, TASK.inputs) == (3, 9, 2)
    torch.testing.assert_close(tokens[:, ::2], prompts.x)
    torch.testing.assert_close(tokens[:, 1::2, 0], prompts.y[:, :-1])
    assert not tokens[:, 1::2, 1:].any()
    assert list(TASK.answering) == [0, 2, 4, 6, 8]

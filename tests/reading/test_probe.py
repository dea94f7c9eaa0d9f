"""Linear probes against scikit-learn, probes trained by gradient descent, and models of other makes."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression as Judge
from torch import nn
from transformers import GPT2Config, GPT2Model

import algoscope as ag
from algoscope.controls import Planted
from algoscope.models import Transformer
from algoscope.reading import LinearProbe, Moments, fit, induced_weights, open_model
from algoscope.reading.moments import solve
from algoscope.reading.probe import fitting_prompts

TASK = ag.tasks.LinearRegression(dim=3, examples=8)
OTHER = ag.tasks.LinearRegression(dim=4, examples=8)


def built(model: Transformer, seed: int = 0) -> nn.Module:
    generator = torch.Generator().manual_seed(seed)
    return model.build(TASK.inputs, TASK.outputs, TASK.length, generator)


@pytest.mark.parametrize("heaviest", [1.0, 9.0])
def test_maps_from_moments_are_those_of_least_squares(heaviest):
    generator = torch.Generator().manual_seed(0)
    noise, mixing = (torch.randn(n, 6, generator=generator, dtype=torch.float64) for n in (400, 6))
    features = noise @ mixing + 3
    targets = features[:, :2] * 2 - 1 + 0.01 * torch.randn(400, 2, generator=generator, dtype=torch.float64)
    weights = torch.linspace(1, heaviest, 400, dtype=torch.float64)[:, None]
    train, validation = Moments(), Moments()
    for f, t, w in zip(*(each[:300].split(50) for each in (features, targets, weights)), strict=True):
        train.add(f, t, w.sqrt() if heaviest > 1 else None)
    validation.add(features[300:], targets[300:], weights[300:].sqrt())
    found = solve(train, validation)
    judge = Judge().fit(features.numpy(), targets.numpy(), weights[:, 0].numpy())
    np.testing.assert_allclose(found.weights.numpy().T, judge.coef_, atol=2e-3)
    error = (weights * (found(features) - targets).square())[300:].sum(0) / weights[300:].sum()
    torch.testing.assert_close(validation.error(found), error, rtol=1e-6, atol=1e-12)


def test_a_rotation_or_a_shift_of_the_features_changes_nothing():
    generator = torch.Generator().manual_seed(0)
    features, targets = (torch.randn(300, n, generator=generator, dtype=torch.float64) for n in (8, 2))
    rotation, _ = torch.linalg.qr(torch.randn(8, 8, generator=generator, dtype=torch.float64))
    outputs = []
    for seen in (features, features @ rotation, features + 1e5):
        train, validation = Moments(), Moments()
        train.add(seen[:200], targets[:200])
        validation.add(seen[200:], targets[200:])
        outputs.append(solve(train, validation)(seen))
    for other in outputs[1:]:
        torch.testing.assert_close(other, outputs[0], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("constant", [0.0, 1.0, 7.3, 1e-9, 1 / 3])
@pytest.mark.parametrize("count", [300, 4000])
def test_features_that_never_vary_are_read_as_nothing(constant, count):
    """Rounding leaves a variance of sums of their squares that is not there."""
    generator = torch.Generator().manual_seed(0)
    features = constant * torch.tensor([1.0, 0.1, -3.3], dtype=torch.float64).expand(count, -1)
    targets = torch.randn(count, 2, generator=generator, dtype=torch.float64)
    parts = Moments(), Moments()
    for k, (rows, wanted) in enumerate(zip(features.split(100), targets.split(100), strict=True)):
        parts[k % 3 == 0].add(rows, wanted)
    found = solve(*parts)
    assert not found.weights.any()
    torch.testing.assert_close(found(features), targets.mean(0).expand(count, -1), rtol=0, atol=1e-12)


def test_read_outs_are_at_least_as_good_as_trained_ones():
    network = built(Transformer(layers=2, heads=2, width=16))
    states, prompts = open_model(network, TASK), fitting_prompts(TASK, 300, seed=1)
    reading, held_out = fit(states, prompts), TASK.sample(200, seed=0)
    seen, fresh = (states.of(part)["layer 2"].flatten(0, 1) for part in (prompts, held_out))
    read_out = nn.Linear(16, 1).double()
    optimizer = torch.optim.LBFGS(read_out.parameters(), max_iter=500, tolerance_grad=1e-10)

    def loss() -> torch.Tensor:
        return (read_out(seen)[:, 0] - prompts.y.flatten()).square().mean()

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    for _ in range(5):
        optimizer.step(closure)
    with torch.no_grad():
        trained = (read_out(fresh)[:, 0] - held_out.y.flatten()).square().mean()
    ours = (reading.trace(held_out).select(["layer 2"]).values[0] - held_out.y).square().mean()
    assert float(ours) <= 1.001 * float(trained)


@pytest.mark.parametrize("step", [1, 2, 3])
def test_an_exact_planted_step_is_read_up_to_its_scale(step):
    planted = Planted(ag.algorithms.Newton([step]), TASK, reader=LinearProbe(8))
    prompts = TASK.sample(300, seed=0)
    read = ag.probe(planted, TASK, prompts, fit_on=2000).values[0]
    exact = ag.algorithms.Newton([step]).trace(prompts).values[0]
    cosine = (read * exact).sum() / (read.norm() * exact.norm())
    assert float(cosine) > 0.998
    assert float((read * exact).sum() / exact.square().sum()) > 1.05  # a probe of y stretches what it reads


def test_fitting_prompts_are_never_those_of_a_sample():
    assert not TASK.sample(10, seed=1).same_as(fitting_prompts(TASK, 10, seed=1))


class Wrapped(nn.Module):
    """Someone else's model: HuggingFace's GPT-2 over continuous inputs."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.read_in = nn.Linear(TASK.inputs, 16)
        config = GPT2Config(n_embd=16, n_layer=2, n_head=2, n_positions=TASK.length, vocab_size=1)
        self.gpt2 = GPT2Model(config).eval()

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.gpt2(inputs_embeds=self.read_in(tokens)).last_hidden_state


def test_a_module_is_read_at_its_submodules_and_a_function_by_its_names():
    model, prompts = Wrapped().eval(), TASK.sample(20, seed=0)
    by_name = ag.probe(model, TASK, prompts, stages=["gpt2.h.0", "gpt2.h.1"], fit_on=50)

    def show(tokens: torch.Tensor) -> dict[str, torch.Tensor]:
        hidden = model.gpt2(inputs_embeds=model.read_in(tokens), output_hidden_states=True).hidden_states
        return {"first": hidden[1]}

    by_function = ag.probe(show, TASK, prompts, fit_on=50)
    assert by_name.stages == ("gpt2.h.0", "gpt2.h.1")
    assert by_function.stages == ("first",)
    torch.testing.assert_close(by_function.values[0], by_name.values[0], rtol=1e-6, atol=1e-6)


def test_a_block_inside_a_larger_model_is_read_whole():
    """Blocks hand on terms; their sum is the state."""
    network, prompts = built(Transformer(layers=2, heads=2, width=16)), TASK.sample(20, seed=0)
    inside = ag.probe(nn.Sequential(network), TASK, prompts, stages=["0.blocks.0", "0.blocks.1"], fit_on=50)
    alone = ag.probe(network, TASK, prompts, stages=["layer 1", "layer 2"], fit_on=50)
    assert torch.equal(inside.values, alone.values)


def test_all_stages_are_read_alike_unless_asked():
    network, prompts = built(Transformer(layers=2, heads=2, width=16)), TASK.sample(20, seed=0)
    plain, last = (ag.probe(network, TASK, prompts, fit_on=50, norm=norm) for norm in ("none", "last"))
    assert plain.stages == last.stages == ("embedding", "layer 1", "layer 2")
    assert torch.equal(plain.values[:2], last.values[:2])
    assert not torch.equal(plain.values[2], last.values[2])


def test_induced_weights_are_those_of_a_linear_model():
    planted = Planted(ag.algorithms.OrdinaryLeastSquares(), TASK, reader=LinearProbe(1))
    reading = fit(open_model(planted, TASK), fitting_prompts(TASK, 400, seed=1))
    prompts = TASK.sample(6, seed=0)
    found = induced_weights(reading, prompts, (3, 8))
    exact = ag.algorithms.OrdinaryLeastSquares().trace(prompts).weights
    assert found.trace.weights is not None
    assert exact is not None
    for position in (3, 8):
        cosine = torch.cosine_similarity(found.trace.weights[0, :, position], exact[0, :, position], dim=-1)
        assert float(cosine.min()) > 0.999
    assert float(found.linearity.min()) > 0.999
    assert bool(found.trace.weights[0, :, 5].isnan().all())


def test_a_function_that_is_not_linear_in_the_query_is_told():
    def show(tokens: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"bent": torch.cat([tokens[..., :1].square(), tokens[..., :1].roll(1, 1)], dim=-1)}

    reading = fit(open_model(show, TASK), fitting_prompts(TASK, 400, seed=1))
    found = induced_weights(reading, TASK.sample(4, seed=0), (5,))
    assert float(found.linearity.max()) < 0.9


def test_a_module_in_training_is_read_as_in_evaluation_and_left_as_it_was():
    model = nn.Sequential(nn.Linear(TASK.inputs, 8), nn.Dropout(0.5), nn.BatchNorm1d(TASK.length))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    first, second = (ag.probe(model, TASK, TASK.sample(20, seed=0), stages=["2"], fit_on=30) for _ in range(2))
    assert torch.equal(first.values, second.values)
    assert all(module.training for module in model.modules())
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ag.probe(nn.Bilinear(2, 2, 2), TASK, TASK.sample(3, seed=0)), "stages must name the submodules"),
        (lambda: ag.probe(Wrapped(), TASK, TASK.sample(3, seed=0), stages=["head"]), "it has none called"),
        (lambda: ag.probe(built(Transformer(1, 1, 4)), TASK, OTHER.sample(3, 0)), "of the task"),
        (lambda: ag.probe(built(Transformer(1, 1, 4)), OTHER, OTHER.sample(3, 0)), "cannot take the tokens"),
        (lambda: ag.probe(built(Transformer(1, 1, 4)), TASK, TASK.sample(3, 0), fit_on=2), "an integer >= 10"),
        (lambda: ag.probe("gpt", TASK, TASK.sample(3, 0)), "must be a torch module or a function"),  # pyright: ignore
        (lambda: ag.probe(lambda tokens: {"a": tokens[:, 0]}, TASK, TASK.sample(3, 0)), "one state a token"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("as_users_run_it")
def test_wrong_use_is_named_in_one_line(make, message):
    with pytest.raises(ValueError, match=message) as problem:
        make()
    assert "\n" not in str(problem.value)

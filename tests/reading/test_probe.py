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
from algoscope.reading.probe import chunks, fitting_prompts

TASK = ag.tasks.LinearRegression(dim=3, examples=8)
OTHER = ag.tasks.LinearRegression(dim=4, examples=8)


def built(model: Transformer, seed: int = 0) -> nn.Module:
    generator = torch.Generator().manual_seed(seed)
    return model.build(TASK.inputs, TASK.outputs, TASK.length, generator)


def test_maps_from_sums_are_those_of_least_squares():
    generator = torch.Generator().manual_seed(0)
    noise, mixing = (torch.randn(n, 6, generator=generator, dtype=torch.float64) for n in (400, 6))
    features = noise @ mixing + 3
    targets = features[:, :2] * 2 - 1 + 0.01 * torch.randn(400, 2, generator=generator, dtype=torch.float64)
    train, validation = Moments(), Moments()
    for f, t in zip(features[:300].split(50), targets[:300].split(50), strict=True):
        train.add(f, t)
    validation.add(features[300:], targets[300:])
    found, judge = solve(train, validation), Judge().fit(features.numpy(), targets.numpy())
    np.testing.assert_allclose(found.weights.numpy().T, judge.coef_, atol=2e-3)
    error = (found(features[300:]) - targets[300:]).square().mean(0)
    torch.testing.assert_close(validation.error(found), error, rtol=1e-6, atol=1e-12)


def test_a_rotation_of_the_features_changes_nothing():
    generator = torch.Generator().manual_seed(0)
    features, targets = (torch.randn(300, n, generator=generator, dtype=torch.float64) for n in (8, 2))
    rotation, _ = torch.linalg.qr(torch.randn(8, 8, generator=generator, dtype=torch.float64))
    outputs = []
    for seen in (features, features @ rotation):
        train, validation = Moments(), Moments()
        train.add(seen[:200], targets[:200])
        validation.add(seen[200:], targets[200:])
        outputs.append(solve(train, validation)(seen))
    torch.testing.assert_close(*outputs, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("constant", [0.0, 1.0, 7.3, 1e-9])
def test_features_that_never_vary_are_read_as_nothing(constant):
    """Rounding leaves a variance of their sums that is not there."""
    generator = torch.Generator().manual_seed(0)
    features = constant * torch.tensor([1.0, 0.1, -3.3], dtype=torch.float64).expand(300, -1)
    targets = torch.randn(300, 2, generator=generator, dtype=torch.float64)
    parts = Moments(), Moments()
    for part, rows in zip(parts, (slice(0, 200), slice(200, 300)), strict=True):
        part.add(features[rows], targets[rows])
    torch.testing.assert_close(solve(*parts)(features), targets.mean(0).expand(300, -1), rtol=0, atol=1e-12)


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


@pytest.mark.parametrize("at", [7, None])
def test_columns_of_several_coordinates_are_calibrated_as_scikit_learn_does(at):
    """And their mixture is what it finds from the calibrated columns, without a shift."""
    task = ag.tasks.ChainOfThought(dim=3, examples=3, depth=2)
    network = Transformer(layers=1, heads=1, width=8).build(
        task.inputs, task.outputs, task.length, torch.Generator().manual_seed(0)
    )
    states, prompts = open_model(network, task), fitting_prompts(task, 400, seed=1)
    steps = ag.algorithms.OnFeatures(ag.algorithms.GradientDescent(3, rate=0.05), task).trace(prompts).values
    kept = torch.arange(task.positions) == at if at is not None else torch.arange(task.positions) > 0

    def in_chunks(size: int):
        yield from zip(chunks(prompts, size), steps.movedim(0, 2).split(size), strict=True)

    reading = fit(states, prompts, in_chunks, kept)
    calibrations = reading.calibrations()
    mixed = reading.mixtures(calibrations)(steps.movedim(0, 2))
    for read, calibrate, mixture in zip(reading.trace(prompts).values, calibrations, mixed, strict=True):
        wanted, features = read[:, kept].flatten(0, 1).numpy(), []
        for step, ours in zip(steps, calibrate(steps), strict=True):
            column = step[:, kept].flatten(0, 1).numpy()
            features.append(Judge().fit(column, wanted).predict(column))
            np.testing.assert_allclose(ours[:, kept].flatten(0, 1).numpy(), features[-1], atol=1e-8)
        design = np.stack(features, -1).reshape(-1, len(steps))
        best = Judge(fit_intercept=False).fit(design, wanted.ravel()).predict(design)
        off = [np.square(part - wanted.ravel()).mean() for part in (best, mixture[:, kept].flatten().numpy())]
        assert off[0] <= off[1] * (1 + 1e-9)
        assert off[1] <= 1.01 * off[0]
        np.testing.assert_allclose(calibrate.nothing.numpy(), wanted.mean(0), atol=1e-10)


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

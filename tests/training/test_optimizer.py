"""The optimizers against torch's own, and Muon against its textbook form and the singular value decomposition."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from algoscope.models import Recurrent, Transformer
from algoscope.tasks import LinearRegression
from algoscope.training import Member, Settings
from algoscope.training.optimizer import orthogonal
from algoscope.training.population import Population

CPU, TASK, STEPS = torch.device("cpu"), LinearRegression(dim=3, examples=5), 30
MODEL = Transformer(layers=2, heads=2, width=8)


def settings(**changes) -> Settings:
    options = {"batch": 8, "warmup": 10, "clip": 0.5, "weight_decay": 0.1, "precision": "fp64", "curriculum": None}
    return Settings(steps=STEPS, **(options | changes))


class Judge:
    """A plain network, its gradients clipped by torch, its parameters moved by the optimizers that are handed over."""

    def __init__(self, options: Settings, rate: float, model: Transformer = MODEL) -> None:
        self.options, self.rate = options, rate
        self.population = Population.of(model, [Member(TASK, 3, rate)], options, CPU)
        self.network = model.build(TASK.inputs, TASK.outputs, TASK.length, torch.Generator()).double()
        self.network.load_state_dict(self.population.layout.full(self.population.state.parameters))

    @property
    def matrices(self) -> dict[str, torch.nn.Parameter]:
        return {n: p for n, p in self.network.named_parameters() if n.startswith("blocks.") and p.ndim == 2}

    @property
    def others(self) -> list[torch.nn.Parameter]:
        return [p for n, p in self.network.named_parameters() if not (n.startswith("blocks.") and p.ndim == 2)]

    def gradients(self, step: int) -> float:
        """Leaves clipped gradients on the parameters, and returns the learning rate."""
        x, y = TASK.draw(self.options.batch, self.population.generators[:1], torch.float64)
        self.network.zero_grad()
        (TASK.read(self.network(TASK.encode(x, y))) - y).square().mean().backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.options.clip)
        return self.rate * float(self.options.rate(torch.tensor(step)))


def ours(options: Settings, rate: float, steps: int, model: Transformer = MODEL) -> dict[str, torch.Tensor]:
    population = Population.of(model, [Member(TASK, 3, rate)], options, CPU)
    for _ in range(steps):
        population.step()
    return population.layout.full(population.state.parameters)


def test_sgd_is_that_of_torch():
    """Without moments: torch adds the decay to the gradient, which for plain descent is the same."""
    options = settings(optimizer="sgd")
    judge = Judge(options, 1e-1)
    optimizer = torch.optim.SGD(judge.network.parameters(), lr=0.1, weight_decay=0.1)
    for step in range(STEPS):
        optimizer.param_groups[0]["lr"] = judge.gradients(step)
        optimizer.step()
    found = ours(options, 1e-1, STEPS)
    for name, parameter in judge.network.named_parameters():
        torch.testing.assert_close(
            found[name], parameter.detach(), rtol=1e-5, atol=1e-7
        )  # torch clips to a millionth less


def test_adamw_is_that_of_torch():
    options = settings(optimizer="adamw")
    judge = Judge(options, 1e-2)
    optimizer = torch.optim.AdamW(judge.network.parameters(), betas=options.betas, eps=1e-8, weight_decay=0.1)
    for step in range(STEPS):
        optimizer.param_groups[0]["lr"] = judge.gradients(step)
        optimizer.step()
    for name, found in ours(options, 1e-2, STEPS).items():
        torch.testing.assert_close(found, judge.network.state_dict()[name], rtol=1e-5, atol=1e-7)


def textbook_muon(matrix: np.ndarray, gradient: np.ndarray, momentum: np.ndarray, rate: float, options: Settings):
    """One matrix after another: momentum, Nesterov's look ahead, five rounds of the polynomial, decay, the step."""
    beta = options.betas[0]
    momentum[:] = beta * momentum + (1 - beta) * gradient
    ahead = (1 - beta) * gradient + beta * momentum
    x = ahead / (np.linalg.norm(ahead) + 1e-7)
    for _ in range(5):
        x = 3.4445 * x - 4.7750 * (x @ x.T) @ x + 2.0315 * (x @ x.T) @ (x @ x.T) @ x
    step = 0.2 * np.sqrt(max(matrix.shape)) * x
    matrix[:] = (1 - rate * options.weight_decay) * matrix - rate * step


@pytest.mark.parametrize(
    "model", [MODEL, Transformer(2, 2, 8, mlp_ratio=3.0), Transformer(1, 1, 6, activation="bilinear")]
)
def test_muon_is_that_of_the_textbook(model):
    """Queries, keys and values are three matrices, a bilinear MLP begins with two, another of that shape with one."""
    options = settings()
    judge = Judge(options, 1e-2, model)
    rest = torch.optim.AdamW(judge.others, betas=options.betas, eps=1e-8, weight_decay=0.1)
    momenta = {name: np.zeros(parameter.shape) for name, parameter in judge.matrices.items()}
    for step in range(STEPS):
        rest.param_groups[0]["lr"] = rate = judge.gradients(step)
        rest.step()
        for name, parameter in judge.matrices.items():
            parts = 3 if "queries" in name else 2 if "up" in name and model.activation == "bilinear" else 1
            gradient = parameter.grad.numpy()  # pyright: ignore[reportOptionalMemberAccess]
            together = (parameter.detach().numpy(), gradient, momenta[name])
            for matrix, g, moment in zip(*(np.split(part, parts) for part in together), strict=True):
                textbook_muon(matrix, g, moment, rate, options)
    for name, found in ours(options, 1e-2, STEPS, model).items():
        torch.testing.assert_close(found, judge.network.state_dict()[name], rtol=1e-5, atol=1e-7)


def test_muon_is_that_of_torch(monkeypatch):
    """torch's Muon orthogonalizes in 16 bits unless it is kept from it, and knows nothing of stacked matrices."""
    monkeypatch.setattr(torch.Tensor, "bfloat16", lambda tensor: tensor)
    options = settings(weight_decay=0.0, warmup=0)
    judge = Judge(options, 1e-2)
    before = {name: tensor.clone() for name, tensor in judge.network.state_dict().items()}
    optimizer = torch.optim.Muon(
        judge.matrices.values(), adjust_lr_fn="match_rms_adamw", weight_decay=0.0, momentum=0.95
    )
    optimizer.param_groups[0]["lr"] = judge.gradients(0)
    optimizer.step()
    for name, found in ours(options, 1e-2, 1).items():
        if "output.weight" in name or "up.weight" in name or "down.weight" in name:
            step, wanted = found - before[name], judge.network.state_dict()[name] - before[name]
            torch.testing.assert_close(step, wanted, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("shape", [(8, 8), (4, 16), (16, 64)])
def test_orthogonal_keeps_singular_vectors_and_levels_singular_values(shape):
    matrices = torch.randn(20, *shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    u, values, v = np.linalg.svd(matrices.numpy(), full_matrices=False)
    inner = np.swapaxes(u, 1, 2) @ orthogonal(matrices).numpy() @ np.swapaxes(v, 1, 2)
    diagonal = np.diagonal(inner, axis1=1, axis2=2)
    clear = values / np.linalg.norm(values, axis=1, keepdims=True) > 0.005
    assert diagonal[clear].min() > 0.68
    assert diagonal.max() < 1.21
    assert np.abs(inner - np.stack([np.diag(d) for d in diagonal])).max() < 1e-9


def test_a_network_without_blocks_is_moved_by_adamw():
    population = Population.of(Recurrent(layers=1, width=4), [Member(TASK)], settings(), CPU)
    assert population.layout.muon == 0
    assert population.state.second_moment.shape == population.state.parameters.shape


def test_an_engine_may_try_more_steps_than_a_short_run_has():
    population = Population.of(MODEL, [Member(TASK)], Settings(steps=1, batch=2), CPU)
    for _ in range(3):
        population.step()
    assert int(population.state.step) == 3
    assert torch.isfinite(population.state.parameters).all()


@pytest.mark.parametrize(("model", "moved"), [(MODEL, False), (replace(MODEL, attention="linear"), True)])
def test_what_changes_no_answer_is_left_alone(model, moved):
    """A vector that is added to all keys: its gradient is rounding alone, which AdamW would follow at full speed."""
    found = ours(settings(precision="fp32", weight_decay=0.0, warmup=0), 1e-2, STEPS, model)
    for layer in range(model.layers):
        queries, keys, values = found[f"blocks.{layer}.attention.queries_keys_values.bias"].chunk(3)
        assert queries.abs().min() > 0
        assert values.abs().min() > 0
        assert bool(keys.any()) == moved

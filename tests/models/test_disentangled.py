"""The disentangled transformer against its definition, in plain numpy."""

import battery
import numpy as np
import pytest
import torch
from torch.func import functional_call

from algoscope.models import Disentangled
from algoscope.models.disentangled import DisentangledNetwork
from algoscope.tasks import Connectivity, LinearRegression
from algoscope.training import Member, Settings
from algoscope.training.population import Population


def build(model: Disentangled, nodes: int, seed: int = 0) -> DisentangledNetwork:
    return model.build(nodes, nodes, nodes, torch.Generator().manual_seed(seed)).double()


def plain(network: DisentangledNetwork, graph: np.ndarray) -> list[np.ndarray]:
    """The stream after each stage, as it is defined."""
    states = [np.concatenate([np.eye(len(graph)), graph], axis=1)]
    for block in network.blocks:
        state, weight = states[-1], block.get_parameter("weight").detach().numpy()
        scores = np.maximum(state @ weight @ state.T, 0) / len(graph)
        states.append(np.concatenate([state, scores @ state], axis=1))
    return states


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("nodes", [1, 5, 8])
def test_stages_and_answers_are_as_defined(layers, nodes):
    network = build(Disentangled(layers, sharpness=2.0, floor=0.01, spread=0.5), nodes)
    x = Connectivity(nodes, chance=0.3).sample(3, seed=0).x
    outputs, states = network.run(x, network.stages)
    for b, graph in enumerate(x.numpy()):
        expected = plain(network, graph)
        for stage, state in zip(network.stages, expected, strict=True):
            np.testing.assert_allclose(states[stage][b].detach(), state, rtol=1e-12, atol=1e-14)
        total = expected[-1].reshape(nodes, -1, nodes).sum(1)
        chance = 1 - 0.99 * np.exp(-2.0 * total)
        np.testing.assert_allclose(torch.sigmoid(outputs[b]).detach(), chance, rtol=1e-9, atol=1e-12)


def test_the_read_out_answers_at_every_stage():
    network = build(Disentangled(2, spread=0.5), 6)
    x = Connectivity(6, chance=0.3).sample(2, seed=0).x
    _, states = network.run(x, network.stages)
    first = network.read_out(states["embedding"])
    expected = 1 - (1 - 1e-3) * torch.exp(-5.0 * (x + torch.eye(6)))
    torch.testing.assert_close(torch.sigmoid(first), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("layers", "nodes", "count"), [(1, 8, 256), (2, 24, 11_520), (3, 64, 344_064)])
def test_sizes_are_the_paper_s(layers, nodes, count):
    network = build(Disentangled(layers), nodes)
    assert network.parameter_count == count
    assert network.read_out.in_features == 2 ** (layers + 1) * nodes


def test_the_blocks_of_the_stream_have_names():
    network = build(Disentangled(2, spread=0.4), 3)
    assert list(network.places) == ["I", "A", "S1 I", "S1 A", "S2 I", "S2 A", "S2 S1 I", "S2 S1 A"]
    x = Connectivity(3, chance=0.5).sample(1, seed=0).x
    state = network.run(x, ["layer 2"])[1]["layer 2"]
    assert torch.equal(state[..., network.places["A"].where], x)
    first = state[..., network.places["S1 I"].where]
    torch.testing.assert_close(state[..., network.places["S1 A"].where], first @ x)
    second = state[..., network.places["S2 I"].where]
    torch.testing.assert_close(state[..., network.places["S2 S1 A"].where], second @ first @ x)


def test_logits_are_finite_in_32_bits_and_have_the_paper_s_gradient():
    """dL/dZ = α(1 − R/φ)."""
    network = build(Disentangled(1, sharpness=5.0, floor=1e-3), 4).float()
    total = torch.tensor([0.0, 1e-6, 0.1, 1.0, 40.0, 1e6, 1e20, 0.5, 2.0])
    total = total.reshape(3, 3).requires_grad_()
    for target in (0.0, 1.0):
        logits = network.read_out.logits(total)
        assert bool(logits.isfinite().all())
        loss = torch.nn.functional.binary_cross_entropy_with_logits(
            logits, torch.full_like(logits, target), reduction="sum"
        )
        (gradient,) = torch.autograd.grad(loss, total)
        chance = 1 - (1 - 1e-3) * torch.exp(-5.0 * total.detach().double())
        torch.testing.assert_close(gradient.double(), 5.0 * (1 - target / chance), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_each_member_gives_what_it_gives_alone(layers):
    networks = [build(Disentangled(layers, spread=0.5), 5, seed) for seed in range(3)]
    each = [dict(network.named_parameters()) for network in networks]
    stacked = {name: torch.stack([own[name] for own in each]).detach().requires_grad_() for name in each[0]}
    x = Connectivity(5, chance=0.3).sample(12, seed=0).x.unflatten(0, (3, 4))
    together = functional_call(networks[0], stacked, (x,))
    together.square().sum().backward()
    for i, network in enumerate(networks):
        alone = network(x[i])
        torch.testing.assert_close(together[i], alone, rtol=1e-12, atol=1e-12)
        alone.square().sum().backward()
        for name, parameter in network.named_parameters():
            gradient = stacked[name].grad
            assert gradient is not None
            torch.testing.assert_close(gradient[i], parameter.grad, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw", "muon"])
def test_a_population_trains_as_its_members_would_alone(optimizer):
    """Also on tasks with other restrictions, which draw pools of other sizes."""
    free, limited = Connectivity(8), Connectivity(8, largest=3)
    members = [Member(free, 0, 1e-2), Member(limited, 1, 1e-2), Member(limited, 2, 2e-2), Member(free, 0, 5e-3)]
    settings = Settings(steps=40, batch=16, warmup=0, precision="fp64", optimizer=optimizer, curriculum=None)

    def trained(some: list[Member]) -> Population:
        population = Population.of(Disentangled(2), some, settings, torch.device("cpu"))
        for _ in range(40):
            population.step()
        return population

    together = trained(members).state
    for i, member in enumerate(members):
        alone = trained([member]).state
        torch.testing.assert_close(together.parameters[i], alone.parameters[0], rtol=1e-7, atol=1e-9)
        torch.testing.assert_close(together.losses[:40, i], alone.losses[:40, 0], rtol=1e-7, atol=0)
        assert float(alone.losses[39, 0]) < float(alone.losses[0, 0])


def test_in_16_bits_only_the_scores_are_rounded():
    settings = Settings(steps=2, batch=8, warmup=0, precision="bf16", optimizer="adamw", curriculum=None)
    for members in (1, 2):
        population = Population.of(Disentangled(2), [Member(Connectivity(8), k) for k in range(members)], settings,
                                torch.device("cpu"))  # fmt: skip
        population.step()
        assert bool(population.state.losses[0].isfinite().all())
        assert population.state.losses.dtype == torch.float32


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"layers": 0}, "layers must be an integer >= 1, got 0"),
        ({"sharpness": 0.0}, "sharpness must be a finite number > 0"),
        ({"floor": 0.0}, "floor must be a finite number > 0"),
        ({"floor": 0.5}, "floor must be less than 0.5"),
        ({"spread": -1.0}, "spread must be a finite number >= 0"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named(bad, message):
    with pytest.raises(ValueError, match=message):
        Disentangled(**bad)


@pytest.mark.usefixtures("as_users_run_it")
def test_what_is_no_graph_is_refused():
    task = LinearRegression(dim=3, examples=2)
    with pytest.raises(ValueError, match="Disentangled takes a graph"):
        Disentangled().build(task.inputs, task.outputs, task.length, torch.Generator())
    with pytest.raises(ValueError, match="tokens must be 5 of 5 coordinates"):
        build(Disentangled(), 5)(battery.draw_tokens(2, 4, inputs=5))

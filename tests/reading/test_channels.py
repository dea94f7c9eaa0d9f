"""The channels of weights against least squares in numpy, and states against their relabeling."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from algoscope.models import Disentangled
from algoscope.reading import channels, equivariance
from algoscope.tasks import Connectivity


def kron(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.kron(a.contiguous(), b)


@given(st.integers(2, 9), st.integers(1, 4), st.integers(0, 2**20))
@settings(deadline=None, max_examples=40)
def test_the_projection_is_least_squares(nodes, blocks, seed):
    weight = torch.randn(blocks * nodes, blocks * nodes, generator=torch.Generator().manual_seed(seed)).double()
    found = channels(weight, nodes)
    same, ones = torch.eye(nodes).double(), torch.ones(nodes, nodes).double()
    columns = []
    for part in (same, ones):
        for k in range(blocks**2):
            unit = torch.zeros(blocks, blocks).double()
            unit.view(-1)[k] = 1
            columns.append(kron(unit, part).flatten().numpy())
    fitted, *_ = np.linalg.lstsq(np.stack(columns, axis=1), weight.flatten().numpy(), rcond=None)
    np.testing.assert_allclose(found.algorithm.flatten(), fitted[: blocks**2], atol=1e-12)
    np.testing.assert_allclose(found.heuristic.flatten(), fitted[blocks**2 :], atol=1e-12)
    parts = kron(found.algorithm, same), kron(found.heuristic, ones)
    power = weight.square().sum()
    torch.testing.assert_close(found.algorithm_share, (weight * parts[0]).sum() / power)
    torch.testing.assert_close(found.heuristic_share, (weight * parts[1]).sum() / power)
    torch.testing.assert_close(found.error, (weight - parts[0] - parts[1]).norm() / power.sqrt())
    torch.testing.assert_close(found.algorithm_share + found.heuristic_share, 1 - found.error.square())


def test_pure_channels_are_all_of_the_weights():
    a = torch.tensor([[1.0, -2.0], [0.5, 3.0]])
    own, crossing = (channels(kron(a, part), 4) for part in (torch.eye(4), torch.ones(4, 4)))
    torch.testing.assert_close(own.algorithm, a.double())
    torch.testing.assert_close(crossing.heuristic, a.double())
    assert [float(own.algorithm_share), float(own.heuristic_share), float(own.error)] == pytest.approx([1, 0, 0])
    assert [float(crossing.algorithm_share), float(crossing.heuristic_share)] == pytest.approx([0, 1])


def test_members_are_read_together():
    weights = torch.randn(3, 16, 16, generator=torch.Generator().manual_seed(0))
    together = channels(weights, 8)
    for i, weight in enumerate(weights):
        alone = channels(weight, 8)
        for name in ("algorithm", "heuristic", "algorithm_share", "heuristic_share", "error"):
            torch.testing.assert_close(getattr(together, name)[i], getattr(alone, name))


def test_random_weights_have_next_to_nothing_in_the_channels():
    """8 of 256 directions: 3%, and an error of .984, where Figure 3 of Ye et al. begins."""
    found = channels(torch.randn(200, 16, 16, generator=torch.Generator().manual_seed(0)), 8)
    assert float((found.algorithm_share + found.heuristic_share).mean()) == pytest.approx(8 / 256, abs=0.003)
    assert float(found.error.mean()) == pytest.approx(0.984, abs=0.002)


def test_a_single_node_has_no_other_to_cross_to():
    found = channels(torch.full((2, 2), 3.0), 1)
    assert bool((found.algorithm == 3).all())
    assert float(found.algorithm_share) == 1
    assert float(found.heuristic_share) == 0


def test_zero_weights_have_no_shares():
    found = channels(torch.zeros(4, 4), 2)
    assert all(bool(part.isnan()) for part in (found.algorithm_share, found.heuristic_share, found.error))


@pytest.mark.usefixtures("as_users_run_it")
def test_nodes_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match="nodes must divide the width of the weights, 16, got 3"):
        channels(torch.zeros(16, 16), 3)
    with pytest.raises(ValueError, match="nodes must be an integer >= 1"):
        channels(torch.zeros(16, 16), 0)


@pytest.mark.parametrize("layers", [1, 2])
def test_weights_of_the_two_channels_treat_all_nodes_alike_and_random_ones_do_not(layers):
    network = Disentangled(layers, spread=0.5).build(7, 7, 7, torch.Generator().manual_seed(0)).double()
    x = Connectivity(7, chance=0.3).sample(20, seed=0).x

    def show(graphs: torch.Tensor) -> dict[str, torch.Tensor]:
        return network.run(graphs, network.stages)[1]

    before = equivariance(show, x)
    assert float((before["embedding"] - 1).abs().max()) < 1e-12
    assert float(before[f"layer {layers}"].mean()) < 0.999
    generator = torch.Generator().manual_seed(1)
    for block in network.blocks:
        weight = block.get_parameter("weight")
        a, b = (torch.randn(len(weight) // 7, len(weight) // 7, generator=generator) for _ in range(2))
        weight.data = (kron(a, torch.eye(7)) + 0.1 * kron(b, torch.ones(7, 7))).double()
    after = equivariance(show, x)
    assert set(after) == set(network.stages)
    assert all(float((cosine - 1).abs().max()) < 1e-12 for cosine in after.values())


def test_states_that_are_not_of_nodes_are_named():
    with pytest.raises(ValueError, match="the states of stage 'it' must be"):
        equivariance(lambda x: {"it": x[..., :2]}, Connectivity(5).sample(2, seed=0).x)

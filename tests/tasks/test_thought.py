"""Chain of thought: the judge is the network that made them, found again layer by layer."""

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from algoscope.tasks import ChainOfThought


def test_chains_are_the_states_of_one_network_a_prompt():
    task = ChainOfThought(dim=4, examples=30, depth=3)
    prompts = task.sample(40, seed=0)
    weights = []
    for x, y in zip(prompts.x.numpy(), prompts.y.numpy(), strict=True):
        states, following = x.reshape(31, 3, 4), y.reshape(31, 3, 4)
        np.testing.assert_array_equal(states[:, 1:], following[:, :-1])
        for layer in range(3):
            before = np.where(following[:, layer] > 0, following[:, layer], following[:, layer] / task.slope)
            found, *_ = np.linalg.lstsq(states[:, layer], before, rcond=None)
            np.testing.assert_allclose(states[:, layer] @ found, before, atol=1e-7)
            weights.append(found.ravel())
    scaled = np.concatenate(weights) * np.sqrt(4 * (1 + task.slope**2) / 2)
    assert stats.kstest(scaled, "norm").pvalue > 1e-3


def test_the_scale_of_the_states_is_kept():
    y = ChainOfThought().sample(400, seed=0).y.unflatten(1, (-1, 6))
    assert y.square().mean(dim=(0, 1, 3)).tolist() == pytest.approx([1.0] * 6, rel=0.15)


def test_tokens_are_the_chains_and_the_next_x_is_not_asked_for():
    task = ChainOfThought(dim=2, examples=1, depth=2)
    prompts = task.sample(1, seed=0)
    tokens = task.encode(prompts.x, prompts.y)[0]
    x, y = prompts.x[0], prompts.y[0]
    assert torch.equal(tokens, torch.stack([x[0], y[0], y[1], x[2], y[2]]))
    assert task.answers == (0, 1, 3, 4)
    numbered = torch.arange(5.0)[None, :, None].expand(1, 5, 2)
    assert task.read(numbered)[0, :, 0].tolist() == [0.0, 1.0, 3.0, 4.0]


def test_each_layer_is_a_regression():
    task = ChainOfThought(dim=3, examples=8, depth=2)
    for left in task.problems(task.sample(5, seed=0)):
        for x, y in zip(left.x.numpy(), left.y.numpy(), strict=True):
            found, *_ = np.linalg.lstsq(x[:-1], y[:-1], rcond=None)
            np.testing.assert_allclose(x[-1] @ found, y[-1], atol=1e-6)


def test_expected_states_are_those_of_numerical_integration():
    """What goes into an activation is normal: Simpson's rule over twelve deviations on both sides; none where sure."""
    task, grid = ChainOfThought(dim=3, examples=1, depth=2), np.linspace(-12, 12, 200_001)
    means = [torch.tensor([[[-2.0, 0.0, 0.3], [1.0, -0.1, 5.0]]]) * sign for sign in (1.0, -1.0)]
    deviations = [torch.tensor([[1.5, 0.2]]), torch.tensor([[0.0, 3.0]])]
    found = task.expected([mean.double() for mean in means], [deviation.double() for deviation in deviations])
    for layer, chain, coordinate in np.ndindex(2, 2, 3):
        mean, deviation = float(means[layer][0, chain, coordinate]), float(deviations[layer][0, chain])
        z = mean + deviation * grid
        by_hand = integrate.simpson(np.where(z > 0, z, task.slope * z) * stats.norm.pdf(grid), x=grid)
        assert float(found[0, 2 * chain + layer, coordinate]) == pytest.approx(by_hand, abs=1e-6)


def test_a_curriculum_keeps_to_the_coordinates_in_use():
    task = ChainOfThought(dim=5, examples=2, depth=3)
    x, y = task.draw(50, [torch.Generator().manual_seed(0)], dims=torch.tensor(2))
    assert not x[..., 2:].any()
    assert not y[..., 2:].any()
    assert float(y[..., :2].square().mean()) == pytest.approx(1.0, rel=0.5)


@pytest.mark.parametrize("name", ["dim", "depth", "examples"])
def test_what_makes_no_sense_is_refused(name):
    with pytest.raises(ValueError, match=f"{name} must be an integer"):
        ChainOfThought(**{name: -1})
    with pytest.raises(ValueError, match="slope must be"):
        ChainOfThought(slope=0.0)

"""Parameters with a leading axis of members make one network compute what each of several would alone."""

import battery
import pytest
import torch
from torch import Tensor
from torch.func import functional_call

from algoscope.models import Network, Transformer

TRANSFORMERS = [
    Transformer(layers=2, heads=2, width=8),
    Transformer(layers=2, heads=1, width=8, norm="after", mask="full"),
    Transformer(layers=2, heads=4, width=8, norm="none", attention="linear", positions="none"),
    Transformer(layers=1, heads=2, width=8, attention="relu", mask=2, activation="bilinear", mlp_ratio=1.5),
    Transformer(layers=2, heads=2, width=8, mlp_ratio=0.0, activation="relu", positions="given"),
    Transformer(layers=0, heads=1, width=8),
]


def population(model: Transformer, members: int) -> tuple[list[Network], dict[str, Tensor]]:
    """Networks of one model with weights of their own, and all those weights stacked; given positions are shared."""
    networks = [battery.scrambled(model, seed) for seed in range(members)]
    for network in networks[1:]:
        for mine, shared in zip(network.buffers(), networks[0].buffers(), strict=True):
            mine.copy_(shared)
    each = [dict(network.named_parameters()) for network in networks]
    return networks, {name: torch.stack([parameters[name] for parameters in each]).detach() for name in each[0]}


@pytest.mark.parametrize("model", TRANSFORMERS, ids=str)
@pytest.mark.parametrize("shape", [(3, 4, 6), (3, 1, 5), (2, 3, 1), (1, 2, 6)], ids=str)
def test_each_member_gives_what_it_gives_alone(model, shape):
    networks, stacked = population(model, shape[0])
    tokens = battery.draw_tokens(*shape)
    together = functional_call(networks[0], stacked, (tokens,))
    assert together.shape == (*shape, battery.OUTPUTS)
    for outputs, network, own in zip(together, networks, tokens, strict=True):
        torch.testing.assert_close(outputs, network(own), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("model", TRANSFORMERS, ids=str)
def test_each_member_has_the_gradient_it_has_alone(model):
    """So that a population trains as its members would."""
    networks, stacked = population(model, 3)
    stacked = {name: tensor.requires_grad_() for name, tensor in stacked.items()}
    tokens = battery.draw_tokens(3, 4, battery.LENGTH)
    functional_call(networks[0], stacked, (tokens,)).square().sum().backward()
    for i, network in enumerate(networks):
        network(tokens[i]).square().sum().backward()
        for name, parameter in network.named_parameters():
            gradient = stacked[name].grad
            assert gradient is not None
            torch.testing.assert_close(gradient[i], parameter.grad, rtol=1e-9, atol=1e-9)

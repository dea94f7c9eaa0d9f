"""Extra slots of an index: who reads them, who writes them, and by what they are addressed."""

from dataclasses import replace

import battery
import numpy as np
import pytest
import torch

from algoscope.models import Index
from algoscope.models.index import SLOT_BIAS, IndexNetwork, QueryMLP
from algoscope.models.index_parts import TEMPERATURE

SMALL = Index(lookups=2, layers=1, width=8, hidden=16)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_the_last_look_up_is_never_at_a_slot():
    network = battery.scrambled(Index(lookups=2, slots=8, layers=1, width=8, hidden=16))
    _, states = network.run(battery.draw_tokens(200, battery.LENGTH), network.stages)
    assert bool(states["look-up 1"][..., battery.OUTPUTS :].any())
    assert not bool(states["look-up 2"][..., battery.OUTPUTS :].any())


def test_look_ups_before_the_last_read_slots_alone_where_these_are_addressed_by_tokens():
    network = battery.scrambled(Index(lookups=3, slots=8, layers=1, width=8, hidden=16, address="token"))
    _, states = network.run(battery.draw_tokens(200, battery.LENGTH), network.stages)
    for stage, slots in (("look-up 1", True), ("look-up 2", True), ("look-up 3", False)):
        assert bool(states[stage][..., battery.OUTPUTS :].any()) == slots
        assert bool(states[stage][..., : battery.OUTPUTS].any()) != slots


@pytest.mark.parametrize(("answer", "seed"), [("last", 0), ("any", 3)])  # which read both at every look-up
def test_a_slot_bias_can_be_undone_by_training(answer, seed):
    """A large one leaves nothing but slots to read before the last look-up; biases of points that are higher by as much
    leave a network that has none.
    """
    model = Index(lookups=3, slots=2, layers=1, width=8, hidden=16, address="slot_bias", answer=answer)
    tokens = battery.draw_tokens(200, battery.LENGTH)
    networks = {}
    for bias in (0.0, 3.0, 100.0):
        networks[bias] = battery.scrambled(model, seed=seed)
        assert networks[bias].visit.slot_bias == SLOT_BIAS
        networks[bias].visit.slot_bias = bias
    read = {bias: network.run(tokens, network.stages)[1] for bias, network in networks.items()}
    for stage, points in (("look-up 1", False), ("look-up 2", False), ("look-up 3", True)):
        assert bool(read[0.0][stage][..., : battery.OUTPUTS].any())
        assert bool(read[100.0][stage][..., : battery.OUTPUTS].any()) == points
        assert bool(read[100.0][stage][..., battery.OUTPUTS :].any()) != points
    for asker in networks[3.0].blocks:
        if isinstance(asker, QueryMLP):
            asker.last.bias.data[: battery.OUTPUTS] += 3.0
    noise = torch.rand(200, *networks[0.0].training_needs.noise_shape, generator=generator(), dtype=tokens.dtype)
    outputs = [networks[bias](tokens, noise=noise) for bias in (0.0, 3.0)]
    torch.testing.assert_close(outputs[0], outputs[1])


@pytest.mark.parametrize("form", [{}, {"answer": "any"}, {"fourier_octaves": 2}], ids=str)
@pytest.mark.parametrize("address", ["token", "slot_bias"])
def test_slots_of_one_token_are_one_to_who_writes_and_who_reads_them(address, form):
    """A slot is its token alone: of two with the same one both hold the same and are as likely to be read, and what
    follows does not depend on which is.
    """
    model = Index(lookups=2, slots=3, layers=1, width=8, hidden=16, address=address, **form)
    network, tokens = battery.scrambled(model), battery.draw_tokens(20, battery.LENGTH)
    assert isinstance(network, IndexNetwork)
    assert network.slots is not None
    network.slots.data[1] = network.slots.data[0]
    noise = torch.rand(20, *network.training_needs.noise_shape, generator=generator(), dtype=tokens.dtype)
    first = noise.shape[-1] - 3
    noise[..., first : first + 2] = torch.tensor([0.2, 0.9])
    turned = noise.clone()
    turned[..., first : first + 2] = torch.tensor([0.9, 0.2])
    held = network.run(tokens, ["slots"])[1]["slots"]
    torch.testing.assert_close(held[..., 0, :], held[..., 1, :])
    outputs = [network(tokens, noise=each) for each in (noise, turned)]
    assert torch.allclose(*outputs, rtol=1e-9) == (address == "token")


def test_a_vector_is_compared_with_tokens_and_the_token_that_is_read_is_seen_next():
    """The formulas of one look-up, in numpy; and tokens learn from both."""
    model = Index(lookups=2, slots=3, layers=1, width=8, hidden=16, address="token")
    network, tokens = battery.scrambled(model), battery.draw_tokens(6, battery.LENGTH)
    assert isinstance(network, IndexNetwork)
    assert network.slots is not None
    noise = torch.full((6, *network.training_needs.noise_shape), 0.5, dtype=tokens.dtype)
    asker, following = network.blocks[2], network.blocks[3]
    assert isinstance(asker, QueryMLP)
    assert isinstance(following, QueryMLP)
    entered = []
    following.register_forward_hook(lambda _, given, __: entered.append(given[0]))
    _, states = network.run(tokens, ["look-up 1"], noise=noise)
    vector = asker(tokens[:, battery.OUTPUTS :])[..., battery.OUTPUTS :].detach().numpy()
    logits = vector @ network.slots.detach().numpy().T / np.sqrt(8) / TEMPERATURE
    weights = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    np.testing.assert_allclose(states["look-up 1"][..., battery.OUTPUTS :].detach().numpy(), weights, rtol=1e-9)
    place = entered[0][..., tokens.shape[-1] :][..., : battery.OUTPUTS + 8]
    np.testing.assert_allclose(place[..., : battery.OUTPUTS].detach().numpy(), 0.0)
    np.testing.assert_allclose(
        place[..., battery.OUTPUTS :].detach().numpy(), weights @ network.slots.detach().numpy(), rtol=1e-9
    )
    seen = [states["look-up 1"][..., battery.OUTPUTS], place[..., battery.OUTPUTS]]
    gradients = [torch.autograd.grad(each.sum(), network.slots, retain_graph=True)[0] for each in seen]
    before, step = [each.sum().detach() for each in seen], 1e-6
    network.slots.data[0, 0] += step
    moved = network.run(tokens, ["look-up 1"], noise=noise)[1]["look-up 1"][..., battery.OUTPUTS].sum()
    after = [moved, entered[1][..., tokens.shape[-1] + battery.OUTPUTS].sum()]
    for gradient, end, begin in zip(gradients, after, before, strict=True):
        torch.testing.assert_close(gradient[0, 0], (end.detach() - begin) / step, rtol=1e-4, atol=1e-6)


def test_tokens_that_slots_are_addressed_by_begin_as_waves():
    """Where there are more of them than the width, those of neighbors are alike, and of others less so."""
    network = Index(lookups=2, slots=64, layers=1, width=16, hidden=16, address="token").build(1, 5, 6, generator())
    assert network.slots is not None
    places = np.arange(64) + 0.5
    expected = np.cos(np.pi / 64 * np.outer(places, np.arange(16)))
    assert np.abs(network.slots.detach().numpy() - expected).max() < 0.1
    alike = np.corrcoef(network.slots.detach().numpy())
    assert np.diag(alike, 1).min() > 0.7 > 0.5 > np.abs(np.diag(alike, 20)).max()
    first = network.blocks[2]
    assert isinstance(first, QueryMLP)
    assert first.last.out_features == 5 + 16  # a logit for each point, and a vector


@pytest.mark.parametrize("address", ["slot_bias", "token", "logit"])
def test_a_separate_slot_encoder_leaves_the_order_alone(address):
    """The gradient of the order reaches nothing that writes slots, and theirs nothing that orders."""
    model = Index(lookups=2, slots=3, layers=2, width=8, hidden=16, fourier_octaves=3, address=address)
    separate = address != "logit"
    network, tokens = battery.scrambled(model), battery.draw_tokens(5, battery.LENGTH)
    assert isinstance(network, IndexNetwork)
    scores, slots = network.arrange(tokens[:, : battery.OUTPUTS])
    weight = torch.randn(scores.shape, generator=generator(), dtype=scores.dtype)
    reached = torch.autograd.grad((weight * scores).sum(), list(network.parameters()), allow_unused=True)
    named = {
        name: gradient is not None and bool(gradient.abs().max() > 0)
        for (name, _), gradient in zip(network.named_parameters(), reached, strict=True)
    }
    assert named["slots"] != separate
    assert named["read_in.weight"]
    assert network.read_in.weight.shape[-1] == tokens.shape[-1] * (1 if separate else 7)
    if separate:
        assert not any(named[name] for name in named if name.startswith(("see.", "written.", "blocks.2.", "blocks.3.")))
        written = torch.autograd.grad(slots.square().sum(), list(network.parameters()), allow_unused=True)
        reaching = {name for (name, _), own in zip(network.named_parameters(), written, strict=True) if own is not None}
        assert "see.weight" in reaching
        assert not any(name.startswith(("read_in.", "read_out.", "blocks.0.", "blocks.1.")) for name in reaching)


def test_fourier_features_of_points_are_seen_where_there_are_slots():
    """At first by weights of zero: a fresh order is a smooth function of the points."""
    plain, slotted = (replace(SMALL, slots=slots, fourier_octaves=2).build(1, 6, 9, generator()) for slots in (0, 2))
    assert plain.read_in.weight.shape == (8, 1)
    assert slotted.read_in.weight.shape == (8, 5)
    assert not bool(slotted.read_in.weight[:, 1:].any())
    assert bool(slotted.read_in.weight[:, 0].all())

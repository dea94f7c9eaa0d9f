"""Gradients that come when the backward pass is over are those of an ordinary linear map."""

import battery
import pytest
import torch
from torch.nn import functional

from algoscope.models import Looped, late
from algoscope.models.network import Linear, biased


@pytest.fixture
def launches(monkeypatch):
    """Products on a CPU, in place of the kernel's, and how many there were in each launch."""
    counts = []

    def multiply(products):
        counts.append(len(products))
        for each in products:
            each.weight.copy_(each.above.mT @ each.input)
            each.bias.copy_(each.above.sum(0))

    monkeypatch.setattr(late, "multiply", multiply)
    return counts


def test_a_row_cut_into_layers_gets_the_gradient_of_all_of_them(launches):
    shapes = [torch.Size(shape) for shape in ((6, 4), (6,), (5, 6), (5,))]
    row = torch.randn(1, sum(shape.numel() for shape in shapes), dtype=torch.float64, requires_grad=True)
    tokens = torch.randn(3, 7, 4, dtype=torch.float64, requires_grad=True)

    def gradients(parts, apply):
        w, b, v, c = (part.view(shape) for part, shape in zip(parts, shapes, strict=True))
        return torch.autograd.grad(apply(apply(tokens, w, b).tanh(), v, c).square().sum(), (row, tokens))

    def lately(x, weight, bias):
        return late.product(x.flatten(0, -2), weight, bias).unflatten(0, x.shape[:-1]) + bias.detach()

    sizes = [shape.numel() for shape in shapes]
    cut = late.Cut.apply(row, sizes)
    for found, judge in zip(gradients(cut, lately), gradients(row.split(sizes, dim=1), functional.linear), strict=True):
        torch.testing.assert_close(found, judge, rtol=1e-12, atol=1e-12)
    assert launches == [2]


def test_a_linear_map_that_is_late_hands_on_a_bias_without_a_gradient(launches):
    layer = Linear(4, 3).double()
    torch.nn.init.normal_(layer.weight)
    torch.nn.init.normal_(layer.bias)
    tokens = torch.randn(2, 5, 4, dtype=torch.float64)
    layer.late = True
    terms = layer.product(tokens)
    assert not terms[1].requires_grad
    found = biased(*terms)
    torch.testing.assert_close(found, functional.linear(tokens, layer.weight, layer.bias))
    gradients = torch.autograd.grad(found.square().sum(), (layer.weight, layer.bias))
    late.finish()  # what they hold is there now
    wanted = functional.linear(tokens, layer.weight, layer.bias)
    for mine, right in zip(
        gradients, torch.autograd.grad(wanted.square().sum(), (layer.weight, layer.bias)), strict=True
    ):
        torch.testing.assert_close(mine, right, rtol=1e-12, atol=1e-12)


def test_many_products_are_done_in_launches_of_a_bounded_number(launches, monkeypatch):
    monkeypatch.setattr(late, "MOST", 4)
    layers = [Linear(2, 2) for _ in range(10)]
    for layer in layers:
        torch.nn.init.normal_(layer.weight)
        torch.nn.init.zeros_(layer.bias)
        layer.late = True
    state = torch.randn(3, 2)
    for layer in layers:
        state = biased(*layer.product(state))
    state.sum().backward()
    late.finish()
    assert launches == [4, 4, 2]


def uses(network, monkeypatch):
    """How often a pass applies each of the linear maps."""
    counts = dict.fromkeys((layer for layer in network.modules() if isinstance(layer, Linear)), 0)
    own = Linear._after

    def counted(layer, *given):
        counts[layer] += 1
        return own(layer, *given)

    monkeypatch.setattr(Linear, "_after", counted)
    network(battery.draw_tokens(2, battery.LENGTH))
    return list(counts.values())


@pytest.mark.parametrize("model", [model for model in battery.MODELS if battery.build(model).once], ids=str)
def test_a_network_that_promises_so_uses_each_linear_map_once(model, monkeypatch):
    """Otherwise gradients would be added before they are there."""
    assert set(uses(battery.scrambled(model), monkeypatch)) == {1}


def test_a_loop_does_not_promise_it(monkeypatch):
    network = battery.scrambled(Looped(layers=1, heads=2, width=8, loops=3))
    assert not network.once
    assert max(uses(network, monkeypatch)) == 3

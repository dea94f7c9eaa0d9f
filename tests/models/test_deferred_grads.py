"""Deferred gradients are those of an ordinary linear map."""

import battery
import pytest
import torch
from torch.nn import functional

from algoscope.models import Looped, Transformer
from algoscope.models.kernels import deferred_grads
from algoscope.models.network import Linear, biased
from algoscope.tasks import LinearRegression
from algoscope.training import Member, Settings
from algoscope.training.population import Population


@pytest.fixture
def launches(monkeypatch):
    """Products on a CPU, in place of the kernel's, and how many there were in each launch."""
    counts = []

    def multiply(products):
        counts.append(len(products))
        for each in products:
            each.weight.copy_(each.above.mT @ each.input)
            each.bias.copy_(each.above.sum(0))

    def empty(above, input):
        """What is read too early is not a number."""
        weight, bias = above.mT @ input, above.sum(0)
        return torch.full_like(weight, torch.nan), torch.full_like(bias, torch.nan)

    monkeypatch.setattr(deferred_grads, "multiply", multiply)
    monkeypatch.setattr(deferred_grads, "_empty", empty)
    return counts


def test_a_row_cut_into_layers_gets_the_gradient_of_all_of_them(launches):
    shapes = [torch.Size(shape) for shape in ((6, 4), (6,), (5, 6), (5,))]
    row = torch.randn(1, sum(shape.numel() for shape in shapes), dtype=torch.float64, requires_grad=True)
    tokens = torch.randn(3, 7, 4, dtype=torch.float64, requires_grad=True)

    def gradients(parts, apply):
        w, b, v, c = (part.view(shape) for part, shape in zip(parts, shapes, strict=True))
        return torch.autograd.grad(apply(apply(tokens, w, b).tanh(), v, c).square().sum(), (row, tokens))

    def deferred(x, weight, bias):
        return deferred_grads.product(x.flatten(0, -2), weight, bias).unflatten(0, x.shape[:-1]) + bias.detach()

    sizes = [shape.numel() for shape in shapes]
    cut = deferred_grads.Cut.apply(row, sizes)
    plain = gradients(row.split(sizes, dim=1), functional.linear)
    for found, judge in zip(gradients(cut, deferred), plain, strict=True):
        torch.testing.assert_close(found, judge, rtol=1e-12, atol=1e-12)
    assert launches == [2]


def chain(layers):
    """A row of parameters of linear maps 2 → 2, and what they make of a state, one after another."""
    row = torch.randn(1, 6 * layers, requires_grad=True)
    parts = deferred_grads.Cut.apply(row, [4, 2] * layers)
    state = torch.randn(3, 2)
    for k in range(layers):
        state = deferred_grads.product(state, parts[2 * k].view(2, 2), parts[2 * k + 1].view(2))
    return row, parts, state


def test_many_products_are_done_in_launches_of_a_bounded_number(launches, monkeypatch):
    monkeypatch.setattr(deferred_grads, "MOST", 4)
    row, _, state = chain(10)
    (gradient,) = torch.autograd.grad(state.sum(), row)
    assert bool(gradient.isfinite().all())
    assert launches == [4, 4, 2]


def test_a_weight_that_is_used_twice_is_noticed(launches):
    row, parts, state = chain(2)
    again = deferred_grads.product(state, parts[0].view(2, 2), parts[1].view(2))
    with pytest.raises(RuntimeError, match="used a weight twice"):
        torch.autograd.grad(again.sum(), row)


def test_what_a_failed_pass_has_left_is_forgotten(launches):
    deferred_grads._defer(torch.ones(1, 2), torch.ones(1, 2))
    row, _, state = chain(1)
    torch.autograd.grad(state.sum(), row)
    assert launches == [1]


TASK = LinearRegression(dim=3, examples=4)
DEFERRING = [model for model in battery.MODELS if battery.build(model).training_needs.deferred_weight_grads]


def gradients(model, deferred, monkeypatch):
    """Of a step on a CPU, by name, with 16-bit weights inside the blocks; both of two steps have to be possible."""
    settings = Settings(steps=10, batch=16, curriculum=None, optimizer="adamw", precision="bf16", betas=(0.0, 0.9))
    population = Population.of(model, [Member(TASK)], settings, torch.device("cpu"))
    if deferred:
        population.layout.defer(population.network)
        monkeypatch.setattr(Linear, "terms", Linear.product)  # as on a GPU
    population.step()
    found = {name: part.clone() for name, part in population.layout.full(population.state.first_moment).items()}
    population.step()
    return found


@pytest.mark.parametrize("model", DEFERRING, ids=str)
def test_a_network_has_the_same_gradients_when_they_are_deferred(model, launches, monkeypatch):
    plain, deferred = gradients(model, False, monkeypatch), gradients(model, True, monkeypatch)
    inside = sum(isinstance(layer, Linear) for layer in battery.build(model).blocks.modules())
    assert launches == [inside] * 2 * bool(inside)
    largest = max(float(part.norm()) for part in plain.values())
    for name, part in plain.items():
        assert float((deferred[name] - part).norm()) <= 0.03 * float(part.norm()) + 1e-3 * largest, name  # 16 bits


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


@pytest.mark.parametrize("model", DEFERRING, ids=str)
def test_a_network_that_promises_so_uses_each_linear_map_once(model, monkeypatch):
    assert set(uses(battery.scrambled(model), monkeypatch)) == {1}


def test_a_loop_does_not_promise_it(monkeypatch):
    network = battery.scrambled(Looped(layers=1, heads=2, width=8, loops=3))
    assert not network.training_needs.deferred_weight_grads
    assert max(uses(network, monkeypatch)) == 3


def test_a_linear_map_with_deferred_gradients_hands_on_a_bias_without_a_gradient(launches):
    layer = Linear(4, 3)
    torch.nn.init.normal_(layer.weight)
    torch.nn.init.normal_(layer.bias)
    layer.deferred_grads = True
    tokens = torch.randn(2, 5, 4)
    product, bias = layer.product(tokens)
    assert not bias.requires_grad
    torch.testing.assert_close(biased(product, bias), functional.linear(tokens, layer.weight, layer.bias))


def test_several_members_or_a_cpu_have_no_deferred_gradients():
    """A population fills the device, and its norms are folded into weights, whose gradients are read at once."""
    settings = Settings(steps=10, batch=2, curriculum=None)
    for members in (1, 2):
        model = Transformer(layers=1, heads=1, width=8)
        population = Population.of(
            model, [Member(TASK, seed) for seed in range(members)], settings, torch.device("cpu")
        )
        assert not population.layout.deferred_grads
        assert not any(layer.deferred_grads for layer in population.network.modules() if isinstance(layer, Linear))

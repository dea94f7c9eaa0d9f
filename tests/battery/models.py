"""Models that must pass `algoscope.testing.check_model`, and what the networks of a family do beyond that. New models
are added to the lists here.
"""

import itertools

import pytest
import torch

from algoscope.models import (
    AlgoFormer,
    Disentangled,
    Index,
    LearnedSketch,
    Looped,
    Model,
    Network,
    Recurrent,
    Transformer,
)
from algoscope.models.index import IndexNetwork
from algoscope.models.network import Linear, Norm
from algoscope.tasks import Connectivity, LinearRegression, NumberSearch, Task, UniformSearch
from battery.tasks import STREAMS

MODELS: list[Model] = [
    Transformer(layers=3, heads=2, width=8),
    Transformer(layers=0, heads=1, width=4),
    Transformer(layers=2, heads=4, width=8, mask="full", activation="relu", norm="after"),
    Transformer(layers=2, heads=2, width=8, mask=2, activation="bilinear", mlp_ratio=1.5),
    Transformer(layers=2, heads=1, width=8, attention="linear", mlp_ratio=0.0, norm="none", positions="none"),
    Transformer(layers=1, heads=2, width=8, attention="relu", positions="given"),
    Transformer(layers=2, heads=2, width=8, sink=True),
    AlgoFormer(layers=1, heads=2, width=8, loops=3),
    AlgoFormer(layers=2, heads=2, width=8, loops=2, pre=0, post=2, injection="pre", norm="none", activation="relu"),
    AlgoFormer(layers=1, heads=1, width=8, loops=2, injection="prompt", sink=True, scored_loops=2, truncated=True),
    AlgoFormer(layers=2, heads=2, width=8, loops=3, injection="prompt", loop_norm=True),
    Looped(layers=1, heads=2, width=8, loops=3, scored_loops=2),
    Looped(layers=2, heads=1, width=8, loops=1, mask="full", norm="none"),
    Recurrent(layers=3, width=8),
    Recurrent(layers=1, width=1),
    Disentangled(layers=1),
    Disentangled(layers=3, sharpness=2.0, floor=0.01, spread=0.3),
    Disentangled(layers=2),
]

INDEXES: list[Model] = [  # networks that store points and look them up
    Index(lookups=3, layers=2, width=16, hidden=16),
    Index(lookups=2, slots=3, layers=1, width=8, hidden=16, answer="any"),
    Index(lookups=3, layers=1, width=16, hidden=16, address="pointer", answer="any"),
    Index(lookups=3, layers=1, width=16, hidden=16, answer="each", fourier_octaves=3),
    Index(lookups=2, slots=1, layers=1, width=16, hidden=16, address="pointer", fourier_octaves=1),
    Index(lookups=2, slots=1, layers=1, width=16, hidden=16, folds=2, answer="any"),
    Index(lookups=2, slots=2, layers=1, width=16, hidden=16, fourier_octaves=2, address="slot_bias"),
    Index(lookups=2, slots=2, layers=1, width=16, hidden=16, answer="any", address="slot_bias"),
    Index(lookups=3, slots=3, layers=1, width=16, hidden=16, address="token", answer="any"),
    Index(lookups=2, slots=3, layers=1, width=16, hidden=16, address="token"),
    *(Index(2, layers=0, width=16, hidden=16, answer="any", without=part) for part in ("noise", "feedback")),
    Index(lookups=2, layers=1, width=16, hidden=16, without="learned order"),
    Index(lookups=2, slots=5, layers=1, width=16, hidden=16, without="points", answer="any"),
    Index(lookups=2, layers=1, width=16, hidden=16, picture=(8, 16, 2, 4)),
]

COUNTERS: list[Model] = [  # networks that count the items of a stream
    LearnedSketch(cells=4, hidden=16),
    LearnedSketch(cells=3, accesses=2, hidden=8),
    LearnedSketch(cells=3, hidden=8, picture=(8, 24, 1, 4)),
]

INPUTS, OUTPUTS, LENGTH = 3, 2, 6  # of the networks that are built to be checked


def task_for(model: Model) -> Task:
    """A small task that a network can be trained on."""
    pictures = bool(getattr(model, "picture", None))
    if isinstance(model, LearnedSketch):
        return STREAMS[2] if pictures else STREAMS[0]
    if isinstance(model, Index):
        return NumberSearch(size=6, universe=20, queries=3, digits=2) if pictures else UniformSearch(size=6, queries=3)
    return Connectivity(nodes=6) if isinstance(model, Disentangled) else LinearRegression(dim=3, examples=3, targets=2)


def form(model: Model) -> tuple[int, int, int]:
    """Inputs, outputs and length of the network that is built to be checked."""
    if getattr(model, "picture", None):
        height, width, *_ = getattr(model, "picture")  # noqa: B009 - the models share the field, not a class that declares it
        return height * width, OUTPUTS, LENGTH
    return (LENGTH, LENGTH, LENGTH) if isinstance(model, Disentangled) else (INPUTS, OUTPUTS, LENGTH)


def lengths(model: Model) -> tuple[int, ...]:
    """Of the sequences that a network takes: a graph has all its nodes."""
    return (LENGTH,) if isinstance(model, Disentangled) else (LENGTH, 1)


def build(model: Model, seed: int = 0) -> Network:
    return model.build(*form(model), torch.Generator().manual_seed(seed))


def scrambled(model: Model, seed: int = 0, outputs: int | None = None) -> Network:
    """A network in float64 in which all is random: fresh biases, scales and given positions hide mistakes."""
    inputs, usual, length = form(model)
    network = model.build(inputs, outputs or usual, length, torch.Generator().manual_seed(0)).double()
    generator = torch.Generator().manual_seed(seed)
    for tensor in network.state_dict().values():
        deviation = tensor.shape[1] ** -0.5 if tensor.ndim == 2 else 0.5
        tensor.copy_(deviation * torch.randn(tensor.shape, generator=generator))
    return network


def draw_tokens(*shape: int, seed: int = 1, inputs: int = INPUTS) -> torch.Tensor:
    return torch.randn(*shape, inputs, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def draw_noise(network: Network, batch: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.rand(batch, *network.training_needs.noise_shape, generator=generator, dtype=torch.float64)


def check_shapes(model: Model) -> None:
    """One output and one state of each stage for each token, in batches of any size and sequences of any length."""
    network, (inputs, width, _) = scrambled(model), form(model)
    read_out = network.get_submodule("read_out")
    for batch, length in itertools.product((3, 1), lengths(model)):
        outputs, states = network.run(draw_tokens(batch, length, inputs=inputs), network.stages)
        assert outputs.shape == (batch, length, width)
        assert all(state.shape[:2] == (batch, length) for state in states.values())
        shown = list(states.values())[-1:] if isinstance(model, Disentangled) else states.values()  # its stream grows
        assert all(state.shape[2] == read_out.in_features for state in shown)
        assert all(bool(tensor.isfinite().all()) for tensor in (outputs, *states.values()))


def check_states(model: Model) -> None:
    """The head turns the last state into outputs."""
    network, tokens = scrambled(model), draw_tokens(3, LENGTH, inputs=form(model)[0])
    outputs, states = network.run(tokens, network.stages)
    assert network.stages[0] == "embedding"
    read = network.get_submodule("read_out")(states[network.stages[-1]])
    if isinstance(model, Disentangled):  # it never builds the widest stream, so its sums have another order
        torch.testing.assert_close(read, outputs, rtol=1e-12, atol=1e-12)
    else:
        assert torch.equal(read, outputs)


def check_causality(model: Model) -> None:
    """What a network says at a token changes neither with later tokens nor without them, unless its mask is full."""
    if getattr(model, "mask", "causal") == "full":
        return
    network, tokens = scrambled(model), draw_tokens(3, LENGTH, inputs=form(model)[0])
    outputs = network(tokens)
    for t in range(1, LENGTH):
        changed = torch.cat((tokens[:, :t], draw_tokens(3, LENGTH - t, seed=2, inputs=form(model)[0])), dim=1)
        torch.testing.assert_close(network(changed)[:, :t], outputs[:, :t], rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(network(tokens[:, :t]), outputs[:, :t], rtol=1e-12, atol=1e-12)


def check_asked(model: Model) -> None:
    """A network that may spare itself tokens says the same at the others, and learns the same."""
    network, tokens = scrambled(model), draw_tokens(3, LENGTH, inputs=form(model)[0])
    for asked in (slice(0, None, 2), slice(-1, None), slice(1, -1)) if network.training_needs.answers_subset else ():
        answers = network(tokens)[..., asked, :], network(tokens, asked=asked)
        torch.testing.assert_close(*answers, rtol=1e-12, atol=1e-12)
        gradients = (torch.autograd.grad(each.square().sum(), list(network.parameters())) for each in answers)
        for whole, part in zip(*gradients, strict=True):
            torch.testing.assert_close(part, whole, rtol=1e-9, atol=1e-9)


def check_idle(model: Model) -> None:
    """What training leaves alone changes no answer; and of the biases nothing else changes none.

    Of an index with three points: the standardized scores of two are always the same.
    """
    network, inputs = scrambled(model, outputs=3 if isinstance(model, Index) else None), form(model)[0]
    noise = draw_noise(network, 5)
    given = {"noise": noise} if network.training_needs.noise_shape else {}
    answers = network(draw_tokens(5, LENGTH, inputs=inputs), **given)
    weights = draw_tokens(*answers.shape[:-1], inputs=answers.shape[-1])
    names, parameters = zip(*network.named_parameters(), strict=True)
    found = torch.autograd.grad((answers * weights).sum(), parameters, materialize_grads=True, allow_unused=True)
    largest = max(gradient.abs().max() for gradient in found)
    for name, gradient in zip(names, found, strict=True):
        part = network.get_submodule(name.rpartition(".")[0])
        if name.endswith("bias") and isinstance(part, Linear | Norm):
            idle = torch.zeros_like(gradient, dtype=torch.bool)
            idle[part.idle or slice(0)] = True
            without = gradient.abs() < 1e-12 * largest
            assert bool(without[idle].all())
            maps = (each.chunk(getattr(part, "stacked", 1)) for each in (gradient, idle, without))
            for own, all_idle, all_without in zip(*maps, strict=True):
                cut_off = not own.any()  # of an order that is not learned
                assert cut_off or bool(all_idle.all()) == bool(all_without.all())


MODEL_CHECKS = [
    check_shapes,
    check_states,
    check_causality,
    check_asked,
    check_idle,
]


def check_index(model: Model) -> None:
    """Hard look-ups without noise, soft ones with it; the states that were asked for, and no others."""
    network, tokens = scrambled(model), draw_tokens(3, LENGTH, inputs=form(model)[0])
    assert isinstance(network, IndexNetwork)
    queries, places = network.training_needs.noise_shape[1:]
    weighed = places if network.model.stores_points else OUTPUTS
    assert queries == LENGTH - OUTPUTS
    noise = draw_noise(network, 3)
    for given in (None, noise):
        outputs, states = network.run(tokens, network.stages, given)
        assert outputs.shape == (3, queries, OUTPUTS)
        assert bool(outputs.isfinite().all())
        assert torch.equal(network(tokens, noise=given), outputs)
        assert network.run(tokens, (), given)[1] == {}
        for name in network.stages:
            same, only = network.run(tokens, [name], given)
            assert list(only) == [name]
            assert torch.equal(only[name], states[name])
            assert torch.equal(same, outputs)
        for name in network.stages:
            if name.startswith("look-up"):
                assert states[name].shape == (3, queries, weighed)
                torch.testing.assert_close(states[name].sum(-1), torch.ones(3, queries, dtype=torch.float64))
                hard = bool(((states[name] == 0) | (states[name] == 1)).all())
                assert hard == (given is None)
    assert network(tokens[:, : OUTPUTS + 1]).shape == (3, 1, OUTPUTS)  # fewer queries than it was built for
    with pytest.raises(ValueError, match="tokens must be 2 points and at least one query, got 2"):
        network(tokens[:, :OUTPUTS])


def check_equivariance(model: Model) -> None:
    """An index has no use for the order in which points come."""
    network, tokens = scrambled(model), draw_tokens(3, LENGTH, inputs=form(model)[0])
    turned = torch.cat((tokens[:, :OUTPUTS].flip(1), tokens[:, OUTPUTS:]), dim=1)
    torch.testing.assert_close(network(turned), network(tokens).flip(-1), rtol=1e-9, atol=1e-9)


INDEX_CHECKS = [
    check_index,
    check_equivariance,
    check_idle,
]


def check_counter(model: Model) -> None:
    """Each item adds to as many cells as it may, and hard reads are of one cell; any length will do."""
    network, tokens = scrambled(model), draw_tokens(3, LENGTH, inputs=form(model)[0])
    noise = draw_noise(network, 3)
    for given in ({}, {"noise": noise}):
        outputs = network(tokens, **given)
        assert outputs.shape == (3, LENGTH, OUTPUTS)
        assert bool(outputs.isfinite().all())
    outputs, states = network.run(tokens, network.stages)
    assert tuple(states) == network.stages
    assert network.run(tokens)[1] == {}
    cells, accesses = network.training_needs.noise_shape[2], network.training_needs.noise_shape[1] // 2
    assert states["write"].shape == (3, LENGTH, cells)
    assert int((states["write"] != 0).sum(-1).max()) <= accesses
    for name in network.stages[1:]:
        assert bool(((states[name] == 0) | (states[name] == 1)).all())
        assert bool((states[name].sum(-1) == 1).all())
    assert torch.equal(network(tokens), outputs)


COUNTER_CHECKS = [
    check_counter,
    check_causality,
    check_idle,
]

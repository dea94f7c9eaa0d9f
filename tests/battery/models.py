"""What every network of a family must do. New models are added to the lists here."""

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
from algoscope.tasks import NumberSearch, Task, UniformSearch
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
    AlgoFormer(layers=1, heads=1, width=8, loops=2, injection="prompt", sink=True, scored=2, truncated=True),
    AlgoFormer(layers=2, heads=2, width=8, loops=3, injection="prompt", loop_norm=True),
    Looped(layers=1, heads=2, width=8, loops=3, scored=2),
    Looped(layers=2, heads=1, width=8, loops=1, mask="full", norm="none"),
    Recurrent(layers=3, width=8),
    Recurrent(layers=1, width=1),
    Disentangled(layers=1),
    Disentangled(layers=3, sharpness=2.0, floor=0.01, spread=0.3),
    Disentangled(layers=2),
]

INDEXES: list[Model] = [  # networks that store points and look them up
    Index(lookups=3, layers=2, heads=2, width=8, hidden=16),
    Index(lookups=2, slots=3, layers=1, heads=1, width=8, hidden=16, answer="any"),
    Index(lookups=3, layers=1, heads=2, width=8, hidden=16, address="pointer", shared=True),
    Index(lookups=3, layers=1, heads=2, width=8, hidden=16, shared=True, answer="each", octaves=3),
    Index(lookups=2, slots=1, layers=1, heads=2, width=8, hidden=16, address="pointer", pointer=2, octaves=1),
    Index(lookups=2, slots=1, layers=1, heads=2, width=8, hidden=16, folds=2, answer="any"),
    Index(lookups=2, slots=2, layers=1, heads=2, width=8, hidden=16, octaves=2, apart=True, before="slots"),
    Index(lookups=2, slots=2, layers=1, heads=2, width=8, hidden=16, shared=True, favor=2.0, coldest=0.5),
    Index(lookups=3, slots=3, layers=1, heads=2, width=8, hidden=16, address="token", shared=True, answer="any"),
    Index(lookups=2, slots=3, layers=1, heads=2, width=8, hidden=16, address="token", apart=True, before="slots"),
    Index(lookups=2, layers=0, heads=2, width=8, hidden=16, shared=True, adaptive=False, noisy=False, ordered=False),
    Index(lookups=2, slots=5, layers=1, heads=2, width=8, hidden=16, permuted=False, answer="any"),
    Index(lookups=2, layers=1, heads=2, width=8, hidden=16, picture=(8, 16), features=2, channels=4),
]

COUNTERS: list[Model] = [  # networks that count the items of a stream
    LearnedSketch(cells=4, hidden=16),
    LearnedSketch(cells=3, accesses=2, hidden=8, temperature=1.0, noisy=False),
    LearnedSketch(cells=3, hidden=8, picture=(8, 24), channels=4),
]

INPUTS, OUTPUTS, LENGTH = 3, 2, 6  # of the networks that are built to be checked


def task_for(model: Model) -> Task:
    """A small task that a network of INDEXES or COUNTERS can be trained on."""
    pictures = bool(getattr(model, "picture", None))
    if isinstance(model, LearnedSketch):
        return STREAMS[2] if pictures else STREAMS[0]
    return NumberSearch(size=6, universe=20, queries=3, digits=2) if pictures else UniformSearch(size=6, queries=3)


def form(model: Model) -> tuple[int, int, int]:
    """Inputs, outputs and length of the network that is built to be checked."""
    if getattr(model, "picture", None):
        height, width = getattr(model, "picture")  # noqa: B009 - the models share the field, not a class that declares it
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
    """Just the states that were asked for come back, whichever others did; the read-out turns the last into outputs."""
    network, tokens = scrambled(model), draw_tokens(3, LENGTH, inputs=form(model)[0])
    outputs, states = network.run(tokens, network.stages)
    assert network.stages[0] == "embedding"
    assert tuple(states) == network.stages
    assert network.run(tokens)[1] == {}
    for name in network.stages:
        same_outputs, only = network.run(tokens, [name])
        assert set(only) == {name}
        assert torch.equal(only[name], states[name])
        assert torch.equal(same_outputs, outputs)
    assert torch.equal(network(tokens), outputs)
    read = network.get_submodule("read_out")(states[network.stages[-1]])
    if isinstance(model, Disentangled):  # it never builds the widest stream, so its sums have another order
        torch.testing.assert_close(read, outputs, rtol=1e-12, atol=1e-12)
    else:
        assert torch.equal(read, outputs)


def check_builds(model: Model) -> None:
    """A fresh network is a function of the generator, whatever the global random state is."""
    first, tokens = build(model), draw_tokens(2, LENGTH, inputs=form(model)[0]).float()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(123)
        again = build(model)
    assert all(torch.equal(tensor, again.state_dict()[name]) for name, tensor in first.state_dict().items())
    assert torch.equal(first(tokens), again(tokens))
    other = dict(build(model, seed=1).named_parameters())
    drawn = [(name, tensor) for name, tensor in first.named_parameters() if len(tensor.unique()) > 1]
    assert not any(torch.equal(tensor, other[name]) for name, tensor in drawn)
    assert first.parameter_count == sum(tensor.numel() for tensor in other.values())
    assert {tensor.dtype for tensor in first.state_dict().values()} == {torch.float32}


def check_global_randomness(model: Model) -> None:
    """Building draws nothing from torch's global generator, which belongs to the user."""
    before = torch.random.get_rng_state()
    build(model)
    assert torch.equal(before, torch.random.get_rng_state())


def check_precisions(model: Model) -> None:
    """The network computes in the precision that it is turned to."""
    network, tokens = scrambled(model), draw_tokens(3, LENGTH, inputs=form(model)[0])
    exact, exact_states = network.run(tokens, network.stages)
    rounded, rounded_states = network.float().run(tokens.float(), network.stages)
    assert {tensor.dtype for tensor in (exact, *exact_states.values())} == {torch.float64}
    assert {tensor.dtype for tensor in (rounded, *rounded_states.values())} == {torch.float32}
    torch.testing.assert_close(rounded.double(), exact, rtol=1e-4, atol=1e-4)


def check_independence(model: Model) -> None:
    """A sequence is treated alike in any batch."""
    network, tokens = scrambled(model), draw_tokens(3, LENGTH, inputs=form(model)[0])
    torch.testing.assert_close(network(tokens[1:2])[0], network(tokens)[1], rtol=1e-12, atol=1e-12)


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
    for asked in (slice(0, None, 2), slice(-1, None), slice(1, -1)) if network.selective else ():
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
    noise = torch.rand(5, *network.noise, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    answers = network(draw_tokens(5, LENGTH, inputs=inputs), **({"noise": noise} if network.noise else {}))
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
    check_builds,
    check_global_randomness,
    check_precisions,
    check_independence,
    check_causality,
    check_asked,
    check_idle,
]


def check_index(model: Model) -> None:
    """Hard look-ups without noise, soft ones with it; the states that were asked for, and no others."""
    network, tokens = scrambled(model), draw_tokens(3, LENGTH, inputs=form(model)[0])
    assert isinstance(network, IndexNetwork)
    queries, places = network.noise[1:]
    told = places if network.model.permuted else OUTPUTS
    assert queries == LENGTH - OUTPUTS
    noise = torch.rand(3, *network.noise, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
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
                assert states[name].shape == (3, queries, told)
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
    check_builds,
    check_global_randomness,
    check_precisions,
    check_independence,
    check_equivariance,
    check_idle,
]


def check_counter(model: Model) -> None:
    """Each item adds to as many cells as it may, and hard reads are of one cell; any length will do."""
    network, tokens = scrambled(model), draw_tokens(3, LENGTH, inputs=form(model)[0])
    noise = torch.rand(3, *network.noise, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    for given in ({}, {"noise": noise}):
        outputs = network(tokens, **given)
        assert outputs.shape == (3, LENGTH, OUTPUTS)
        assert bool(outputs.isfinite().all())
    outputs, states = network.run(tokens, network.stages)
    assert tuple(states) == network.stages
    assert network.run(tokens)[1] == {}
    cells, accesses = network.noise[2], network.noise[1] // 2
    assert states["write"].shape == (3, LENGTH, cells)
    assert int((states["write"] != 0).sum(-1).max()) <= accesses
    for name in network.stages[1:]:
        assert bool(((states[name] == 0) | (states[name] == 1)).all())
        assert bool((states[name].sum(-1) == 1).all())
    assert torch.equal(network(tokens), outputs)


COUNTER_CHECKS = [
    check_counter,
    check_builds,
    check_global_randomness,
    check_precisions,
    check_independence,
    check_causality,
    check_idle,
]

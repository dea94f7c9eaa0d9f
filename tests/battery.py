"""The checks that every member of a family must pass. New tasks, algorithms and models are added to the lists here."""

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import algoscope as ag
from algoscope.algorithms import Algorithm
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
from algoscope.tasks import (
    AutoregressiveRepresentation,
    ChainOfThought,
    Connectivity,
    HardSearch,
    LinearRegression,
    NumberSearch,
    NumberStream,
    RepresentationRegression,
    SphereSearch,
    Task,
    UniformSearch,
    VectorSearch,
    ZipfSearch,
    ZipfStream,
)
from algoscope.trace import Prompts

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]

TASKS: list[Task] = [
    LinearRegression(dim=4, examples=9),
    LinearRegression(dim=1, examples=3),
    LinearRegression(dim=3, examples=0),
    LinearRegression(dim=3, examples=1, noise=0.5),
    LinearRegression(dim=4, examples=8, covariance="ill-conditioned", rescale=True),
    LinearRegression(dim=2, examples=5, covariance=((2.0, 0.5), (0.5, 1.0)), targets=3),
    RepresentationRegression(dim=4, examples=9),
    RepresentationRegression(dim=1, examples=0, depth=1, noise=0.3, targets=2, representation=1),
    AutoregressiveRepresentation(dim=4, examples=9),
    AutoregressiveRepresentation(dim=1, examples=1, order=1, depth=1, noise=0.0),
    ChainOfThought(dim=4, examples=3, depth=2),
    ChainOfThought(dim=1, examples=0, depth=1),
    Connectivity(nodes=8),
    Connectivity(nodes=7, chance=0.3, largest=3),
    Connectivity(nodes=8, smallest=3, largest=3),
    Connectivity(nodes=8, largest=3, beyond=0.3),
    Connectivity(nodes=8, collection=64, largest=3),
    Connectivity(nodes=9, graphs="two chains", size=3),
    Connectivity(nodes=8, graphs="two cliques"),
    Connectivity(nodes=12, graphs="paths", parts=3),
]

VECTORS = str(Path(__file__).with_name("vectors.npy"))  # 40 normal vectors, longer in the first two of 5 directions

SEARCHES: list[Task] = [
    UniformSearch(size=9, queries=2),
    UniformSearch(size=1),
    UniformSearch(size=6, dim=2, queries=3),
    HardSearch(size=15, queries=2),
    HardSearch(size=6, dim=2),
    ZipfSearch(size=5, universe=12, queries=2),
    NumberSearch(size=6, universe=20, queries=2, digits=2),
    SphereSearch(size=7, dim=4),
    VectorSearch(VECTORS, size=8, dim=3, queries=2),
]

STREAMS: list[Task] = [
    ZipfStream(universe=20, items=12),
    ZipfStream(universe=3, items=1, exponent=0.0, ranks="fixed"),
    NumberStream(universe=12, items=9, split="test"),
]

ALGORITHMS: list[Algorithm] = [
    ag.algorithms.OrdinaryLeastSquares(),
    ag.algorithms.Ridge(),
    ag.algorithms.Ridge(ridge=0.7),
    ag.algorithms.Zero(),
    ag.algorithms.GradientDescent(steps=6),
    ag.algorithms.GradientDescent(steps=[0, 2, 5], rate="best", start="uniform"),
    ag.algorithms.GradientDescent(steps=6, start="uniform/sqrt(dim)", ridge=0.3),
    ag.algorithms.PreconditionedGradientDescent(steps=6),
    ag.algorithms.HeavyBall(steps=6),
    ag.algorithms.Chebyshev(steps=6),
    ag.algorithms.GradientDescentPlusPlus(steps=6),
    ag.algorithms.GradientDescentPlusPlus(steps=[1, 3], rate=0.02, transform=0.01),
    ag.algorithms.ConjugateGradients(steps=6),
    ag.algorithms.ConjugateGradients(steps=[2, 3], ridge=0.2),
    ag.algorithms.Newton(steps=6),
    ag.algorithms.Newton(steps=[3, 30], start="2/frobenius", ridge=0.1),
    ag.algorithms.Newton(steps=6, start="1/spectral"),
    ag.algorithms.Newton(steps=6, start="2/spectral"),
    ag.algorithms.Newton(steps=6, start=1e-4),
    ag.algorithms.OnlineGradientDescent(),
    ag.algorithms.OnlineGradientDescent(rate=0.05),
    ag.algorithms.Hops(steps=6),
    ag.algorithms.Hops(steps=[1, 3, 9]),
    ag.algorithms.Squaring(steps=4),
    ag.algorithms.Tripling(steps=3),
    ag.algorithms.LabelPropagation(steps=6),
    ag.algorithms.Degree(),
    ag.algorithms.Degree(threshold=4.0),
    ag.algorithms.AllConnected(),
]

LINE_SEARCHES: list[Algorithm] = [  # for points with one coordinate
    ag.algorithms.BinarySearch(lookups=4),
    ag.algorithms.InterpolationSearch(lookups=4),
    ag.algorithms.InterpolationSearch(lookups=4, low=0.5, high=12.5),
    ag.algorithms.Treap(lookups=4, universe=12),
    ag.algorithms.Buckets(lookups=2, buckets=4),
    ag.algorithms.RangeCells(lookups=3, count=1),
]

CELL_SEARCHES: list[Algorithm] = [  # for points with any number of coordinates
    ag.algorithms.KDTree(lookups=4),
    ag.algorithms.SimHash(lookups=4, bits=1),
    ag.algorithms.IterativeQuantization(lookups=3, bits=1, seed=2),
    ag.algorithms.KMeansCells(lookups=3, count=2),
]

SKETCHES: list[Algorithm] = [
    ag.algorithms.CountMin(cells=6),
    ag.algorithms.CountMin(cells=6, rows=3, increment=0.8, seed=1),
    ag.algorithms.CountSketch(cells=7, rows=3),
]

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
    Index(lookups=2, slots=1, layers=1, heads=2, width=8, hidden=16, address="pointer", pointer=2),
    Index(lookups=2, layers=0, heads=2, width=8, hidden=16, shared=True, adaptive=False, noisy=False, ordered=False),
    Index(lookups=2, layers=1, heads=2, width=8, hidden=16, picture=(8, 16), features=2, channels=4),
]

COUNTERS: list[Model] = [  # networks that count the items of a stream
    LearnedSketch(cells=4, hidden=16),
    LearnedSketch(cells=3, accesses=2, hidden=8, temperature=1.0, noisy=False),
    LearnedSketch(cells=3, hidden=8, picture=(8, 24), channels=4),
]


def task_for(model: Model) -> Task:
    """A small task that a network of INDEXES or COUNTERS can be trained on."""
    pictures = bool(getattr(model, "picture", None))
    if isinstance(model, LearnedSketch):
        return STREAMS[2] if pictures else STREAMS[0]
    return NumberSearch(size=6, universe=20, queries=3, digits=2) if pictures else UniformSearch(size=6, queries=3)


INPUTS, OUTPUTS, LENGTH = 3, 2, 6  # of the networks that are built to be checked


def check_task(task: Task) -> None:
    """Sampling is a function of the seed, on any device and dtype, and leaves the global random state alone."""
    before = torch.random.get_rng_state()
    prompts = task.sample(3, seed=7)
    assert torch.equal(before, torch.random.get_rng_state())
    assert prompts.same_as(task.sample(3, seed=7))
    assert not prompts.same_as(task.sample(3, seed=8))
    assert prompts.batch == 3
    assert prompts.x.dtype == prompts.y.dtype == torch.float64
    assert task.sample(1, seed=0).batch == 1
    for device in DEVICES:
        for dtype in (torch.float32, torch.bfloat16):
            other = task.sample(3, seed=7, device=device, dtype=dtype)
            assert other.x.dtype == other.y.dtype == dtype
            assert other.x.device.type == other.y.device.type == device
            assert torch.equal(other.x.cpu(), prompts.x.to(dtype))
        x, y = task.draw(2, [torch.Generator(device).manual_seed(0)], torch.float32)
        assert x.device.type == y.device.type == device
        assert x.dtype == y.dtype == torch.float32
        seeds = [torch.Generator(device).manual_seed(seed) for seed in (0, 1)]
        together = task.draw(4, seeds)
        alone = [task.draw(2, [torch.Generator(device).manual_seed(seed)]) for seed in (0, 1)]
        for part, own in zip(together, zip(*alone, strict=True), strict=True):
            torch.testing.assert_close(part, torch.cat(own))
    tokens = task.encode(prompts.x, prompts.y)
    assert tokens.shape == (3, task.length, task.inputs)
    options = (task.outputs,) if task.answer == "choice" else ()
    predictions = task.read(tokens.new_zeros(3, task.length, task.outputs))
    assert predictions.shape == (*prompts.y.shape, *options)
    losses = task.loss(predictions, prompts.y)
    assert losses.shape == prompts.y.shape
    assert bool((losses >= 0).all())
    with pytest.raises(ValueError, match="batch must be an integer >= 1"):
        task.sample(0, seed=0)
    with pytest.raises(ValueError, match="seed must be an integer >= 0"):
        task.sample(1, seed=-1)
    with pytest.raises(ValueError, match="dtype must be a floating-point type"):
        task.sample(1, seed=0, dtype=torch.int64)


def check_trace(algorithm: Algorithm, prompts: Prompts) -> None:
    """Shapes, dtype, labels and the tie between weights and predictions."""
    trace = algorithm.trace(prompts)
    target = tuple(prompts.y.shape[2:])
    batch, points = prompts.batch, prompts.positions
    assert trace.prompts is prompts
    assert trace.values.shape == (len(trace), *prompts.y.shape)
    assert trace.weights is not None
    assert trace.weights.shape == (len(trace), batch, points, prompts.dim, *target)
    assert trace.converged is not None
    assert trace.converged.shape == (len(trace), batch, points)
    assert trace.values.dtype == trace.weights.dtype == torch.float64
    assert trace.values.device == prompts.x.device
    assert bool(trace.values.isfinite().all())
    products = torch.einsum("bpd,sbpd...->sbp...", prompts.x.double(), trace.weights)
    torch.testing.assert_close(trace.values, products, rtol=1e-12, atol=1e-12)


def check_prefixes(algorithm: Algorithm, prompts: Prompts) -> None:
    """The prediction at t does not change when examples after it, or its own target, do."""
    other = type(prompts)(x=-2 * prompts.x, y=prompts.y + 3, noise=prompts.noise)
    for t in range(prompts.positions):
        x, y = prompts.x.clone(), prompts.y.clone()
        x[:, t + 1 :], y[:, t:] = other.x[:, t + 1 :], other.y[:, t:]
        changed = algorithm.trace(replace(prompts, x=x, y=y)).values[:, :, t]
        torch.testing.assert_close(changed, algorithm.trace(prompts).values[:, :, t], rtol=1e-9, atol=1e-9)


def check_sequences(algorithm: Algorithm, prompts: Prompts) -> None:
    """A sequence is treated alike in any batch (random starts, which a batch shares out, apart)."""
    if getattr(algorithm, "start", "zero") in ("uniform", "uniform/sqrt(dim)"):
        return
    alone = replace(prompts, x=prompts.x[1:2], y=prompts.y[1:2])
    torch.testing.assert_close(
        algorithm.trace(alone).values[:, 0], algorithm.trace(prompts).values[:, 1], rtol=1e-9, atol=1e-9
    )


def check_stages(algorithm: Algorithm, prompts: Prompts) -> None:
    """Stage k is what a fresh run of k steps ends with; `steps` as a number keeps every step from 0."""
    trace = algorithm.trace(prompts)
    if not hasattr(algorithm, "steps"):
        assert trace.stages == (0,)
        return
    steps = getattr(algorithm, "steps")  # noqa: B009 - the algorithms share the field, not a class that declares it
    assert trace.stages == (tuple(range(steps + 1)) if isinstance(steps, int) else tuple(steps))
    for k, step in enumerate(trace.stages):
        fresh = type(algorithm)(**{**vars(algorithm), "steps": step}).trace(prompts)
        torch.testing.assert_close(trace.values[k], fresh.values[-1], rtol=1e-12, atol=1e-12)


def check_convergence(algorithm: Algorithm, prompts: Prompts) -> None:
    """`converged` means that the gradient of the method's own problem has vanished, and nothing else."""
    trace = algorithm.trace(prompts)
    assert trace.weights is not None
    assert trace.converged is not None
    ridge = getattr(algorithm, "ridge", 0.0)
    ridge = prompts.noise**2 if ridge is None else ridge
    weights = trace.weights.reshape(*trace.weights.shape[:4], -1)
    for t in range(prompts.positions):
        x, y = prompts.x[:, :t], prompts.target_columns[:, :t]
        matrix = x.mT @ x + ridge * torch.eye(prompts.dim, dtype=torch.float64, device=x.device)
        size = (matrix @ weights[:, :, t] - x.mT @ y).flatten(2).norm(dim=2)
        origin = (x.mT @ y).flatten(1).norm(dim=1)
        assert bool((size <= 1.1e-8 * origin + 1e-12)[trace.converged[:, :, t]].all())
        assert bool((size >= 0.9e-8 * origin)[~trace.converged[:, :, t]].all())


def check_answers(algorithm: Algorithm, prompts: Prompts) -> None:
    """One answer a pair, yes or no, the same for (i, j) and (j, i), and yes for a node and its neighbors."""
    trace = algorithm.trace(prompts)
    assert trace.prompts is prompts
    assert trace.values.shape == (len(trace), *prompts.y.shape)
    assert trace.values.dtype == torch.float64
    assert trace.values.device == prompts.x.device
    assert bool(((trace.values == 0) | (trace.values == 1)).all())
    assert torch.equal(trace.values, trace.values.mT)
    assert bool((trace.values.diagonal(dim1=2, dim2=3) == 1).all())
    assert trace.converged is not None
    right = (trace.values == prompts.y).all(-1)
    assert torch.equal(trace.converged, right)
    if not trace.note:  # a method that converges never says too much, and what is right stays right
        assert bool((trace.values <= prompts.y).all())
        assert bool((right[1:] >= right[:-1]).all())


def check_last_step(algorithm: Algorithm, prompts: Prompts) -> None:
    """As many steps as there are nodes are enough for all that converge."""
    if hasattr(algorithm, "steps"):
        enough = type(algorithm)(**{**vars(algorithm), "steps": [prompts.positions]}).trace(prompts)
        assert torch.equal(enough.values[0], prompts.y.double())


ALGORITHM_CHECKS = {
    "regression": [check_trace, check_prefixes, check_sequences, check_stages, check_convergence],
    "graphs": [check_answers, check_sequences, check_stages, check_last_step],
}
REGRESSIONS = [algorithm for algorithm in ALGORITHMS if algorithm.family == "regression"]


def form(model: Model) -> tuple[int, int, int]:
    """Inputs, outputs and length of the network that is built to be checked."""
    if getattr(model, "picture", None):
        height, width = getattr(model, "picture")  # noqa: B009 - as below
        return height * width, OUTPUTS, LENGTH
    return (LENGTH, LENGTH, LENGTH) if isinstance(model, Disentangled) else (INPUTS, OUTPUTS, LENGTH)


def lengths(model: Model) -> tuple[int, ...]:
    """Of the sequences that a network takes: a graph has all its nodes."""
    return (LENGTH,) if isinstance(model, Disentangled) else (LENGTH, 1)


def check_reads(algorithm: Algorithm, prompts: Prompts) -> None:
    """Stage m is the number of a point; more look-ups begin with the same ones."""
    trace, count = algorithm.trace(prompts), prompts.before
    many = getattr(algorithm, "lookups")  # noqa: B009 - as below
    assert trace.prompts is prompts
    assert trace.stages == tuple(range(1, many + 1))
    assert trace.values.shape == (many, *prompts.y.shape)
    assert trace.values.dtype == torch.float64
    assert trace.values.device == prompts.x.device
    assert bool(((trace.values == trace.values.round()) & (trace.values >= 0) & (trace.values < count)).all())
    more = replace(algorithm, lookups=many + count).trace(prompts)  # pyright: ignore[reportArgumentType]
    assert torch.equal(more.values[:many], trace.values)
    assert bool(((more.values >= 0) & (more.values < count)).all())


def check_queries(algorithm: Algorithm, prompts: Prompts) -> None:
    """A sequence is treated alike in any batch, and a query whatever else is asked."""
    values, count = algorithm.trace(prompts).values, prompts.before
    alone = replace(prompts, x=prompts.x[1:2], y=prompts.y[1:2])
    assert torch.equal(algorithm.trace(alone).values[:, 0], values[:, 1])
    first = replace(prompts, x=prompts.x[:, : count + 1], y=prompts.y[:, :1])
    assert torch.equal(algorithm.trace(first).values, values[:, :, :1])


LOOKUP_CHECKS = [check_reads, check_queries]


def check_sketch(algorithm: Algorithm, prompts: Prompts) -> None:
    """Estimates for every position of a stream, which later items do not change; after m reads, those of m rows."""
    trace = algorithm.trace(prompts)
    assert trace.prompts is prompts
    assert trace.values.shape == (len(trace), *prompts.y.shape)
    assert trace.values.dtype == torch.float64
    assert not bool(trace.values[:, :, 0].any())  # nothing has been seen
    for t in range(prompts.positions):
        part = replace(prompts, x=prompts.x[:, : t + 1], y=prompts.y[:, : t + 1])
        assert torch.equal(algorithm.trace(part).values, trace.values[:, :, : t + 1])
    alone = replace(prompts, x=prompts.x[1:2], y=prompts.y[1:2])
    assert torch.equal(algorithm.trace(alone).values[:, 0], trace.values[:, 1])


def build(model: Model, seed: int = 0) -> Network:
    return model.build(*form(model), torch.Generator().manual_seed(seed))


def scrambled(model: Model, seed: int = 0) -> Network:
    """A network in float64 in which all is random: fresh biases, scales and given positions hide mistakes."""
    network, generator = build(model).double(), torch.Generator().manual_seed(seed)
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


MODEL_CHECKS = [
    check_shapes,
    check_states,
    check_builds,
    check_global_randomness,
    check_precisions,
    check_independence,
    check_causality,
]


def check_index(model: Model) -> None:
    """Hard look-ups without noise, soft ones with it; the states that were asked for, and no others."""
    network, tokens = scrambled(model), draw_tokens(3, LENGTH, inputs=form(model)[0])
    assert isinstance(network, IndexNetwork)
    queries, places = network.noise[1:]
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
                assert states[name].shape == (3, queries, places)
                torch.testing.assert_close(states[name].sum(-1), torch.ones(3, queries, dtype=torch.float64))
                hard = bool(((states[name] == 0) | (states[name] == 1)).all())
                assert hard == (given is None)
    assert network(tokens[:, : OUTPUTS + 1]).shape == (3, 1, OUTPUTS)  # fewer queries than it was built for
    with pytest.raises(ValueError, match="tokens must be 2 points and at least one query, got 2"):
        network(tokens[:, :OUTPUTS])


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
]


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
]

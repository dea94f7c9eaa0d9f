"""Does a task, an algorithm or a model of your own keep its contract? Whoever writes one can ask, without pytest.

Each check raises a `ContractError` whose one line names the part that is broken, and returns nothing otherwise.
"""

import contextlib
import inspect
import json
import math
from collections.abc import Collection, Iterator
from dataclasses import is_dataclass, replace
from typing import Any

import torch
from torch import Tensor

from algoscope import registry, runs
from algoscope.algorithms import Algorithm
from algoscope.contracts import Measure, Reader, Task
from algoscope.models import Model, Network
from algoscope.trace import Prompts, Trace

ONE_BY_ONE = ("regression", "streams")  # families whose position t has seen t examples; others see all at once
RANDOM_STARTS = ("uniform", "uniform/sqrt(dim)")  # which a batch shares out
MOST_STAGES = 8  # that are run anew
DEVICES = ("cpu", *(("cuda",) if torch.cuda.is_available() else ()))


class ContractError(AssertionError):
    """A task, an algorithm or a model does not keep its contract."""


def check_task(task: Task) -> None:
    """That it draws, encodes and decodes as a task has to, and that what it names fits it."""
    _check_class(task, Task)
    with _part(task, "sample"):
        prompts = _check_sample(task)
    for device in DEVICES:
        with _part(task, "draw"):
            _check_draw(task, prompts, device)
    with _part(task, "encode"):
        _check_tokens(task, prompts)
    if type(task).decode is not Task.decode:  # which only planted models need
        with _part(task, "decode"):
            _check_decode(task, prompts)
    for name, kind in (("reader", Reader), ("measure", Measure)):
        given = getattr(task, name)
        _require(given is None or isinstance(given, kind), task, name, f"must be a {kind.__name__}, or None")
    with _part(task, "algorithms"):
        found = task.algorithms()
        fits = isinstance(found, list) and all(isinstance(each, Algorithm) for each in found)
        _require(fits, task, "algorithms", "must be a list of algorithms")
        names = [each.name for each in found]
        _require(len(set(names)) == len(names), task, "algorithms", f"must have different names, got {names}")
        for algorithm in found:
            same = algorithm.family == task.family
            _require(same, task, "algorithms", f"must be of the family of the task, {algorithm.name} is not")
            _check_trace(algorithm, prompts)


def check_algorithm(algorithm: Algorithm, task: Task) -> None:
    """That its trace on prompts of the task is one: whole, in float64, and of nothing that it may not know yet."""
    _check_class(algorithm, Algorithm)
    _require(
        algorithm.family == task.family, algorithm, "family", f"must be that of the task, {task.family!r}, to be tried"
    )
    for device in DEVICES:
        prompts = task.sample(3, seed=1, device=device)
        with _part(algorithm, "trace"):
            trace = _check_trace(algorithm, prompts)
            _check_batch(algorithm, prompts, trace)
            _check_knowledge(algorithm, prompts, trace)
        with _part(algorithm, "stages"):
            _check_stages(algorithm, prompts, trace)


def check_model(model: Model, task: Task) -> None:
    """That it builds the network of a task out of a generator alone, and that the network shows its stages."""
    _check_class(model, Model)
    _require(model.family in (None, task.family), model, "family", f"must be None or {task.family!r}, of the task")
    prompts = task.sample(3, seed=1)
    tokens = task.encode(prompts.x, prompts.y)
    with _part(model, "build"):
        _check_builds(model, task, tokens.float())
        network = _disturbed(build(model, task))
    with _part(model, "run"):
        outputs = _check_run(network, task, tokens)
        _check_precision(network, tokens, outputs)


def build(model: Model, task: Task, seed: int = 0) -> Network:
    """A fresh network for a task."""
    return model.build(task.inputs, task.outputs, task.length, torch.Generator().manual_seed(seed))


# Tasks


def _check_sample(task: Task) -> Prompts:
    before = torch.random.get_rng_state()
    prompts = task.sample(3, seed=7)
    same = torch.equal(before, torch.random.get_rng_state())
    _require(same, task, "draw", "must take all randomness from its generators, none from torch's global one")
    _require(prompts.same_as(task.sample(3, seed=7)), task, "sample", "must give the same prompts for the same seed")
    _require(not prompts.same_as(task.sample(3, seed=8)), task, "sample", "must give others for another seed")
    _require(prompts.batch == 3, task, "draw", f"must give as many prompts as are asked for: 3, not {prompts.batch}")
    _require(task.sample(1, seed=0).batch == 1, task, "draw", "must give a single prompt as well")
    power = task.power
    fits = isinstance(power, int | float) and 0 < power < math.inf
    _require(fits, task, "power", f"must be a number > 0, the unit of its errors, got {power!r}")
    return prompts


def _check_draw(task: Task, prompts: Prompts, device: str) -> None:
    for dtype in (torch.float32, torch.bfloat16):
        other = task.sample(3, seed=7, device=device, dtype=dtype)
        same = torch.equal(other.x.cpu(), prompts.x.to(dtype)) and other.y.dtype == dtype
        _require(same, task, "sample", f"must give the same prompts as {dtype} on {device}")
    for dtype in (torch.float32, torch.float64):
        for part in task.draw(2, [torch.Generator(device).manual_seed(0)], dtype):
            _require(part.dtype == dtype, task, "draw", f"must keep to the dtype {dtype}, got {part.dtype}")
            _require(part.device.type == device, task, "draw", f"must draw on the device {device}, got {part.device}")
    seeds = (0, 1)
    together = task.draw(4, [torch.Generator(device).manual_seed(seed) for seed in seeds])
    alone = [task.draw(2, [torch.Generator(device).manual_seed(seed)]) for seed in seeds]
    for part, own in zip(together, zip(*alone, strict=True), strict=True):
        same = _close(part, torch.cat(own), 1e-5)
        _require(same, task, "draw", "must share prompts out evenly: each generator draws as if it were alone")
    if task.gradual:
        easier = task.draw(4, [torch.Generator(device).manual_seed(0)], dims=torch.tensor(1, device=device))
        same = [part.shape for part in easier] == [part.shape for part in together]
        _require(same, task, "draw", "must keep all shapes where a curriculum gives dims; or set gradual to False")


def _check_tokens(task: Task, prompts: Prompts) -> None:
    tokens, shape = task.encode(prompts.x, prompts.y), (3, task.length, task.inputs)
    _require(
        tuple(tokens.shape) == shape, task, "encode", f"must be [batch, length, inputs] {shape}, got {_of(tokens)}"
    )
    _require(bool(tokens.isfinite().all()), task, "encode", "must give finite numbers")
    count = len(task.answering)
    _require(
        count == prompts.positions, task, "answers", f"must be one token a target: {prompts.positions}, not {count}"
    )
    for t, token in enumerate(task.answering):  # the target at t, which its token must not have seen
        y = prompts.y.clone()
        y[:, t] = y.roll(1, 0)[:, t]
        same = torch.equal(task.encode(prompts.x, y)[:, : token + 1], tokens[:, : token + 1])
        _require(same, task, "encode", f"must not show a target up to the token that answers: target {t} does")
    predictions = task.read(tokens.new_zeros(3, task.length, task.outputs))
    options = (task.outputs,) if task.answer == "choice" else ()
    fits = tuple(predictions.shape) == (*prompts.y.shape, *options)
    wanted = f"{[*prompts.y.shape, *options]} as y, got {_of(predictions)}"
    _require(fits, task, "outputs", f"must be as many as a target has, so that predictions are {wanted}")
    losses = task.loss(predictions, prompts.y)
    fits = losses.shape == prompts.y.shape and bool((losses >= 0).all())
    _require(fits, task, "loss", "must be a number >= 0 for each target")


def _check_decode(task: Task, prompts: Prompts) -> None:
    tokens = task.encode(prompts.x, prompts.y)
    found = task.decode(tokens)
    _require(isinstance(found, Prompts), task, "decode", f"must give Prompts, got {type(found).__name__}")
    _require(_close(found.x, prompts.x, 1e-6), task, "decode", "must give back the x that was encoded")
    fits = found.y.shape == prompts.y.shape
    fits = fits and bool((torch.isclose(found.y, prompts.y, rtol=1e-6, atol=1e-9) | (found.y == 0)).all())
    _require(fits, task, "decode", "must give back the y that was encoded, or zero where no token shows it")
    _require(_close(task.encode(found.x, found.y), tokens, 1e-6), task, "decode", "must give back all that tokens show")


# Algorithms


def _check_trace(algorithm: Algorithm, prompts: Prompts) -> Trace:
    x, y = prompts.x.clone(), prompts.y.clone()
    trace = algorithm.trace(prompts)
    _require(isinstance(trace, Trace), algorithm, "trace", f"must give a Trace, got {type(trace).__name__}")
    _require(torch.equal(x, prompts.x) and torch.equal(y, prompts.y), algorithm, "trace", "must not change its prompts")
    _require(trace.prompts is prompts, algorithm, "trace", "must be of the prompts that it was given")
    _require(trace.name == algorithm.name, algorithm, "trace", f"must have the name of the algorithm, {algorithm.name}")
    kind, place = trace.values.dtype, trace.values.device
    _require(kind == torch.float64, algorithm, "trace", f"must be in float64, got {kind}")
    _require(place == prompts.x.device, algorithm, "trace", f"must be on the device of the prompts, got {place}")
    _require(bool(trace.values.isfinite().all()), algorithm, "trace", "must be finite")
    if trace.weights is not None:
        products = torch.einsum("bpd,sbpd...->sbp...", prompts.x.double(), trace.weights)
        _require(_close(trace.values, products, 1e-12), algorithm, "weights", "must be those behind the values, w·x")
    again = algorithm.trace(prompts).values
    _require(torch.equal(again, trace.values), algorithm, "trace", "must be the same each time: seed what is random")
    return trace


def _check_batch(algorithm: Algorithm, prompts: Prompts, trace: Trace) -> None:
    """A sequence is treated alike in any batch."""
    if getattr(algorithm, "start", None) in RANDOM_STARTS:
        return
    alone = algorithm.trace(replace(prompts, x=prompts.x[1:2], y=prompts.y[1:2])).values[:, 0]
    _require(_close(alone, trace.values[:, 1], 1e-9), algorithm, "trace", "must treat a sequence alike in any batch")


def _check_knowledge(algorithm: Algorithm, prompts: Prompts, trace: Trace) -> None:
    """The prediction at t depends neither on its own target nor, where examples come one by one, on later ones."""
    for t in range(prompts.positions):
        x, y = prompts.x.clone(), prompts.y.clone()
        y[:, t] = y.roll(1, 0)[:, t]
        if algorithm.family in ONE_BY_ONE:
            x[:, t + 1 :], y[:, t + 1 :] = x.roll(1, 0)[:, t + 1 :], y.roll(1, 0)[:, t + 1 :]
        changed = algorithm.trace(replace(prompts, x=x, y=y)).values[:, :, t]
        known = "its target, or on examples after it" if algorithm.family in ONE_BY_ONE else "its target"
        same = _close(changed, trace.values[:, :, t], 1e-9)
        _require(same, algorithm, "trace", f"must not know what is asked: the value at {t} depends on {known}")


def _check_stages(algorithm: Algorithm, prompts: Prompts, trace: Trace) -> None:
    """Those that are asked for, each as if the algorithm had been stopped there."""
    own: Any = algorithm
    if hasattr(algorithm, "steps"):
        steps = own.steps
        wanted = tuple(range(steps + 1)) if isinstance(steps, int) else tuple(steps)
        _require(trace.stages == wanted, algorithm, "stages", f"must be the steps 0..K, or those listed: {wanted}")
        for k in range(0, len(wanted), math.ceil(len(wanted) / MOST_STAGES)):
            step, values = wanted[k], trace.values[k]
            fresh = replace(own, steps=step).trace(prompts).values[-1]
            _require(
                _close(fresh, values, 1e-12), algorithm, "stages", f"must hold at {step} what {step} steps end with"
            )
    elif hasattr(algorithm, "lookups"):
        wanted = tuple(range(1, own.lookups + 1))
        _require(trace.stages == wanted, algorithm, "stages", f"must be the look-ups 1..M: {wanted}")
        more = replace(own, lookups=own.lookups + 2).trace(prompts).values[: own.lookups]
        _require(torch.equal(more, trace.values), algorithm, "stages", "must be the same look-ups where more are asked")


# Models


def _check_builds(model: Model, task: Task, tokens: Tensor) -> None:
    before = torch.random.get_rng_state()
    first = build(model, task)
    same = torch.equal(before, torch.random.get_rng_state())
    _require(same, model, "build", "must take all randomness from its generator, none from torch's global one")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(123)
        again = build(model, task)
    for name, tensor in first.state_dict().items():
        _require(torch.equal(tensor, again.state_dict()[name]), model, "build", f"must draw {name} from its generator")
        _require(tensor.dtype == torch.float32, model, "build", f"must make {name} in float32, got {tensor.dtype}")
    _require(isinstance(first, Network), model, "build", f"must give a Network, got {type(first).__name__}")
    _require(torch.equal(first(tokens), again(tokens)), model, "build", "must make a network that is a function")
    other = dict(build(model, task, seed=1).named_parameters())
    count = sum(tensor.numel() for tensor in other.values())
    _require(first.parameter_count == count, first, "parameter_count", f"must be {count}, the size of its parameters")
    drawn = [(name, tensor) for name, tensor in first.named_parameters() if len(tensor.unique()) > 1]
    for name, tensor in drawn:
        _require(not torch.equal(tensor, other[name]), model, "build", f"must draw {name} anew for another generator")


def _check_run(network: Network, task: Task, tokens: Tensor) -> Tensor:
    """Just the states that are asked for come back, whichever others do."""
    network = network.double()
    stages = network.stages
    fits = len(set(stages)) == len(stages) > 0 and isinstance(stages, tuple)
    _require(fits, network, "stages", f"must be a tuple of different names, in their order, got {stages!r}")
    outputs, states = network.run(tokens, stages)
    shape = (len(tokens), task.length, task.outputs)
    fits = outputs.shape[0] == shape[0] and outputs.shape[2] == shape[2] and outputs.shape[1] <= shape[1]
    _require(fits, network, "run", f"must give outputs [batch, length, outputs] {shape}, got {_of(outputs)}")
    _require(tuple(states) == stages, network, "run", f"must show its stages in their order, got {tuple(states)}")
    for name, state in {"outputs": outputs, **states}.items():
        _require(bool(state.isfinite().all()), network, "run", f"must give finite numbers: {name} has others")
        _require(len(state) == len(tokens), network, "run", f"must give a state for each sequence: {name} has not")
    _require(network.run(tokens)[1] == {}, network, "run", "must show no state that is not asked for")
    for name in stages:
        same, only = network.run(tokens, [name])
        _require(set(only) == {name}, network, "run", f"must show {name} alone where that is asked for")
        fits = torch.equal(only[name], states[name]) and torch.equal(same, outputs)
        _require(fits, network, "run", f"must give the same outputs and states where only {name} is asked for")
    _require(torch.equal(network(tokens), outputs), network, "forward", "must give the outputs of run")
    alone = network(tokens[1:2])[0]
    _require(_close(alone, outputs[1], 1e-12), network, "run", "must treat a sequence alike in any batch")
    return outputs


def _check_precision(network: Network, tokens: Tensor, exact: Tensor) -> None:
    _require(
        exact.dtype == torch.float64, network, "run", f"must compute in float64 once turned to it, got {exact.dtype}"
    )
    rounded = network.float()(tokens.float())
    _require(
        rounded.dtype == torch.float32,
        network,
        "run",
        f"must compute in float32 once turned to it, got {rounded.dtype}",
    )
    _require(_close(rounded.double(), exact, 1e-4), network, "run", "must compute the same in float32 and float64")


@torch.no_grad()
def _disturbed(network: Network) -> Network:
    """With fresh numbers in all of its parameters: biases of zero hide mistakes."""
    generator = torch.Generator().manual_seed(0)
    for parameter in network.parameters():
        size = parameter.shape[-1] ** -0.5 if parameter.ndim > 1 else 0.5
        parameter.add_(0.1 * size * torch.randn(parameter.shape, generator=generator))
    return network


# All of them


def _check_class(value: Any, base: type) -> None:
    """That it is a value, which a configuration can hold and give back."""
    if not isinstance(value, base):
        raise ContractError(f"{type(value).__name__} must extend {base.__name__}")
    own = is_dataclass(value) and "__dataclass_params__" in vars(type(value))
    _require(own, value, "class", "must be decorated with @dataclass(frozen=True), or its fields are none")
    frozen = vars(type(value))["__dataclass_params__"].frozen
    _require(frozen, value, "class", "must be frozen: @dataclass(frozen=True)")
    _require(not inspect.isabstract(type(value)), value, "class", "must implement all methods")
    if base is Algorithm:
        return
    with _part(value, "class"):
        hash(value)
        held = json.loads(json.dumps(runs.plain(value)))
        same = runs.revive(held, Task, Model) == value
        _require(same, value, "class", "must be the same again when it is made of its own fields")
        _require(registry.loaded(held["kind"], base) is type(value), value, "class", "must be found by its name")


@contextlib.contextmanager
def _part(of: object, part: str) -> Iterator[None]:
    """Whatever goes wrong within is of this part."""
    try:
        yield
    except ContractError:
        raise
    except Exception as problem:  # whatever the code of a user raises
        reason = (str(problem).splitlines() or [""])[0]
        raise ContractError(f"{type(of).__name__}.{part} fails with {type(problem).__name__}: {reason}") from problem


def _require(kept: bool, of: object, part: str, contract: str) -> None:
    if not kept:
        raise ContractError(f"{type(of).__name__}.{part} {contract}")


def _close(a: Tensor, b: Tensor, tolerance: float) -> bool:
    return a.shape == b.shape and torch.allclose(a.double(), b.to(a.device).double(), rtol=tolerance, atol=tolerance)


def _of(tensor: Tensor) -> Collection[int]:
    return list(tensor.shape)

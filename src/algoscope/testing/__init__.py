"""Does a task, an algorithm, a model or a symmetry of your own keep its contract? Whoever writes one can ask, without
pytest.

Each check raises a `ContractError` whose one line names the part that is broken, and returns nothing otherwise.
"""

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from algoscope.algorithms import Algorithm
from algoscope.contracts import Change, Measure, Reader, Symmetry, Task
from algoscope.models import Model, Network
from algoscope.symmetries import changed, relative_defect
from algoscope.testing.parts import ContractError, check_class, checking, close, require, shape_of
from algoscope.trace import Prompts, Trace

__all__ = ["ContractError", "build", "check_algorithm", "check_model", "check_symmetry", "check_task"]

ONE_BY_ONE = ("regression", "streams")  # families whose position t has seen t examples; others see all at once
RANDOM_STARTS = ("uniform", "uniform/sqrt(dim)")  # which a batch shares out
MOST_STAGES = 8  # that are run anew
KEPT = 1e-6  # relative defect of a law, up to which it is kept: the rest is rounding
DEVICES = ("cpu", *(("cuda",) if torch.cuda.is_available() else ()))


def check_task(task: Task) -> None:
    """That it draws, encodes and decodes as a task has to, and that what it names fits it."""
    check_class(task, Task)
    with checking(task, "sample"):
        prompts = _check_sample(task)
    for device in DEVICES:
        with checking(task, "draw"):
            _check_draw(task, prompts, device)
    with checking(task, "encode"):
        _check_tokens(task, prompts)
    if type(task).decode is not Task.decode:  # which only planted models need
        with checking(task, "decode"):
            _check_decode(task, prompts)
    for name, kind in (("reader", Reader), ("measure", Measure)):
        given = getattr(task, name)
        require(given is None or isinstance(given, kind), task, name, f"must be a {kind.__name__}, or None")
    with checking(task, "algorithms"):
        found = task.algorithms()
        fits = isinstance(found, list) and all(isinstance(each, Algorithm) for each in found)
        require(fits, task, "algorithms", "must be a list of algorithms")
        names = [each.name for each in found]
        require(len(set(names)) == len(names), task, "algorithms", f"must have different names, got {names}")
        for algorithm in found:
            same = algorithm.family == task.family
            require(same, task, "algorithms", f"must be of the family of the task, {algorithm.name} is not")
            _check_trace(algorithm, prompts)
    laws = task.symmetries
    fits = isinstance(laws, tuple) and all(isinstance(each, Symmetry) for each in laws)
    require(fits, task, "symmetries", "must be a tuple of symmetries")
    for symmetry in laws:
        check_symmetry(symmetry, task)


def check_algorithm(algorithm: Algorithm, task: Task) -> None:
    """That its trace on prompts of the task is one: whole, in float64, and of nothing that it may not know yet."""
    check_class(algorithm, Algorithm)
    require(
        algorithm.family == task.family, algorithm, "family", f"must be that of the task, {task.family!r}, to be tried"
    )
    for device in DEVICES:
        prompts = task.sample(3, seed=1, device=device)
        with checking(algorithm, "trace"):
            trace = _check_trace(algorithm, prompts)
            _check_batch(algorithm, prompts, trace)
            _check_knowledge(algorithm, prompts, trace)
        with checking(algorithm, "stages"):
            _check_stages(algorithm, prompts, trace)
    with checking(algorithm, "keeps"):
        _check_keeps(algorithm, task)


def check_model(model: Model, task: Task) -> None:
    """That it builds the network of a task out of a generator alone, and that the network shows its stages."""
    check_class(model, Model)
    require(model.family in (None, task.family), model, "family", f"must be None or {task.family!r}, of the task")
    prompts = task.sample(3, seed=1)
    tokens = task.encode(prompts.x, prompts.y)
    with checking(model, "build"):
        _check_builds(model, task, tokens.float())
        network = _disturbed(build(model, task))
    with checking(model, "run"):
        outputs = _check_run(network, task, tokens)
        _check_precision(network, tokens, outputs)


def check_symmetry(symmetry: Symmetry, task: Task) -> None:
    """That it makes prompts such as those of the task, by its seed alone, and a law about any answers to them."""
    check_class(symmetry, Symmetry)
    require(symmetry.family == task.family, symmetry, "family", f"must be that of the task, {task.family!r}")
    for device in DEVICES:
        prompts = task.sample(3, seed=1, device=device)
        with checking(symmetry, "change"):
            change = _check_change(symmetry, prompts, task)
        with checking(symmetry, "law"):
            _check_law(symmetry, change)


def build(model: Model, task: Task, seed: int = 0) -> Network:
    """A fresh network for a task."""
    return model.build(task.inputs, task.outputs, task.length, torch.Generator().manual_seed(seed))


# Tasks


def _check_sample(task: Task) -> Prompts:
    before = torch.random.get_rng_state()
    prompts = task.sample(3, seed=7)
    same = torch.equal(before, torch.random.get_rng_state())
    require(same, task, "draw", "must take all randomness from its generators, none from torch's global one")
    require(prompts.same_as(task.sample(3, seed=7)), task, "sample", "must give the same prompts for the same seed")
    require(not prompts.same_as(task.sample(3, seed=8)), task, "sample", "must give others for another seed")
    require(prompts.batch == 3, task, "draw", f"must give as many prompts as are asked for: 3, not {prompts.batch}")
    require(task.sample(1, seed=0).batch == 1, task, "draw", "must give a single prompt as well")
    power = task.power
    fits = isinstance(power, int | float) and 0 < power < math.inf
    require(fits, task, "power", f"must be a number > 0, the unit of its errors, got {power!r}")
    return prompts


def _check_draw(task: Task, prompts: Prompts, device: str) -> None:
    for dtype in (torch.float32, torch.bfloat16):
        other = task.sample(3, seed=7, device=device, dtype=dtype)
        same = torch.equal(other.x.cpu(), prompts.x.to(dtype)) and other.y.dtype == dtype
        require(same, task, "sample", f"must give the same prompts as {dtype} on {device}")
    for dtype in (torch.float32, torch.float64):
        for part in task.draw(2, [torch.Generator(device).manual_seed(0)], dtype):
            require(part.dtype == dtype, task, "draw", f"must keep to the dtype {dtype}, got {part.dtype}")
            require(part.device.type == device, task, "draw", f"must draw on the device {device}, got {part.device}")
    seeds = (0, 1)
    together = task.draw(4, [torch.Generator(device).manual_seed(seed) for seed in seeds])
    alone = [task.draw(2, [torch.Generator(device).manual_seed(seed)]) for seed in seeds]
    for part, own in zip(together, zip(*alone, strict=True), strict=True):
        same = close(part, torch.cat(own), 1e-5)
        require(same, task, "draw", "must share prompts out evenly: each generator draws as if it were alone")
    if task.gradual:
        easier = task.draw(4, [torch.Generator(device).manual_seed(0)], dims=torch.tensor(1, device=device))
        same = [part.shape for part in easier] == [part.shape for part in together]
        require(same, task, "draw", "must keep all shapes where a curriculum gives dims; or set gradual to False")


def _check_tokens(task: Task, prompts: Prompts) -> None:
    tokens, shape = task.encode(prompts.x, prompts.y), (3, task.length, task.inputs)
    require(
        tuple(tokens.shape) == shape, task, "encode", f"must be [batch, length, inputs] {shape}, got {shape_of(tokens)}"
    )
    require(bool(tokens.isfinite().all()), task, "encode", "must give finite numbers")
    count = len(task.answering)
    require(
        count == prompts.positions, task, "answers", f"must be one token a target: {prompts.positions}, not {count}"
    )
    for t, token in enumerate(task.answering):  # the target at t, which its token must not have seen
        y = prompts.y.clone()
        y[:, t] = y.roll(1, 0)[:, t]
        same = torch.equal(task.encode(prompts.x, y)[:, : token + 1], tokens[:, : token + 1])
        require(same, task, "encode", f"must not show a target up to the token that answers: target {t} does")
    predictions = task.read(tokens.new_zeros(3, task.length, task.outputs))
    options = (task.outputs,) if task.answer == "choice" else ()
    fits = tuple(predictions.shape) == (*prompts.y.shape, *options)
    wanted = f"{[*prompts.y.shape, *options]} as y, got {shape_of(predictions)}"
    require(fits, task, "outputs", f"must be as many as a target has, so that predictions are {wanted}")
    losses = task.loss(predictions, prompts.y)
    fits = losses.shape == prompts.y.shape and bool((losses >= 0).all())
    require(fits, task, "loss", "must be a number >= 0 for each target")


def _check_decode(task: Task, prompts: Prompts) -> None:
    tokens = task.encode(prompts.x, prompts.y)
    found = task.decode(tokens)
    require(isinstance(found, Prompts), task, "decode", f"must give Prompts, got {type(found).__name__}")
    require(close(found.x, prompts.x, 1e-6), task, "decode", "must give back the x that was encoded")
    fits = found.y.shape == prompts.y.shape
    fits = fits and bool((torch.isclose(found.y, prompts.y, rtol=1e-6, atol=1e-9) | (found.y == 0)).all())
    require(fits, task, "decode", "must give back the y that was encoded, or zero where no token shows it")
    require(close(task.encode(found.x, found.y), tokens, 1e-6), task, "decode", "must give back all that tokens show")


# Algorithms


def _check_trace(algorithm: Algorithm, prompts: Prompts) -> Trace:
    x, y = prompts.x.clone(), prompts.y.clone()
    trace = algorithm.trace(prompts)
    require(isinstance(trace, Trace), algorithm, "trace", f"must give a Trace, got {type(trace).__name__}")
    require(torch.equal(x, prompts.x) and torch.equal(y, prompts.y), algorithm, "trace", "must not change its prompts")
    require(trace.prompts is prompts, algorithm, "trace", "must be of the prompts that it was given")
    require(trace.name == algorithm.name, algorithm, "trace", f"must have the name of the algorithm, {algorithm.name}")
    kind, place = trace.values.dtype, trace.values.device
    require(kind == torch.float64, algorithm, "trace", f"must be in float64, got {kind}")
    require(place == prompts.x.device, algorithm, "trace", f"must be on the device of the prompts, got {place}")
    require(bool(trace.values.isfinite().all()), algorithm, "trace", "must be finite")
    if trace.weights is not None:
        products = torch.einsum("bpd,sbpd...->sbp...", prompts.x.double(), trace.weights)
        require(close(trace.values, products, 1e-12), algorithm, "weights", "must be those behind the values, w·x")
    again = algorithm.trace(prompts).values
    require(torch.equal(again, trace.values), algorithm, "trace", "must be the same each time: seed what is random")
    return trace


def _check_batch(algorithm: Algorithm, prompts: Prompts, trace: Trace) -> None:
    """A sequence is treated alike in any batch."""
    if getattr(algorithm, "start", None) in RANDOM_STARTS:
        return
    alone = algorithm.trace(replace(prompts, x=prompts.x[1:2], y=prompts.y[1:2])).values[:, 0]
    require(close(alone, trace.values[:, 1], 1e-9), algorithm, "trace", "must treat a sequence alike in any batch")


def _check_knowledge(algorithm: Algorithm, prompts: Prompts, trace: Trace) -> None:
    """The prediction at t depends neither on its own target nor, where examples come one by one, on later ones."""
    for t in range(prompts.positions):
        x, y = prompts.x.clone(), prompts.y.clone()
        y[:, t] = y.roll(1, 0)[:, t]
        if algorithm.family in ONE_BY_ONE:
            x[:, t + 1 :], y[:, t + 1 :] = x.roll(1, 0)[:, t + 1 :], y.roll(1, 0)[:, t + 1 :]
        changed = algorithm.trace(replace(prompts, x=x, y=y)).values[:, :, t]
        known = "its target, or on examples after it" if algorithm.family in ONE_BY_ONE else "its target"
        same = close(changed, trace.values[:, :, t], 1e-9)
        require(same, algorithm, "trace", f"must not know what is asked: the value at {t} depends on {known}")


def _check_stages(algorithm: Algorithm, prompts: Prompts, trace: Trace) -> None:
    """Those that are asked for, each as if the algorithm had been stopped there."""
    own: Any = algorithm
    if hasattr(algorithm, "steps"):
        steps = own.steps
        wanted = tuple(range(steps + 1)) if isinstance(steps, int) else tuple(steps)
        require(trace.stages == wanted, algorithm, "stages", f"must be the steps 0..K, or those listed: {wanted}")
        for k in range(0, len(wanted), math.ceil(len(wanted) / MOST_STAGES)):
            step, values = wanted[k], trace.values[k]
            fresh = replace(own, steps=step).trace(prompts).values[-1]
            require(close(fresh, values, 1e-12), algorithm, "stages", f"must hold at {step} what {step} steps end with")
    elif hasattr(algorithm, "lookups"):
        wanted = tuple(range(1, own.lookups + 1))
        require(trace.stages == wanted, algorithm, "stages", f"must be the look-ups 1..M: {wanted}")
        more = replace(own, lookups=own.lookups + 2).trace(prompts).values[: own.lookups]
        require(torch.equal(more, trace.values), algorithm, "stages", "must be the same look-ups where more are asked")


def _check_keeps(algorithm: Algorithm, task: Task) -> None:
    """That it keeps the laws that it promises to keep."""
    prompts = task.sample(8, seed=1)
    for symmetry in task.symmetries:
        kept = algorithm.keeps(symmetry)
        require(kept in (True, False, None), algorithm, "keeps", f"must be True, False or None, got {kept!r}")
        if kept:
            defect = float(relative_defect(lambda each: algorithm.trace(each).values, symmetry, prompts).max())
            require(
                defect < KEPT, algorithm, "keeps", f"must not promise what it breaks: {symmetry.name}, {defect:.2g}"
            )


# Symmetries


def _check_change(symmetry: Symmetry, prompts: Prompts, task: Task) -> Change:
    x, y, before = prompts.x.clone(), prompts.y.clone(), torch.random.get_rng_state()
    change = changed(symmetry, prompts)
    require(isinstance(change, Change), symmetry, "change", f"must give a Change, got {type(change).__name__}")
    kept = torch.equal(x, prompts.x) and torch.equal(y, prompts.y)
    require(kept, symmetry, "change", "must not change its prompts")
    again = changed(symmetry, prompts)
    same = torch.equal(before, torch.random.get_rng_state())
    same = same and all(a.same_as(b) for a, b in zip(change.prompts, again.prompts, strict=True))
    require(same, symmetry, "change", "must take all randomness from its generator, none from torch's global one")
    for other in change.prompts:
        for part, own in ((other.x, prompts.x), (other.y, prompts.y)):
            fits = part.shape == own.shape and part.dtype == own.dtype and part.device == own.device
            require(fits, symmetry, "change", "must keep the shapes, the dtype and the device of the prompts")
        tokens = task.encode(other.x, other.y)
        require(bool(tokens.isfinite().all()), symmetry, "change", "must give prompts that the task can encode")
    return change


def _check_law(symmetry: Symmetry, change: Change) -> None:
    generator = torch.Generator().manual_seed(0)
    shape = (4, *change.prompts[0].y.shape)
    drawn = [torch.randn(shape, generator=generator, dtype=torch.float64) for _ in change.prompts]
    answers = [each.to(change.prompts[0].x.device) for each in drawn]
    found, expected = change.law(answers)
    same = found.shape == expected.shape and found.shape[:2] == shape[:2]
    got = f"got {shape_of(found)} and {shape_of(expected)}"
    require(same, symmetry, "law", f"must give two tensors [stages, batch, ...] {shape_of(answers[0][:, :, 0])}, {got}")
    defect = change.relative_defect(answers)
    require(bool((defect > 0).any()), symmetry, "law", "must be one that answers can break")


# Models


def _check_builds(model: Model, task: Task, tokens: Tensor) -> None:
    before = torch.random.get_rng_state()
    first = build(model, task)
    same = torch.equal(before, torch.random.get_rng_state())
    require(same, model, "build", "must take all randomness from its generator, none from torch's global one")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(123)
        again = build(model, task)
    for name, tensor in first.state_dict().items():
        require(torch.equal(tensor, again.state_dict()[name]), model, "build", f"must draw {name} from its generator")
        require(tensor.dtype == torch.float32, model, "build", f"must make {name} in float32, got {tensor.dtype}")
    require(isinstance(first, Network), model, "build", f"must give a Network, got {type(first).__name__}")
    require(torch.equal(first(tokens), again(tokens)), model, "build", "must make a network that is a function")
    other = dict(build(model, task, seed=1).named_parameters())
    count = sum(tensor.numel() for tensor in other.values())
    require(first.parameter_count == count, first, "parameter_count", f"must be {count}, the size of its parameters")
    drawn = [(name, tensor) for name, tensor in first.named_parameters() if len(tensor.unique()) > 1]
    for name, tensor in drawn:
        require(not torch.equal(tensor, other[name]), model, "build", f"must draw {name} anew for another generator")


def _check_run(network: Network, task: Task, tokens: Tensor) -> Tensor:
    """Just the states that are asked for come back, whichever others do."""
    network = network.double()
    stages = network.stages
    fits = len(set(stages)) == len(stages) > 0 and isinstance(stages, tuple)
    require(fits, network, "stages", f"must be a tuple of different names, in their order, got {stages!r}")
    outputs, states = network.run(tokens, stages)
    shape = (len(tokens), task.length, task.outputs)
    fits = outputs.shape[0] == shape[0] and outputs.shape[2] == shape[2] and outputs.shape[1] <= shape[1]
    require(fits, network, "run", f"must give outputs [batch, length, outputs] {shape}, got {shape_of(outputs)}")
    require(tuple(states) == stages, network, "run", f"must show its stages in their order, got {tuple(states)}")
    for name, state in {"outputs": outputs, **states}.items():
        require(bool(state.isfinite().all()), network, "run", f"must give finite numbers: {name} has others")
        require(len(state) == len(tokens), network, "run", f"must give a state for each sequence: {name} has not")
    require(network.run(tokens)[1] == {}, network, "run", "must show no state that is not asked for")
    for name in stages:
        same, only = network.run(tokens, [name])
        require(set(only) == {name}, network, "run", f"must show {name} alone where that is asked for")
        fits = torch.equal(only[name], states[name]) and torch.equal(same, outputs)
        require(fits, network, "run", f"must give the same outputs and states where only {name} is asked for")
    require(torch.equal(network(tokens), outputs), network, "forward", "must give the outputs of run")
    alone = network(tokens[1:2])[0]
    require(close(alone, outputs[1], 1e-12), network, "run", "must treat a sequence alike in any batch")
    return outputs


def _check_precision(network: Network, tokens: Tensor, exact: Tensor) -> None:
    require(
        exact.dtype == torch.float64, network, "run", f"must compute in float64 once turned to it, got {exact.dtype}"
    )
    rounded = network.float()(tokens.float())
    require(
        rounded.dtype == torch.float32,
        network,
        "run",
        f"must compute in float32 once turned to it, got {rounded.dtype}",
    )
    require(close(rounded.double(), exact, 1e-4), network, "run", "must compute the same in float32 and float64")


@torch.no_grad()
def _disturbed(network: Network) -> Network:
    """With fresh numbers in all of its parameters: biases of zero hide mistakes."""
    generator = torch.Generator().manual_seed(0)
    for parameter in network.parameters():
        size = parameter.shape[-1] ** -0.5 if parameter.ndim > 1 else 0.5
        parameter.add_(0.1 * size * torch.randn(parameter.shape, generator=generator))
    return network

"""What a step of each model costs (Section 5.6): parameters, operations, time, memory, and shares of pre and post."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from algoscope import runs
from algoscope.contracts import Task
from algoscope.models import AlgoFormer, Looped, Transformer
from algoscope.models.algoformer import AlgoFormerNetwork
from algoscope.models.transformer import TransformerNetwork
from algoscope.randomness import stream
from algoscope.studies.algoformer.names import ALGOFORMER, LOOPED, STANDARD
from algoscope.training import Member, Settings, bench

SECONDS = {"smoke": 0.02, "laptop": 1.0, "paper": 2.0}  # to time each by
LONG = 200  # loops at inference
BATCH, BATCH_ON_CPU = 64, {"smoke": 2, "laptop": 64, "paper": 2}


def costs(task: Task, models: tuple[Transformer, ...], scale: str, device: torch.device) -> dict[str, Any]:
    """Of the three models."""
    batch = BATCH if device.type == "cuda" else BATCH_ON_CPU[scale]
    rows = [of_model(model, task, batch, device, SECONDS[scale]) for model in models]
    told = {"dim": task.inputs, "batch": batch, "device": runs.provenance(device)["device"]}
    return {"task": type(task).__name__, "costs": rows, **told}


def of_model(model: Transformer, task: Task, batch: int, device: torch.device, seconds: float) -> dict[str, Any]:
    network = built(model, task)
    speed = bench.measure(model, [Member(task)], Settings(steps=1000, batch=batch), device, seconds)
    tokens = task.encode(*task.draw(batch, [stream("prompts", 0)], torch.float32)).to(device)
    row: dict[str, Any] = {
        "model": kind_of(model),
        "parameters": network.parameter_count,
        "training_flops": training_flops(network, task) * batch,
        "inference_flops": inference_flops(network, task) * batch,
        "training_ms": 1000 / speed.steps_per_s,
        "memory_gib": speed.gib or None,
    }
    network = network.to(device).eval()
    row["inference_ms"] = 1000 / bench.rate(lambda: inference(network, tokens), device, seconds)
    if isinstance(network, AlgoFormerNetwork):
        row |= shares(model, task) | {"time_shares": time_shares(network, tokens, device, seconds)}
    return row


def kind_of(model: Transformer) -> str:
    return ALGOFORMER if isinstance(model, AlgoFormer) else LOOPED if isinstance(model, Looped) else STANDARD


def built(model: Transformer, task: Task) -> TransformerNetwork:
    return model.build(task.inputs, task.outputs, task.length, stream("weights", 0))


def one_prompt(task: Task) -> Tensor:
    return task.encode(*task.draw(1, [stream("prompts", 0)], torch.float32))


@torch.no_grad()
def inference(network: TransformerNetwork, tokens: Tensor) -> Tensor:
    return network(tokens)


def inference_flops(network: TransformerNetwork, task: Task) -> int:
    """Multiplications and additions of matrix products, for one prompt."""
    tokens = one_prompt(task)
    with FlopCounterMode(display=False) as counter:
        inference(network, tokens)
    return counter.get_total_flops()


def training_flops(network: TransformerNetwork, task: Task) -> int:
    """The same, with the answers that training scores and their gradients."""
    tokens = one_prompt(task)
    with FlopCounterMode(display=False) as counter:
        network(tokens, every=True).sum().backward()
    network.zero_grad(set_to_none=True)
    return counter.get_total_flops()


def shares(model: Transformer, task: Task) -> dict[str, float]:
    """Of all operations, those outside of the loops: in training, and at inference with as many loops and with 200."""
    assert isinstance(model, AlgoFormer)
    (training,) = outside(model, task, training_flops, model.loops)
    same, long = outside(model, task, inference_flops, model.loops, LONG)
    return {"training_share": training, "inference_share_same": same, "inference_share_long": long}


def outside(model: AlgoFormer, task: Task, count: Any, *loops: int) -> list[float]:
    """The share with so many loops: each costs what one more adds."""
    total, more = (count(built(replace(model, loops=k), task), task) for k in (model.loops, model.loops + 1))
    rest = total - model.loops * (more - total)
    return [rest / (rest + k * (more - total)) for k in loops]


def time_shares(network: AlgoFormerNetwork, tokens: Tensor, device: torch.device, seconds: float) -> dict[str, float]:
    """The share of inference time outside of the loops, from the times of the parts."""
    with torch.no_grad():
        begun, given = network.begin((network.embedded(tokens),))

        def before() -> object:
            return network.begin((network.embedded(tokens),))

        def loop() -> object:
            return network.loop(1, begun, given)

        def after() -> object:
            return network.answer(network.end(begun))

        once, again, last = (1 / bench.rate(part, device, seconds) for part in (before, loop, after))
    return {str(loops): (once + last) / (once + last + loops * again) for loops in (network.loops, LONG)}

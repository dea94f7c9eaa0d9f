"""What the models cost (Section 5.6): parameters, and of AlgoFormer's operations those outside of the loops."""

from dataclasses import replace
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from algoscope.contracts import Task
from algoscope.models import AlgoFormer, Transformer
from algoscope.models.transformer import TransformerNetwork
from algoscope.randomness import stream

LONG = 200  # loops at inference


def costs(task: Task, models: dict[str, Transformer], scale: str) -> dict[str, Any]:
    """Of the three models."""
    rows = []
    for name, model in models.items():
        row = {"model": name, "parameters": built(model, task).parameter_count}
        rows.append(row | (shares(model, task) if isinstance(model, AlgoFormer) else {}))
    return {"dim": task.inputs, "costs": rows}


def built(model: Transformer, task: Task) -> TransformerNetwork:
    return model.build(task.inputs, task.outputs, task.length, stream("weights", 0))


def flops(network: TransformerNetwork, task: Task, training: bool) -> int:
    """Multiplications and additions of matrix products, for one prompt; in training with the answers that are scored,
    and their gradients.
    """
    tokens = task.encode(*task.draw(1, [stream("prompts", 0)], torch.float32))
    with FlopCounterMode(display=False) as counter, torch.set_grad_enabled(training):
        answers = network(tokens, every=training)
        if training:
            answers.sum().backward()
    return counter.get_total_flops()


def shares(model: AlgoFormer, task: Task) -> dict[str, float]:
    """Of all operations, those outside of the loops: in training, and at inference with as many loops and with 200."""
    (training,) = outside(model, task, True, model.loops)
    same, long = outside(model, task, False, model.loops, LONG)
    return {"training_share": training, "inference_share_same": same, "inference_share_long": long}


def outside(model: AlgoFormer, task: Task, training: bool, *loops: int) -> list[float]:
    """The share with so many loops: each costs what one more adds."""
    total, more = (flops(built(replace(model, loops=k), task), task, training) for k in (model.loops, model.loops + 1))
    rest = total - model.loops * (more - total)
    return [rest / (rest + k * (more - total)) for k in loops]

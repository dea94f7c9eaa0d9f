"""What is measured of a learned sketch: its errors along the stream beside those of sketches that people wrote."""

from typing import Any

import torch
from torch import Tensor

from algoscope.matching.bootstrap import interval, resampling
from algoscope.models import Network
from algoscope.models.sketch import SketchNetwork
from algoscope.studies.data_structures.references import MODEL, sketches
from algoscope.tasks import ZipfStream
from algoscope.trace import Prompts

SEEDS = 5  # hash functions, over which errors are averaged


@torch.no_grad()
def measure_stream(task: ZipfStream, network: Network, prompts: Prompts) -> dict[str, Any]:
    """Mean absolute errors by position, of all positions, and how much less the model's are; how it uses its cells."""
    assert isinstance(network, SketchNetwork)
    parameter = next(network.parameters())
    tokens = task.encode(prompts.x, prompts.y).to(parameter.device, parameter.dtype)
    said = torch.cat([task.read(network(part)) for part in tokens.split(256)]).double().cpu()
    errors = {MODEL: (said - prompts.y).abs()}
    cells, accesses = network.model.cells, network.model.accesses
    drawn = [sketches(task, cells, accesses, seed) for seed in range(SEEDS)]
    for name in drawn[0]:
        known = [each[name].trace(prompts).values[-1] - prompts.y for each in drawn]
        errors[name] = torch.stack(known).abs().mean(0)
    rows, along = [], []
    for name, off in errors.items():
        rows.append({"what": name, **_told(off), **{f"ahead_{k}": v for k, v in _told(off - errors[MODEL]).items()}})
        along += [{"what": name, "seen": t, **_told(off[:, t : t + 1])} for t in _positions(task)]
    return {"errors": rows, "along": along, "cells": _cells(network, task)}


def _positions(task: ZipfStream) -> list[int]:
    return sorted({round(task.items * k / 20) for k in range(21)})


def _told(values: Tensor) -> dict[str, Any]:
    each = values.mean(1, keepdim=True)
    low, high = interval(each, resampling(len(each), 1000, 0), 0.95)
    return {"value": float(each.mean()), "low": float(low), "high": float(high), "n": len(each)}


def _cells(network: SketchNetwork, task: ZipfStream) -> list[dict[str, Any]]:
    """The cell in which each item is counted, and what it adds to it; of a large universe, the first items."""
    parameter = next(network.parameters())
    items = torch.eye(task.universe, device=parameter.device, dtype=parameter.dtype)[:100]
    written = network.run(items[None], ["write"])[1]["write"][0].cpu()
    where = written.abs().argmax(1)
    return [{"item": i, "cell": int(cell), "adds": float(written[i, cell])} for i, cell in enumerate(where)]

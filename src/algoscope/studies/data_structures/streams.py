"""What is measured of a learned sketch: its errors along the stream beside those of sketches that people wrote."""

from typing import Any

import torch
from torch import Tensor

from algoscope.matching.bootstrap import interval, resampling
from algoscope.models import Network
from algoscope.models.sketch import SketchNetwork
from algoscope.studies.data_structures.references import MODEL, sketches
from algoscope.tasks.streams import Stream
from algoscope.trace import Prompts

PART = 64  # streams at a time: bounds the memory
ITEMS, IMAGES = 100, 20  # whose cells are told, and times that each is shown
SEEDS = 5  # hash functions, over which errors are averaged


@torch.no_grad()
def measure_stream(task: Stream, network: Network, prompts: Prompts) -> dict[str, Any]:
    """Mean absolute errors by position, of all positions, and how much less the model's are; how it uses its cells."""
    assert isinstance(network, SketchNetwork)
    parameter = next(network.parameters())
    parts = zip(prompts.x.split(PART), prompts.y.split(PART), strict=True)
    tokens = (task.encode(x, y).to(parameter.device, parameter.dtype) for x, y in parts)
    said = torch.cat([task.read(network(part)) for part in tokens]).double().cpu()
    errors = {MODEL: (said - prompts.y).abs()}
    cells, accesses = network.model.cells, network.model.accesses
    drawn = [sketches(cells, accesses, seed) for seed in range(SEEDS)]
    for name in drawn[0]:
        known = [each[name].trace(prompts).values[-1] - prompts.y for each in drawn]
        errors[name] = torch.stack(known).abs().mean(0)
    rows, along = [], []
    for name, off in errors.items():
        rows.append({"what": name, **_told(off), **{f"ahead_{k}": v for k, v in _told(off - errors[MODEL]).items()}})
        along += [{"what": name, "seen": t, **_told(off[:, t : t + 1])} for t in _positions(task)]
    return {"errors": rows, "along": along, "cells": _cells(network, task)}


def _positions(task: Stream) -> list[int]:
    return sorted({round(task.items * k / 20) for k in range(21)})


def _told(values: Tensor) -> dict[str, Any]:
    each = values.mean(1, keepdim=True)
    low, high = interval(each, resampling(len(each), 1000, 0), 0.95)
    return {"value": float(each.mean()), "low": float(low), "high": float(high), "n": len(each)}


def _cells(network: SketchNetwork, task: Stream) -> list[dict[str, Any]]:
    """The cell in which each item is counted most often, how often that is, and what it adds there on average; of a
    large universe, the first items. Items that are seen as pictures are shown several times.
    """
    parameter = next(network.parameters())
    items = torch.arange(min(task.universe, ITEMS), dtype=parameter.dtype, device=parameter.device)
    x = items.repeat(IMAGES)[None, :, None]
    written = network.run(task.encode(x, x[..., 0]), ["write"])[1]["write"][0].cpu().unflatten(0, (IMAGES, -1))
    where = written.abs().argmax(2).mT  # [item, image]
    rows = []
    for i, cells in enumerate(where):
        cell = int(cells.mode().values)
        own = written[cells == cell, i, cell]
        rows.append({"item": i, "cell": cell, "share": len(own) / IMAGES, "adds": float(own.mean())})
    return rows

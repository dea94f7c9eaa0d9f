"""What is measured of a learned sketch: its errors along the stream beside those of sketches that people wrote."""

import math
from typing import Any

import torch
from torch import Tensor

from algoscope.matching.bootstrap import interval, resampling
from algoscope.models import Network
from algoscope.models.sketch import SketchNetwork
from algoscope.studies.data_structures.references import MODEL, sketches
from algoscope.tasks.streams import Stream
from algoscope.trace import Prompts

NORMAL = 1.96  # standard errors in half of an interval of 95%
PART = 64  # streams at a time: bounds the memory
ITEMS, IMAGES = 100, 20  # whose cells are told, and times that each is shown
SEEDS = 50  # hash functions, over which errors are averaged: where frequent items are always the same, they differ much


@torch.no_grad()
def measure_stream(task: Stream, network: Network, prompts: Prompts) -> dict[str, Any]:
    """Mean absolute errors by position, of all positions, and how much less the model's are; how it uses its cells."""
    assert isinstance(network, SketchNetwork)
    parameter = next(network.parameters())
    parts = zip(prompts.x.split(PART), prompts.y.split(PART), strict=True)
    tokens = (task.encode(x, y).to(parameter.device, parameter.dtype) for x, y in parts)
    said = torch.cat([task.read(network(part)) for part in tokens]).double().cpu()
    own = (said - prompts.y).abs()
    known = known_errors(prompts, network.model.cells, network.model.accesses)
    rows, along = [], []
    for name, (off, of_hashes) in {MODEL: (own, torch.zeros(SEEDS, own.shape[1])), **known}.items():
        ahead = {f"ahead_{k}": v for k, v in _told(off - own, of_hashes).items()}
        rows.append({"what": name, **_told(off, of_hashes), **ahead})
        along += [{"what": name, "seen": t, **_told(off[:, [t]], of_hashes[:, [t]])} for t in _positions(task)]
    return {"errors": rows, "along": along, "cells": _cells(network, task)}


def known_errors(prompts: Prompts, cells: int, accesses: int) -> dict[str, tuple[Tensor, Tensor]]:
    """Of each sketch that people wrote: absolute errors [streams, positions], averaged over hash functions, and those
    of each hash function [seeds, positions], averaged over streams.
    """
    drawn, found = [sketches(cells, accesses, seed) for seed in range(SEEDS)], {}
    for name in drawn[0]:
        total, means = torch.zeros_like(prompts.y), []
        for each in drawn:
            off = (each[name].trace(prompts).values[-1] - prompts.y).abs()
            total, means = total + off, [*means, off.mean(0)]
        found[name] = total / SEEDS, torch.stack(means)
    return found


def _positions(task: Stream) -> list[int]:
    return sorted({round(task.items * k / 20) for k in range(21)})


def _told(values: Tensor, of_hashes: Tensor) -> dict[str, Any]:
    """The mean over streams and positions, with an interval as wide as streams and hash functions together make it."""
    each, spread = values.mean(1, keepdim=True), float(of_hashes.mean(1).std())
    low, high = interval(each, resampling(len(each), 1000, 0), 0.95)
    middle, wide = float(each.mean()), NORMAL * spread / SEEDS**0.5
    ends = middle - math.hypot(middle - float(low), wide), middle + math.hypot(float(high) - middle, wide)
    return {"value": middle, "low": ends[0], "high": ends[1], "n": len(each)}


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

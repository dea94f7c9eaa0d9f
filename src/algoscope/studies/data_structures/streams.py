"""What is measured of a learned sketch: its errors along the stream beside those of sketches that people wrote."""

import math
from typing import Any

import torch
from torch import Tensor

from algoscope.contracts import Task
from algoscope.matching.statistics import NORMAL, means
from algoscope.models import Network
from algoscope.models.sketch import SketchNetwork
from algoscope.studies.data_structures.references import MODEL, sketches
from algoscope.trace import Prompts

PART = 64  # streams at a time: bounds the memory
SEEDS = 50  # hash functions, over which errors are averaged: where frequent items are always the same, they differ much


@torch.no_grad()
def measure_stream(task: Task, network: Network, prompts: Prompts) -> dict[str, Any]:
    """Mean absolute errors by position, of all positions, and how much less the model's are."""
    assert isinstance(network, SketchNetwork)
    parameter = next(network.parameters())
    parts = zip(prompts.x.split(PART), prompts.y.split(PART), strict=True)
    tokens = (task.encode(x, y).to(parameter.device, parameter.dtype) for x, y in parts)
    counts = torch.cat([task.read(network(part)) for part in tokens]).double().cpu()
    own = (counts - prompts.y).abs()
    known = known_errors(prompts, network.model.cells, network.model.accesses)
    rows, by_position = [], []
    for name, (off, of_hashes) in {MODEL: (own, torch.zeros(SEEDS, own.shape[1])), **known}.items():
        ahead = {f"ahead_{k}": v for k, v in _described(off - own, of_hashes).items()}
        rows.append({"what": name, **_described(off, of_hashes), **ahead})
        by_position += [
            {"what": name, "seen": t, **_described(off[:, [t]], of_hashes[:, [t]])} for t in _positions(task)
        ]
    return {"errors": rows, "along": by_position}


def known_errors(prompts: Prompts, cells: int, accesses: int) -> dict[str, tuple[Tensor, Tensor]]:
    """Of each sketch that people wrote: absolute errors [streams, positions], averaged over hash functions, and those
    of each hash function [seeds, positions], averaged over streams.
    """
    drawn, found = [sketches(cells, accesses, seed) for seed in range(SEEDS)], {}
    for name in drawn[0]:
        total, by_seed = torch.zeros_like(prompts.y), []
        for each in drawn:
            off = (each[name].trace(prompts).values[-1] - prompts.y).abs()
            total, by_seed = total + off, [*by_seed, off.mean(0)]
        found[name] = total / SEEDS, torch.stack(by_seed)
    return found


def _positions(task: Task) -> list[int]:
    return sorted({round((task.positions - 1) * k / 20) for k in range(21)})


def _described(values: Tensor, of_hashes: Tensor) -> dict[str, Any]:
    """The mean over streams and positions, with an interval as wide as streams and hash functions together make it."""
    each, spread = values.mean(1, keepdim=True), float(of_hashes.mean(1).std())
    (mean,) = means(each)
    wide = NORMAL * spread / SEEDS**0.5
    low, high = (
        mean.value - math.hypot(mean.value - mean.low, wide),
        mean.value + math.hypot(mean.high - mean.value, wide),
    )
    return {"value": mean.value, "low": low, "high": high, "n": mean.n}

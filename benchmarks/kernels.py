"""Which kernels a step of training takes on a GPU, and for how long."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.profiler import ProfilerActivity, profile

from algoscope.models import Model
from algoscope.training import Member, Settings
from algoscope.training.engine import prepare
from algoscope.training.population import Population

STEPS = 3
KINDS = {  # what a kernel's name tells about its purpose; the first that fits
    "attention": ("attention",),
    "optimizer": ("vector_norm", "lerp"),
    "gelu": ("gelu", "sigmoid"),
    "norms and residuals": ("layer_norm",),
    "matrix products": ("nvjet", "gemm", "cutlass", "splitK", "products"),
}


@dataclass(frozen=True)
class Kernel:
    name: str
    calls: float  # in a step
    us: float  # of a step, all calls together


def kernels(model: Model, members: Sequence[Member], settings: Settings, device: torch.device) -> list[Kernel]:
    """Those of a step, the longest first."""
    trained = Population.of(model, members, settings, device)
    prepare(trained)
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        for _ in range(STEPS):
            trained.step()
        torch.cuda.synchronize()
    events = [(each.key, each.count / STEPS, each.self_device_time_total / STEPS) for each in found.key_averages()]
    return sorted((Kernel(*event) for event in events), key=lambda kernel: -kernel.us)


def by_kind(found: Sequence[Kernel]) -> dict[str, float]:
    """Shares of the time of a step."""
    spent, total = defaultdict[str, float](float), sum(kernel.us for kernel in found)
    for kernel in found:
        kinds = (kind for kind, marks in KINDS.items() if any(mark in kernel.name for mark in marks))
        spent[next(kinds, "other")] += kernel.us / total
    return dict(sorted(spent.items(), key=lambda kind: -kind[1]))

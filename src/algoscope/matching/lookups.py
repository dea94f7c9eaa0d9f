"""What traces of look-ups have found: the nearest point read so far, and whether it is the right one."""

from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from algoscope.trace import Trace


def distances(trace: Trace) -> Float[Tensor, "stages batch queries"]:
    """Squared distances between the queries and what each look-up reads; infinite for a slot, which is no point."""
    x, count = trace.prompts.x.double(), trace.prompts.before
    if count == 0 or trace.prompts.y.ndim != 2:
        raise ValueError(f"the trace of {trace.name} is not one of look-ups: its prompts are not those of a search")
    read = trace.values.to(x.device).long()
    known = read.clamp(max=count - 1)
    points = torch.stack([x.gather(1, each[..., None].expand(-1, -1, x.shape[2])) for each in known])
    return torch.where(read < count, (points - x[:, count:]).square().sum(-1), torch.inf)


def nearest_so_far(trace: Trace) -> Trace:
    """After each look-up, the nearest of the points read; the first slot read, where no point was."""
    closest = distances(trace).cummin(0)
    values = trace.values.gather(0, closest.indices.to(trace.values.device))
    return replace(trace, name=f"nearest so far of {trace.name}", values=values)


def found(trace: Trace) -> Bool[Tensor, "stages batch queries"]:
    """Whether the nearest neighbor has been read by each look-up; any of several that are equally near counts."""
    closest, x = distances(trace).cummin(0).values, trace.prompts.x.double()
    target = x.gather(1, trace.prompts.y.long()[..., None].expand(-1, -1, x.shape[2]))
    return closest <= (target - x[:, trace.prompts.before :]).square().sum(-1)

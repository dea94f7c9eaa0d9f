"""A few searches as they went: points in their learned order, a query, and what each look-up reads."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from algoscope.models.index import IndexNetwork
from algoscope.reading import slots
from algoscope.tasks.search import Search
from algoscope.trace import Prompts, Trace

EXAMPLES = 5
FAR = "far"  # points with many coordinates: what is shown is their distance from the query


def examples(
    network: IndexNetwork, task: Search, prompts: Prompts, stored: Tensor, traces: Mapping[str, Trace]
) -> list[dict[str, Any]]:
    """Each has `points`, one for each place (slots come last), the `query`, the place of the `nearest` point, and the
    places that the look-ups of each search read.
    """
    found, count = [], task.size
    few = Prompts(prompts.x[:EXAMPLES], prompts.y[:EXAMPLES], prompts.noise, prompts.power)
    held = slots(network, task, few).double() if network.model.slots else torch.zeros(EXAMPLES, 0, task.dim)
    for i in range(len(few.x)):
        asked = i % few.positions
        points = torch.cat((few.x[i, :count][stored[i]], held[i, :, : task.dim]))
        query = few.x[i, count + asked]
        place = torch.cat((stored[i].argsort(), torch.arange(count, len(points))))  # a slot's number is its place
        reads = {name: place[trace.values[:, i, asked].long()].tolist() for name, trace in traces.items()}
        nearest = int(place[int(few.y[i, asked])])
        found.append(
            {"points": shown(points, query), "query": shown(query[None], query)[0], "nearest": nearest}
            | {"reads": reads}
        )
    return found


def shown(points: Tensor, query: Tensor) -> list[list[float]]:
    """One or two coordinates as they are; of more, the distance from the query."""
    return (points if points.shape[1] <= 2 else (points - query).norm(dim=1, keepdim=True)).tolist()

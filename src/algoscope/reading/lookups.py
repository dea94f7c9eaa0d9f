"""What an index has learned: the order in which it stores points, and where it looks for a query."""

from collections.abc import Collection
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from algoscope import arguments
from algoscope.contracts import Task
from algoscope.models import Network
from algoscope.models.index import IndexNetwork
from algoscope.trace import Prompts, Trace

SEQUENCES, PICTURES = 1024, 32  # sets at a time, also of pictures: bounds the memory


def lookups(model: Network, task: Task, prompts: Prompts, name: str = "Index") -> Trace:
    """The hard look-ups of an index: stage m is the number of the point that look-up m reads.

    Extra slots follow the points: slot k has the number points + k.
    """
    network = _index(model)
    stages = [stage for stage in network.stages if stage.startswith("look-up")]
    states = _states(network, task, prompts, stages)
    reads = torch.stack([states[stage].argmax(-1) for stage in stages])
    return Trace(name, reads.double(), tuple(range(1, len(stages) + 1)), prompts)


def order(model: Network, task: Task, prompts: Prompts) -> Int[Tensor, "batch points"]:
    """The numbers of the points, in the order in which the index stores them."""
    return _states(_index(model), task, prompts, ["order"])["order"][..., 0].argsort(dim=-1, stable=True)


def slots(model: Network, task: Task, prompts: Prompts) -> Float[Tensor, "batch slots inputs"]:
    """What the extra slots hold, in the coordinates of the task's tokens."""
    network = _index(model)
    if "slots" not in network.stages:
        raise ValueError("model must be an Index with extra slots; this one has none")
    return _states(network, task, prompts, ["slots"])["slots"]


def features(model: Network, task: Task, prompts: Prompts) -> Float[Tensor, "batch length features"]:
    """What an index makes of the pictures of points and queries."""
    network = _index(model)
    if network.encoder is None:
        raise ValueError("model must be an Index of pictures; this one sees points as they are")
    return _states(network, task, prompts, ["features"])["features"]


def in_place(
    stored: Int[Tensor, "batch points"], prompts: Prompts, coordinate: int = 0
) -> Bool[Tensor, "batch points"]:
    """Which places of an order hold the point that belongs there if points are sorted by one coordinate.

    An index may sort upwards or downwards, as it likes, but it has to do the same for all prompts.
    """
    arguments.integer("coordinate", coordinate, 0)
    if coordinate >= prompts.dim:
        raise ValueError(f"coordinate must be below {prompts.dim}, the dimension of the points, got {coordinate}")
    values = prompts.x[:, : prompts.before, coordinate].to(stored.device)
    ours, upwards = values.gather(1, stored), values.sort(dim=1).values  # equal values may change places
    both = [ours == upwards, ours == upwards.flip(1)]
    return max(both, key=lambda right: float(right.double().mean()))


@dataclass(frozen=True, eq=False)
class Landing:
    """Where a look-up lands given the query: how often a query of each bin reads each place."""

    edges: Float[Tensor, "edges"]
    share: Float[Tensor, "bins places"]  # rows sum to 1, or to 0 where no query fell into the bin
    counts: Int[Tensor, "bins"]

    @property
    def mean(self) -> Float[Tensor, "bins"]:
        """The mean place; NaN where no query fell into the bin."""
        places = torch.arange(self.share.shape[1], dtype=torch.float64)
        return torch.where(self.counts > 0, self.share @ places, torch.nan)


def landing(
    trace: Trace, stored: Int[Tensor, "batch points"], lookup: int = 1, bins: int = 10, coordinate: int = 0
) -> Landing:
    """For queries in equal parts of their range, the places in an order that a look-up of a trace reads.

    Extra slots are places after those of the points. Any trace of look-ups will do: an algorithm can be laid over the
    order of a model.
    """
    arguments.integer("lookup", lookup, 1)
    arguments.integer("bins", bins, 1)
    prompts, count = trace.prompts, trace.prompts.before
    reads = trace.select([lookup]).values[0].long().cpu()
    places = stored.cpu().argsort(-1).gather(1, reads.clamp(max=count - 1))
    places = torch.where(reads < count, places, reads)
    queries = prompts.x[:, count:, coordinate].double().cpu()
    edges = torch.linspace(float(queries.min()), float(queries.max()), bins + 1, dtype=torch.float64)
    part = torch.bucketize(queries.contiguous(), edges[1:-1], right=True).flatten()
    width = max(count, int(places.max()) + 1)
    table = torch.zeros(bins, width, dtype=torch.float64)
    table.index_put_((part, places.flatten()), torch.ones(part.numel(), dtype=torch.float64), accumulate=True)
    counts = table.sum(1)
    return Landing(edges, table / counts.clamp(min=1)[:, None], counts.long())


def _index(model: Network) -> IndexNetwork:
    if not isinstance(model, IndexNetwork):
        raise ValueError(f"model must be the network of an Index, got {type(model).__name__}")
    return model


@torch.no_grad()
def _states(model: IndexNetwork, task: Task, prompts: Prompts, keep: Collection[str]) -> dict[str, Tensor]:
    if prompts.before != model.points:
        raise ValueError(f"prompts must give {model.points} points, as the model was built for, got {prompts.before}")
    parameter, share = next(model.parameters()), SEQUENCES if model.encoder is None else PICTURES
    parts = zip(prompts.x.split(share), prompts.y.split(share), strict=True)
    tokens = (task.encode(x, y).to(parameter.device, parameter.dtype) for x, y in parts)
    states = [model.run(part, keep)[1] for part in tokens]
    return {stage: torch.cat([state[stage] for state in states]).cpu() for stage in keep}

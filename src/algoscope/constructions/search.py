"""Binary search in the weights of an index."""

import torch

from algoscope.models import Index
from algoscope.models.index import IndexNetwork, QueryMLP
from algoscope.tasks.search import Search

LARGE = 10.0  # outweighs a comparison, which is at most 1


@torch.no_grad()
def binary_search(task: Search, lookups: int) -> IndexNetwork:
    """An index that stores points sorted by their first coordinate and looks them up by binary search.

    The look-up after one at place p goes to the middle of what is left on the query's side. In the logits both places
    stand out, and the comparison of the query with what was read decides between them; that is linear, so hidden
    layers only have to pass it on: in pairs of opposite sign, which a norm scales but does not shift.
    """
    hidden = 2 * task.size
    model = Index(lookups=lookups, layers=0, width=4, hidden=hidden)
    network = model.build(task.inputs, task.outputs, task.length, torch.Generator()).double()
    for parameter in network.parameters():
        parameter.zero_()
    network.norm.weight.fill_(1.0)
    network.read_in.weight[:, 0] = torch.tensor([1.0, -1.0, 0.0, 0.0])
    network.read_in.bias[2:] = torch.tensor([LARGE, -LARGE])
    network.read_out.weight[0, 0] = 1.0
    ranges, first = [(0, task.size - 1)], (task.size - 1) // 2
    for m, query_mlp in enumerate(network.blocks):
        assert isinstance(query_mlp, QueryMLP)
        _pass_on(query_mlp)
        if m == 0:
            query_mlp.last.bias[first] = 1.0
            continue
        entry = task.size + 2 * task.inputs
        start, following = task.inputs + (m - 1) * entry, []
        for low, high in ranges:
            middle = (low + high) // 2
            for side, part in ((1.0, (low, middle - 1)), (-1.0, (middle + 1, high))):
                if part[0] <= part[1]:
                    _move(
                        query_mlp,
                        (part[0] + part[1]) // 2,
                        start + middle,
                        slice(start + entry - task.inputs, start + entry),
                        side,
                    )
                    following.append(part)
        ranges = following
    return network


def _pass_on(query_mlp: QueryMLP) -> None:
    """Hidden layers that keep each number as the positive parts of it and of its opposite."""
    half = query_mlp.middle.weight.shape[0] // 2
    keep = torch.eye(half, dtype=torch.float64)
    for norm in (query_mlp.first_norm, query_mlp.middle_norm):
        norm.weight.fill_(1.0)
    query_mlp.middle.weight.copy_(torch.cat((torch.cat((keep, -keep), 1), torch.cat((-keep, keep), 1))))
    query_mlp.last.weight.copy_(torch.cat((keep, -keep), 1))


def _move(query_mlp: QueryMLP, to: int, read: int, compared: slice, side: float) -> None:
    """The logit of a place is large after a place was read, and larger the further what was read is on that side."""
    half = query_mlp.first.weight.shape[0] // 2
    for sign, unit in ((1.0, to), (-1.0, half + to)):
        query_mlp.first.weight[unit, read] = sign * LARGE
        query_mlp.first.weight[unit, compared] = sign * side

"""One look-up among a few points in many dimensions: which part of space decides where it goes?"""

from collections.abc import Mapping
from typing import Any

import torch

from algoscope.models import Network
from algoscope.reading import Subspace, lookups, order, subspace
from algoscope.studies.data_structures.references import MODEL
from algoscope.tasks import SphereSearch
from algoscope.trace import Prompts

PARTS, QUANTILE = 10, 2.262  # of the sets, and of the t distribution with one degree of freedom less
SHOWN = 400  # queries, and points, in the figure
COMPONENTS = 2  # whose share is told together, as published


def probed(networks: Mapping[str, Network], task: SphereSearch, prompts: Prompts) -> dict[str, Any]:
    """For each network the shares of the variance along the directions that decide its look-up, and of the first two
    together; of the model also queries and points along these two, with the place that is read or where they are.
    """
    rows, plane = [], {}
    for what, network in networks.items():
        stored = order(network, task, prompts)
        places = stored.argsort(1)
        read = places.gather(1, lookups(network, task, prompts).values[0].long())
        if len(read.unique()) == 1:
            continue  # nothing decides
        queries = prompts.x[:, task.size :]
        found = subspace(queries.flatten(0, 1), read.flatten())
        rows.append({"what": what, "places": len(read.unique()), "shares": found.shares.tolist()} | _two(queries, read))
        if what == MODEL:
            points = prompts.x[:, : task.size]
            plane = {"query": _along(found, queries, read), "point": _along(found, points, places)}
    return {"subspaces": rows, "plane": plane}


def _two(queries: torch.Tensor, read: torch.Tensor) -> dict[str, float | int]:
    """The share of the first two components. Its interval comes from leaving out one tenth of the sets at a time:
    resampled sets repeat themselves, so that places look easier to tell apart than they are.
    """
    parts, shares = torch.arange(len(read)) % PARTS, []
    for k in range(-1, PARTS):
        queries_left, left = queries[parts != k].flatten(0, 1), read[parts != k].flatten()
        if len(left.unique()) > 1:
            shares.append(subspace(queries_left, left).shares[:COMPONENTS].sum())
    middle, others = float(shares[0]), torch.stack(shares[1:] or shares)
    error = float((others - others.mean()).square().sum() * (PARTS - 1) / PARTS) ** 0.5
    low, high = max(middle - QUANTILE * error, 0.0), min(middle + QUANTILE * error, 1.0)
    return {"value": middle, "low": low, "high": high, "n": len(read)}


def _along(found: Subspace, vectors: torch.Tensor, places: torch.Tensor) -> dict[str, list[float]]:
    """In columns: names once, for a short file."""
    along = vectors.flatten(0, 1)[:SHOWN] @ found.axes[:COMPONENTS].mT
    return {"x": along[:, 0].tolist(), "y": along[:, -1].tolist(), "place": places.flatten()[:SHOWN].tolist()}

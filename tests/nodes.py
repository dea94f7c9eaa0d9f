"""networkx, the judge of everything about graphs."""

import networkx
import numpy as np
import torch
from torch import Tensor


def graph(x: Tensor) -> networkx.Graph:
    """Of an adjacency matrix with self-loops, without these."""
    return networkx.from_numpy_array(x.numpy() - np.eye(len(x)))


def components(x: Tensor) -> Tensor:
    """1 where two nodes are in the same component."""
    found = torch.zeros(x.shape, dtype=torch.float64)
    for nodes in networkx.connected_components(graph(x)):
        own = torch.tensor(sorted(nodes))
        found[own[:, None], own] = 1.0
    return found


def distances(x: Tensor) -> Tensor:
    """Hops, and −1 where there is no way."""
    found = torch.full(x.shape, -1)
    for node, reached in networkx.all_pairs_shortest_path_length(graph(x)):
        found[node, torch.tensor(list(reached))] = torch.tensor(list(reached.values()))
    return found


def diameter(x: Tensor) -> int:
    """The largest of the components' diameters."""
    whole = graph(x)
    return max(networkx.diameter(whole.subgraph(nodes)) for nodes in networkx.connected_components(whole))

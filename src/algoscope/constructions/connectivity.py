"""Theorem 4.3 of Ye et al.: a disentangled transformer that knows who is connected, up to 3^L hops, and no further.

Every matrix is the identity. Then each block of the stream is a polynomial of the adjacency matrix A with weights that
are not negative; a block A^m gives scores with A^2m, which applied to the block are A^3m. The sum of all blocks is
positive just where nodes are at most 3^L hops apart.

What is positive may be small: a layer turns a smallest entry m into m³/n, so that after L layers it is at least n^−e
with e = (3^L − 1)/2. The sharpness of the output layer is n^e, by which all of it counts as connected.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from algoscope import arguments
from algoscope.models import Disentangled
from algoscope.models.disentangled import DisentangledNetwork

LARGEST = 1e150  # sharpness: its products with the sums of blocks must stay numbers


def connectivity(nodes: int, layers: int) -> DisentangledNetwork:
    """Predicts that nodes are connected if they are at most 3^layers hops apart, in float64."""
    arguments.integer("nodes", nodes, 1)
    arguments.integer("layers", layers, 1)
    exponent = (3**layers - 1) // 2
    if nodes > LARGEST ** (1 / exponent):
        raise ValueError(
            f"layers must be fewer for {nodes} nodes: after {layers} the smallest entries are {nodes}^−{exponent}"
        )
    model = Disentangled(layers, sharpness=float(nodes) ** exponent, spread=0.0)
    network = model.build(nodes, nodes, nodes, torch.Generator()).double().eval()
    with torch.no_grad():
        for block in network.blocks:
            weight = block.get_parameter("weight")
            weight.copy_(torch.eye(len(weight)))
    return network


def beyond_reach(nodes: int, layers: int) -> Float[Tensor, "nodes nodes"]:
    """A graph of diameter 3^layers + 1, with self-loops, in float64: a path, and the other nodes by themselves.

    The ends of the path are connected, and no network of so many layers with nonnegative weights that is right
    everywhere else finds that (Theorem 4.5).
    """
    arguments.integer("layers", layers, 1, 12)
    links = 3**layers + 1
    arguments.integer("nodes", nodes, links + 1)
    edges = torch.diag((torch.arange(nodes - 1) < links).double(), diagonal=1)
    return edges + edges.mT + torch.eye(nodes, dtype=torch.float64)

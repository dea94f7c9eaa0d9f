"""Graph connectivity: which nodes of a graph are in the same component (Ye, Fu, Jia and Sharan 2026).

Graphs of some diameter are found by rejection, without a loop that waits: a pool that is large enough is drawn, and the
first graphs in it that will do are taken.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from algoscope import algorithms as known
from algoscope import arguments, reachability
from algoscope.contracts import Algorithm, Symmetry, Task
from algoscope.matching import Agreement
from algoscope.randomness import stream, uniform
from algoscope.reading.readers import LinearProbe, LogitLens
from algoscope.symmetries import RedrawOutsideComponent, RelabelNodes
from algoscope.trace import Prompts

KINDS = ("random", "two chains", "two cliques", "paths")
HOPS = (*range(10), *(round(2 ** (k / 2)) for k in range(7, 25)))  # steps that are compared: two an octave from 11 on
TRIED = 4096  # graphs by which the share is told of those that will do; fewer where they are large
CHUNK = 2**24  # entries of the matrices that are looked at together, and so a bound on memory
RAREST = 1 / 256  # share of graphs that will do: below, a pool would be too large
SURE = 28.0  # a pool is too small once in e^28 = 10^12 times
SURE_RATE = 5.0  # standard deviations by which the share may be less than it was found to be
RESERVE = 16  # graphs that will do, kept for that case

Graphs = Bool[Tensor, "*graphs nodes nodes"]


@dataclass(frozen=True)
class Connectivity(Task):
    """Which pairs of nodes of a graph are connected?

    x is the adjacency matrix with self-loops, y[i, j] is 1 where i and j are connected, and else 0.

    `graphs`: "random" has each edge with `chance` (Erdős and Rényi 1959); "two chains" and "two cliques" are of `size`
    nodes each, by default half of all, and the other nodes are isolated; "paths" cuts a path through all nodes, at
    random places, into 1 to `parts` paths, each number as likely. The order of the nodes is random.

    The diameter of a graph is the largest of its components' diameters. Where it must be between `smallest` and
    `largest`, graphs have the distribution above given that it is; but a share `beyond` of them has a diameter above
    `largest` instead. A `collection` is a fixed set of so many graphs, drawn from the seed `collected`, and all that is
    ever drawn are graphs of this set: when as many are asked for as it has, the whole set in its order.
    """

    nodes: int = 8  # of a graph
    graphs: Literal["random", "two chains", "two cliques", "paths"] = "random"  # which distribution
    chance: float = 0.2  # of an edge, in random graphs
    size: int | None = None  # nodes of each chain or clique; by default half of all
    parts: int = 4  # paths at most
    smallest: int = 0  # diameter at least
    largest: int | None = None  # diameter at most
    beyond: float = 0.0  # share of graphs with a larger diameter
    collection: int | None = None  # draw from a fixed set of so many graphs
    collected: int = 0  # seed of that set

    answer = "chance"
    family = "graphs"
    gradual = False
    first = 0  # every node is asked about, and sees the whole graph
    reader = LogitLens(append_only=True) | LinearProbe()
    measure = Agreement()

    def __post_init__(self) -> None:
        arguments.size("nodes", self.nodes)
        arguments.choice("graphs", self.graphs, KINDS)
        for name in ("chance", "beyond"):
            arguments.number(name, getattr(self, name))
            if getattr(self, name) > 1:
                raise ValueError(f"{name} must be between 0 and 1, got {getattr(self, name)!r}")
        if self.size is not None or self.graphs in ("two chains", "two cliques"):
            arguments.size("size", self.part)
            if 2 * self.part > self.nodes:
                raise ValueError(f"size must be at most half of the nodes = {self.nodes}, got {self.part}")
        arguments.size("parts", self.parts)
        arguments.size("smallest", self.smallest, 0)
        arguments.integer("collected", self.collected, 0)
        if self.collection is not None:
            arguments.size("collection", self.collection)
        self._check_diameters()

    def _check_diameters(self) -> None:
        if self.smallest >= self.nodes:
            raise ValueError(f"smallest must be less than nodes = {self.nodes}: no path is longer, got {self.smallest}")
        if self.largest is not None:
            arguments.integer("largest", self.largest, self.smallest)
        if not self.beyond:
            return
        if self.largest is None:
            raise ValueError("beyond needs largest, the diameter that a share of the graphs is to exceed")
        if self.largest >= self.nodes - 1:
            raise ValueError(f"beyond must be 0: no graph of {self.nodes} nodes has a diameter above {self.largest}")

    def algorithms(self) -> list[Algorithm]:
        """Each until it has ended on a path through all nodes; of the steps of slow ones, some."""
        longest = max(self.nodes - 1, 1)
        steps = [step for step in HOPS if step < longest] + [longest]
        return [
            known.Hops(steps),
            known.Squaring(longest.bit_length()),
            known.Tripling(max(math.ceil(math.log(longest, 3) - 1e-9), 1)),
            known.LabelPropagation(steps),
            known.Degree(),
            known.AllConnected(),
            known.Components(),
        ]

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """A fixed set of graphs has none: a change of one is not in the set."""
        if self.collection is not None:
            return ()
        redrawn = self.graphs == "random" and not self.restricted
        return (RelabelNodes(), *((RedrawOutsideComponent(self.chance),) if redrawn else ()))

    def separating(self) -> dict[str, Task]:
        """Only on long paths do hops, squaring and tripling differ for long."""
        if self.graphs != "random" or self.restricted or self.collection is not None or self.nodes < 4:
            return {}
        return {"long paths": replace(self, graphs="paths", parts=2)}

    @property
    def part(self) -> int:
        """How many nodes each of two chains or cliques has."""
        return self.nodes // 2 if self.size is None else self.size

    @property
    def power(self) -> float:
        """Estimated from one fixed sample: the share of pairs that are connected."""
        return _power(self)

    @property
    def length(self) -> int:
        return self.nodes

    @property
    def inputs(self) -> int:
        return self.nodes

    @property
    def outputs(self) -> int:
        return self.nodes

    @property
    def answers(self) -> slice:
        return slice(None)  # every node is asked for its row

    @property
    def restricted(self) -> bool:
        """Whether some diameters do not occur, or not as often as by themselves."""
        return self.smallest > 0 or self.largest is not None

    def draw(
        self,
        batch: int,
        generators: Sequence[torch.Generator],
        dtype: torch.dtype = torch.float64,
        dims: Tensor | None = None,
    ) -> tuple[Float[Tensor, "batch nodes nodes"], Float[Tensor, "batch nodes *target"]]:
        if dims is not None:
            raise ValueError("dims must be None: graphs have no coordinates that could be left out")
        if self.collection is None:
            return _labeled(_restricted(self, batch, generators), dtype)
        x, y = _collection(self, generators[0].device, dtype)
        if batch == self.collection * len(generators):
            return x.repeat(len(generators), 1, 1), y.repeat(len(generators), *[1] * (y.ndim - 1))
        chosen = (uniform(generators, batch) * self.collection).long()
        return x[chosen], y[chosen]

    def encode(
        self, x: Float[Tensor, "batch nodes nodes"], y: Float[Tensor, "batch nodes *target"]
    ) -> Float[Tensor, "batch nodes nodes"]:
        """A token is a row of the matrix: the neighbors of a node, and itself."""
        return x

    def decode(self, tokens: Float[Tensor, "batch nodes nodes"]) -> Prompts:
        y = torch.zeros_like(tokens)
        return Prompts(tokens, y if self.nodes > 1 else y[..., 0], power=self.power)


def _labeled(labeled: tuple[Graphs, Graphs], dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """x and y; of a single node, y has no axis of its own."""
    x, y = (part.to(dtype) for part in labeled)
    return x, y if y.shape[-1] > 1 else y[..., 0]


def _restricted(task: Connectivity, batch: int, generators: Sequence[torch.Generator]) -> tuple[Graphs, Graphs]:
    """Graphs whose diameters are as the task says, and which of their nodes are connected."""
    if not task.restricted:
        edges = _graphs(task, batch, generators)
        return edges, reachability.connected(edges)
    share, members = batch // len(generators), len(generators)
    size, (inside, outside) = _pool(task, share), _reserve(task, generators[0].device)
    pool = _graphs(task, size * members, generators).unflatten(0, (members, size))
    kept = torch.cat([inside, outside]).expand(members, -1, -1, -1)
    pool = torch.cat([pool, kept], dim=1)  # last, so that they are taken when nothing else is left
    fits, above, reached = _fits(task, pool)
    row = torch.arange(members, device=pool.device)[:, None]
    if not task.beyond:
        chosen = _first(fits, torch.arange(share, device=pool.device).expand(members, -1))
        edges = pool[row, chosen].flatten(0, 1)  # no node in them is further away than what was looked at
        return edges, reachability.connected(edges) if task.largest is None else reached[row, chosen].flatten(0, 1)
    past = (uniform(generators, batch) < task.beyond).unflatten(0, (members, share))
    ranks = [(~past).cumsum(1) - 1, past.cumsum(1) - 1]  # each takes the next of its kind
    found = [_first(will_do, rank.clamp(min=0)) for will_do, rank in zip((fits, above), ranks, strict=True)]
    edges = pool[row, torch.where(past, found[1], found[0])].flatten(0, 1)
    return edges, reachability.connected(edges)


def _first(will_do: Bool[Tensor, "members pool"], ranks: Int[Tensor, "members share"]) -> Int[Tensor, "members share"]:
    """Of the graphs that will do, those with these ranks; were there too few, they would be taken again from the first.

    Nothing here depends on how many there are, so that a recorded step may do it.
    """
    members, size = will_do.shape
    place = torch.where(will_do, will_do.cumsum(1) - 1, size)  # the others go to a place that is never read
    index = torch.arange(size, device=will_do.device).expand(members, -1)
    order = torch.zeros(members, size + 1, dtype=torch.int64, device=will_do.device).scatter(1, place, index)
    return order.gather(1, ranks % will_do.sum(1, keepdim=True).clamp(min=1))


def _fits(task: Connectivity, edges: Graphs) -> tuple[Bool[Tensor, "*graphs"], Bool[Tensor, "*graphs"], Graphs]:
    """Whether the diameter is between the smallest and the largest, whether it is above the largest, and which pairs
    are no further apart than that.
    """
    reached, above = edges, torch.zeros(edges.shape[:-2], dtype=torch.bool, device=edges.device)
    if task.largest is not None:
        reached, settled = reachability.settled(edges, task.largest)
        above = ~settled
    below = reachability.at_most(edges, task.smallest - 1) if task.smallest else torch.zeros_like(above)
    return ~above & ~below, above, reached


def _graphs(task: Connectivity, count: int, generators: Sequence[torch.Generator]) -> Graphs:
    """Graphs of any diameter; each generator draws an equal share."""
    nodes, device = task.nodes, generators[0].device
    self_loops = torch.eye(nodes, dtype=torch.bool, device=device)
    if task.graphs == "random":
        edges = (uniform(generators, count, nodes, nodes) < task.chance).triu(1)
        return edges | edges.mT | self_loops
    row = torch.arange(nodes, device=device)
    if task.graphs == "two cliques":
        clique = torch.where(row < 2 * task.part, row // task.part, -1 - row)  # of which each node is
        ordered = (clique[:, None] == clique).expand(count, -1, -1)
    else:
        chained = (row % task.part < task.part - 1) & (row < 2 * task.part) if task.graphs == "two chains" else None
        linked = ~_cuts(task, count, generators) if chained is None else chained[:-1].expand(count, -1)
        path = torch.diag_embed(linked, offset=1)  # from each node to the next
        ordered = path | path.mT | self_loops
    order = uniform(generators, count, nodes).argsort(-1)  # nodes with equal numbers, once in 10^7, keep theirs
    return ordered.gather(1, order[:, :, None].expand_as(ordered)).gather(2, order[:, None].expand_as(ordered))


def _cuts(task: Connectivity, count: int, generators: Sequence[torch.Generator]) -> Bool[Tensor, "count links"]:
    """Where a path through all nodes is cut."""
    rank = uniform(generators, count, task.nodes - 1).argsort(-1).argsort(-1)
    cuts = (uniform(generators, count, 1) * min(task.parts, task.nodes)).long()
    return rank < cuts


@functools.cache
def _tried(task: Connectivity) -> tuple[tuple[float, float], tuple[Tensor, Tensor]]:
    """Shares of the graphs that fit and that are beyond, and some of either; refuses a task that finds too few."""
    plain, generator = replace(task, smallest=0, largest=None, beyond=0.0, collection=None), stream("tried graphs", 0)
    tried, chunk = _trials(task), max(min(TRIED, CHUNK // task.nodes**2), 1)
    found: list[list[Graphs]] = [[], []]
    counts = [0, 0]
    for _ in range(tried // chunk):
        edges = _graphs(plain, chunk, [generator])
        for kind, will_do in enumerate(_fits(task, edges)[:2]):
            counts[kind] += int(will_do.sum())
            found[kind].append(edges[will_do][:RESERVE])
    for kind, wanted in enumerate((task.beyond < 1, task.beyond > 0)):
        if wanted and counts[kind] < RAREST * tried:
            last = task.nodes - 1 if task.largest is None else task.largest
            limits = f"above {last}" if kind else f"from {task.smallest} to {last}"
            raise ValueError(
                f"graphs with a diameter {limits} are too rare among these, {counts[kind]} in {tried}: change the "
                f"diameters or the graphs of {task}"
            )
    inside, outside = (torch.cat(part)[:RESERVE] for part in found)
    return (counts[0] / tried, counts[1] / tried), (inside, outside)


def _trials(task: Connectivity) -> int:
    """How many graphs are tried: as many as can be looked at together, but not too few."""
    chunk = max(min(TRIED, CHUNK // task.nodes**2), 1)
    return chunk * -(-min(TRIED, max(chunk, TRIED // 8)) // chunk)


def _pool(task: Connectivity, share: int) -> int:
    """How many graphs to draw so that almost surely enough of them fit, and enough are beyond."""
    sizes = []
    for part, rate in zip((1 - task.beyond, task.beyond), _tried(task)[0], strict=True):
        if part:
            rate = max(rate - SURE_RATE * math.sqrt(rate * (1 - rate) / _trials(task)), rate / 4)  # it is an estimate
            wanted = min(share * part + _excess(share * part, part), float(share))
            expected = wanted
            for _ in range(100):  # from below to where it is as much as wanted with its own excess
                expected = wanted + _excess(expected, rate)
            sizes.append(math.ceil(expected / rate))
    return max(sizes)


def _excess(expected: float, rate: float) -> float:
    """By how much a number of hits may miss what is expected, once in e^SURE times (Bernstein's inequality)."""
    return SURE / 3 + math.sqrt(SURE**2 / 9 + 2 * SURE * expected * (1 - rate))


@functools.cache
def _reserve(task: Connectivity, device: torch.device) -> tuple[Tensor, Tensor]:
    """Kept on the device: a recorded step must not wait for the host."""
    inside, outside = _tried(task)[1]
    return inside.to(device), outside.to(device)


@functools.cache
def _collection(task: Connectivity, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The fixed set, drawn on the CPU: it is the same on every device."""
    assert task.collection is not None
    whole = replace(task, collection=None)
    x, y = _labeled(_restricted(whole, task.collection, [stream("collected graphs", task.collected)]), dtype)
    return x.to(device), y.to(device)


@functools.cache
def _power(task: Connectivity) -> float:
    generator, some = stream("power", 0), max(min(TRIED, CHUNK // task.nodes**2) // 16, 1)  # few at a time: for memory
    means = [task.draw(some, [generator])[1].mean() for _ in range(8)]
    return float(torch.stack(means).mean())

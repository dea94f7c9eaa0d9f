"""What is measured of each model of the study. Every table is plain numbers with intervals."""

import functools
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from algoscope import reachability
from algoscope.instrument import Instrument
from algoscope.matching.statistics import means, wilson
from algoscope.models import Network
from algoscope.models.disentangled import DisentangledNetwork
from algoscope.reading import accuracy_by_distance, channels, equivariance, exact_match, predict
from algoscope.studies.shares import share_of
from algoscope.studies.study import Training
from algoscope.tasks import Connectivity
from algoscope.trace import Prompts
from algoscope.verdict import short

Table = list[dict[str, Any]]
FEW = 1000  # graphs of each kind that are asked about on the way of training
ENTRIES = 2**20  # of the matrices on which stages are compared: bounds the memory
SHOWN = 16  # rows of the largest matrix of weights that is kept entry by entry
DEGREE = 1.6  # n times the chance of an edge, in both settings that the paper states: n = 8, p = .2 and n = 20, p = .08
RANDOM, WITHIN, BEYOND, CHAINS, CLIQUES, PATHS = (
    "random graphs", "within capacity", "beyond capacity", "two chains", "two cliques", "paths",
)  # fmt: skip


@dataclass(frozen=True)
class Sizes:
    """How many graphs: of each kind to answer, and to compare stages on."""

    asked: int
    traced: int


SIZES = {"smoke": Sizes(60, 30), "laptop": Sizes(2000, 500), "paper": Sizes(10_000, 1000)}


def measure(training: Training, network: Network, scale: str) -> dict[str, Any]:
    facts = {name: getattr(training.task, name) for name in ("chance", "largest", "beyond")}
    kind = "disentangled" if isinstance(network, DisentangledNetwork) else "standard"
    facts |= {"model": kind, "layers": len(network.blocks), "steps": training.settings.steps}
    return facts | measured(network, training.task.length, SIZES[scale])


@torch.no_grad()
def measure_checkpoint(training: Training, network: Network, scale: str) -> dict[str, Any]:
    """What is told of weights on the way of training, on fewer graphs."""
    nodes = training.task.length
    tests, instrument = graphs(nodes, 3 ** len(network.blocks), SIZES[scale])
    some = {name: Prompts(prompts.x[:FEW], prompts.y[:FEW]) for name, prompts in tests.items() if name != PATHS}
    predicted = {name: connected(network, prompts) for name, prompts in some.items()}
    tables: dict[str, Any] = {
        "answers": [right(name, predicted[name], some[name]) for name in some],
        "by_distance": by_distance(RANDOM, predicted[RANDOM], some[RANDOM]),
        "equivariance": moved(network, instrument.sample),
    }
    if isinstance(network, DisentangledNetwork):
        facts = ("stage", "algorithm", "heuristic", "error")
        tables["channels"] = [{name: row[name] for name in facts} for row in weights(network, nodes)["channels"]]
    return tables


@torch.no_grad()
def measured(network: Network, nodes: int, sizes: Sizes) -> dict[str, Any]:
    """All tables of one network over graphs of so many nodes."""
    capacity = 3 ** len(network.blocks)
    tests, instrument = graphs(nodes, capacity, sizes)
    predicted = {name: connected(network, prompts) for name, prompts in tests.items()}
    tables = {
        "nodes": nodes,
        "capacity": capacity,
        "answers": [right(name, predicted[name], tests[name]) for name in tests],
        "by_distance": [row for name in (RANDOM, PATHS) for row in by_distance(name, predicted[name], tests[name])],
        "traces": {RANDOM: traced(network, instrument)},
    }
    return tables | (weights(network, nodes) if isinstance(network, DisentangledNetwork) else {})


@functools.lru_cache(maxsize=1)
def graphs(nodes: int, capacity: int, sizes: Sizes) -> tuple[dict[str, Prompts], Instrument]:
    """The graphs to answer, and an instrument on other random graphs: the same for all networks of one size."""
    tests = asked(nodes, capacity)
    many = {name: task.sample(sizes.asked, seed=0, purpose="asked") for name, task in tests.items()}
    traced = min(sizes.traced, ENTRIES // nodes**2)
    few = tests[RANDOM].sample(traced, seed=0, purpose="traced")
    return many, Instrument(tests[RANDOM], prompts=few, fit_on=max(2 * traced, 200), seed=1)


def asked(nodes: int, capacity: int) -> dict[str, Connectivity]:
    """The graphs that a network is tested on; two chains are told by the number of their edges, as in Figure 5."""
    plain = Connectivity(nodes, chance=DEGREE / nodes)
    tests = {RANDOM: plain}
    if 0 < capacity < nodes - 1:
        for name, task in (
            (WITHIN, Connectivity(nodes, chance=plain.chance, largest=capacity)),
            (BEYOND, Connectivity(nodes, chance=plain.chance, smallest=capacity + 1)),
        ):
            if possible(task):
                tests[name] = task
    lengths = range(2, nodes // 2) if nodes <= 10 else (nodes // 2 - 1,)
    tests |= {chains(edges): Connectivity(nodes, "two chains", size=edges + 1) for edges in lengths}
    return tests | {CLIQUES: Connectivity(nodes, "two cliques"), PATHS: Connectivity(nodes, "paths")}


def chains(edges: int) -> str:
    return f"{CHAINS} of {edges} edges"


def possible(task: Connectivity) -> bool:
    """Whether such graphs are not too rare to be drawn."""
    try:
        task.sample(1, seed=0)
    except ValueError:
        return False
    return True


def connected(network: Network, prompts: Prompts) -> Tensor:
    """True where the network predicts that two nodes are connected: where that is more likely than not."""
    return predict(network, Connectivity(prompts.dim), prompts) > 0


def right(name: str, predicted: Tensor, prompts: Prompts) -> dict[str, Any]:
    """The share of graphs about which every answer is right, and the share of right answers."""
    exact = exact_match(predicted, prompts.y)
    share, low, high, n = share_of(int(exact.sum()), len(exact))
    entries = (predicted == prompts.y.bool()).double().flatten(1).mean(1)
    return {"graphs": name, "exact": share, "low": low, "high": high, "accuracy": float(entries.mean()), "n": n}


def by_distance(name: str, predicted: Tensor, prompts: Prompts) -> Table:
    """The share of right answers about pairs at each distance; "apart" are pairs that are not connected.

    Pairs of one graph fail together, so that an interval counts graphs, not pairs.
    """
    found, distances = accuracy_by_distance(predicted, prompts.x), reachability.distances(prompts.x.bool())
    rows = []
    shares: list[tuple[int | str, float]] = [*enumerate(found.accuracy.tolist()), ("apart", found.apart)]
    for distance, share in shares:
        place = distance if isinstance(distance, int) else -1
        n = int(distances.eq(place).flatten(1).any(1).sum())
        if n:
            low, high = wilson(share, n)
            rows.append({"graphs": name, "distance": distance, "accuracy": share, "low": low, "high": high, "n": n})
    return rows


def weights(network: DisentangledNetwork, nodes: int) -> dict[str, Any]:
    """What the matrices of the layers hold: the shares of the two channels, A and B, and small matrices themselves."""
    rows, shown = [], {}
    for name, block in zip(network.stages[1:], network.blocks, strict=True):
        weight = block.get_parameter("weight")
        found = channels(weight, nodes)
        parts = {"algorithm": found.algorithm_share, "heuristic": found.heuristic_share, "error": found.error}
        shares = {part: float(value) for part, value in parts.items()}
        rows.append({"stage": name, **shares, "A": short(found.algorithm), "B": short(found.heuristic)})
        if len(weight) <= SHOWN:
            shown[name] = short(weight)
    return {"channels": rows, "weights": shown}


def moved(network: Network, prompts: Prompts) -> Table:
    """How alike the states of a graph are to those of the same graph with its nodes in another order.

    Of a disentangled transformer the states themselves; of another what the logit lens makes of them.
    """
    parameter = next(network.parameters())
    names = [stage for stage in network.stages if stage != "norm"]

    def show(x: Tensor) -> dict[str, Tensor]:
        states = network.run(x, names)[1]
        if isinstance(network, DisentangledNetwork):
            return states
        norm, read_out = network.get_submodule("norm"), network.get_submodule("read_out")
        return {name: read_out(norm(state)) for name, state in states.items()}

    alike = equivariance(show, prompts.x.to(parameter))
    found = means(torch.stack([value.cpu() for value in alike.values()], dim=1))
    columns = ("cosine", "low", "high")
    return [
        {"stage": stage, **dict(zip(columns, map(short, row[:3]), strict=True)), "n": row.n}
        for stage, row in zip(alike, found, strict=True)
    ]


def traced(network: Network, instrument: Instrument) -> dict[str, Any]:
    """Each stage against what known algorithms have computed after each of their steps: the share of equal answers."""
    record = instrument.identify(network).record()
    maps = record["matches"][record["measure"]]
    return {"stages": [found["stage"] for found in record["stages"]], "maps": maps, "n": record["prompts"]}

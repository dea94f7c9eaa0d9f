"""What is measured of each model of the study. Every table is plain numbers with intervals."""

import functools
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from algoscope import algorithms as known
from algoscope import reachability
from algoscope.algorithms import Algorithm
from algoscope.matching import candidates, compare
from algoscope.matching.bootstrap import interval, ratio_interval, resampling
from algoscope.models import Disentangled, Network
from algoscope.models.disentangled import DisentangledNetwork
from algoscope.models.transformer import TransformerNetwork, added
from algoscope.reading import accuracy_by_distance, channels, decided, equivariance, exact_match, lens, probe
from algoscope.studies.shares import wilson
from algoscope.studies.study import Training
from algoscope.tasks import Connectivity
from algoscope.trace import Prompts, Trace
from algoscope.verdict import matched, short

Table = list[dict[str, Any]]
RESAMPLES = 1000
PASS = 1000  # graphs that a network is asked about at once
ENTRIES = 2**20  # of the matrices on which stages are compared, with every step of every algorithm: bounds the memory
SHOWN = 16  # rows of the largest matrix of weights that is kept entry by entry
DEGREE = 1.6  # n times the chance of an edge, in both settings that the paper states: n = 8, p = .2 and n = 20, p = .08
RANDOM, WITHIN, BEYOND, CHAINS, CLIQUES, PATHS = (
    "random graphs", "within capacity", "beyond capacity", "two chains", "two cliques", "paths",
)  # fmt: skip
ANSWERS = "answers"  # the stage after the last: what the network says itself
THRESHOLDS = (1, 2, 3, 4, 6, 9)  # of the degree heuristic


@dataclass(frozen=True)
class Sizes:
    """How many graphs: of each kind to answer, and to compare stages on."""

    asked: int
    traced: int


SIZES = {"smoke": Sizes(60, 30), "laptop": Sizes(2000, 500), "paper": Sizes(10_000, 1000)}


def measure(training: Training, network: Network, scale: str) -> dict[str, Any]:
    task = training.task
    assert isinstance(task, Connectivity)
    model, told = training.model, {"chance": task.chance, "largest": task.largest, "beyond": task.beyond}
    kind = {"model": "disentangled" if isinstance(model, Disentangled) else "standard", "layers": len(network.blocks)}
    return told | kind | {"steps": training.settings.steps} | measured(network, task.nodes, SIZES[scale])


@torch.no_grad()
def along(training: Training, network: Network, scale: str) -> dict[str, Any]:
    """What is told of weights on the way of training, on fewer graphs."""
    task = training.task
    assert isinstance(task, Connectivity)
    tests, few = graphs(task.nodes, 3 ** len(network.blocks), SIZES[scale])
    some = {name: Prompts(prompts.x[:PASS], prompts.y[:PASS]) for name, prompts in tests.items() if name != PATHS}
    said = {name: answers(network, prompts) for name, prompts in some.items()}
    tables: dict[str, Any] = {
        "answers": [right(name, said[name], some[name]) for name in some],
        "by_distance": by_distance(RANDOM, said[RANDOM], some[RANDOM]),
        "equivariance": moved(network, few[RANDOM]),
    }
    if isinstance(network, DisentangledNetwork):
        told = ("stage", "algorithm", "heuristic", "error")
        tables["channels"] = [{name: row[name] for name in told} for row in weights(network, task.nodes)["channels"]]
    return tables


@torch.no_grad()
def measured(network: Network, nodes: int, sizes: Sizes) -> dict[str, Any]:
    """All tables of one network over graphs of so many nodes."""
    capacity = 3 ** len(network.blocks)
    tests, few = graphs(nodes, capacity, sizes)
    said = {name: answers(network, prompts) for name, prompts in tests.items()}
    tables = {
        "nodes": nodes,
        "capacity": capacity,
        "answers": [right(name, said[name], tests[name]) for name in tests],
        "by_distance": [row for name in (RANDOM, PATHS) for row in by_distance(name, said[name], tests[name])],
        "equivariance": moved(network, few[RANDOM]),
        "traces": {name: traced(network, prompts) for name, prompts in few.items()},
    }
    if isinstance(network, DisentangledNetwork):
        tables |= weights(network, nodes)
    if isinstance(network, TransformerNetwork):
        tables["patched"] = patched(network, few[RANDOM])
    return tables


@functools.lru_cache(maxsize=1)
def graphs(nodes: int, capacity: int, sizes: Sizes) -> tuple[dict[str, Prompts], dict[str, Prompts]]:
    """The graphs to answer, and those to compare stages on: the same for all networks of one size."""
    tests = asked(nodes, capacity)
    many = {name: task.sample(sizes.asked, seed=0, purpose="asked") for name, task in tests.items()}
    traced = min(sizes.traced, ENTRIES // nodes**2)
    return many, {name: tests[name].sample(traced, seed=0, purpose="traced") for name in (RANDOM, PATHS)}


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


def answers(network: Network, prompts: Prompts) -> Tensor:
    """True where the network says that two nodes are connected: where that is more likely than not."""
    parameter = next(network.parameters())
    parts = [network(part.to(parameter)) > 0 for part in prompts.x.split(PASS)]
    return torch.cat(parts).cpu().reshape(prompts.y.shape)


def right(name: str, said: Tensor, prompts: Prompts) -> dict[str, Any]:
    """The share of graphs about which every answer is right, and the share of right answers."""
    exact = exact_match(said, prompts.y).double()
    share = float(exact.mean())
    entries = (said == prompts.y.bool()).double().flatten(1).mean(1)
    low, high = wilson(share, len(exact))
    return {
        "graphs": name, "exact": share, "low": low, "high": high, "accuracy": float(entries.mean()), "n": len(exact),
    }  # fmt: skip


def by_distance(name: str, said: Tensor, prompts: Prompts) -> Table:
    """The share of right answers about pairs at each distance; "apart" are pairs that are not connected.

    Pairs of one graph fail together, so that an interval counts graphs, not pairs.
    """
    found, distances = accuracy_by_distance(said, prompts.x), reachability.distances(prompts.x.bool())
    shares = [*enumerate(found.accuracy.tolist()), ("apart", found.apart)]
    rows = []
    for distance, share in shares:
        graphs = int((distances == (-1 if distance == "apart" else distance)).flatten(1).any(1).sum())
        if graphs:
            low, high = wilson(share, graphs)
            rows.append(
                {"graphs": name, "distance": distance, "accuracy": share, "low": low, "high": high, "n": graphs}
            )
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

    Of a disentangled transformer the states themselves; of another its own read-out of them.
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
    return rows_of(tuple(alike), cosine=torch.stack([value.cpu() for value in alike.values()], dim=1))


def traced(network: Network, prompts: Prompts) -> dict[str, Any]:
    """Each stage against what people's algorithms know after each of their steps: the share of equal answers."""
    trace = stages(network, prompts)
    matches = {name: compare(trace, one, "agreement", first=0) for name, one in algorithms(prompts).items()}
    kept = {
        str(stage): [
            {"name": one.name, "step": one.step, "similarity": one.similarity, "low": one.low, "high": one.high}
            for one in candidates(matches, stage)
        ]
        for stage in trace.stages
    }
    return {
        "stages": [str(stage) for stage in trace.stages],
        "maps": {name: matched(match) for name, match in matches.items()},
        "kept": kept,
        "n": prompts.batch,
    }


def stages(network: Network, prompts: Prompts) -> Trace:
    """What each stage of a network knows, as answers.

    A disentangled transformer only appends to its stream, so that its own read-out reads every stage. What another
    holds before its end its read-out was never trained on: there a linear read-out is fitted to each stage.
    """
    task = Connectivity(prompts.dim, chance=DEGREE / prompts.dim)
    own = lens(network, task, prompts)
    if isinstance(network, DisentangledNetwork):
        return own
    fitted = decided(probe(network, task, prompts, seed=1, fit_on=max(2 * prompts.batch, 200)))
    values = torch.cat([fitted.values, own.values[-1:].to(fitted.values)])
    return Trace("the model", values, (*fitted.stages, ANSWERS), prompts)


def algorithms(prompts: Prompts) -> dict[str, Trace]:
    """People's algorithms and heuristics on the same graphs, each until it has ended on every one."""
    nodes = prompts.dim
    most = int(reachability.diameters(prompts.x.bool()).max())
    ways: dict[str, Algorithm] = {
        "Hops": known.Hops(max(most, 1)),
        "Squaring": known.Squaring(max(math.ceil(math.log2(max(most, 2))), 1)),
        "Tripling": known.Tripling(max(math.ceil(math.log(max(most, 2), 3) - 1e-9), 1)),
        "LabelPropagation": known.LabelPropagation(min(max(most, 1), nodes)),
        "AllConnected": known.AllConnected(),
    }
    by_degree = [known.Degree(float(threshold)).trace(prompts) for threshold in THRESHOLDS]
    values = torch.cat([trace.values for trace in by_degree])
    degree = Trace("Degree", values, THRESHOLDS, prompts, note=by_degree[0].note)
    return {name: way.trace(prompts) for name, way in ways.items()} | {"Degree": degree}


def patched(network: TransformerNetwork, prompts: Prompts) -> Table:
    """A causal test. After a stage, the state of one node is replaced by what it is in another graph.

    `survives` tells how much of the other graph's answer about this node is left in the end: 1 after the stage in which
    it is settled. `flips` is the share of answers about pairs of *other* nodes that change: 0 once nobody reads the
    state of this node any more.
    """
    parameter, node = next(network.parameters()), 0  # nodes come in random order, so any will do
    x = prompts.x.to(parameter)
    names = [stage for stage in network.stages if stage != "norm"]
    own, (foreign, states) = network(x), network.run(x.roll(1, 0), names)
    survived, flipped = [], []
    for name, part in zip(names, (network.read_in, *network.blocks), strict=True):

        def plant(_: object, __: object, output: Tensor | tuple[Tensor, ...], to: Tensor = states[name]) -> Any:
            state = (added(*output) if isinstance(output, tuple) else output).clone()
            state[:, node] = to[:, node]
            return (state,) if isinstance(output, tuple) else state

        handle = part.register_forward_hook(plant)
        try:
            result = network(x)
        finally:
            handle.remove()
        change, whole = (result - own)[:, node].double(), (foreign - own)[:, node].double()
        survived.append((change * whole).sum(1).cpu())
        flipped.append(((result > 0) != (own > 0))[:, node + 1 :, node + 1 :].double().flatten(1).mean(1).cpu())
    squares = (foreign - own)[:, node].double().square().sum(1).cpu()[:, None].expand(-1, len(names))
    draws = resampling(len(x), RESAMPLES, 0)
    numbers = [part.tolist() for part in ratio_interval(torch.stack(survived, 1), squares, draws, 0.95)]
    rows = rows_of(tuple(names), flips=torch.stack(flipped, 1))
    ends = zip(rows, *numbers, strict=True)
    return [
        {"stage": row["stage"], "n": row["n"], "survives": share, "low": low, "high": high,
         **{f"flips{end and '_'}{end}": row[end or "flips"] for end in ("", "low", "high")}}
        for row, share, low, high in ends
    ]  # fmt: skip


def rows_of(names: tuple[Any, ...], **column: Tensor) -> Table:
    """Means of a column over graphs [batch, names] with intervals."""
    ((what, values),) = column.items()
    low, high = interval(values, resampling(len(values), RESAMPLES, 0), 0.95)
    numbers = zip(names, values.mean(0), low, high, strict=True)
    return [
        {"stage": str(name), what: short(mean), "low": short(lower), "high": short(upper), "n": len(values)}
        for name, mean, lower, upper in numbers
    ]

"""Graphs of limited diameter, drawn and labeled: ours against networkx, as a ratio from one run on one core.

python -m benchmarks.graphs            writes results/benchmarks/graphs.json

The baseline loop lets numpy draw the edges, asks networkx for the diameter of each component, draws again until it will
do, and fills in the labels from the components.
"""

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import torch

from algoscope import reachability, runs
from algoscope.tasks import Connectivity

RESULT = Path("results/benchmarks/graphs.json")
CASES = {
    "n = 8, p = .2, diameter <= 3": Connectivity(8, chance=0.2, largest=3),
    "n = 8, p = .2, 15% beyond 3": Connectivity(8, chance=0.2, largest=3, beyond=0.15),
    "n = 20, p = .08, diameter <= 9": Connectivity(20, chance=0.08, largest=9),
    "n = 24, p = .08, diameter <= 9": Connectivity(24, chance=0.08, largest=9),
    "n = 64, p = .03, diameter <= 27": Connectivity(64, chance=0.03, largest=27),
}
BATCH, ROUNDS = 1000, 5  # of ours
OTHERS = 100  # graphs that the others draw in a round


def baseline(task: Connectivity, count: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The loop as most people write it."""
    assert task.largest is not None
    x, y = (np.empty((count, task.nodes, task.nodes)) for _ in range(2))
    for k in range(count):
        past = generator.random() < task.beyond
        while True:
            upper = np.triu(generator.random((task.nodes, task.nodes)) < task.chance, 1)
            graph = networkx.from_numpy_array(upper | upper.T)
            parts = [graph.subgraph(part) for part in networkx.connected_components(graph)]
            if (max(map(networkx.diameter, parts)) > task.largest) == past:
                break
        x[k] = upper | upper.T | np.eye(task.nodes, dtype=bool)
        y[k] = 0
        for part in parts:
            y[k][np.ix_(list(part), list(part))] = 1
    return x, y


def measured(task: Connectivity) -> dict[str, Any]:
    """Graphs per second of both, and the median over the rounds of their ratio; the two take turns."""
    ours, theirs = torch.Generator().manual_seed(0), np.random.default_rng(0)
    x, _ = task.draw(BATCH, [ours], torch.float32)  # the share of graphs that will do is found once
    rates: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        x, _ = task.draw(BATCH, [ours], torch.float32)
        middle = time.perf_counter()
        baseline(task, OTHERS, theirs)
        rates.append((BATCH / (middle - begin), OTHERS / (time.perf_counter() - middle)))
    assert task.largest is not None
    past = ~reachability.at_most(x.bool(), task.largest)
    return {
        "ours_per_s": round(statistics.median(own for own, _ in rates)),
        "networkx_per_s": round(statistics.median(other for _, other in rates)),
        "ratio": round(statistics.median(own / other for own, other in rates), 1),
        "beyond": float(past.double().mean()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    torch.set_num_threads(1)
    found = {name: measured(task) for name, task in CASES.items()}
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    about = {"batch": BATCH, "threads": 1, "provenance": runs.provenance(torch.device("cpu"))}
    RESULT.write_text(json.dumps({"sampling": found, **about}, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()

"""The laptop model on a CPU: speed against the peers' loop, as a ratio from one run, and the error after two minutes.

python -m benchmarks.laptop            writes results/benchmarks/laptop.json
"""

import json
import statistics
import time
from dataclasses import replace
from itertools import product
from operator import truediv
from pathlib import Path
from typing import Any

import torch
from torch.func import functional_call

from algoscope import runs
from algoscope.training import LAPTOP, Member
from algoscope.training.bench import usual
from algoscope.training.engine import prepare
from algoscope.training.population import Population
from benchmarks.peers import Peers

CPU = torch.device("cpu")
ROUNDS, STEPS = 20, 10  # of each loop, and in a round
SEEDS, LIMIT = (0, 1, 2, 3, 4), 120.0  # seconds


def ratios() -> dict[str, float]:
    """Steps per second over the peers'. The loops take turns: a busy machine slows all of them.

    A turn is a few steps, so that what a loop left in the cache serves it, as it does where it runs alone.
    """
    loops = {"peers": usual(LAPTOP.task, Peers(LAPTOP.task, LAPTOP.model), LAPTOP.settings.batch, CPU)}
    for optimizer, compiled in product(("adamw", "muon"), (False, True)):
        settings = replace(LAPTOP.settings, steps=10**6, optimizer=optimizer, compile=compiled)
        population = Population(LAPTOP.model, [Member(LAPTOP.task)], settings, CPU)
        loops[optimizer + ", compiled" * compiled] = prepare(population)
    times: dict[str, list[float]] = {name: [] for name in loops}
    for _ in range(ROUNDS):
        for name, advance in loops.items():
            begin = time.perf_counter()
            for _ in range(STEPS):
                advance()
            times[name].append(time.perf_counter() - begin)
    ours = (name for name in loops if name != "peers")
    return {name: statistics.median(map(truediv, times["peers"], times[name])) for name in ours}


def trained(seed: int) -> dict[str, Any]:
    """Trains to the end, or for two minutes."""
    task, settings = LAPTOP.task, LAPTOP.settings
    population = Population(LAPTOP.model, [Member(task, seed, LAPTOP.learning_rate)], settings, CPU)
    begin = time.perf_counter()
    while int(population.state.step) < settings.steps and time.perf_counter() - begin < LIMIT:
        population.step()
    share = (time.perf_counter() - begin) / LIMIT
    prompts = task.sample(2000, seed=10**6, dtype=torch.float32)
    with torch.no_grad():
        tensors = population.layout.full(population.state.parameters)
        outputs = functional_call(population.network, tensors, (task.encode(prompts.x, prompts.y),))
    error = float((task.read(outputs) - prompts.y)[:, -1].square().mean()) / task.power
    return {"seed": seed, "steps": int(population.state.step), "error": error, "share_of_2_minutes": round(share, 2)}


def main() -> None:
    result = {
        "what": "LinearRegression(dim=5, examples=20); steps per second over the peers' on the same network",
        "ratio": ratios(),
        "trained": [trained(seed) for seed in SEEDS],
        "threads": torch.get_num_threads(),
        "provenance": runs.provenance(CPU),
    }
    path = Path("results/benchmarks/laptop.json")
    path.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()

"""The laptop model on a CPU: speed against the peers' loop, as a ratio from one run, and the error after two minutes.

python -m benchmarks.laptop            writes results/benchmarks/laptop.json
"""

import json
import multiprocessing
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from multiprocessing.connection import Connection
from operator import truediv
from pathlib import Path
from typing import Any

import torch
from torch.func import functional_call

from algoscope import runs
from algoscope.training import LAPTOP, Member
from algoscope.training.bench import baseline_step
from algoscope.training.engine import prepare
from algoscope.training.population import Population
from benchmarks.peers import Peers

CPU = torch.device("cpu")
WARM_UP, ROUNDS, STEPS = 2, 20, 20  # steps are of each loop in a round
OURS = tuple(product(("adamw", "muon"), (False, True)))  # optimizer, whether it is compiled
SEEDS, LIMIT = (0, 1, 2, 3, 4), 120.0  # seconds


def ratios() -> dict[str, float]:
    """Steps per second over the peers'. The loops take turns: a busy machine slows all of them.

    Each has a process of its own, as where people run it: within one process, what a loop has freed is at hand for the
    others, and none has to ask the system for memory again, as the peers' does at every step.
    """
    context = multiprocessing.get_context("spawn")
    pipes = {loop: context.Pipe() for loop in (None, *OURS)}
    workers = [context.Process(target=_take_turns, args=(loop, pipe[1])) for loop, pipe in pipes.items()]
    for worker in workers:
        worker.start()
    times: dict[tuple[str, bool] | None, list[float]] = {loop: [] for loop in pipes}
    for _ in range(WARM_UP + ROUNDS):
        for loop, (pipe, _) in pipes.items():
            pipe.send(STEPS)
            times[loop].append(pipe.recv())
    for worker, (pipe, _) in zip(workers, pipes.values(), strict=True):
        pipe.send(0)
        worker.join()
    return {
        optimizer + ", compiled" * compiled: statistics.median(
            map(truediv, times[None][WARM_UP:], times[optimizer, compiled][WARM_UP:])
        )
        for optimizer, compiled in OURS
    }


def _take_turns(loop: tuple[str, bool] | None, pipe: Connection) -> None:
    """Runs as many steps as it is told, until none, and tells the seconds that they took."""
    advance = _loop(loop)
    while steps := pipe.recv():
        begin = time.perf_counter()
        for _ in range(steps):
            advance()
        pipe.send(time.perf_counter() - begin)


def _loop(loop: tuple[str, bool] | None) -> Callable[[], None]:
    """The peers' step, or ours."""
    if loop is None:
        return baseline_step(LAPTOP.task, Peers(LAPTOP.task, LAPTOP.model), LAPTOP.settings.batch, CPU)
    optimizer, compiled = loop
    settings = replace(LAPTOP.settings, steps=10**6, optimizer=optimizer, compile=compiled)
    return prepare(Population.of(LAPTOP.model, [Member(LAPTOP.task)], settings, CPU))


def trained(seed: int) -> dict[str, Any]:
    """Trains to the end, or for two minutes."""
    task, settings = LAPTOP.task, LAPTOP.settings
    population = Population.of(LAPTOP.model, [Member(task, seed, LAPTOP.learning_rate)], settings, CPU)
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

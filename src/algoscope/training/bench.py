"""How fast this machine trains, against a baseline: the training loop as most people write it."""

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from algoscope.models import Model, Network
from algoscope.randomness import stream
from algoscope.tasks import Task
from algoscope.training.engine import prepare
from algoscope.training.population import Population
from algoscope.training.settings import Member, Settings


@dataclass(frozen=True)
class Speed:
    """Of the baseline loop (`members` 0) or of a population."""

    members: int
    steps_per_s: float
    compile_s: float = 0.0
    gib: float = 0.0  # of GPU memory

    @property
    def model_steps_per_s(self) -> float:
        return max(self.members, 1) * self.steps_per_s


def baseline_step(
    task: Task, network: nn.Module, batch: int, device: torch.device, from_host: bool = True
) -> Callable[[], None]:
    """The step of a plain loop: prompts from the host, eager float32, Adam, the loss fetched each time.

    If not `from_host`, prompts are drawn on the device: what is left is the cost of the step itself.
    """
    network = network.to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-4)
    generator = stream("training prompts", 0, "cpu" if from_host else device)
    noise = network.training_needs.noise_shape if isinstance(network, Network) else ()

    def advance() -> None:
        x, y = (part.to(device) for part in task.draw(batch, [generator], torch.float32))
        optimizer.zero_grad()
        given = {"noise": torch.rand(batch, *noise, device=device)} if noise else {}
        loss = task.loss(task.read(network(task.encode(x, y), **given)), y).mean()
        loss.backward()
        optimizer.step()
        loss.detach().item()

    return advance


def measure_baseline(task: Task, network: nn.Module, batch: int, device: torch.device, seconds: float) -> Speed:
    return Speed(0, rate(baseline_step(task, network, batch, device), device, seconds))


def measure(model: Model, members: Sequence[Member], settings: Settings, device: torch.device, seconds: float) -> Speed:
    """Compiles and trains a population, and forgets it."""
    if device.type == "cuda":
        gc.collect()  # what a population before this one has left
        torch.cuda.reset_peak_memory_stats(device)
    begin = time.perf_counter()
    population = Population.of(model, members, settings, device)
    advance = prepare(population)
    _wait(device)
    compiled = time.perf_counter() - begin
    speed = rate(advance, device, seconds)
    gib = torch.cuda.max_memory_allocated(device) / 2**30 if device.type == "cuda" else 0.0
    return Speed(len(members), speed, compiled if population.settings.compile else 0.0, gib)


def rate(advance: Callable[[], object], device: torch.device, seconds: float, repeats: int = 5) -> float:
    """Steps per second: the median of `repeats` stretches that take `seconds` together, after a warm-up."""
    for _ in range(3):
        advance()
    stretch = max(1, round(seconds / repeats / _timed(advance, device, 3)))
    return 1 / statistics.median(_timed(advance, device, stretch) for _ in range(repeats))


def _timed(advance: Callable[[], object], device: torch.device, steps: int) -> float:
    """Seconds a step."""
    _wait(device)
    begin = time.perf_counter()
    for _ in range(steps):
        advance()
    _wait(device)
    return (time.perf_counter() - begin) / steps


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)

"""algoscope bench"""

from dataclasses import replace
from typing import Literal

from rich.console import Console
from rich.table import Table

from algoscope import arguments as checks
from algoscope.cli.options import parse_and_call
from algoscope.randomness import stream
from algoscope.training import LAPTOP, PAPER, Member
from algoscope.training.bench import measure, measure_baseline


def run(arguments: list[str]) -> None:
    parse_and_call(main, "algoscope bench", arguments)


def main(
    size: Literal["auto", "laptop", "paper"] = "auto",
    members: tuple[int, ...] = (1, 4),
    optimizer: Literal["adamw", "muon"] = "adamw",
    seconds: float = 5.0,
    device: str | None = None,
) -> None:
    """How many steps a second a baseline loop makes with this network, and how many this one makes.

    The baseline: prompts from the host, the same network run eagerly in 32 bits, Adam, the loss fetched each time.

    Args:
        size: Of the network and the task; auto is paper on a GPU and laptop on a CPU.
        members: Sizes of the populations to measure.
        optimizer: Of this loop.
        seconds: For each measurement.
        device: Such as cpu or cuda; by default a GPU if there is one.
    """
    chosen = checks.device(device)
    preset = {"laptop": LAPTOP, "paper": PAPER, "auto": PAPER if chosen.type == "cuda" else LAPTOP}[size]
    task, model, settings = preset.task, preset.model, replace(preset.settings, optimizer=optimizer, steps=10**6)
    checks.number("seconds", seconds, strict=True)
    for count in members:
        checks.integer("members", count, 1, 10_000)
    network = model.build(task.inputs, task.outputs, task.length, stream("weights", 0))
    console, table = Console(), Table(title=f"{model.layers} layers of width {model.width}, batch {settings.batch}")
    for column in ("loop", "models", "model-steps/s", "speed-up", "compilation", "memory"):
        table.add_column(column, justify="right", no_wrap=True)
    with console.status("the baseline loop …") as status:
        baseline = measure_baseline(task, network, settings.batch, chosen, seconds)
        table.add_row("baseline", "1", f"{baseline.steps_per_s:.1f}", "1", "", "")
        for count in members:
            status.update(f"{count} at once …")
            own = measure(model, [Member(task, seed) for seed in range(count)], settings, chosen, seconds)
            ratio = own.model_steps_per_s / baseline.steps_per_s
            cost = (f"{own.compile_s:.0f} s", f"{own.gib:.1f} GiB") if chosen.type == "cuda" else ("", "")
            table.add_row("algoscope", str(count), f"{own.model_steps_per_s:.1f}", f"{ratio:.2f}", *cost)
    console.print(table)

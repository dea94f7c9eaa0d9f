"""algoscope identify RUN"""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console
from rich.table import Table

from algoscope import runs
from algoscope.cli import parse_and_call
from algoscope.instrument import identify
from algoscope.report.page import page
from algoscope.training import Configuration, load
from algoscope.verdict import StageVerdict, Verdict

SHOWN = 4  # steps of one algorithm in a row of the table


def run(arguments: list[str]) -> None:
    parse_and_call(main, "algoscope identify", arguments)


def main(
    path: Annotated[Path, tyro.conf.Positional],
    member: int = 0,
    prompts: int = 1000,
    fit_on: int = 1000,
    seed: int = 0,
    norm: Literal["none", "each", "last"] = "none",
) -> None:
    """Which algorithm does each layer of a trained model follow?

    Args:
        path: The folder of a finished run.
        member: Of a population, which model.
        prompts: Number of prompts to compare on.
        fit_on: Number of other prompts to fit the read-outs on.
        seed: Seed of both.
        norm: States are read as they are (none), normalized (each), or the last one after the final norm (last).
    """
    model, task = load(path, member), Configuration.read(path).members[member].task
    verdict = identify(model, task, prompts=prompts, fit_on=fit_on, seed=seed, norm=norm, progress=True)
    folder, command = runs.Folder(path), ["algoscope", "identify", *sys.argv[2:]]
    kinds = f"{type(Configuration.read(path).model).__name__} on {type(task).__name__}"
    record = {"title": f"{kinds}: {path.resolve().name}", "command": shlex.join(command), **verdict.record()}
    runs.write_json(folder.verdict, record)
    runs.write_text(folder.page, page(record))
    show(Console(), verdict)
    print(f"\n  {folder.page}")


def show(console: Console, verdict: Verdict) -> None:
    """The table, the verdict in words, and how far to trust it."""
    table = Table(title=f"{verdict.trace.prompts.batch} prompts")
    for column in ("stage", "error at the last position", "cannot be told from the closest"):
        table.add_column(column, justify="left" if column.startswith("cannot") else "right")
    for found in verdict.stages:
        table.add_row(str(found.stage), f"{found.error:.4g}", described(found))
    console.print(table)
    console.print(f"\n{verdict.text}\n", highlight=False)
    console.print(trust(), highlight=False)


def described(found: StageVerdict) -> str:
    """The algorithms and steps that a stage may be."""
    if found.null:
        return "nothing: no algorithm beats the null"
    if not found.agreed:
        errors, decoded = (f"{kind[0].name} {kind[0].step}" for kind in (found.errors, found.decodability))
        return f"undecided: errors say {errors}, decodability {decoded}"
    parts = []
    for name in dict.fromkeys(algorithm for algorithm, _ in found.agreed):
        steps = [str(step) for step in found.steps(name)]
        parts.append(f"{name} {', '.join(steps[:SHOWN])}{' …' if len(steps) > SHOWN else ''}")
    return "; ".join(parts)


def trust() -> str:
    """How the instrument fares on models whose answer is known."""
    rates = runs.controls()
    if rates is None:
        return "How far to trust this: the rates of the controls are not here."
    planted, alarms = rates["planted"], rates["false_alarms"]["all"]
    certain, right = planted["certain"], planted["right_when_certain"]
    return (
        f"How far to trust this: on {planted['models']} planted models the instrument was certain at {_rate(certain)} "
        f"of the stages before saturation, and right at {_rate(right)} of those; of {alarms['models']} models with "
        f"nothing to find, {_rate(alarms)} alarmed it."
    )


def _rate(found: dict[str, float]) -> str:
    return f"{found['rate']:.1%} ({found['low']:.1%}–{found['high']:.1%})"

"""algoscope identify RUN"""

import shlex
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console
from rich.table import Table

from algoscope import files, runs
from algoscope.cli.options import parse_and_call
from algoscope.constructions import Written  # noqa: F401 - a run may have trained one, and names it
from algoscope.instrument import identify
from algoscope.training import Configuration, load
from algoscope.verdict import Verdict


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
    """Which algorithm does each layer of a trained model follow? Prints the verdict, and writes it and its page.

    Args:
        path: The folder of a finished run, or icl-linear-regression, a transformer of the papers' size that is here.
        member: Of a population, which model, from 0 on.
        prompts: Number of prompts to compare on.
        fit_on: Number of other prompts to fit the read-outs on.
        seed: Seed of both.
        norm: States are read as they are (none), normalized (each), or the last one after the final norm (last).
    """
    model, found = load(path, member), Configuration.read(path)
    task, folder = found.members[member].task, runs.reports_of(path)
    own = member if len(found.members) > 1 else None
    title = f"{type(found.model).__name__} on {type(task).__name__}: {path.resolve().name}"
    options = {"member": member, "prompts": prompts, "fit-on": fit_on, "seed": seed, "norm": norm}
    typed = " ".join(f"--{name} {value}" for name, value in options.items())
    facts = {
        "title": title if own is None else f"{title}, member {own}",
        "command": f"algoscope identify {shlex.quote(str(path))} {typed}",
    }
    with files.output_folder(folder.path):
        verdict = identify(model, task, prompts=prompts, fit_on=fit_on, seed=seed, norm=norm, progress=True)
        show(Console(), verdict)
        for suffix in ("json", "html"):
            verdict.save(folder.report(suffix, own), **facts)
    print(f"\n  {folder.report('html', own)}")


def show(console: Console, verdict: Verdict) -> None:
    """The table, the verdict in words, and how far to trust it."""
    table = Table(title=f"{verdict.trace.prompts.batch} prompts")
    for column in ("stage", "error at the last position", "cannot be told from the closest"):
        table.add_column(column, justify="left" if column.startswith("cannot") else "right")
    for found in verdict.stages:
        table.add_row(str(found.stage), f"{found.error:.4g}", found.words)
    console.print(table)
    console.print(f"\n{verdict.text}\n", highlight=False)
    console.print(trust(), highlight=False)


def trust() -> str:
    """How the instrument fares on models whose answer is known."""
    rates = runs.controls()
    if rates is None:
        return "How far to trust this: the rates of the controls are not here."
    planted, alarms = rates["planted"], rates["false_alarms"]["all"]
    certain, right = planted["certain"], planted["right_when_certain"]
    return (
        f"How far to trust this: on {planted['models']} planted models (500 prompts, isotropic data, all "
        f"algorithms on the list) the instrument was certain at {_rate(certain)} of the stages before saturation, and "
        f"right at {_rate(right)} of those; with the planted algorithm off the list it was certain of another at "
        f"{_rate(rates['certain_when_absent'])}; of {alarms['models']} models with nothing to find, {_rate(alarms)} "
        "alarmed it."
    )


def _rate(found: dict[str, float]) -> str:
    return f"{found['rate']:.1%} ({found['low']:.1%}–{found['high']:.1%})"

"""algoscope identify RUN"""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console
from rich.table import Table

from algoscope import documents, files, registry, runs
from algoscope.cli.algorithms import typed_algorithms
from algoscope.cli.options import parse_and_call
from algoscope.instrument import Instrument, positions_for
from algoscope.tasks import Task
from algoscope.training import Configuration, load_member
from algoscope.verdict import Verdict


def run(arguments: list[str]) -> None:
    parse_and_call(main, "algoscope identify", arguments)


def main(
    path: Annotated[Path, tyro.conf.Positional],
    member: int | Literal["all"] = 0,
    prompts: int = 1000,
    fit_on: int = 1000,
    seed: int = 0,
    norm: Literal["none", "each", "last"] = "none",
    algorithms: str | None = None,
    measure: str | None = None,
) -> None:
    """Which algorithm does each layer of a trained model follow? Prints the verdict, and writes it and its page.

    Args:
        path: The folder of a finished run, or icl-linear-regression, a transformer of the papers' size that is here.
        member: Of a population, which model, from 0 on; all makes a page for each and one that sums them up.
        prompts: Number of prompts to compare on.
        fit_on: Number of other prompts to fit the probes on.
        seed: Seed of both.
        norm: States are read as they are (none), normalized (each), or the last one after the final norm (last).
        algorithms: To compare with, such as newton,gd:rate=0.02,my.Lasso; by default those that the task names.
        measure: How alike two traces are, such as errors or agreement; by default as the task says.
    """
    found, folder = Configuration.read(path), runs.reports_of(path)
    chosen = range(len(found.members)) if member == "all" else [member]
    task = found.of_member(chosen[0]).task
    compared = None if algorithms is None else typed_algorithms(algorithms, task)
    options = {"member": member, "prompts": prompts, "fit-on": fit_on, "seed": seed, "norm": norm}
    command = _command(path, options | {"algorithms": algorithms, "measure": measure})
    title = f"{type(found.model).__name__} on {type(task).__name__}: {path.resolve().name}"
    instruments: dict[Task, Instrument] = {}
    with files.output_folder(folder.path):
        for own in chosen:
            model, task = load_member(path, found, own), found.of_member(own).task
            if task not in instruments:
                positions = positions_for(model, task)
                instruments = {
                    task: Instrument(task, compared, prompts, fit_on, seed, positions, True, measure=measure)
                }
            verdict = instruments[task].identify(model, norm=norm, progress=True)
            several = len(found.members) > 1
            if member == "all":
                print(f"\nmember {own}")
            show(Console(), verdict)
            facts = {"title": f"{title}, member {own}" if several else title, "command": command}
            for suffix in ("json", "html"):
                verdict.save(folder.report(suffix, own if several else None), **facts)
        if member == "all" and len(chosen) > 1:
            summed_up(folder, title, command)
    print(f"\n  {folder.report('html', None if member == 'all' or len(found.members) == 1 else member)}")


def _command(path: Path, options: Mapping[str, object]) -> str:
    """What to type for the same page."""
    typed = [f"--{name} {shlex.quote(str(value))}" for name, value in options.items() if value is not None]
    typed += [f"--plugin {shlex.quote(plugin)}" for plugin in registry.plugins()]
    return f"algoscope identify {shlex.quote(str(path))} {' '.join(typed)}"


def summed_up(folder: runs.Folder, title: str, command: str) -> None:
    """The page that sums up what was found about every member."""
    from algoscope.report.page import members_page  # it loads the library of charts

    pages = sorted(folder.path.glob("report-member-*.json"), key=lambda file: int(file.stem.rpartition("-")[2]))
    records = {file.with_suffix(".html").name: files.read_json(file, documents.VERDICT) for file in pages}
    files.write_text(folder.report("html"), members_page(records, title, command))


def show(console: Console, verdict: Verdict) -> None:
    """The table, the verdict in words, and how far to trust it."""
    table = Table(title=f"{verdict.trace.prompts.batch} prompts")
    error = "wrong answers" if verdict.task.labels else "error at the last position"
    table.add_column("stage", justify="right")
    table.add_column(error, justify="right")
    table.add_column("statistically tied with the closest step")
    for found in verdict.stages:
        table.add_row(str(found.stage), f"{found.error:.4g}", found.words)
    console.print(table)
    console.print(f"\n{verdict.text}\n", highlight=False)
    console.print(trust(verdict.task.family), highlight=False)


def trust(family: str) -> str:
    """How the instrument fares on models of a family whose answer is known."""
    rates = (runs.controls() or {}).get(family)
    if rates is None:
        return f"How far to trust this: no controls were measured for tasks of the family {family!r}."
    planted, alarms, absent = rates["planted"], rates["false_alarms"], rates.get("certain_when_absent")
    strict, wrong = rates.get("wrong_step_when_absent"), ""
    if absent:
        certain = f"certain of a wrong step at {_rate(strict)} of the stages, and " if strict else ""
        sure = f"sure of a wrong step or method at {_rate(absent)}"
        wrong = f"with the planted algorithm off the list it was {certain}{sure}; "
    return (
        f"How far to trust this: {wrong}on {planted['models']} planted models of this family it was "
        f"certain at {_rate(planted['certain'])} of the stages before saturation, and right at "
        f"{_rate(planted['right_when_certain'])} of those of which it was sure; of {alarms['models']} models with "
        f"nothing to find, {_rate(alarms)} raised an alarm."
    )


def _rate(found: dict[str, float]) -> str:
    return f"{found['rate']:.1%} ({found['low']:.1%}–{found['high']:.1%})"

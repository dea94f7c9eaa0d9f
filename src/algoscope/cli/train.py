"""algoscope train TASK"""

import re
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tyro.conf import AvoidSubcommands, OmitArgPrefixes

from algoscope import models, tasks
from algoscope.arguments import choice
from algoscope.cli.options import parse_and_call
from algoscope.models import Model
from algoscope.tasks import Task
from algoscope.training import Configuration, Settings, train


def run(arguments: list[str]) -> None:
    """Two words choose the classes, whose fields become the options."""
    known, networks = kinds(tasks, Task), kinds(models, Model)
    if arguments[:1] in (["-h"], ["--help"]):
        print(overview(known, networks))
        return
    if not arguments or arguments[0].startswith("-"):
        raise ValueError(f"algoscope train needs a task: one of {', '.join(known)}; see algoscope train --help")
    task, rest = arguments[0], arguments[1:]
    choice("task", task, known)
    model, rest = (rest[0], rest[1:]) if rest and not rest[0].startswith("-") else ("transformer", rest)
    choice("model", model, networks)
    main.__annotations__ |= {"task": OmitArgPrefixes[known[task]], "model": OmitArgPrefixes[networks[model]]}
    parse_and_call(main, f"algoscope train {task} {model}", rest, config=(AvoidSubcommands,))


def overview(known: Mapping[str, type], networks: Mapping[str, type]) -> str:
    """What can be trained on what."""
    width = max(map(len, (*known, *networks)))
    parts = ["usage: algoscope train TASK [MODEL] --steps STEPS [OPTIONS]"]
    for title, kind in (("tasks", known), ("models", networks)):
        lines = (f"  {name:<{width}}  {about(each)}" for name, each in kind.items())
        parts.append(f"{title}:\n" + "\n".join(lines))
    parts.append("algoscope train TASK MODEL --help shows the options of both, and of training.")
    return "\n\n".join(parts)


def about(kind: type) -> str:
    """The first line of what a class says about itself."""
    return (kind.__doc__ or "").partition("\n")[0]


def kinds(room: object, base: type) -> dict[str, type]:
    """The concrete classes of a room, by the name to type: LinearRegression is linear-regression."""
    found = (getattr(room, name) for name in room.__all__)  # pyright: ignore[reportAttributeAccessIssue]
    concrete = (kind for kind in found if isinstance(kind, type) and issubclass(kind, base) and kind is not base)
    return {re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind.__name__).lower(): kind for kind in concrete}


def main(
    task: Task,
    model: Model,
    settings: OmitArgPrefixes[Settings],
    seed: tuple[int, ...] = (0,),
    learning_rate: tuple[float, ...] = (1e-3,),
    out: Path = Path("runs"),
    device: str | None = None,
) -> None:
    """Train a model on a task; several seeds or learning rates train side by side. A stopped run resumes.

    Args:
        task: What to solve.
        model: What learns.
        settings: How to train.
        seed: One or several.
        learning_rate: One, or as many as there are seeds.
        out: Folder for the run folder.
        device: Such as cpu or cuda; by default a GPU if there is one.
    """
    options = vars(settings)
    done = train(task, model, seed=seed, learning_rate=learning_rate, out=out, device=device, progress=True, **options)
    table = Table()
    for column in ("seed", "learning rate", "loss", "normalized error at the last position", "stopped at"):
        table.add_column(column, justify="right")
    for record, member in zip(done.final, Configuration.read(done.path).members, strict=True):
        stopped = str(record["stopped_at"]) if record["stopped_at"] != -1 else ""
        numbers = (member.learning_rate, record.get("loss"), record.get("error"))
        table.add_row(str(member.seed), *("" if n is None else f"{n:.4g}" for n in numbers), stopped)
    console = Console()
    console.print(table)
    console.print(f"  {done.path}", highlight=False)

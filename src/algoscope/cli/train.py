"""algoscope train TASK"""

from pathlib import Path

from rich.console import Console
from rich.table import Table
from tyro.conf import AvoidSubcommands, OmitArgPrefixes

from algoscope import registry
from algoscope.cli.options import parse_and_call
from algoscope.models import Model, Transformer
from algoscope.tasks import Task
from algoscope.training import Configuration, Settings, train


def run(arguments: list[str]) -> None:
    """Two words choose the classes, whose fields become the options."""
    if arguments[:1] in (["-h"], ["--help"]):
        print(overview())
        return
    if not arguments or arguments[0].startswith("-"):
        known = ", ".join(registry.classes("tasks"))
        raise ValueError(f"algoscope train needs a task: one of {known}; see algoscope train --help")
    task, rest = registry.find("tasks", arguments[0]), arguments[1:]
    named = bool(rest) and not rest[0].startswith("-")
    model, rest = (registry.find("models", rest[0]), rest[1:]) if named else (Transformer, rest)
    main.__annotations__ |= {"task": OmitArgPrefixes[task], "model": OmitArgPrefixes[model]}
    words = f"algoscope train {registry.spelled(task)} {registry.spelled(model)}"
    parse_and_call(main, words, rest, config=(AvoidSubcommands,))


def overview() -> str:
    """What can be trained on what."""
    rooms = {room: registry.classes(room) for room in ("tasks", "models")}
    width = max(len(name) for known in rooms.values() for name in known)
    parts = ["usage: algoscope train TASK [MODEL] --steps STEPS [OPTIONS]"]
    for room, known in rooms.items():
        lines = [f"  {name:<{width}}  {about(kind)}" for name, kind in known.items()]
        parts.append("\n".join([f"{room}:", *lines, *registry.broken(room)]))
    parts.append("algoscope train TASK MODEL --help shows the options of both, and of training.")
    return "\n\n".join(parts)


def about(kind: type) -> str:
    """The first line of what a class says about itself."""
    return (kind.__doc__ or "").partition("\n")[0]


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
    done = train(task, model, None, seed, learning_rate, out, device, progress=True, settings=settings)
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

"""algoscope train TASK"""

import json
import re
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from rich.console import Console
from rich.table import Table
from torch import Tensor
from tyro.conf import AvoidSubcommands, OmitArgPrefixes
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from algoscope import models, tasks
from algoscope.arguments import choice
from algoscope.cli import parse_and_call
from algoscope.models import Model
from algoscope.tasks import Task
from algoscope.training import Configuration, Settings, train

REGISTRY = ConstructorRegistry()


def run(arguments: list[str]) -> None:
    """Two words choose the classes, whose fields become the options."""
    known, networks = kinds(tasks, Task), kinds(models, Model)
    usage = f"algoscope train TASK [MODEL] --steps STEPS …; tasks: {', '.join(known)}; models: {', '.join(networks)}"
    if not arguments or arguments[0] not in known:
        if arguments[:1] in (["-h"], ["--help"]):
            print(usage)
            return
        raise ValueError(usage)
    task, rest = arguments[0], arguments[1:]
    model, rest = (rest[0], rest[1:]) if rest and not rest[0].startswith("-") else ("transformer", rest)
    choice("model", model, networks)
    main.__annotations__ |= {"task": OmitArgPrefixes[known[task]], "model": OmitArgPrefixes[networks[model]]}
    with REGISTRY:
        parse_and_call(main, f"algoscope train {task} {model}", rest, config=(AvoidSubcommands,))


@REGISTRY.primitive_rule
def names_or_matrix(wanted: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """Where a tensor is allowed, a matrix is typed as JSON: '[[2, 0], [0, 1]]'."""
    choices = get_args(wanted.type)
    if Tensor not in choices:
        return None
    names = [name for choice in choices if get_origin(choice) is Literal for name in get_args(choice)]
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar="|".join([*names, "MATRIX"]),
        instance_from_str=lambda words: words[0] if not words[0].startswith("[") else json.loads(words[0]),
        is_instance=lambda value: isinstance(value, str | tuple | list | Tensor),
        str_from_instance=lambda value: [value if isinstance(value, str) else json.dumps(value)],
    )


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
    """Train a model on a task; several seeds or learning rates train side by side. A stopped run goes on.

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
        numbers = (member.learning_rate, record["loss"], record["error"])
        table.add_row(str(member.seed), *("" if n is None else f"{n:.4g}" for n in numbers), stopped)
    console = Console()
    console.print(table)
    console.print(f"  {done.path}", highlight=False)

"""The command line: parses, calls, prints.

Each command is a file of this folder with a function `run`. It is imported only when it is called, so that `algoscope
--help` need not wait for torch.
"""

import contextlib
import functools
import importlib
import io
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

import tyro

COMMANDS = {
    "demo": "Train a small transformer and find out which algorithm it has learned.",
    "train": "Train a model, or a population, on a task. A stopped run goes on where it was.",
    "identify": "Which algorithm does each layer of a trained model follow?",
    "report": "Build the page of an identified run, or of a study, again from its saved numbers.",
    "studies": "What can be reproduced, and how long it takes.",
    "study": "Reproduce a paper: its runs, figures and claims.",
    "bench": "How fast this machine trains, against the loop that people usually write.",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Bad input ends in one line on stderr and exit code 2."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0] in ("-h", "--help"):
        print(overview())
        return
    try:
        if given[0] not in COMMANDS:
            raise ValueError(f"there is no command {given[0]!r}; there are {', '.join(COMMANDS)}")
        importlib.import_module(f"algoscope.cli.{given[0]}").run(given[1:])
    except (ValueError, OSError) as problem:
        print(f"algoscope: {problem}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt as told:
        saved = f"; {told} is saved, and the same command goes on from there" if told.args else ""
        print(f"\nalgoscope: stopped{saved}", file=sys.stderr)
        raise SystemExit(130) from None


def parse_and_call(main: Callable[..., None], prog: str, arguments: Sequence[str], config: Sequence[Any] = ()) -> None:
    """Turns the signature of `main` into options. What is wrong with the arguments is said in one line."""

    @functools.wraps(main)
    def later(*given: object, **named: object) -> Callable[[], None]:
        return functools.partial(main, *given, **named)

    with contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            call = tyro.cli(later, prog=prog, args=arguments, config=config)
        except SystemExit as end:
            if not end.code:
                raise
            box = said.getvalue().split("\n", 1)[-1]  # without its title
            words = re.sub(r"[│╭╮╰╯─\s]+", " ", box.split("Argument helptext")[0].split("For full")[0])
            raise ValueError(f"{words.strip().rstrip('.')}; see {prog} --help") from None
    call()


def overview() -> str:
    width = max(map(len, COMMANDS))
    commands = "\n".join(f"  {name:<{width}}  {purpose}" for name, purpose in COMMANDS.items())
    about = "algoscope finds out which algorithm a transformer has learned."
    return f"{about}\n\n{commands}\n\nalgoscope COMMAND --help shows the options of a command."

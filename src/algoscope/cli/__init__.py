"""The command line: parses, calls, prints.

Each command is a file of this folder with a function `run`. It is imported only when it is called, so that `algoscope
--help` need not wait for torch.
"""

import contextlib
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from algoscope import __version__, registry, stopping
from algoscope.spelling import nearest

COMMANDS = {
    "demo": "Train a small transformer and find out which algorithm it has learned.",
    "train": "Train a model, or a population, on a task. A stopped run resumes.",
    "identify": "Which algorithm does each layer of a trained model follow?",
    "report": "Build the page of an identified run, or of a study, again from its saved numbers.",
    "studies": "What can be reproduced, and how long it takes.",
    "study": "Reproduce a paper: its runs, figures and claims.",
    "controls": "How often is a method right about models whose answer is known?",
    "bench": "How fast this machine trains, against a plain training loop.",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Bad input ends in one line on stderr and exit code 2."""
    if arguments is None:
        stopping.exit_on_signal()  # this is the program
    everything = list(sys.argv[1:] if arguments is None else arguments)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - until the program ends
    if isinstance(sys.stdout, io.TextIOWrapper):
        with contextlib.suppress(ValueError):
            sys.stdout.reconfigure(errors="replace")  # a verdict must not be lost for a dash that ASCII lacks
    try:
        given, plugins = _without_plugins(everything)
        if not given or given[0] in ("-h", "--help"):
            print(overview())
        elif given[0] in ("-V", "--version"):
            print(f"algoscope {__version__}")
        else:
            _run(given[0], given[1:], plugins)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise SystemExit(128 + 13) from None
    except (ValueError, OSError) as problem:
        _fail(str(problem))
    except (MemoryError, OverflowError, RuntimeError) as problem:
        if not _too_large(problem):
            raise
        _fail(f"too large for this machine: {str(problem).splitlines()[0] if str(problem) else 'out of memory'}")
    except (KeyboardInterrupt, stopping.Terminated) as stop:
        if not stop.args:
            print("\nalgoscope: stopped", file=sys.stderr)
        raise SystemExit(stop.code if isinstance(stop, stopping.Terminated) else 130) from None


def _without_plugins(given: list[str]) -> tuple[list[str], list[str]]:
    """What is typed, and the plugins in it, which may stand anywhere: --plugin FILE_OR_MODULE."""
    words, left, plugins = iter(given), list[str](), list[str]()
    for word in words:
        option, equals, value = word.partition("=")
        if option != "--plugin":
            left.append(word)
            continue
        plugins.append(value if equals else next(words, ""))
        if not plugins[-1] or plugins[-1].startswith("-"):
            raise ValueError("--plugin must be followed by a file such as mine.py, or a module")
    return left, plugins


def _run(name: str, arguments: list[str], plugins: list[str]) -> None:
    if name not in COMMANDS:
        known = f"there are {', '.join(COMMANDS)}"
        raise ValueError(f"there is no command {name!r}; {known}{nearest(name, COMMANDS)}")
    command = importlib.import_module(f"algoscope.cli.{name}")
    with stopping.unwinding():
        for plugin in plugins:
            registry.plug(plugin)
        command.run(arguments)


def _fail(problem: str) -> NoReturn:
    """In one line, whatever the names in it hold; and without the output that could not be written."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    print(f"algoscope: {' '.join(problem.split())}", file=sys.stderr)
    raise SystemExit(2) from None


def _too_large(problem: Exception) -> bool:
    """Memory that there is not; torch says so in a RuntimeError."""
    words = ("alloc", "memory", "overflow")
    return not isinstance(problem, RuntimeError) or any(word in str(problem).lower() for word in words)


def overview() -> str:
    width = max(map(len, COMMANDS))
    commands = "\n".join(f"  {name:<{width}}  {purpose}" for name, purpose in COMMANDS.items())
    about = "algoscope finds out which algorithm a transformer has learned."
    plugin = "--plugin FILE_OR_MODULE adds tasks, algorithms, models and studies of your own to any command."
    return f"{about}\n\n{commands}\n\n{plugin}\nalgoscope COMMAND --help shows the options of a command."

"""algoscope demo"""

from pathlib import Path

from rich.console import Console

from algoscope import demo
from algoscope.cli.identify import show
from algoscope.cli.options import parse_and_call


def run(arguments: list[str]) -> None:
    parse_and_call(main, "algoscope demo", arguments)


def main(out: Path = Path("demo"), steps: int | None = None, seed: int = 0, prompts: int = 1000) -> None:
    """Train a small transformer on in-context linear regression, and find out which algorithm it has learned.

    Args:
        out: Folder for the run and its page.
        steps: Of training; by default as many as it takes to learn.
        seed: Seed of the model and of all prompts.
        prompts: Number of prompts to compare on; probes are fitted on as many others.
    """
    console = Console()
    console.print("A transformer learns linear regression from examples in its prompt …")
    result = demo.run(out, steps, seed, prompts)
    show(console, result.verdict)
    print(f"\n  {result.save()}")

"""The command line: parses, calls, prints. Commands import their rooms themselves: --help need not wait for torch."""

import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tyro.extras import SubcommandApp

app = SubcommandApp()


@app.command
def demo(out: Path = Path("demo"), sequences: int = 256, seed: int = 0) -> None:
    """Compare two algorithms step by step: print which steps match, and draw it.

    Args:
        out: Folder for the pictures.
        sequences: Number of prompts to compare on.
        seed: Seed of the prompts.
    """
    console = Console()
    with console.status("Newton's method and gradient descent on the same prompts …"):
        from algoscope.demo import run

        result = run(out, sequences, seed)
    match = result.match
    table = Table(title="In-context linear regression, d = 20, up to 40 examples")
    for column in ("Newton", "like gradient step", "similarity", "95% interval", "not told apart"):
        table.add_column(column, justify="right", no_wrap=True)
    for i, stage in enumerate(match.stages):
        j = match.steps.index(match.best[i])
        cell, low, high = (float(matrix[i, j]) for matrix in (match.similarity, match.low, match.high))
        ties = "none fits" if match.none[i] else ", ".join(str(step) for step in match.ties[i])
        table.add_row(str(stage), str(match.best[i]), f"{cell:.4f}", f"{low:.4f}–{high:.4f}", ties)
    console.print(table)
    console.print(f"\n{result.verdict}\n", highlight=False)
    for file in result.files:
        console.print(f"  {file}", highlight=False)


def main() -> None:
    """Bad input ends in one line on stderr and exit code 2."""
    try:
        app.cli(prog="algoscope", description="Finds out which algorithm a transformer has learned.")
    except (ValueError, OSError) as problem:
        print(f"algoscope: {problem}", file=sys.stderr)
        raise SystemExit(2) from None

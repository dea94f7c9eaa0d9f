"""algoscope demo"""

from pathlib import Path

from rich.console import Console
from rich.table import Table

from algoscope import demo
from algoscope.cli import parse_and_call


def run(arguments: list[str]) -> None:
    parse_and_call(main, "algoscope demo", arguments)


def main(out: Path = Path("demo"), sequences: int = 256, seed: int = 0) -> None:
    """Compare Newton's method and gradient descent, step by step.

    Args:
        out: Folder for the pictures.
        sequences: Number of prompts to compare on.
        seed: Seed of the prompts.
    """
    console = Console()
    with console.status("Newton's method and gradient descent on the same prompts …"):
        result = demo.run(out, sequences, seed)
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

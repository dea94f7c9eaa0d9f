"""algoscope report RUN"""

import webbrowser
from pathlib import Path
from typing import Annotated

import tyro

from algoscope import runs
from algoscope.cli import parse_and_call
from algoscope.report import charts
from algoscope.report.figures import figures, leading
from algoscope.report.page import page


def run(arguments: list[str]) -> None:
    parse_and_call(main, "algoscope report", arguments)


def main(
    path: Annotated[Path, tyro.conf.Positional],
    open: bool = False,
    figure: bool = False,
    algorithm: str | None = None,
) -> None:
    """Build the page of a run again from its saved numbers; no model is needed.

    Args:
        path: The folder of a run that was identified.
        open: Show it in a browser.
        figure: Also save every figure as PNG, SVG and PDF, beside the page.
        algorithm: Whose steps the figures show; by default those that are most often closest.
    """
    folder = runs.Folder(path)
    if not folder.verdict.exists():
        raise runs.RunError(f"{path} holds no verdict: run algoscope identify {path} first")
    record = runs.read_json(folder.verdict)
    known = list(record["matches"]["errors"])
    if algorithm is not None and algorithm not in known:
        raise ValueError(f"algorithm must be one of {', '.join(known)}, got {algorithm!r}")
    runs.write_text(folder.page, page(record))
    print(f"  {folder.page}")
    if figure:
        for name, chart in figures(record, algorithm or leading(record)).items():
            for file in charts.save(chart, path / "figures" / name, ("png", "svg", "pdf")):
                print(f"  {file}")
    if open:
        webbrowser.open(folder.page.resolve().as_uri())

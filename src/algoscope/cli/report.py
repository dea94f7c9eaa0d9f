"""algoscope report RUN_OR_STUDY"""

import webbrowser
from pathlib import Path
from typing import Annotated

import tyro

from algoscope import runs
from algoscope.cli import parse_and_call
from algoscope.report import charts
from algoscope.report.figures import figures, leading
from algoscope.report.page import page
from algoscope.studies import study


def run(arguments: list[str]) -> None:
    parse_and_call(main, "algoscope report", arguments)


def main(
    path: Annotated[Path, tyro.conf.Positional],
    open: bool = False,
    figure: bool = False,
    algorithm: str | None = None,
    model: str | None = None,
) -> None:
    """Build the page of a run or a study again from its saved numbers; no model is needed.

    Args:
        path: The folder of a run that was identified, or of a study at one scale.
        open: Show it in a browser.
        figure: Also save every figure as PNG, SVG and PDF, beside the page.
        algorithm: Whose steps the figures show; by default those that are most often closest.
        model: Of a study, the model that saved figures show, by its name on the page; by default the first.
    """
    folder = runs.Folder(path)
    if not path.is_dir():
        raise runs.RunError(f"there is no folder {path}")
    if study.results_file(path).exists():
        if algorithm is not None:
            raise ValueError("algorithm must be left out: the figures of a study show those that the study is about")
        found, results = study.read(path)
        shown = results["runs"] if model is None else study.beginning_with(results["runs"], model)
        file, made = study.build_page(path), found.figures(shown)
    elif folder.verdict.exists():
        record = runs.read_json(folder.verdict, needs=("matches", "stages", "errors_by_position", "laws", "text"))
        known = list(record["matches"]["errors"])
        if algorithm is not None and algorithm not in known:
            raise ValueError(f"algorithm must be one of {', '.join(known)}, got {algorithm!r}")
        file, made = folder.page, figures(record, algorithm or leading(record))
        runs.write_text(file, page(record))
    else:
        raise runs.RunError(f"{path} holds no verdict: run algoscope identify {path} first")
    print(f"  {file}")
    if figure:
        place = path / "figures" / (runs.slug(model) if model else "")
        for name, chart in made.items():
            for saved in charts.save(chart, place / name, ("png", "svg", "pdf")):
                print(f"  {saved}")
    if open:
        webbrowser.open(file.resolve().as_uri())

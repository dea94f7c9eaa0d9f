"""algoscope report RUN_OR_STUDY"""

import webbrowser
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import tyro

from algoscope import documents, files, runs
from algoscope.arguments import choice
from algoscope.cli.options import parse_and_call
from algoscope.report import charts
from algoscope.report.figures import figures, leading
from algoscope.report.page import page
from algoscope.studies import study


def run(arguments: list[str]) -> None:
    parse_and_call(main, "algoscope report", arguments)


def main(
    path: Annotated[Path, tyro.conf.Positional],
    out: Path | None = None,
    open: bool = False,
    figure: bool = False,
    algorithm: str | None = None,
    model: str | None = None,
    member: int | None = None,
) -> None:
    """Build the page of a run or a study again from its saved numbers; no model is needed.

    Args:
        path: The folder of a run that was identified, or of a study at one scale.
        out: Folder for the page; by default one in reports/, which git ignores.
        open: Show it in a browser.
        figure: Also save every figure as PNG, SVG and PDF, beside the page.
        algorithm: Of a run, whose steps the figures show; by default those that are most often closest.
        model: Of a study, the model that saved figures show, by its name on the page; by default the first.
        member: Of a population, which model, from 0 on; by default all that were identified.
    """
    if study.results_file(path).exists():
        pages = [_study(path, out, figure, model, algorithm, member)]
    else:
        if model is not None:
            raise ValueError("model must be left out: it chooses among the models of a study")
        pages = _run(path, out, figure, algorithm, member)
    for each in pages:
        print(f"  {each}")
    if open:
        webbrowser.open(pages[0].resolve().as_uri())


def _study(
    path: Path, out: Path | None, figure: bool, model: str | None, algorithm: str | None, member: int | None
) -> Path:
    for name, value in (("algorithm", algorithm), ("member", member)):
        if value is not None:
            raise ValueError(f"{name} must be left out: it is about the page of a run, and {path} is a study")
    found, results = study.read(path)
    shown = results["runs"] if model is None else study.beginning_with(results["runs"], model)
    folder = _folder(out, Path(results["study"]) / results["scale"])
    with files.output_folder(folder):
        built = study.build_page(path, folder)
        if figure:
            with files.blamed(study.results_file(path)):
                made = found.figures(shown)
            _save(made, folder / "figures" / (runs.slug(model) if model else ""))
    return built


def _run(path: Path, out: Path | None, figure: bool, algorithm: str | None, member: int | None) -> list[Path]:
    source = runs.reports_of(path)
    saved = sorted(source.path.glob("report*.json")) if member is None else [source.report("json", member)]
    if not saved or not saved[0].exists():
        raise runs.RunError(_lacking(path, member))
    folder, pages = _folder(out, Path(path.resolve().name)), []
    for file in saved:
        record = files.read_json(file, documents.VERDICT)
        if algorithm is not None:
            choice("algorithm", algorithm, record["matches"][record["measure"]])
        with files.blamed(file):
            text, made = page(record), figures(record, algorithm or leading(record)) if figure else {}
        with files.output_folder(folder):
            pages.append(folder / f"{file.stem}.html")
            files.write_text(pages[-1], text)
            _save(made, folder / file.stem.replace("report", "figures"))
    return pages


def _lacking(path: Path, member: int | None) -> str:
    """What to do about a folder that has nothing to report."""
    of_member = "" if member is None else f" --member {member}"
    if runs.Folder(runs.located(path)).config.exists():
        return f"{path} holds no verdict: run algoscope identify {path}{of_member} first"
    return f"{path} is neither a run folder nor the results of a study, such as results/algoformer"


def _folder(out: Path | None, default: Path) -> Path:
    if out is not None:
        return out
    reports = Path("reports")
    reports.mkdir(exist_ok=True)
    if not (reports / ".gitignore").exists():
        files.write_text(reports / ".gitignore", "*\n")
    return reports / default


def _save(made: Mapping[str, Any], folder: Path) -> None:
    for name, chart in made.items():
        for saved in charts.save(chart, folder / name, ("png", "svg", "pdf")):
            print(f"  {saved}")

"""The page in a real browser."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from browsing import REDRAWN, opened

import algoscope as ag
from algoscope.algorithms import ConjugateGradients, GradientDescent, Newton, OrdinaryLeastSquares
from algoscope.controls import Planted
from algoscope.report.figures import figures
from algoscope.report.page import page

TASK = ag.tasks.LinearRegression(dim=3, examples=8)
CHARTS = (
    "overview",
    "experiments",
    "errors-by-position",
    "map-errors",
    "map-distance",
    "map-weights",
    "growth-linear",
    "growth-log",
)


@pytest.fixture(scope="module")
def record() -> dict:
    known = [Newton(10), GradientDescent(12), ConjugateGradients(3), OrdinaryLeastSquares()]
    verdict = ag.identify(Planted(Newton([1, 3, 5, 7]), TASK, 0.05), TASK, algorithms=known, prompts=200, fit_on=200)
    return json.loads(json.dumps({"title": "A <planted> model & more", "command": "make it", **verdict.record()}))


@pytest.fixture(scope="module")
def file(record, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page(record))
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_renders_without_a_request_or_an_error(browser, file, width, scheme):
    shown, heard = opened(browser, file, width, scheme)
    assert heard == []
    for name in CHARTS:
        drawn = shown.locator(f"[data-chart='{name}'] svg.marks").bounding_box()
        assert drawn is not None
        assert 200 < drawn["width"] <= width
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    background = shown.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(21, 24, 29)"}[scheme]
    shown.close()


def test_it_says_the_verdict_first_and_shows_the_numbers(browser, file, record):
    shown, _ = opened(browser, file, 1280, "light")
    assert shown.inner_text("h1") == record["title"]
    assert shown.inner_text("#verdict") == record["text"]
    lead = shown.inner_text("#verdict b")
    assert record["text"].startswith(lead)
    assert len(lead.split()) <= 25
    rows = shown.locator("#stages tbody tr").all_inner_texts()
    assert len(rows) == len(record["stages"])
    assert all(f"Newton {step}" in row for step, row in zip((1, 3, 5, 7), rows, strict=True))
    cells = shown.locator("[data-chart='map-errors'] .mark-rect.role-mark path[aria-label]")
    assert cells.count() >= 4 * 11
    shown.close()


def test_hover_shows_values_and_the_menu_changes_the_figures(browser, file):
    shown, heard = opened(browser, file, 1280, "light")
    cell = shown.locator("[data-chart='map-errors'] .mark-rect.role-mark path").nth(5)
    cell.scroll_into_view_if_needed()
    cell.hover()
    shown.wait_for_selector("#vg-tooltip-element.visible")
    assert re.search(r"similarity\s*[\d.]+", shown.inner_text("#vg-tooltip-element"))
    before = shown.inner_html("[data-chart='map-errors']")
    shown.select_option("#algorithm", "ConjugateGradients")
    shown.wait_for_function(REDRAWN, arg=["[data-chart='map-errors']", before])
    assert heard == []
    shown.close()


def test_every_figure_is_fit_for_a_paper(record, tmp_path):
    from algoscope.report import charts

    made = figures(record, "Newton")
    assert tuple(made) == CHARTS
    magic = {".png": b"\x89PNG", ".svg": b"<svg", ".pdf": b"%PDF"}
    for name, chart in made.items():
        for written in charts.save(chart, tmp_path / name, ("png", "svg", "pdf")):
            assert written.read_bytes().startswith(magic[written.suffix])
    text = (tmp_path / "map-errors.svg").read_text()
    assert text.count('stroke="#d1495b" stroke-width="2"') == 4  # the best step of each stage is outlined


HOSTILE = "<img src=x onerror='window.hacked=1'></script><!--<script>window.hacked=1</script>"


def everywhere(value: Any, path: tuple[str, ...] = ()) -> Any:
    """The same record with hostile text in place of every string, and beside every name that is free."""
    if isinstance(value, dict):
        free = path in (("laws",), ("errors_by_position",)) or (path[:1] == ("matches",) and len(path) == 2)
        return {f"{name}{HOSTILE}" if free else name: everywhere(part, (*path, name)) for name, part in value.items()}
    if isinstance(value, list):
        return [everywhere(part, path) for part in value]
    kept = path and path[-1] in ("law", "path", "none", "stage", "used", "name", "agreed", "measure")
    return f"{value} {HOSTILE}" if isinstance(value, str) and not kept else value


def test_a_hostile_file_neither_runs_a_script_nor_swallows_the_page(browser, record, tmp_path):
    hostile = everywhere(record)
    for stage in hostile["stages"]:
        stage["agreed"] = [[f"{name}{HOSTILE}", step] for name, step in stage["agreed"]]
    file = tmp_path / "report.html"
    file.write_text(page(hostile), encoding="utf-8")
    shown, heard = opened(browser, file, 1280, "light")
    assert shown.evaluate("window.hacked") is None
    assert shown.inner_text("h1").startswith(record["title"])
    assert shown.inner_text("footer pre").startswith(record["command"])
    assert [line for line in heard if "hacked" in line] == []
    assert shown.locator("img").count() == 0
    assert shown.locator("svg.marks").count() == shown.locator("figure:visible").count() > 0
    shown.close()

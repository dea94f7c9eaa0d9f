"""Charts hold the numbers they were given, in every format, and a page needs no network."""

import re

import pytest

from algoscope.report import charts, maps, page

CELLS = [
    {"stage": i, "step": j, "similarity": 1 / (1 + abs(i - j)), "low": 0.0, "high": 1.0, "best": i == j, "tie": j <= i}
    for i in range(3)
    for j in range(4)
]
PATH = [{"stage": i, "best": 2**i, "low": 2**i, "high": 2**i + 1, "law": 2.0**i if i else None} for i in range(4)]


@pytest.fixture
def chart():
    return maps.similarity_map(CELLS, "layer", "step", "Similarity")


def test_every_format_is_written(chart, tmp_path):
    magic = {".html": b"<!DOCTYPE", ".png": b"\x89PNG", ".svg": b"<svg", ".pdf": b"%PDF"}
    files = charts.save(chart, tmp_path / "new folder" / "picture")
    assert {file.suffix for file in files} == set(magic)
    assert all(file.read_bytes().lstrip().startswith(magic[file.suffix]) for file in files)


def test_the_picture_shows_a_cell_for_every_record(chart, tmp_path):
    (file,) = charts.save(chart, tmp_path / "picture", ["svg"])
    text = file.read_text()
    cells = re.findall(r'aria-label="layer: (\d); step: (\d); similarity of errors[^"]*"', text)
    assert len(set(cells)) == len(CELLS)
    assert text.count('stroke="#d1495b" stroke-width="2"') == 3  # the best step of each stage is outlined


def test_the_path_of_the_law_is_drawn(tmp_path):
    (file,) = charts.save(charts.growth(PATH, "layer", "step", "Growth", logarithmic=True), tmp_path / "path", ["svg"])
    assert file.read_text().count("mark-symbol role-mark") == 1
    assert "stroke-dasharray" in file.read_text()


def test_the_page_loads_nothing_from_elsewhere(chart, tmp_path):
    (file,) = charts.save(chart, tmp_path / "picture", ["html"])
    assert not re.findall(r"""<(?:script|link)[^>]*(?:src|href)=["']http""", file.read_text())


def test_a_matrix_is_drawn_entry_by_entry(tmp_path):
    entries = [{"row": i, "column": j, "value": float(i - j)} for i in (1, 2) for j in (1, 2, 3)]
    (file,) = charts.save(maps.matrix(entries, "W", "weight", largest=1.0), tmp_path / "matrix", ["svg"])
    cells = re.findall(r'aria-label="[^"]*weight: [^"]*"', file.read_text())
    assert len(cells) == len(entries)


def test_a_scatter_has_a_dot_for_each_record():
    rows = [{"series": place, "x": 0.1 * place, "y": -0.2 * place} for place in range(8)]
    found = charts.scatter(rows, "one", "other", "title", "place").to_dict()
    (layer,) = found["layer"]
    assert layer["mark"]["type"] == "circle"
    assert [layer["encoding"][axis]["title"] for axis in ("x", "y")] == ["one", "other"]
    assert layer["encoding"]["color"]["field"] == "series"


def test_series_keep_their_colors_from_chart_to_chart():
    named = ["newton", "descent", "ridge"]
    for present in (["ridge"], ["ridge", "newton"]):
        rows = [{"series": series, "x": k, "y": 1.0} for series in present for k in (1, 2)]
        color = charts.curves(rows, "x", "y", "title", legend="algorithm", among=named).to_dict()["layer"][1][
            "encoding"
        ]["color"]
        assert color["scale"]["domain"] == named
        assert color["legend"]["values"] == [series for series in named if series in present]


def test_dots_tell_long_names_whole_and_the_leading_series_first(tmp_path):
    runs = [f"1D uniform, in haste, twice the steps, sorted sharply, seed {i}" for i in range(40)]
    rows = [{"row": run, "series": by, "x": 0.5, "low": 0.4, "high": 0.6} for run in runs for by in ("any", "model")]
    for leading, order in (([], ["any", "model"]), (["model"], ["model", "any"])):
        (file,) = charts.save(charts.dots(rows, "share", "Found", "by", leading), tmp_path / "dots", ["svg"])
        told = re.findall(r">([^<]+)</text>", file.read_text())
        assert [text for text in told if text in runs] == runs
        assert [text for text in told if text in order] == order


def test_curves_tell_long_names_whole_and_short_ones_in_one_row(tmp_path):
    long = [f"AlgoFormer, linear regression, noise {i}, 40,000 steps at a rate of 0.001" for i in range(3)]
    columns = {}
    for names in (long, ["standard", "looped", "written"]):
        rows = [{"x": x, "y": 0.5, "low": 0.4, "high": 0.6, "series": name} for x in (1, 2) for name in names]
        chart = charts.curves(rows, "x", "y", "Learning", legend="run")
        (file,) = charts.save(chart, tmp_path / "curves", ["svg"])
        told = re.findall(r">([^<]+)</text>", file.read_text())
        assert [text for text in told if text in names] == sorted(names)
        columns[names[0]] = chart.to_dict()["layer"][0]["encoding"]["color"]["legend"]["columns"]
    assert columns[long[0]] == 1
    assert columns["standard"] >= 3


def test_a_tall_figure_takes_the_width_of_the_page():
    one = {"x": 0.5, "low": 0.4, "high": 0.6, "series": "any"}
    made = {count: charts.dots([{"row": str(i), **one} for i in range(count)], "x", "", "") for count in (5, 40)}
    specs = {str(count): chart.to_dict() for count, chart in made.items()}
    parts = page._templates().get_template("parts.html").module
    few, many = str(getattr(parts, "figures")(specs, specs, page.TALL)).split("</figure>")[:2]  # noqa: B009
    assert ("tall" in few, "tall" in many) == (False, True)

"""Charts from saved numbers: records in, an Altair chart out. One definition serves the page, PNG, SVG and PDF."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, cast

import altair as alt

from algoscope import files

Record = Mapping[str, object]
ACCENT, QUIET = "#d1495b", "#8a8f98"
OURS = "here"
LACKING = "this search is not for these points"
COLORS = ("#d1495b", "#2e6f9e", "#3a8f6b", "#c98a1b", "#7a5fa3", "#3fa7b5")  # of the algorithms that stand out
FORMATS = ("html", "png", "svg", "pdf")


def best_by_stage(
    records: Sequence[Record],
    nulls: Sequence[Record],
    title: str,
    order: Sequence[str],
    larger_is_closer: bool,
    leading: Sequence[str],
) -> alt.LayerChart:
    """Every algorithm at the step that is closest to each stage: up is closer, and in the gray band is nothing.

    Records hold `stage`, `algorithm`, `step`, `similarity`, `low`, `high` and whether it is the `closest`. Of the
    algorithms those that are `leading` have colors, and the first of them a thick line, which a page can choose.
    """
    values = [float(str(row["similarity"])) for row in records if row["similarity"] is not None]
    values += [float(str(row["null"])) for row in nulls if row["null"] is not None]
    worst, best = (min, max) if larger_is_closer else (max, min)
    ends = sorted((worst([*values, 0.0] if larger_is_closer else values), best(values)))
    scale = alt.Scale(domain=ends, nice=True, reverse=not larger_is_closer)
    chosen = alt.param(name="chosen_algorithm", value=leading[0] if leading else "")
    colors = alt.Scale(domain=[*leading, "others"], range=[*COLORS[: len(leading)], QUIET])
    y = alt.Y("similarity:Q", title=title.lower(), scale=scale, axis=alt.Axis(gridOpacity=0.4))
    rows = [{**row, "color": row["algorithm"] if row["algorithm"] in leading else "others"} for row in records]
    numbers = [alt.Tooltip(f"{name}:Q", format=".4f") for name in ("similarity", "low", "high")]
    base = alt.Chart(inline(rows)).encode(
        x=stage_axis("", order),
        y=y,
        color=alt.Color("color:N", scale=colors, legend=_legend("", {*leading, "others"}, 44, orient="bottom")),
        detail="algorithm:N",
        tooltip=["stage:N", "algorithm:N", "step:N", *numbers],
    )
    thick = alt.condition("datum.algorithm == chosen_algorithm", alt.value(4), alt.value(1.4))
    band = alt.Chart(inline([{**row, "floor": worst(ends)} for row in nulls])).encode(
        x=stage_axis("", order), y=alt.Y("null:Q", scale=scale), y2="floor:Q", tooltip=["stage:N", "null:Q"]
    )
    return (
        layered(
            band.mark_area(color=QUIET, opacity=0.25) if len(order) > 1 else band.mark_bar(color=QUIET, opacity=0.25),
            base.mark_line(strokeJoin="round").encode(strokeWidth=thick),
            base.transform_filter("datum.closest").mark_circle(size=90, opacity=1),
        )
        .add_params(chosen)
        .properties(
            title=titled("The closest step of every algorithm", "gray: no closer than chance"), width=900, height=340
        )
    )


def members_by_stage(records: Sequence[Record], title: str, order: Sequence[str]) -> alt.LayerChart:
    """A line for each `member`: the `similarity` of each `stage` to its `closest` step, with its interval."""
    numbers = [alt.Tooltip(f"{name}:Q", format=".4f") for name in ("similarity", "low", "high")]
    names = {str(row["member"]) for row in records}
    base = alt.Chart(inline(records)).encode(
        x=stage_axis("", order),
        color=alt.Color("member:N", legend=_legend("", names, orient="bottom"), sort=sorted(names)),
        tooltip=["member:N", "stage:N", "closest:N", *numbers],
    )
    y = alt.Y("similarity:Q", title=title.lower(), scale=alt.Scale(zero=False), axis=alt.Axis(gridOpacity=0.4))
    return layered(
        base.mark_rule(opacity=0.35).encode(y=alt.Y("low:Q", title=title.lower()), y2="high:Q"),
        base.mark_line(point=True).encode(y=y),
    ).properties(title=titled("How close is each member's closest step?", "hover for the step"), width=900, height=320)


def growth(
    records: Sequence[Record],
    stage_title: str,
    step_title: str,
    title: str,
    logarithmic: bool = False,
    order: Sequence[str] | None = None,
) -> alt.LayerChart:
    """The best step of each stage, with the range of its ties, and the path of the fitted law where there is one.

    Records hold `stage`, `best`, `low`, `high` (of the ties) and, where it applies, `law`, the step that the law gives.
    """
    scale = alt.Scale(type="symlog", constant=1) if logarithmic else alt.Scale(zero=True)  # a step may be 0
    axis = (
        alt.Axis(gridOpacity=0.4, values=[0, *(4**k for k in range(9))]) if logarithmic else alt.Axis(gridOpacity=0.4)
    )
    numbers = alt.X("stage:Q", title=stage_title, axis=alt.Axis(gridOpacity=0.4))
    base = alt.Chart(inline(records)).encode(x=stage_axis(stage_title, order) if order else numbers)
    fitted = base.transform_filter("isValid(datum.law)").mark_line(color=QUIET, strokeDash=[5, 4])
    ties = base.mark_rule(color=ACCENT, strokeWidth=3, opacity=0.4)
    best = base.mark_circle(color=ACCENT, size=45, opacity=1)
    return layered(
        fitted.encode(y=alt.Y("law:Q", scale=scale)),
        ties.encode(y=alt.Y("low:Q", scale=scale), y2="high:Q"),
        best.encode(
            y=alt.Y("best:Q", title=step_title, scale=scale, axis=axis),
            tooltip=["stage:N", "best:Q", "low:Q", "high:Q", alt.Tooltip("law:Q", format=".1f")],
        ),
    ).properties(title=titled(title, "dashed: the fitted law"), width=300, height=300)


def error_curves(records: Sequence[Record], stages: Sequence[str]) -> alt.LayerChart:
    """Normalized error by the number of examples: a line a stage; dashed are the closest steps of an algorithm.

    Steps that are far better than every stage leave the frame.
    """
    floor = 0.3 * min(float(str(row["error"])) for row in records if row["model"])
    scale = alt.Scale(type="log", domainMin=floor)
    base = alt.Chart(inline(records)).encode(
        x=alt.X("t:Q", title="examples seen", axis=alt.Axis(gridOpacity=0.4)),
        y=alt.Y("error:Q", title="normalized error", scale=scale, axis=alt.Axis(gridOpacity=0.4)),
        tooltip=["what:N", "t:Q", alt.Tooltip("error:Q", format=".3g")],
    )
    color = alt.Color(
        "what:N", title="stage", sort=list(stages), scale=alt.Scale(scheme="viridis", domain=list(stages))
    )
    model = base.transform_filter("datum.model").mark_line(strokeWidth=2, clip=True).encode(color=color)
    steps = base.transform_filter("!datum.model").mark_line(color=QUIET, strokeDash=[4, 3], clip=True)
    return layered(steps.encode(detail="what:N"), model).properties(
        title=titled("Error by position", "dashed: closest steps of the algorithm"), width=420, height=300
    )


def curves(
    records: Sequence[Record],
    x_title: str,
    y_title: str,
    title: str,
    log_x: bool = False,
    log_y: bool = False,
    domain: tuple[float, float] | None = None,
    legend: str | None = None,
    among: Sequence[str] = (),
    leading: Sequence[str] = (),
) -> alt.LayerChart:
    """A line for each `series` of records that hold `x`, `y` and, where there is an interval, `low` and `high`.

    Series that are numbers, such as layers, are colored in their order. An empty `legend` leaves it out. Where some
    records say `by` whom they are, such as a paper, the lines of others than ours are dashed. Charts that say `among`
    which series theirs are give each the same color; those that are `leading` have the same, whatever others are shown.
    """
    quoted = any("by" in row for row in records)
    least = 1 if all(isinstance(row["x"], int) for row in records) else 0
    scale = alt.Scale(domain=list(domain)) if domain else alt.Scale(type="log") if log_y else alt.Scale(zero=False)
    axis = alt.Axis(gridOpacity=0.4, format="~g") if log_y else alt.Axis(gridOpacity=0.4)  # 1e-9, not a small power
    across = alt.Scale(type="log", nice=False) if log_x else alt.Scale(nice=False, zero=False)
    few = sorted({int(str(row["x"])) for row in records}) if least else []
    ticks = _ticks(least, values=few) if 0 < len(few) <= 12 else _ticks(least, tickMinStep=least)
    base = alt.Chart(inline([{"by": OURS, **row} for row in records] if quoted else records)).encode(
        x=alt.X("x:Q", title=x_title, scale=across, axis=ticks),
        color=_colors({row["series"] for row in records}, legend, among, leading),
        tooltip=["series:N", *(alt.Tooltip(f"{name}:Q", format=".3g") for name in ("x", "y", "low", "high"))],
    )
    bands = base.transform_filter("isDefined(datum.low)").mark_area(opacity=0.15, clip=True)  # null breaks it
    lines = base.mark_line(strokeWidth=2, clip=True, point=alt.OverlayMarkDef(size=18))
    if quoted:
        whose = list(dict.fromkeys(str(row.get("by", OURS)) for row in [{}, *records]))
        title += f" – dashed: {' and '.join(whose[1:])}"
        dashes = alt.Scale(domain=whose, range=[[1, 0], [5, 4], [2, 2]][: len(whose)])
        lines = lines.encode(strokeDash=alt.StrokeDash("by:N", legend=None, scale=dashes))
    return layered(
        bands.encode(y=alt.Y("low:Q", title=y_title, scale=scale, axis=axis), y2="high:Q"),
        lines.encode(y=alt.Y("y:Q", title=y_title, scale=scale, axis=axis)),
    ).properties(title=title, width=420, height=300)


def _ticks(whole: int, **options: Any) -> alt.Axis:
    """Of an axis across, where numbers may be whole."""
    form: dict[str, Any] = {"format": ",d"} if whole else {}
    return alt.Axis(gridOpacity=0.4, **options, **form)


def _colors(
    present: Set[object], legend: str | None, among: Sequence[str] = (), leading: Sequence[str] = ()
) -> alt.Color:
    """Of series."""
    numbered = all(isinstance(series, int) for series in present)
    scheme = "viridis" if numbered else "tableau20" if len(among or present) > 10 else "tableau10"
    colors = alt.Scale(scheme=scheme, domain=list(among) or alt.Undefined)
    form: dict[str, Any] = {"orient": "bottom", "direction": "horizontal"}
    if among:
        form["values"] = [series for series in among if series in present]
    shown = _legend(legend, present, **form) if legend else None
    order: dict[str, Any] = {"sort": list(leading)} if leading else {}
    return alt.Color("series:O" if numbered else "series:N", legend=shown, scale=colors, **order)


def _legend(title: str, series: Set[object], letters: int = 88, **form: Any) -> alt.Legend:
    """No name is cut off; in a row are as many as the longest leaves room for, of so many `letters` in all."""
    longest = max((len(str(name)) for name in series), default=0)
    columns = max(min(letters // (longest + 4), 8), 1)
    return alt.Legend(title=title, symbolOpacity=1, columns=columns, labelLimit=0, **form)


def dots(
    records: Sequence[Record], x_title: str, title: str, legend: str, leading: Sequence[str] = ()
) -> alt.LayerChart:
    """For each `row` a dot for each `series`, at `x` with its interval `low` to `high`. Series that are `leading` have
    the first colors.
    """
    order = list(dict.fromkeys(str(row["row"]) for row in records))
    present = {row["series"] for row in records}
    scheme = "tableau20" if len(present) > 10 else "tableau10"
    shown = _legend(legend, present, letters=60)
    base = alt.Chart(inline(records)).encode(
        y=alt.Y("row:N", title=None, sort=order, axis=alt.Axis(grid=True, gridOpacity=0.4, labelLimit=340)),
        color=alt.Color("series:N", scale=alt.Scale(scheme=scheme), legend=shown, sort=list(leading) or alt.Undefined),
        tooltip=["row:N", "series:N", *(alt.Tooltip(f"{name}:Q", format=".3f") for name in ("x", "low", "high"))],
    )
    x = alt.X("x:Q", title=x_title, scale=alt.Scale(zero=False), axis=alt.Axis(gridOpacity=0.4))
    rules = base.mark_rule(strokeWidth=2, opacity=0.4).encode(x=alt.X("low:Q", title=x_title), x2="high:Q")
    return layered(rules, base.mark_circle(size=60, opacity=1).encode(x=x)).properties(
        title=title, width=420, height=max(300, 15 * len(order))
    )


def scatter(records: Sequence[Record], x_title: str, y_title: str, title: str, legend: str) -> alt.LayerChart:
    """A dot at `x` and `y` for each record, colored by its `series`."""
    axis = alt.Axis(gridOpacity=0.4)
    base = alt.Chart(inline(records)).encode(
        x=alt.X("x:Q", title=x_title, scale=alt.Scale(zero=False), axis=axis),
        y=alt.Y("y:Q", title=y_title, scale=alt.Scale(zero=False), axis=axis),
        color=_colors({row["series"] for row in records}, legend),
        tooltip=["series:N", alt.Tooltip("x:Q", format=".3g"), alt.Tooltip("y:Q", format=".3g")],
    )
    return layered(base.mark_circle(size=30, opacity=0.8)).properties(title=title, width=420, height=300)


def player(records: Sequence[Record], x_title: str, y_title: str, title: str, search: str) -> alt.LayerChart:
    """Searches as they went: a slider moves from look-up to look-up, and others choose the example and whose reads.

    Records have an `example` and a `kind`: a "point", the "nearest" one or a "slot" at `x` and `y` with its `place`; a
    "query", which is a line at `y` if it has no `x`; or a "read" of a `search`, with its `lookup` and where it was.
    It says which look-up of how many is shown, since the slider goes as far as any `model` does, and where a search is
    chosen that a model is not shown beside.
    """
    searches = list(dict.fromkeys(str(row["search"]) for row in records if row["kind"] == "read"))
    last = {name: max(int(str(row[name])) for row in records if row.get(name)) for name in ("lookup", "example")}
    signals = [
        alt.param(name="lookup", value=1, bind=alt.binding_range(min=0, max=last["lookup"], step=1, name="look-up ")),
        alt.param(name="example", value=1, bind=alt.binding_range(min=1, max=last["example"], step=1, name="example ")),
        alt.param(name="search", value=search, bind=alt.binding_select(options=searches, name="search ")),
    ]
    base = alt.Chart(inline(records)).transform_filter("datum.example == example")
    least = 1 if all(isinstance(row["x"], int) for row in records if "x" in row) else 0
    across = _ticks(least, tickMinStep=least)
    at = base.encode(
        x=alt.X("x:Q", title=x_title, axis=across, scale=alt.Scale(zero=False)),
        y=alt.Y("y:Q", title=y_title, axis=alt.Axis(gridOpacity=0.4), scale=alt.Scale(zero=False)),
        tooltip=["kind:N", "place:Q", "lookup:Q", alt.Tooltip("x:Q", format=".3g"), alt.Tooltip("y:Q", format=".3g")],
    )
    line, cross = "datum.kind == 'query' && !isValid(datum.x)", "datum.kind == 'query' && isValid(datum.x)"
    read = at.transform_filter("datum.kind == 'read' && datum.search == search && datum.lookup <= lookup")
    latest = alt.condition("datum.lookup == lookup", alt.value(ACCENT), alt.value(QUIET))
    reads = base.transform_filter("datum.kind == 'read'").transform_calculate(own="datum.search == search ? 1 : 0")
    lacking = reads.transform_aggregate(own="max(own)", groupby=["model"]).transform_filter("datum.own == 0")
    lacking = lacking.transform_calculate(label=f"'{LACKING}'")
    counted = reads.transform_filter("datum.own").transform_aggregate(last="max(lookup)", groupby=["model"])
    counted = counted.transform_calculate(label="'look-up ' + min(lookup, datum.last) + ' of ' + datum.last")
    return layered(
        base.transform_filter(line).mark_rule(strokeDash=[5, 4], color=ACCENT).encode(y="y:Q"),
        at.transform_filter(cross).mark_point(shape="cross", size=180, filled=True, color=ACCENT),
        at.transform_filter("datum.kind == 'point' || datum.kind == 'nearest'").mark_circle(color="#4c78a8", size=36),
        at.transform_filter("datum.kind == 'slot'").mark_square(color="#b279a2", size=36),
        at.transform_filter("datum.kind == 'nearest'").mark_point(color="#4c78a8", size=220, strokeWidth=2),
        read.mark_line(color=QUIET, opacity=0.5).encode(order="lookup:Q"),
        read.mark_circle(size=110, opacity=1).encode(color=latest),
        read.mark_text(dy=-14, fontSize=13, fontWeight="bold").encode(text="lookup:Q", color=latest),
        *(
            each.mark_text(align="right", dx=-6, dy=14, fontSize=13, color=color).encode(
                text="label:N", x=alt.value("width"), y=alt.value(0)
            )
            for each, color in ((lacking, ACCENT), (counted, QUIET))
        ),
    ).add_params(*signals).properties(title=title, width=420, height=300)  # fmt: skip


def inline(records: Iterable[Record]) -> alt.InlineData:
    """The records as one text: smaller than a list of them, and Altair need not check each number by its schema."""
    rows = list(records)
    kinds = {name: _kind(name, rows) for name in dict.fromkeys(name for row in rows for name in row)}
    text = io.StringIO()
    writer = csv.DictWriter(text, kinds, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: str(v).lower() if isinstance(v, bool) else v for name, v in row.items()} for row in rows)
    return alt.InlineData(values=text.getvalue(), format={"type": "csv", "parse": kinds})


def _kind(name: str, rows: Sequence[Record]) -> str:
    """What a browser should make of a column; what is missing becomes null."""
    found = {type(row[name]) for row in rows if row.get(name) is not None}
    return "boolean" if found == {bool} else "number" if found and found <= {int, float} else "string"


def titled(text: str, below: str) -> alt.TitleParams:
    """With a second line, which says what dashes or shades are: one long line would take the room of the chart."""
    return alt.TitleParams(text, subtitle=below)


def layered(*charts: alt.Chart) -> alt.LayerChart:
    return cast(alt.LayerChart, alt.layer(*charts))  # a facet only of facets


def stage_axis(title: str, order: Sequence[str] | None) -> alt.X:
    if order is None:
        return alt.X("stage:O", title=title, axis=alt.Axis(labelAngle=0))
    return alt.X("stage:N", title=title or None, sort=list(order), scale=alt.Scale(domain=list(order)))


def choose(chart: alt.LayerChart, field: str, first: str) -> alt.LayerChart:
    """The same chart with a choice, the signal chosen_FIELD; records without the field are always shown."""
    signal = alt.param(name=f"chosen_{field}", value=first)
    shown, found = f"!isValid(datum.{field}) || datum.{field} == {signal.name}", chart.copy(deep=True)
    found.layer = [layer.transform_filter(shown) for layer in found.layer]
    return found.add_params(signal)


def save(chart: alt.TopLevelMixin, stem: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Writes the chart once in each format and returns the files; the page needs no network."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    options: dict[str, Any] = {"html": {"inline": True}, "png": {"scale_factor": 2}}
    saved = [stem.with_name(f"{stem.name}.{suffix}") for suffix in formats]
    for file, suffix in zip(saved, formats, strict=True):
        made = io.StringIO() if suffix in ("html", "svg") else io.BytesIO()
        chart.save(made, **{"format": suffix, **options.get(suffix, {})})
        content = made.getvalue()
        files.write_bytes(file, content.encode() if isinstance(content, str) else content)
    return saved

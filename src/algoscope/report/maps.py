"""Maps: a color for each pair of a stage and a step, or for each entry of a matrix."""

from collections.abc import Iterable, Sequence

import altair as alt

from algoscope.report.charts import ACCENT, QUIET, Record, inline, layered, stage_axis, titled

LEGENDS = {
    "errors": "similarity of errors",
    "weights": "similarity of weights",
    "distance": "normalized distance",
    "decodability": "R² above the null's",
    "wrong reads": "share of equal reads",
}
BY_RANK = alt.EncodingSortField(field="rank", op="min", order="ascending")
SHARED = (0.0, 1.0)  # what the colors of every map mean, so that the maps of a page can be compared


def similarity_map(
    records: Iterable[Record],
    stage_title: str,
    step_title: str,
    title: str,
    measure: str = "errors",
    order: Sequence[str] | None = None,
    larger_is_closer: bool = True,
) -> alt.LayerChart:
    """Stages across, steps upward; the best step of each stage is outlined, and steps that tie with it are dotted.

    Stages that beat no null are faint. They stand in the `order` given, or in that of their numbers. All maps have one
    scale of colors, on which bright is close.
    """
    closer = "larger" if larger_is_closer else "smaller"
    base = alt.Chart(inline(downward(list(records)))).encode(
        x=stage_axis(stage_title, order),
        y=alt.Y("step:O", title=step_title, sort=BY_RANK, axis=alt.Axis(labelOverlap=True)),
    )
    cells = base.mark_rect().encode(
        opacity=alt.condition("datum.none", alt.value(0.15), alt.value(1)),
        color=alt.Color(
            "similarity:Q",
            title=[LEGENDS.get(measure, measure), f"({closer} is closer)"],
            scale=alt.Scale(scheme="viridis", domain=SHARED, clamp=True, reverse=not larger_is_closer),
        ),
        tooltip=[
            alt.Tooltip("stage:O", title=stage_title),
            alt.Tooltip("step:O", title=step_title),
            alt.Tooltip("similarity:Q", format=".4f"),
            alt.Tooltip("low:Q", format=".4f"),
            alt.Tooltip("high:Q", format=".4f"),
        ],
    )
    best = base.transform_filter("datum.best").mark_rect(fill=None, stroke=ACCENT, strokeWidth=2)
    ties = base.transform_filter("datum.tie && !datum.best").mark_circle(size=14, color="white", opacity=0.9)
    return layered(cells, ties, best).properties(title=title, width=420, height=300)


def downward(rows: Sequence[Record]) -> list[Record]:
    """With a rank for each step, from the last to the first, names above the numbers: to list hundreds of steps in
    order takes Altair seconds, because it copies and checks the list again and again.
    """
    steps = dict.fromkeys(row["step"] for row in rows)
    numbers = sorted((step for step in steps if isinstance(step, int)), reverse=True)
    names = [step for step in steps if not isinstance(step, int)]
    ranks = {step: rank for rank, step in enumerate((*names, *numbers))}
    return [{**row, "rank": ranks[row["step"]]} for row in rows]


def experiment_map(records: Iterable[Record], order: Sequence[str]) -> alt.LayerChart:
    """Stages across, an algorithm and a law in each row, and the `slope` of a stage's defect on the algorithm's own.

    White at 0, where an experiment excludes the algorithm, and dark at 1, where it shows the algorithm's defect; what
    is undecided is faint.
    """
    rows = list(records)
    base = alt.Chart(inline(rows)).encode(
        x=stage_axis("", order), y=alt.Y("row:N", title=None, sort=None, axis=alt.Axis(labelLimit=320))
    )
    numbers = [alt.Tooltip(f"{name}:Q", format=".3f") for name in ("slope", "low", "high")]
    own = alt.Tooltip("own:Q", format=".3f", title="defect of the algorithm")
    cells = base.mark_rect(stroke=QUIET, strokeWidth=0.5).encode(
        opacity=alt.condition("datum.outcome == 'undecided'", alt.value(0.45), alt.value(1)),
        color=alt.Color("slope:Q", scale=alt.Scale(scheme="blues", domain=SHARED, clamp=True)),
        tooltip=["stage:N", "algorithm:N", "step:N", "law:N", "outcome:N", *numbers, own],
    )
    words = base.mark_text(fontSize=10).encode(
        text=alt.Text("slope:Q", format=".2f"),
        color=alt.condition("datum.slope > 0.6", alt.value("white"), alt.value("#222")),
    )
    height = 22 * len({str(row["row"]) for row in rows})
    title = titled("Slope on an algorithm's defect", "1: the stage breaks the law as it does; 0: excluded")
    return layered(cells, words).properties(title=title, width=420, height=height)


def difference_map(records: Iterable[Record], stage_title: str, step_title: str, title: str) -> alt.LayerChart:
    """Stages across, steps upward: how far a `similarity` is `off` from `theirs`."""
    base = alt.Chart(inline(records)).encode(
        x=stage_axis(stage_title, None),
        y=alt.Y("step:O", title=step_title, sort="descending", axis=alt.Axis(labelOverlap=True)),
    )
    numbers = [alt.Tooltip(f"{name}:Q", format=".3f") for name in ("similarity", "theirs", "off")]
    cells = base.mark_rect().encode(
        color=alt.Color("off:Q", title="difference", scale=alt.Scale(scheme="redblue", domainMid=0)),
        tooltip=[alt.Tooltip("stage:O", title=stage_title), alt.Tooltip("step:O", title=step_title), *numbers],
    )
    return layered(cells).properties(title=title, width=420, height=300)


def log_map(
    records: Iterable[Record], stage_title: str, step_title: str, value_title: str, title: str
) -> alt.LayerChart:
    """Stages across, steps upward, and the `error` of each pair on a logarithmic scale."""
    rows = list(records)
    order = list(dict.fromkeys(str(row["stage"]) for row in rows))
    cells = alt.Chart(inline(rows)).encode(
        x=stage_axis(stage_title, order),
        y=alt.Y("step:O", title=step_title, sort="descending"),
        color=alt.Color("error:Q", title=value_title, scale=alt.Scale(type="log", scheme="viridis", reverse=True)),
        tooltip=["stage:N", "step:Q", alt.Tooltip("error:Q", format=".2g")],
    )
    return layered(cells.mark_rect()).properties(title=title, width=420, height=300)


def matrix(records: Iterable[Record], title: str, legend: str, largest: float | None = None) -> alt.LayerChart:
    """A matrix as it is written: its `value` by `row` and `column`, the first row on top, zero in white.

    `largest` is the value of the strongest color, so that several can be compared; by default that of its own largest.
    """
    rows = list(records)
    most = largest or max(abs(float(str(row["value"]))) for row in rows) or 1.0
    base = alt.Chart(inline(rows)).encode(
        x=alt.X("column:O", title=None, axis=alt.Axis(labelAngle=0, labelOverlap=True)),
        y=alt.Y("row:O", title=None, axis=alt.Axis(labelOverlap=True)),
    )
    cells = base.mark_rect().encode(
        color=alt.Color("value:Q", title=legend, scale=alt.Scale(scheme="redblue", domain=[-most, most], clamp=True)),
        tooltip=["row:O", "column:O", alt.Tooltip("value:Q", format=".3f")],
    )
    return layered(cells).properties(title=title, width=420, height=300)

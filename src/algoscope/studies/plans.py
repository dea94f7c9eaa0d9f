"""How a study plans its figures: what to draw of the numbers of a model, or of all, and how."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import altair as alt

from algoscope.report import charts
from algoscope.studies.claim import Numbers
from algoscope.studies.study import labeled

Rows = Iterator[dict[str, Any]]
Draw = Callable[[list[dict[str, Any]]], alt.LayerChart]
Plan = tuple[Callable[[Numbers], Rows], Draw]


def drawn(numbers: Numbers, each: Mapping[str, Plan], across: Mapping[str, Plan]) -> dict[str, alt.LayerChart]:
    """The figures that show a model, which the reader chooses, and those that show all; none without numbers."""
    models, made = labeled(numbers), {}
    for name, (make, draw) in each.items():
        rows = [{"model": label, **row} for label, model in models.items() for row in make(model)]
        if rows:
            made[name] = charts.choose(draw(rows), "model", next(iter(models)))
    for name, (make, draw) in across.items():
        rows = list(make(numbers))
        if rows:
            made[name] = draw(rows)
    return made


def curves(x: str, y: str, title: str, **options: Any) -> Draw:
    return lambda rows: charts.curves(rows, x, y, title, **options)

"""Similarities of errors on ill-conditioned data that were published in full, in two talks (2024 and 2026).

newton.csv and gd.csv hold them by number of steps and layer; doubtful.csv the cells in which the talks differ, of which
the other files hold the later value.
"""

import csv
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from algoscope.studies.higher_order_icl.measures import TABLES


@functools.cache
def table_of(name: str) -> dict[tuple[int, int], float]:
    """By layer and step."""
    with (Path(__file__).parent / f"{name}.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    cells = ((row, column) for row in rows for column in row if column != "steps")
    return {(int(column.removeprefix("layer_")), int(row["steps"])): float(row[column]) for row, column in cells}


def beside_published(model: Mapping[str, Any], name: str) -> Iterator[dict[str, Any]]:
    """Our cells beside the published ones; none where the model has other layers than theirs."""
    found, wanted = model["published"]["maps"][TABLES[name]], table_of(name)
    layers = {stage: int(stage.rpartition(" ")[2]) for stage in model["published"]["stages"] if stage != "embedding"}
    if set(layers.values()) != {layer for layer, _ in wanted}:
        return
    for i, stage in enumerate(model["published"]["stages"]):
        for j, step in enumerate(found["steps"]):
            if (layers.get(stage), step) in wanted and found["similarity"][i][j] is not None:
                theirs = wanted[layers[stage], step]
                numbers = {part: found[part][i][j] for part in ("similarity", "low", "high")}
                off = numbers["similarity"] - theirs
                yield {"layer": layers[stage], "step": step, "theirs": theirs, "off": off, **numbers}

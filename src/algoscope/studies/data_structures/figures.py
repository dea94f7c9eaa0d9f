"""The figures of the study, from its numbers. Most hold all models and let the reader choose one."""

from collections.abc import Callable, Iterator
from typing import Any

import altair as alt

from algoscope.report import charts
from algoscope.studies.claim import Numbers
from algoscope.studies.data_structures.holdings import FOUND_SO
from algoscope.studies.data_structures.references import BINARY, INTERPOLATION, MODEL, TREE, UNTRAINED
from algoscope.studies.data_structures.trainings import BLIND, FROZEN, NOISELESS, OURS, UNPERMUTED
from algoscope.studies.plans import Plan, Rows, curves, drawn

PLAYERS = {1: "player", 2: "player-plane", 3: "player-far"}  # by the number of coordinates; 3: three or more
AXES = {
    1: ("place in the learned order", "value"),
    2: ("first coordinate", "second coordinate"),
    3: ("place in the learned order", "distance from the query"),
}


def figures(numbers: Numbers) -> dict[str, alt.LayerChart]:
    """By name; what the models find comes first."""
    return drawn(numbers, PLANS, ACROSS)


def _found(model: Numbers) -> Rows:
    """The model comes last: it lies above searches that do as well."""
    for row in sorted(model.get("found", ()), key=lambda row: row["what"] == MODEL):
        yield {"series": row["what"], "x": row["lookup"], "y": row["value"], "low": row["low"], "high": row["high"]}


def _player(coordinates: int) -> Callable[[Numbers], Rows]:
    """Points, queries and reads of the example searches of models whose points have so many coordinates."""

    def make(model: Numbers) -> Rows:
        stored = model.get("config", {}).get("model", {}).get("permuted", True)  # the points, and not vectors instead
        if min(model.get("dim", 0), 3) != coordinates or not stored:
            return
        for i, found in enumerate(model["examples"]):
            points = [_placed(coordinates, place, point) for place, point in enumerate(found["points"])]
            for place, point in enumerate(points):
                kind = "slot" if place >= model["points"] else "nearest" if place == found["nearest"] else "point"
                yield {"example": i + 1, "kind": kind, "place": place, **point}
            query = {"x": found["query"][0], "y": found["query"][1]} if coordinates == 2 else {"y": found["query"][0]}
            yield {"example": i + 1, "kind": "query", **query}
            for search, places in found["reads"].items():
                for m, place in enumerate(places):
                    yield {
                        "example": i + 1,
                        "kind": "read",
                        "search": search,
                        "lookup": m + 1,
                        "place": place,
                        **points[place],
                    }

    return make


def _placed(coordinates: int, place: int, point: list[float]) -> dict[str, float | int]:
    return {"x": point[0], "y": point[1]} if coordinates == 2 else {"x": place, "y": point[0]}


def _play(coordinates: int) -> Plan:
    title = "A learned structure, queried step by step"
    return _player(coordinates), lambda rows: charts.player(rows, *AXES[coordinates], title, MODEL)


def _agreement(model: Numbers) -> Rows:
    for row in model.get("agreement", ()):
        yield {"series": row["search"], "x": row["lookup"], "y": row["value"], "low": row["low"], "high": row["high"]}
    first = model["agreement"][0]["search"] if model.get("agreement") else None
    for row in model.get("agreement", ()):
        if row["search"] == first:  # the null is the same for all
            yield {"series": "null: any point", "x": row["lookup"], "y": row["random"]}


def _landing(model: Numbers) -> Rows:
    for row in model.get("landing", ()):
        spread = {"low": row["low"], "high": row["high"]} if row["what"] == MODEL else {}
        yield {"series": row["what"], "x": row["query"], "y": row["place"], **spread}


def _map(model: Numbers, search: str) -> Rows:
    columns = model.get("maps", {}).get(search, {})
    for values in zip(*columns.values(), strict=True):
        cell = dict(zip(columns, values, strict=True))
        yield {**cell, "best": cell["best"] and not cell["none"], "tie": cell["tie"] and not cell["none"]}


def _map_of(search: str) -> Plan:
    title = f"Which look-up of {search} reads the same?"
    return lambda model: _map(model, search), lambda rows: charts.similarity_map(
        rows, "look-up of the model", f"look-up of {search}", title, "agreement"
    )


def _along(model: Numbers) -> Rows:
    for row in model.get("along", ()):
        yield {"series": row["what"], "x": row["seen"], "y": row["value"], "low": row["low"], "high": row["high"]}


def _features(model: Numbers) -> Rows:
    for row in model.get("pictures", {}).get("features", ()):
        yield {"series": "pictures", "x": row["number"], "y": row["value"], "low": row["low"], "high": row["high"]}


def _slot(model: Numbers) -> Rows:
    columns = model.get("slot") or {"rank": (), "held": (), "next": ()}
    for rank, content, side in zip(columns["rank"], columns["held"], columns["next"], strict=True):
        yield {"series": side, "x": rank + 1, "y": content}


def _plane(kind: str) -> Callable[[Numbers], Rows]:
    """Queries with the place that they read, or points with that where they are, along two directions."""

    def make(model: Numbers) -> Rows:
        columns = model.get("probe", {}).get("plane", {}).get(kind, {"x": (), "y": (), "place": ()})
        for x, y, place in zip(columns["x"], columns["y"], columns["place"], strict=True):
            yield {"series": place + 1, "x": x, "y": y}

    return make


def _in_plane(kind: str, title: str, legend: str) -> Plan:
    ends = ("first direction", "second direction")
    return _plane(kind), lambda rows: charts.scatter(rows, *ends, title, legend)


def _models(numbers: Numbers) -> Iterator[tuple[str, Numbers]]:
    """Of every run the models, one a seed."""
    return ((run, model) for run, seeds in numbers.items() for model in seeds.values())


def _orders(measure: str) -> Callable[[Numbers], Rows]:
    """A share of every model on a line, before and after training."""
    names = {MODEL: "trained", UNTRAINED: "untrained"}

    def make(numbers: Numbers) -> Rows:
        for run, model in _models(numbers):
            for row in model.get(measure, ()):
                ends = {"low": row["low"], "high": row["high"]}
                yield {"row": run, "series": names[row["what"]], "x": row["value"], **ends}

    return make


def _ablations(numbers: Numbers) -> Rows:
    for run in (OURS, *(f"{OURS}, {without}" for without in (NOISELESS, FROZEN, BLIND, UNPERMUTED))):
        if run in numbers:
            model = next(iter(numbers[run].values()))
            for row in (row for row in _found(model) if row["series"] == MODEL):
                yield {**row, "series": run}
    if OURS in numbers:
        model = next(iter(numbers[OURS].values()))
        yield from (row for row in _found(model) if row["series"] in (BINARY, INTERPOLATION))


def _at_last(numbers: Numbers) -> Rows:
    """What every model and every search for its task has found in the end."""
    for run, model in _models(numbers):
        last = max((row["lookup"] for row in model.get("found", ())), default=0)
        for row in model.get("found", ()):
            if row["lookup"] == last:
                ends: dict[str, Any] = {"low": row["low"], "high": row["high"]}
                yield {"row": run, "series": row["what"], "x": row["value"], **ends}


def _swapped(numbers: Numbers) -> Rows:
    """What every model with slots finds where they hold something else."""
    for run, model in _models(numbers):
        for row in model.get("swapped", ()):
            if row["is"] == FOUND_SO:
                yield {"row": run, "series": row["with"], "x": row["value"], "low": row["low"], "high": row["high"]}


def _learning(model: Numbers) -> Rows:
    found = model.get("learning")
    for step, error in zip(found["step"], found["error"], strict=True) if found else ():
        if error is not None:
            yield {"series": "in training", "x": step, "y": error}


FOUND, SAME = "Found after each look-up", {"leading": (MODEL, UNTRAINED)}
PLANS: dict[str, Plan] = {
    "found": (_found, curves("look-ups", "share found", FOUND, legend="by", domain=(0.0, 1.0), **SAME)),
    **{name: _play(coordinates) for coordinates, name in PLAYERS.items()},
    "agreement": (
        _agreement,
        curves("look-up", "share of equal reads", "Reads the same as", legend="as", domain=(0.0, 1.0)),
    ),
    "landing": (
        _landing,
        curves("query", "place in the learned order", "Where the first look-up lands", legend="of", **SAME),
    ),
    "map-binary": _map_of(BINARY),
    "map-interpolation": _map_of(INTERPOLATION),
    "map-tree": _map_of(TREE),
    "along": (_along, curves("items seen", "mean absolute error", "Errors along the stream", legend="of", **SAME)),
    "features": (_features, curves("number", "main feature", "What a picture of a number becomes", legend="")),
    "slot": (
        _slot,
        lambda rows: charts.scatter(
            rows, "rank of the nearest point", "number in the slot", "What one slot holds, set by set", "next point"
        ),
    ),
    "probe-queries": _in_plane("query", "Which place does a query read?", "place"),
    "probe-points": _in_plane("point", "Where is a point stored?", "place"),
    "learning": (_learning, curves("step", "loss, of a blind guess 1", "Learning", log_y=True, legend="")),
}
ACROSS: dict[str, Plan] = {
    "sorted": (
        _orders("sorted"),
        lambda rows: charts.dots(rows, "share in place", "Is the order sorted? A dot a seed", "network"),
    ),
    "neighbors": (
        _orders("neighbors"),
        lambda rows: charts.dots(rows, "share of places", "Is a point beside its neighbor? A dot a seed", "network"),
    ),
    "at-last": (
        _at_last,
        lambda rows: charts.dots(rows, "share found", "Found after the last look-up, a dot a seed", "by", **SAME),
    ),
    "swapped": (
        _swapped,
        lambda rows: charts.dots(rows, "share found", "Found where slots hold something else", "slots hold"),
    ),
    "ablations": (
        _ablations,
        curves("look-ups", "share found", "What is lost without it", legend="of", domain=(0.0, 1.0)),
    ),
}
CENTER = ("found", *PLAYERS.values())

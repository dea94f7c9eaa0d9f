"""The figures of the study, from its numbers. Most hold all models and let the reader choose one."""

from collections.abc import Callable, Iterator

import altair as alt

from algoscope.report import charts
from algoscope.studies.claim import Numbers
from algoscope.studies.data_structures.references import BINARY, INTERPOLATION, MODEL, UNTRAINED
from algoscope.studies.data_structures.trainings import BLIND, FROZEN, NOISELESS, OURS, POINTLESS
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
        without = model.get("config", {}).get("model", {}).get("without")
        if min(model.get("dim", 0), 3) != coordinates or without == "points":
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
                    read = {"kind": "read", "search": search, "lookup": m + 1, "place": place}
                    yield {"example": i + 1, **read, **points[place]}

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
            yield {"series": "null: another set", "x": row["lookup"], "y": row["null"]}


def _landing(model: Numbers) -> Rows:
    for row in model.get("landing", ()):
        spread = {"low": row["low"], "high": row["high"]} if row["what"] == MODEL else {}
        yield {"series": row["what"], "x": row["query"], "y": row["place"], **spread}


def _by_position(model: Numbers) -> Rows:
    for row in model.get("along", ()):
        yield {"series": row["what"], "x": row["seen"], "y": row["value"], "low": row["low"], "high": row["high"]}


def _features(model: Numbers) -> Rows:
    for row in model.get("pictures", {}).get("features", ()):
        yield {"series": "pictures", "x": row["number"], "y": row["value"], "low": row["low"], "high": row["high"]}


def _models(numbers: Numbers) -> Iterator[tuple[str, Numbers]]:
    """Of every run the models, one a seed."""
    return ((run, model) for run, seeds in numbers.items() for model in seeds.values())


def _sorted(numbers: Numbers) -> Rows:
    """The share of points in place of every model on a line, before and after training."""
    names = {MODEL: "trained", UNTRAINED: "untrained"}
    for run, model in _models(numbers):
        for row in model.get("sorted", ()):
            yield {"row": run, "series": names[row["what"]], "x": row["value"], "low": row["low"], "high": row["high"]}


def _ablations(numbers: Numbers) -> Rows:
    for run in (OURS, *(f"{OURS}, {without}" for without in (NOISELESS, FROZEN, BLIND, POINTLESS))):
        for row in _found(next(iter(numbers.get(run, {}).values()), {})):
            if row["series"] == MODEL:
                yield {**row, "series": run}
            elif run == OURS and row["series"] in (BINARY, INTERPOLATION):
                yield row


def _at_last(numbers: Numbers) -> Rows:
    """What every model and every search for its task has found in the end."""
    for run, model in _models(numbers):
        last = max((row["lookup"] for row in model.get("found", ())), default=0)
        for row in model.get("found", ()):
            if row["lookup"] == last:
                yield {"row": run, "series": row["what"], "x": row["value"], "low": row["low"], "high": row["high"]}


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
    "along": (
        _by_position,
        curves("items seen", "mean absolute error", "Errors along the stream", legend="of", **SAME),
    ),
    "features": (_features, curves("number", "main feature", "What a picture of a number becomes", legend="")),
    "learning": (_learning, curves("step", "loss, of a blind guess 1", "Learning", log_y=True, legend="")),
}
ACROSS: dict[str, Plan] = {
    "sorted": (
        _sorted,
        lambda rows: charts.dots(rows, "share in place", "Is the order sorted? A dot a seed", "network"),
    ),
    "at-last": (
        _at_last,
        lambda rows: charts.dots(rows, "share found", "Found after the last look-up, a dot a seed", "by", **SAME),
    ),
    "ablations": (
        _ablations,
        curves("look-ups", "share found", "What is lost without it", legend="of", domain=(0.0, 1.0)),
    ),
}
CENTER = ("found", *PLAYERS.values())

"""The figures of a verdict, from its saved numbers. Each is one chart; where there are many algorithms, one chooses."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import altair as alt

from algoscope.report import charts

Record = Mapping[str, Any]
MEASURES = {
    "errors": "Similarity of errors",
    "decodability": "Decodability (R² above the null's)",
    "weights": "Similarity of induced weights",
    "distance": "Distance of predictions",
}


def figures(record: Record, chosen: str | None = None) -> dict[str, alt.LayerChart]:
    """By name. With an algorithm chosen they show that one; otherwise they hold all and let the reader choose."""
    names = list(record["matches"]["errors"])
    only = [chosen] if chosen else names
    first = chosen or leading(record)
    stages = [found["stage"] for found in record["stages"]]
    titles = {measure: title for measure, title in MEASURES.items() if measure in record["matches"]}
    cells = {measure: list(_cells(record, measure, only, stages)) for measure in titles}
    paths = list(_paths(record, only, stages))
    made = {"errors-by-position": charts.error_curves(list(_curves(record, only)), stages)}
    for measure, title in titles.items():
        made[f"map-{measure}"] = charts.similarity_map(cells[measure], "", "step", title, measure, stages)
    for scale in ("linear", "log"):
        title = f"Closest step by errors, {'logarithmic' if scale == 'log' else 'linear'} scale"
        made[f"growth-{scale}"] = charts.growth(paths, "", "step", title, scale == "log", stages)
    return made if chosen else {name: charts.choose(chart, "algorithm", first) for name, chart in made.items()}


def leading(record: Record) -> str:
    """The algorithm to show first: the one that is most often among the closest."""
    names = list(record["matches"]["errors"])
    counts = {name: sum(any(pair[0] == name for pair in s["agreed"]) for s in record["stages"]) for name in names}
    many = [name for name in names if len(record["matches"]["errors"][name]["steps"]) > 2]
    return max(many or names, key=lambda name: counts[name])


def _cells(record: Record, measure: str, names: Sequence[str], stages: Sequence[str]) -> Iterator[Record]:
    for name in names:
        match = record["matches"][measure][name]
        for i, stage in enumerate(stages):
            for j, step in enumerate(match["steps"]):
                numbers = {part: match[part][i][j] for part in ("similarity", "low", "high")}
                marks = {"best": step == match["best"][i] and not match["none"][i]}
                marks["tie"] = step in match["ties"][i] and not match["none"][i]
                marks["none"] = match["none"][i]
                yield {"algorithm": name, "stage": stage, "step": step, **numbers, **marks}


def _paths(record: Record, names: Sequence[str], stages: Sequence[str]) -> Iterator[Record]:
    for name in names:
        match, law = record["matches"]["errors"][name], record["laws"].get(name)
        for i, stage in enumerate(stages):
            ties = [step for step in match["ties"][i] if isinstance(step, int)]
            if match["none"][i] or not ties:
                continue
            row = {"algorithm": name, "stage": stage, "best": match["best"][i], "low": min(ties), "high": max(ties)}
            yield row | {"law": _on_path(law, stage, stages)}


def _on_path(law: Mapping[str, Any] | None, stage: str, stages: Sequence[str]) -> float | None:
    if law is None or law["law"] not in ("linear", "exponential") or stage not in law["used"]:
        return None
    after, start, growth = stages.index(stage) - stages.index(law["used"][0]), law["start"], law["growth"]
    return start * growth**after if law["path"] == "exponential" else start + growth * after


def _curves(record: Record, names: Sequence[str]) -> Iterator[Record]:
    """The stages, which are always shown, and the steps of an algorithm that match them best."""
    model, *_ = record["errors_by_position"]
    for stage, errors in record["errors_by_position"][model].items():
        yield from ({"what": stage, "model": True, "t": t, "error": e} for t, e in enumerate(errors) if t)
    for name in names:
        match = record["matches"]["errors"][name]
        best = {step for step, none in zip(match["best"], match["none"], strict=True) if step is not None and not none}
        for step in sorted(best):
            for t, error in enumerate(record["errors_by_position"][name][str(step)]):
                if t:
                    yield {"what": f"step {step}", "model": False, "algorithm": name, "t": t, "error": error}

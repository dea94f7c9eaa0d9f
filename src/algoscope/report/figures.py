"""The figures of a verdict, from its saved numbers. Each is one chart; where there are many algorithms, one chooses."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import altair as alt

from algoscope.report import charts, maps

Record = Mapping[str, Any]
TITLES = {
    "errors": "Similarity of errors",
    "decodability": "Decodability (R² above the null's)",
    "weights": "Similarity of induced weights",
    "distance": "Distance of predictions",
    "agreement": "Share of equal answers",
    "wrong reads": "Share of equal reads, where the nearest point is not found",
    "unexplained variance": "Share of the variance that is not explained",
}
COLORED = 6  # algorithms that the overview tells apart by color


def figures(record: Record, chosen: str | None = None) -> dict[str, alt.LayerChart]:
    """By name. With an algorithm chosen they show that one; otherwise they hold all and let the reader choose."""
    names = list(_first(record))
    only = [chosen] if chosen else names
    first = chosen or leading(record)
    stages = stage_names(record)
    made = {}
    if record["errors_by_position"]:
        made["errors-by-position"] = charts.error_curves(list(_curves(record, only)), stages)
    for measure in record["matches"]:
        cells = _cells(record, measure, only, stages)
        closer = record["larger_is_closer"][measure]
        made[f"map-{measure.replace(' ', '-')}"] = maps.similarity_map(
            cells, "", "step", title_of(measure), measure, stages, closer
        )
    paths = list(_paths(record, only, stages))
    for scale in ("linear", "log") if paths else ():
        title = f"Closest step, {'logarithmic' if scale == 'log' else 'linear'} scale"
        made[f"growth-{scale}"] = charts.growth(paths, "", "step", title, scale == "log", stages)
    if not chosen:
        made = {name: charts.choose(chart, "algorithm", first) for name, chart in made.items()}
    tests = list(_experiments(record, stages))
    if tests:
        made = {"experiments": maps.experiment_map(tests, stages), **made}
    return {"overview": overview(record, first), **made}


def overview(record: Record, first: str) -> alt.LayerChart:
    """The best similarity of every algorithm at each stage, the null, and one algorithm that stands out."""
    measure, stages = record["measure"], stage_names(record)
    rows, often = [], named(record)
    for name, match in _first(record).items():
        for i, stage in enumerate(stages):
            if match["best"][i] is None:
                continue
            j = match["steps"].index(match["best"][i])
            numbers = {part: match[part][i][j] for part in ("similarity", "low", "high")}
            closest = bool(record["stages"][i]["agreed"]) and record["stages"][i]["agreed"][0][0] == name
            rows.append({"stage": stage, "algorithm": name, "step": match["best"][i], "closest": closest, **numbers})
    nulls = [{"stage": stage, "null": level} for stage, level in zip(stages, _null(record), strict=True)]
    known = [name for name in [first, *often] if any(row["algorithm"] == name for row in rows)]
    return charts.best_by_stage(
        rows,
        nulls,
        title_of(measure),
        stages,
        record["larger_is_closer"][measure],
        list(dict.fromkeys(known))[:COLORED],
    )


def _experiments(record: Record, stages: Sequence[str]) -> Iterator[Record]:
    """Of each stage and method, the experiment with the closest algorithm and the first law that it breaks."""
    first = _first(record)
    for i, found in enumerate(record["stages"]):
        of_method: dict[str, list[Mapping[str, Any]]] = {}
        for each in (one for one in found.get("experiments", ()) if one["algorithm"] in first):
            of_method.setdefault(record["methods"].get(each["algorithm"], each["algorithm"]), []).append(each)
        for method, own in of_method.items():

            def closeness(each: Mapping[str, Any], i: int = i) -> float:
                match = first[each["algorithm"]]
                value = match["similarity"][i][match["steps"].index(each["step"])] or 0.0
                return value if record["larger_is_closer"][record["measure"]] else -value

            nearest = max(own, key=closeness)["algorithm"]
            best = next(each for each in own if each["algorithm"] == nearest)
            yield {**best, "stage": stages[i], "row": f"{method}: {best['law']}"}


def leading(record: Record) -> str:
    """The algorithm to show first: the one that is most often among the closest, of those with several steps if any."""
    often = named(record)
    many = [name for name in often if len(_first(record)[name]["steps"]) > 2]
    return next(iter([*many, *often, *_first(record)]))


def overview_of_members(records: Sequence[Record]) -> alt.LayerChart:
    """Of every member of a population, how close each stage is to its closest step."""
    rows = []
    for k, record in enumerate(records):
        for found in record["stages"]:
            closest = next(iter(found["candidates"][record["measure"]]), None)
            if closest is not None and not found["null"]:
                step = f"{closest['name']} {closest['step']}"
                numbers = {part: closest[part] for part in ("similarity", "low", "high")}
                rows.append({"member": f"member {k}", "stage": found["stage"], "closest": step, **numbers})
    first = records[0]
    return charts.members_by_stage(rows, title_of(first["measure"]), stage_names(first))


def stage_names(record: Record) -> list[str]:
    return [found["stage"] for found in record["stages"]]


def _first(record: Record) -> Mapping[str, Any]:
    """The comparisons by the measure that orders candidates, by algorithm."""
    return record["matches"][record["measure"]]


def named(record: Record) -> list[str]:
    """The algorithms that some stage may be, most often first."""
    counts = Counter(name for stage in record["stages"] for name in dict.fromkeys(pair[0] for pair in stage["agreed"]))
    return [name for name, _ in counts.most_common() if name in _first(record)]


def _null(record: Record) -> list[float | None]:
    """The closest null of each stage, over the algorithms."""
    best = max if record["larger_is_closer"][record["measure"]] else min
    columns = zip(*(match["null"] for match in _first(record).values()), strict=True)
    return [best((level for level in column if level is not None), default=None) for column in columns]


def title_of(measure: str) -> str:
    return TITLES.get(measure, measure.capitalize())


def _cells(record: Record, measure: str, names: Sequence[str], stages: Sequence[str]) -> Iterator[Record]:
    known = record["matches"][measure]  # not all algorithms have weights
    for name, match in ((name, known[name]) for name in names if name in known):
        for i, stage in enumerate(stages):
            for j, step in enumerate(match["steps"]):
                numbers = {part: match[part][i][j] for part in ("similarity", "low", "high")}
                marks = {"best": step == match["best"][i] and not match["none"][i]}
                marks["tie"] = step in match["ties"][i] and not match["none"][i]
                marks["none"] = match["none"][i]
                yield {"algorithm": name, "stage": stage, "step": step, **numbers, **marks}


def _paths(record: Record, names: Sequence[str], stages: Sequence[str]) -> Iterator[Record]:
    """The best steps of methods that have several, with the law that they follow, if any."""
    for name in names:
        match, law = _first(record)[name], record["laws"].get(name)
        for i, stage in enumerate(stages):
            ties = [step for step in match["ties"][i] if isinstance(step, int)]
            if match["none"][i] or not ties or len(match["steps"]) < 2:
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
        match = _first(record)[name]
        best = {step for step, none in zip(match["best"], match["none"], strict=True) if step is not None and not none}
        for step in sorted(best, key=str):
            for t, error in enumerate(record["errors_by_position"][name][str(step)]):
                if t:
                    yield {"what": f"step {step}", "model": False, "algorithm": name, "t": t, "error": error}

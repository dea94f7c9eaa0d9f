"""The figures of the study, from its numbers. Each holds all models and lets the reader choose one."""

from collections.abc import Callable, Iterator
from typing import Any

import altair as alt

from algoscope.report import charts
from algoscope.studies.higher_order_icl.measures import NEWTON, STEPS
from algoscope.studies.study import Numbers

Rows = Iterator[dict[str, Any]]
Plan = tuple[
    Callable[[Numbers], Rows], Callable[[list[dict[str, Any]]], alt.LayerChart]
]  # what to draw of a model, and how


def figures(numbers: Numbers) -> dict[str, alt.LayerChart]:
    """By name; the filters come first."""
    models = {f"{run}, seed {seed}": model for run, seeds in numbers.items() for seed, model in seeds.items()}
    made = {}
    for name, (make, draw) in PLANS.items():
        rows = [{"model": label, **row} for label, model in models.items() for row in make(model)]
        if rows:
            made[name] = charts.choose(draw(rows), "model", next(iter(models)))
    return made


def _curves(x: str, y: str, title: str, **options: Any) -> Callable[[list[dict[str, Any]]], alt.LayerChart]:
    return lambda rows: charts.curves(rows, x, y, title, **options)


def _heat(title: str) -> Callable[[list[dict[str, Any]]], alt.LayerChart]:
    return lambda rows: charts.similarity_map(rows, "layer", "step", f"Similarity of errors: {title}")


def _number(stage: str) -> int:
    return int(stage.rpartition(" ")[2]) if stage[-1].isdigit() else 0


def _filter(model: Numbers, what: str) -> Rows:
    last = max(row["t"] for row in model["filters"])
    for row in model["filters"]:
        if row["what"] == what and row["t"] == last:
            numbers = {"x": row["eigenvalue"], "y": row["solved"], "low": row["low"], "high": row["high"]}
            yield {"series": _number(row["stage"]), **numbers}


def _progress(model: Numbers) -> Rows:
    for row in model["progress"]:
        yield {"series": "model", "x": _number(row["stage"]), "y": row["error"], "low": row["low"], "high": row["high"]}


def _errors(model: Numbers) -> Rows:
    for stage, errors in model["verdict"]["errors_by_position"]["the model"].items():
        yield from ({"series": _number(stage), "x": t, "y": error} for t, error in enumerate(errors))


def _map(model: Numbers, name: str) -> Rows:
    found = model["published"]["maps"][name]
    for i, stage in enumerate(model["published"]["stages"]):
        for j, step in enumerate(found["steps"]):
            none = found["none"][i]
            marks = {"best": step == found["best"][i] and not none, "tie": step in found["ties"][i], "none": none}
            numbers = {part: found[part][i][j] for part in ("similarity", "low", "high")}
            yield {"stage": _number(stage), "step": step, **numbers, **marks}


def _levels(model: Numbers) -> Rows:
    for name, found in model["published"]["maps"].items():
        for stage, row in zip(model["published"]["stages"], found["similarity"], strict=True):
            usable = [value for value in row if value is not None]
            if usable:
                yield {"series": name, "x": _number(stage), "y": max(usable)}


def _by_examples(model: Numbers, place: int) -> Rows:
    stages = [found["stage"] for found in model["verdict"]["stages"]]
    stage = stages[min(place, len(stages) - 1)]
    for row in model["by_examples"]:
        if row["stage"] == stage and row["similarity"] is not None:
            numbers = {"x": row["t"], "y": row["similarity"], "low": row["low"], "high": row["high"]}
            yield {"series": row["algorithm"], **numbers}


def _convergence(model: Numbers, what: str) -> Rows:
    """The error after each layer or step, for some numbers of examples."""
    dim = model["verdict"]["dim"]
    for t in sorted({dim // 4, dim // 2, dim - 1, dim, dim + 1, 5 * dim // 4, 3 * dim // 2, 7 * dim // 4}):
        for stage, errors in model["verdict"]["errors_by_position"][what].items():
            if 0 < t < len(errors) and errors[t] is not None and errors[t] > 1e-8:
                yield {"series": t, "x": _number(stage), "y": errors[t]}


def _known(model: Numbers) -> Rows:
    for row in model["known"]:
        if row["step"] > 0 and row["best"] > 0:
            yield {"series": f"{row['of']} by {row['by']}", "x": row["step"], "y": row["best"]}


def _span(model: Numbers) -> Rows:
    last = model["verdict"]["stages"][-1]["stage"]
    for row in model["span"]:
        if row["stage"] == last:
            yield {"series": "last layer", "x": row["t"], "y": row["outside"], "low": row["low"], "high": row["high"]}
            yield {"series": "chance", "x": row["t"], "y": row["chance"]}


def _forgetting(model: Numbers) -> Rows:
    for row in model["forgetting"]:
        yield {"series": row["stage"], "x": row["gap"], "y": row["error"], "low": row["low"], "high": row["high"]}


def _shifted(model: Numbers) -> Rows:
    for row in model["shifted"]:
        numbers = {"x": row["similarity"], "low": row["low"], "high": row["high"]}
        if row["similarity"] is not None:
            yield {"row": row["prompts"], "series": row["algorithm"], **numbers}


def _patched(model: Numbers) -> Rows:
    for row in model.get("patched", ()):
        yield {
            "series": "share",
            "x": _number(row["stage"]),
            "y": row["survives"],
            "low": row["low"],
            "high": row["high"],
        }


def _filter_of(name: str, title: str, legend: str) -> Plan:
    draw = _curves(
        "eigenvalue of S (right: easy)", "share solved", title, log_x=True, domain=(-0.2, 1.4), legend=legend
    )
    return lambda model: _filter(model, name), draw


def _map_of(name: str, title: str) -> Plan:
    return lambda model: _map(model, name), _heat(title)


def _by_examples_at(place: int, words: str) -> Plan:
    draw = _curves("examples seen", "cosine", f"Induced weights, {words} (Fig. 10)", legend="and")
    return lambda model: _by_examples(model, place), draw


def _convergence_of(name: str, words: str) -> Plan:
    title = f"Convergence of {words}, by examples seen"
    return lambda model: _convergence(model, name), _curves(
        "layer or step", "normalized error", title, log_y=True, legend="examples"
    )


PLACES = {"layer 2": 2, "layer 3": 3, "last layer": -1}
CONVERGE = {"the model": "the layers", "Newton": "Newton", "ConjugateGradients": "conjugate gradients"}
AT_LAST = "Error of each layer at the last position"
PLANS: dict[str, Plan] = {
    "filter-model": _filter_of("the model", "What each layer has solved", "layer"),
    **{f"filter-{name}": _filter_of(name, f"What {name} has solved", "step") for name in STEPS},
    "progress": (_progress, _curves("layer", "normalized error", AT_LAST, log_y=True)),
    "errors": (_errors, _curves("examples seen", "normalized error", "Errors (Fig. 1)", log_y=True, legend="layer")),
    "newton": _map_of(NEWTON, "Newton (Fig. 3)"),
    "descent": _map_of("gradient descent", "gradient descent (Fig. 8)"),
    "conjugate": _map_of("conjugate gradients", "conjugate gradients"),
    "plus-plus": _map_of("GD++", "GD++"),
    "levels": (
        _levels,
        _curves("layer", "similarity of errors", "Best similarity of each layer (Fig. 9)", legend="to"),
    ),
    **{f"by-examples-{words.replace(' ', '-')}": _by_examples_at(place, words) for words, place in PLACES.items()},
    **{f"convergence-{name}": _convergence_of(name, words) for name, words in CONVERGE.items()},
    "span": (_span, _curves("examples seen", "share", "Weights outside the span (Fig. 16)", legend="of")),
    "forgetting": (_forgetting, _curves("examples ago", "normalized error", "Forgetting (Fig. 5)", legend="by")),
    "shifted": (_shifted, lambda rows: charts.dots(rows, "similarity of errors", "On other prompts", "to")),
    "known": (
        _known,
        _curves("step", "matching step", "Algorithms by each other", log_x=True, log_y=True, legend="of"),
    ),
    "patched": (_patched, _curves("after layer", "share that survives", "A foreign answer, planted after a layer")),
}

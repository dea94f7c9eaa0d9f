"""The figures of the study, from its numbers. Each holds all models and lets the reader choose one."""

import math
from collections.abc import Callable
from typing import Any

import altair as alt

from algoscope.report import charts
from algoscope.studies.claim import Numbers
from algoscope.studies.higher_order_icl.findings import HARD, MAIN, cell
from algoscope.studies.higher_order_icl.measures import DESCENT, NEWTON, STEPS
from algoscope.studies.higher_order_icl.published import beside_published
from algoscope.studies.plans import Plan, Rows, drawn
from algoscope.studies.plans import curves as _curves

SHOWN = 4  # layers beside the algorithms
COMPARED = (NEWTON, DESCENT, "conjugate gradients", "online gradient descent", "least squares")


def figures(numbers: Numbers) -> dict[str, alt.LayerChart]:
    """By name; the filters come first."""
    return drawn(numbers, PLANS, ACROSS)


def _heat(title: str, measure: str = "errors") -> Callable[[list[dict[str, Any]]], alt.LayerChart]:
    return lambda rows: charts.similarity_map(rows, "layer", "step", title, measure)


def _number(stage: str) -> int:
    return int(stage.rpartition(" ")[2]) if stage[-1].isdigit() else 0


def _filter(model: Numbers, what: str) -> Rows:
    last = max(row["t"] for row in model["filters"])
    for row in model["filters"]:
        if row["what"] == what and row["t"] == last:
            numbers = {"x": row["eigenvalue"], "y": row["solved"], "low": row["low"], "high": row["high"]}
            yield {"series": _number(row["stage"]), **numbers}


def _curves_by_stage(model: Numbers, what: str) -> dict[str, dict[float, Numbers]]:
    """At the last number of examples: by stage, what is solved at each eigenvalue."""
    found: dict[str, dict[float, Numbers]] = {}
    last = max(row["t"] for row in model["filters"])
    for row in model["filters"]:
        if row["what"] == what and row["t"] == last:
            found.setdefault(str(row["stage"]), {})[row["eigenvalue"]] = row
    return found


def _beside_filters(model: Numbers, place: int) -> Rows:
    """A layer on its way, and over it the step of each algorithm that is nearest to it."""
    layers = _curves_by_stage(model, "the model")
    means = {stage: sum(row["solved"] for row in curve.values()) / len(curve) for stage, curve in layers.items()}
    working = [stage for stage, mean in means.items() if 0.1 < mean < 0.97]
    if place >= len(working):
        return
    stage = working[place * max(len(working) - 1, 1) // max(SHOWN - 1, 1)] if len(working) > SHOWN else working[place]
    own = layers[stage]
    yield from _solved(f"the model, {stage}", own)
    for name in STEPS:
        steps = _curves_by_stage(model, name)
        away = {step: _away(own, curve) for step, curve in steps.items()}
        if away:
            best = min(away, key=away.__getitem__)
            yield from ({**row, "by": "algorithms"} for row in _solved(f"{name} {best}", steps[best]))


def _solved(series: str, curve: dict[float, Numbers]) -> Rows:
    for eigenvalue, row in curve.items():
        ends = {"low": row["low"], "high": row["high"]}
        yield {"series": series, "x": eigenvalue, "y": row["solved"], **ends}


def _away(one: dict[float, Numbers], other: dict[float, Numbers]) -> float:
    """The mean distance; a step that diverges is far away."""
    both = [(one[x]["solved"], other[x]["solved"]) for x in one if x in other]
    return sum(min(abs(a - b), 1e9) for a, b in both) / len(both) if both else math.inf


def _progress(model: Numbers) -> Rows:
    for row in model["progress"]:
        yield {"series": "model", "x": _number(row["stage"]), "y": row["error"], "low": row["low"], "high": row["high"]}


def _errors(model: Numbers) -> Rows:
    for stage, errors in model["verdict"]["errors_by_position"]["the model"].items():
        yield from ({"series": _number(stage), "x": t, "y": error} for t, error in enumerate(errors))


def _map(found: Numbers | None, stages: list[str]) -> Rows:
    for i, stage in enumerate(stages if found else ()):
        assert found is not None
        for j, step in enumerate(found["steps"]):
            none = found["none"][i]
            marks = {"best": step == found["best"][i] and not none, "tie": step in found["ties"][i], "none": none}
            cells = {part: found[part][i][j] for part in ("similarity", "low", "high")}
            numbers = {part: value if value is None else round(value, 4) for part, value in cells.items()}
            yield {"stage": _number(stage), "step": step, **numbers, **marks}


def _beside(numbers: Numbers, name: str) -> Rows:
    """Where our map, of the first seed, differs from the published one."""
    for model in list(numbers.get(HARD, {}).values())[:1]:
        for found in beside_published(model, name):
            yield {"stage": found["layer"], **found}


def _last_levels(numbers: Numbers) -> Rows:
    """How close the last layer of every model comes to each algorithm."""
    for run, seeds in numbers.items():
        for seed, model in seeds.items():
            for name in COMPARED:
                found = cell(model, name)
                label = run if len(seeds) == 1 else f"{run}, seed {seed}"
                yield {"row": label, "series": name, "x": found.value, "low": found.low, "high": found.high}


def _memory(numbers: Numbers) -> Rows:
    """The same over the number of examples that a layer sees."""
    windows = {run: int(run.split()[1]) for run in numbers if run.startswith("window ")}
    for run, seen in ({**windows, MAIN: None} if windows else {}).items():
        for model in list(numbers.get(run, {}).values())[:1]:
            for name in COMPARED:
                found, most = cell(model, name), model["verdict"]["examples"]
                yield {"series": name, "x": seen or most, "y": found.value, "low": found.low, "high": found.high}


def _errors_compared(numbers: Numbers) -> Rows:
    """The error of the last layer of one model of each run, beside what algorithms leave."""
    for run, seeds in numbers.items():
        model = next(iter(seeds.values()))
        *_, errors = model["verdict"]["errors_by_position"]["the model"].values()
        yield from ({"series": run, "x": t, "y": error} for t, error in enumerate(errors))
        if run == MAIN:
            for name, step in (("Newton", 5), ("OnlineGradientDescent", 0), ("OrdinaryLeastSquares", 0)):
                errors = model["verdict"]["errors_by_position"][name].get(str(step), ())
                label = f"{name} {step}" if step else name
                yield from ({"series": label, "x": t, "y": error} for t, error in enumerate(errors) if error > 1e-6)


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


def _beside_filter_of(place: int) -> Plan:
    title = ("An early layer", "Further on", "Further still", "A late layer")[place] + ", and the nearest steps"
    draw = _curves(
        "eigenvalue of S (right: easy)", "share solved", title, log_x=True, domain=(-0.2, 1.4), legend="whose"
    )
    return lambda model: _beside_filters(model, place), draw


def _map_of(name: str, title: str) -> Plan:
    """As published."""
    return lambda model: _map(model["published"]["maps"].get(name), model["published"]["stages"]), _heat(
        f"Similarity of errors: {title}"
    )


def _other_map(name: str, measure: str, title: str) -> Plan:
    """By another measure, as the instrument compares."""

    def make(model: Numbers) -> Rows:
        verdict = model["verdict"]
        return _map(verdict["matches"].get(measure, {}).get(name), [found["stage"] for found in verdict["stages"]])

    return make, _heat(title, measure)


def _table_of(name: str, title: str) -> Plan:
    return lambda numbers: _beside(numbers, name), lambda rows: charts.difference_map(rows, "layer", "step", title)


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
    **{f"filter-beside-{place + 1}": _beside_filter_of(place) for place in range(SHOWN)},
    **{f"of-{name}": _filter_of(name, f"What {name} has solved", "step") for name in STEPS},
    "progress": (_progress, _curves("layer", "normalized error", AT_LAST, log_y=True)),
    "errors": (_errors, _curves("examples seen", "normalized error", "Errors (Fig. 1)", log_y=True, legend="layer")),
    "newton": _map_of(NEWTON, "Newton (Fig. 3, 11)"),
    "descent": _map_of(DESCENT, "gradient descent (Fig. 8, 12)"),
    "descent-linear": _map_of(f"{DESCENT}, linear grid", "gradient descent, linear grid (Fig. 3, 6)"),
    "descent-random": _map_of(f"{DESCENT}, random start", "gradient descent, random start"),
    "conjugate": _map_of("conjugate gradients", "conjugate gradients"),
    "chebyshev": _map_of("Chebyshev", "Chebyshev"),
    "heavy-ball": _map_of("heavy ball", "heavy ball"),
    "plus-plus": _map_of("GD++", "GD++"),
    "newton-weights": _other_map("Newton", "weights", "Induced weights: Newton (Fig. 7, 13)"),
    "descent-weights": _other_map("GradientDescent", "weights", "Induced weights: gradient descent (Fig. 7, 13)"),
    "newton-decodability": _other_map("Newton", "decodability", "Decodability: Newton"),
    "levels": (
        _levels,
        _curves("layer", "similarity of errors", "Best similarity of each layer (Fig. 9)", legend="to"),
    ),
    **{f"by-examples-{words.replace(' ', '-')}": _by_examples_at(place, words) for words, place in PLACES.items()},
    **{f"convergence-{name.replace(' ', '-')}": _convergence_of(name, words) for name, words in CONVERGE.items()},
    "span": (_span, _curves("examples seen", "share", "Weights outside the span (Fig. 16)", legend="of")),
    "forgetting": (_forgetting, _curves("examples ago", "normalized error", "Forgetting (Fig. 5)", legend="by")),
    "shifted": (_shifted, lambda rows: charts.dots(rows, "similarity of errors", "On other prompts", "to")),
    "known": (
        _known,
        _curves("step", "matching step", "Algorithms by each other", log_x=True, log_y=True, legend="of"),
    ),
    "patched": (_patched, _curves("after layer", "share that survives", "A foreign answer, planted after a layer")),
}
ACROSS: dict[str, Plan] = {
    "table-newton": _table_of("newton", "Ours minus published, ill-conditioned: Newton (Fig. 12)"),
    "table-descent": _table_of("gd", "Ours minus published, ill-conditioned: gradient descent (Fig. 12)"),
    "across": (
        _last_levels,
        lambda rows: charts.dots(rows, "similarity of errors", "The last layer of every model (Table 1)", "to"),
    ),
    "errors-compared": (
        _errors_compared,
        _curves("examples seen", "normalized error", "Errors of the models (Fig. 5)", log_y=True, legend="of"),
    ),
    "memory": (
        _memory,
        _curves("examples that a layer sees", "similarity of errors", "Does memory decide?", legend="to"),
    ),
}
FILTERS = tuple(name for name in PLANS if name.startswith("filter"))

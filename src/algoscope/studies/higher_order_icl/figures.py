"""The figures of the study, from its numbers. Each holds all models and lets the reader choose one."""

from collections.abc import Callable
from typing import Any

import altair as alt

from algoscope.report import maps
from algoscope.studies.claim import Numbers
from algoscope.studies.higher_order_icl.findings import HARD, MAIN
from algoscope.studies.higher_order_icl.measures import GRADIENT_DESCENT, NEWTON
from algoscope.studies.higher_order_icl.published import beside_published
from algoscope.studies.plans import Plan, Rows, curves, drawn


def figures(numbers: Numbers) -> dict[str, alt.LayerChart]:
    """By name; those that tell the story come first."""
    return drawn(numbers, PLANS, ACROSS)


def _heat(title: str, measure: str = "errors") -> Callable[[list[dict[str, Any]]], alt.LayerChart]:
    return lambda rows: maps.similarity_map(rows, "layer", "step", title, measure)


def _number(stage: str) -> int:
    return int(stage.rpartition(" ")[2]) if stage[-1].isdigit() else 0


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
    dim = model["dim"]
    for t in sorted({dim // 4, dim // 2, dim - 1, dim, dim + 1, 5 * dim // 4, 3 * dim // 2, 7 * dim // 4}):
        for stage, errors in model["verdict"]["errors_by_position"][what].items():
            if 0 < t < len(errors) and errors[t] is not None and errors[t] > 1e-8:
                yield {"series": t, "x": _number(stage), "y": errors[t]}


def _span(model: Numbers) -> Rows:
    last = model["verdict"]["stages"][-1]["stage"]
    for row in model["span"]:
        if row["stage"] == last:
            yield {"series": "last layer", "x": row["t"], "y": row["outside"], "low": row["low"], "high": row["high"]}
            yield {"series": "chance", "x": row["t"], "y": row["chance"]}


def _forgetting(model: Numbers) -> Rows:
    for row in model["forgetting"]:
        yield {"series": row["stage"], "x": row["gap"], "y": row["error"], "low": row["low"], "high": row["high"]}


def _patching(model: Numbers) -> Rows:
    for row in model.get("patched", ()):
        yield {
            "series": "share",
            "x": _number(row["stage"]),
            "y": row["survives"],
            "low": row["low"],
            "high": row["high"],
        }


def _map_of(name: str, title: str) -> Plan:
    """As published."""
    return lambda model: _map(model["published"]["maps"].get(name), model["published"]["stages"]), _heat(
        f"Similarity of errors: {title}"
    )


def _by_weights(name: str, words: str) -> Plan:
    """By induced weights, as the instrument compares."""

    def make(model: Numbers) -> Rows:
        verdict = model["verdict"]
        found = verdict["matches"].get("weights", {}).get(name)
        return _map(found, [stage["stage"] for stage in verdict["stages"]])

    return make, _heat(f"Induced weights: {words} (Fig. 7, 13)", "weights")


def _table_of(name: str, title: str) -> Plan:
    return lambda numbers: _beside(numbers, name), lambda rows: maps.difference_map(rows, "layer", "step", title)


def _by_examples_at(place: int, words: str) -> Plan:
    draw = curves("examples seen", "cosine", f"Induced weights, {words} (Fig. 10)", legend="and")
    return lambda model: _by_examples(model, place), draw


def _convergence_of(name: str, words: str) -> Plan:
    title = f"Convergence of {words}, by examples seen"
    return lambda model: _convergence(model, name), curves(
        "layer or step", "normalized error", title, log_y=True, legend="examples"
    )


PLACES = {"layer 2": 2, "layer 3": 3, "last layer": -1}
CONVERGE = {"the model": "the layers", "Newton": "Newton", "ConjugateGradients": "conjugate gradients"}
PLANS: dict[str, Plan] = {
    "newton": _map_of(NEWTON, "Newton (Fig. 3, 11)"),
    "descent": _map_of(GRADIENT_DESCENT, "gradient descent (Fig. 8, 12)"),
    "levels": (
        _levels,
        curves("layer", "similarity of errors", "Best similarity of each layer (Fig. 9)", legend="to"),
    ),
    "errors": (_errors, curves("examples seen", "normalized error", "Errors (Fig. 1)", log_y=True, legend="layer")),
    "descent-linear": _map_of(f"{GRADIENT_DESCENT}, linear grid", "gradient descent, linear grid (Fig. 3, 6)"),
    "newton-weights": _by_weights("Newton", "Newton"),
    "descent-weights": _by_weights("GradientDescent", "gradient descent"),
    **{f"by-examples-{words.replace(' ', '-')}": _by_examples_at(place, words) for words, place in PLACES.items()},
    **{f"convergence-{name.replace(' ', '-')}": _convergence_of(name, words) for name, words in CONVERGE.items()},
    "span": (_span, curves("examples seen", "share", "Weights outside the span (Fig. 16)", legend="of")),
    "forgetting": (_forgetting, curves("examples ago", "normalized error", "Forgetting (Fig. 5)", legend="by")),
    "patched": (_patching, curves("after layer", "share that survives", "A foreign answer, patched in after a layer")),
}
ACROSS: dict[str, Plan] = {
    "table-newton": _table_of("newton", "Ours minus published, ill-conditioned: Newton (Fig. 12)"),
    "table-descent": _table_of("gd", "Ours minus published, ill-conditioned: gradient descent (Fig. 12)"),
    "errors-compared": (
        _errors_compared,
        curves("examples seen", "normalized error", "Errors of the models (Fig. 5)", log_y=True, legend="of"),
    ),
}
CENTER = ("newton", "descent", "levels")

"""The figures and tables, from the numbers."""

import altair as alt

from algoscope.studies.claim import Numbers
from algoscope.studies.constructions.controls import SAME
from algoscope.studies.constructions.measures import FEW
from algoscope.studies.constructions.subjects import SUBJECTS
from algoscope.studies.plans import Plan, Rows, curves, drawn
from algoscope.studies.study import Table

SIZES_NOTE = (
    "Layers before, in and after the loop, each counted once, and how many the theorem allows in all (Theorem 1 says "
    "O(k): k + 8 is what we ask of it). Theorems 4.1 and 4.2 state one layer before and two after; x and y share "
    "coordinates here, so one more gathers, and one less is needed after. Heads are those of all layers, beside those "
    "of the layer for which most are stated: of the three of the series, its loop uses two."
)
CONTROLS_NOTE = (
    "Stages that hold a step: how often the instrument keeps it, how often it keeps no other from which it differs (by "
    f"more than a factor, and {SAME:g} of its square), how often it says that this step is all there is, how often "
    "that a mixture of steps explains more, which is wrong, and how often it is sure of another. And stages that hold "
    "none: at how many it names one. Shown are first steps: of 16 steps of Newton on these prompts those up to the "
    "tenth are named; later ones have nearly converged, and are kept with others. Of series and chains it is shown the "
    "network's own answers: their tokens also hold the latest values, which have a part in common with the next, and a "
    "probe of the whole makes use of both. All make one step a stage: beside that, what the rate law says."
)


def figures(numbers: Numbers) -> dict[str, alt.LayerChart]:
    """By name."""
    return drawn(numbers, EACH, ACROSS)


def _by_step(model: Numbers) -> Rows:
    for row in model.get("errors", ()):
        yield {"series": f"prompts of seed {row['seed']}", "x": row["step"], "y": max(row["error"], 1e-17)} | {
            end: max(row[end], 1e-17) for end in ("low", "high")
        }


def _over_c(numbers: Numbers) -> Rows:
    for name, seeds in numbers.items():
        rows = seeds["0"].get("grid", ())
        largest = max((row["C"] for row in rows), default=0.0)
        for row in rows:
            if row["C"] == largest:
                yield {"series": name, "x": row["c"], "y": row["error"]}


SMALL_ONE = f"{FEW.dim} dimensions, {FEW.steps} steps"
OVER_C = f"Smaller c, until rounding takes over ({SMALL_ONE})"
EACH: dict[str, Plan] = {
    "errors": (_by_step, curves("step or loop", "relative error", "Error of each step", log_y=True, legend="of")),
}
ACROSS: dict[str, Plan] = {
    "over-c": (_over_c, curves("c", "relative error", OVER_C, log_x=True, log_y=True, legend="of")),
}


def tables(numbers: Numbers) -> list[Table]:
    """Sizes beside what is stated, and what the instrument says."""
    measured = {name: seeds["0"] for name, seeds in numbers.items()}
    return [_sizes(measured), _controls(measured)]


def _sizes(measured: Numbers) -> Table:
    sources = {subject.name: subject.source for subject in SUBJECTS}
    columns = {part: part for part in ("steps", "before", "looped", "after", "layers", "stated", "heads")}
    columns = {"dim": "dimensions", **columns, "stated_heads": "heads stated", "width": "width"}
    rows = [
        (name, sources[name], *("" if found["size"][part] is None else found["size"][part] for part in columns))
        for name, found in measured.items()
    ]
    return Table("How large they are", SIZES_NOTE, ("model", "source", *columns.values()), rows)


def _controls(measured: Numbers) -> Table:
    parts = ("kept", "named", "computes", "denied", "wrong")
    rows = [
        (
            name,
            *(f"{found['named'][part]} of {found['named']['expected']}" for part in parts),
            f"{found['named']['alarms']} of {found['named']['empty']}",
            _law(found["law"]),
        )
        for name, found in measured.items()
        if "named" in found
    ]
    columns = ("model", "kept", "named", "computes", "“more”", "sure of another", "false alarms", "steps a stage")
    return Table("Does the instrument name them?", CONTROLS_NOTE, columns, rows)


def _law(law: Numbers) -> str:
    if law["growth"] is None:
        return str(law["law"])
    return f"{law['law']}, {law['growth']:.2f} ({law['low']:.2f} – {law['high']:.2f})"

"""The figures and tables, from the numbers."""

import altair as alt

from algoscope.report import charts
from algoscope.studies.constructions.controls import SAME
from algoscope.studies.constructions.measures import ANATOMY, FEW
from algoscope.studies.constructions.subjects import SUBJECTS
from algoscope.studies.plans import Plan, Rows, curves, drawn
from algoscope.studies.study import Numbers, Table

PARTS = ("before", "looped", "after", "layers")
SHOWN = "chains of thought"  # whose parts are told
SMALL_ONE = f"{FEW.dim} dimensions, {FEW.steps} steps"


SIZES_TOLD = (
    "Layers before, in and after the loop, each counted once, and how many the theorem allows in all (Theorem 1 says "
    "O(k): k + 8 is what we ask of it). Theorems 4.1 and 4.2 state one layer before and two after; x and y share "
    "coordinates here, so one more gathers, and one less is needed after. Heads are those of all layers: of the three "
    "of the series, its loop uses two."
)
CONTROLS_TOLD = (
    "Stages that hold a step: how often the instrument keeps it, how often it keeps no other from which it differs (by "
    f"more than a factor, and {SAME:g} of its square), and how often it is sure of another. And stages that hold none: "
    "at how many it names one. Of series and chains it is shown the network's own answers: their tokens also hold the "
    "latest values, which have a part in common with the next, and a read-out of the whole makes use of both."
)


def figures(numbers: Numbers) -> dict[str, alt.LayerChart]:
    """By name."""
    return drawn(numbers, EACH, ACROSS)


def _by_step(model: Numbers) -> Rows:
    for row in model["errors"]:
        yield {"series": f"prompts of seed {row['seed']}", "x": row["step"], "y": max(row["error"], 1e-17)} | {
            end: max(row[end], 1e-17) for end in ("low", "high")
        }


def _map(model: Numbers) -> Rows:
    for row in model.get("grid", ()):
        yield {"stage": f"{row['c']:.0e}", "step": row["C"], "error": row["error"]}


def _over_c(numbers: Numbers) -> Rows:
    for name, seeds in numbers.items():
        rows = seeds["0"].get("grid", ())
        largest = max((row["C"] for row in rows), default=0.0)
        for row in rows:
            if row["C"] == largest:
                yield {"series": name, "x": row["c"], "y": row["error"]}


def _over_large(numbers: Numbers) -> Rows:
    for name, seeds in numbers.items():
        rows = seeds["0"].get("grid", ())
        for row in rows:
            if row["c"] == 1e-5:
                yield {"series": name, "x": row["C"], "y": row["error"]}


EACH: dict[str, Plan] = {
    "errors": (_by_step, curves("step or loop", "relative error", "Error of each step", log_y=True, legend="of")),
    "grid": (_map, lambda rows: charts.log_map(rows, "c", "C", "relative error", f"Error over c and C ({SMALL_ONE})")),
}
ACROSS: dict[str, Plan] = {
    "over-c": (
        _over_c,
        curves(
            "c",
            "relative error",
            f"Smaller c, until rounding takes over ({SMALL_ONE})",
            log_x=True,
            log_y=True,
            legend="of",
        ),
    ),
    "over-large": (
        _over_large,
        curves("C", "relative error", f"Larger C (c = 1e-5, {SMALL_ONE})", log_y=True, legend="of"),
    ),
}


def tables(numbers: Numbers) -> list[Table]:
    """Sizes beside what is stated, controls, and the parts of one model."""
    measured = {name: seeds["0"] for name, seeds in numbers.items()}
    sources = {subject.name: subject.source for subject in SUBJECTS}
    sizes = [
        (
            name, sources[name],
            *(found["size"][part] for part in ("dim", "steps", *PARTS)),
            "" if found["size"]["stated"] is None else found["size"]["stated"], found["size"]["heads"],
            found["size"]["width"],
        )
        for name, found in measured.items()
    ]  # fmt: skip
    controls = [
        (
            name,
            *(f"{found['named'][part]} of {found['named']['expected']}" for part in ("kept", "named", "wrong")),
            f"{found['named']['alarms']} of {found['named']['empty']}",
        )
        for name, found in measured.items()
        if "named" in found
    ]
    columns = ("model", "source", "dimensions", "steps", *PARTS, "stated", "heads", "width")
    made = [Table("How large they are", SIZES_TOLD, columns, sizes)]
    columns = ("model", "kept", "named", "sure of another", "false alarms")
    made.append(Table("Does the instrument name them?", CONTROLS_TOLD, columns, controls))
    if SHOWN in measured:
        table = measured[SHOWN]["anatomy"]
        size = f"{ANATOMY.dim} dimensions, {ANATOMY.examples} examples"
        told = f"Read from the weights of a small one ({size}): what each part of it does, layer by layer."
        made.append(Table(f"The parts of a model: {SHOWN}", told, ("layer", "part", "what it does"), table["parts"]))
        told = "What its stream holds, where, and who writes it."
        made.append(Table("Its places", told, ("place", "coordinates", "holds", "written by"), table["places"]))
    return made

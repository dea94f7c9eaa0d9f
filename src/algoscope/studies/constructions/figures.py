"""The figures and tables, from the numbers."""

import altair as alt

from algoscope.report import charts
from algoscope.studies.claim import Numbers
from algoscope.studies.constructions.controls import SAME
from algoscope.studies.constructions.measures import ANATOMY, FEW
from algoscope.studies.constructions.subjects import SUBJECTS
from algoscope.studies.constructions.unlisted import NAME
from algoscope.studies.plans import Plan, Rows, curves, drawn
from algoscope.studies.study import Table

PARTS = ("before", "looped", "after", "layers")
SHOWN = "chains of thought"  # whose parts are told
SMALL_ONE = f"{FEW.dim} dimensions, {FEW.steps} steps"


SIZES_TOLD = (
    "Layers before, in and after the loop, each counted once, and how many the theorem allows in all (Theorem 1 says "
    "O(k): k + 8 is what we ask of it). Theorems 4.1 and 4.2 state one layer before and two after; x and y share "
    "coordinates here, so one more gathers, and one less is needed after. Heads are those of all layers, beside those "
    "of the layer for which most are stated: of the three of the series, its loop uses two."
)
CONTROLS_TOLD = (
    "Stages that hold a step: how often the instrument keeps it, how often it keeps no other from which it differs (by "
    f"more than a factor, and {SAME:g} of its square), how often it says that this step is all there is, how often "
    "that a mixture of steps explains more, which is wrong, and how often it is sure of another. And stages that hold "
    "none: at how many it names one. Shown are first steps: of 16 steps of Newton on these prompts those up to the "
    "tenth are named; later ones have nearly converged, and are kept with others. Of series and chains it is shown the "
    "network's own answers: their tokens also hold the latest values, which have a part in common with the next, and a "
    "read-out of the whole makes use of both. All make one step a stage: beside that, what the rate law says."
)
UNLISTED_TOLD = (
    "Networks that run what the instrument does not know. It may say what is closest, but should be sure of it only "
    "where that is right: first steps are multiples of listed ones."
)


def figures(numbers: Numbers) -> dict[str, alt.LayerChart]:
    """By name."""
    return drawn(numbers, EACH, ACROSS)


def _by_step(model: Numbers) -> Rows:
    for row in model.get("errors", ()):
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
    made = [_sizes(measured), *_controls(measured)]
    if SHOWN in measured:
        table = measured[SHOWN]["anatomy"]
        size = f"{ANATOMY.dim} dimensions, {ANATOMY.examples} examples"
        told = f"Read from the weights of a small one ({size}): what each part of it does, layer by layer."
        made.append(Table(f"The parts of a model: {SHOWN}", told, ("layer", "part", "what it does"), table["parts"]))
        told = "What its stream holds, where, and who writes it."
        made.append(Table("Its places", told, ("place", "coordinates", "holds", "written by"), table["places"]))
    return made


def _sizes(measured: Numbers) -> Table:
    sources = {subject.name: subject.source for subject in SUBJECTS}
    parts = ("dim", "steps", *PARTS, "stated", "heads", "stated_heads", "width")
    rows = [
        (name, sources[name], *("" if found["size"][part] is None else found["size"][part] for part in parts))
        for name, found in measured.items()
        if "size" in found
    ]
    columns = ("model", "source", "dimensions", "steps", *PARTS, "stated", "heads", "heads stated", "width")
    return Table("How large they are", SIZES_TOLD, columns, rows)


def _controls(measured: Numbers) -> list[Table]:
    """Those whose steps are listed, and those whose steps are not."""
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
    made = [Table("Does the instrument name them?", CONTROLS_TOLD, columns, rows)]
    rows = [
        (row["network"], row["stage"], row["words"], "yes" if row["certain"] else "no", "yes" if row["same"] else "no")
        for row in measured.get(NAME, {}).get("unlisted", ())
    ]
    columns = ("network", "stage", "closest", "sure of it", "a multiple of it")
    return [*made, Table("And what is not on its list?", UNLISTED_TOLD, columns, rows)] if rows else made


def _law(law: Numbers) -> str:
    if law["growth"] is None:
        return str(law["law"])
    return f"{law['law']}, {law['growth']:.2f} ({law['low']:.2f} – {law['high']:.2f})"

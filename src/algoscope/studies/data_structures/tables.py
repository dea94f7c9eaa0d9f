"""The tables of the page: what each model is called, the controls, and our numbers beside the published ones."""

from collections.abc import Sequence
from typing import Any

from algoscope.studies.claim import Numbers, Value
from algoscope.studies.data_structures.findings import error, row_of, sorted_share
from algoscope.studies.data_structures.published import Number
from algoscope.studies.data_structures.published import numbers as published
from algoscope.studies.data_structures.references import MODEL, table
from algoscope.studies.data_structures.trainings import BIASED, FOUR, LONGEST, OURS, TOKENS
from algoscope.studies.study import Table, labeled

OTHER_FORMS = (BIASED, TOKENS, FOUR, LONGEST.removeprefix(f"{OURS}, "))  # which stand beside a published number, too


def tables(numbers: Numbers) -> Sequence[Table]:
    made = [make(numbers) for make in (_names, _beside)]
    return [each for each in made if each.rows]


def _names(numbers: Numbers) -> Table:
    """What the instrument calls every model."""
    rows = []
    for label, model in labeled(numbers).items():
        if "called" in model:
            found = table(model, "agreement", search=model["closest"])
            shares = [" ".join(f"{row[part]:.2f}" for row in found) for part in ("value", "mistakes", "wrong")]
            rows.append([label, model["called"] or "no known search", model["closest"], *shares])
    return Table(
        "Which search is it?",
        "Equal reads are shares of those before the answer is found. A model is called by the name of a search if that "
        "alone is closest to its wrong reads at every look-up but the last, and equals more than half of them: right "
        "reads do not tell searches apart. Look-ups with less than 5% of wrong reads are left out.",
        ("model", "called", "closest", "equal reads, look-up by look-up", "equal wrong reads", "wrong reads"),
        rows,
    )


def _beside(numbers: Numbers) -> Table:
    """Published numbers whose run was carried out, of whatever size it was here, and beside it other forms of it."""
    rows = []
    for number in published():
        for run in (number.run, *(f"{number.run}, {form}" for form in OTHER_FORMS)):
            found = [_ours(number, model) for model in numbers.get(run, {}).values()]
            ours = ", ".join(f"{each.value:.3f} ({each.low:.3f} – {each.high:.3f})" for each in found if each)
            if ours:
                rows.append([run, number.method, number.quantity, number.value, ours, number.where])
    return Table(
        "Beside the published numbers",
        "The sizes are the paper's only at paper scale. Ours are those of each seed, after the last look-up. ITQ and "
        "cells of equal ranges are ours to define where the paper does not, and differ from the published ones.",
        ("run", "method", "what", "published", "ours", "where"),
        rows,
    )


def _ours(number: Number, model: dict[str, Any] | Any) -> Value | None:
    what = MODEL if number.method == "model" else number.method
    find = {"in place": sorted_share(what), "error": error(what), "found": row_of("found", {"what": what})}
    return find[number.quantity](model)

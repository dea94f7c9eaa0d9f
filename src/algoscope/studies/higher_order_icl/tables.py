"""The table of the page: Table 1 of the paper beside ours."""

from collections.abc import Sequence

from algoscope.studies.claim import Numbers
from algoscope.studies.higher_order_icl.findings import LSTM, MAIN, ONLINE, cell
from algoscope.studies.higher_order_icl.measures import DESCENT, NEWTON
from algoscope.studies.study import Table

PAPER = {MAIN: (0.991, 0.957, 0.806), LSTM: (0.920, 0.916, 0.954)}


def tables(numbers: Numbers) -> Sequence[Table]:
    rows = []
    for run, theirs in PAPER.items():
        for seed, model in numbers.get(run, {}).items():
            rows.append(
                [f"{run}, seed {seed}", *(f"{cell(model, name).value:.3f}" for name in (NEWTON, DESCENT, ONLINE))]
            )
        if run in numbers:
            rows.append([f"{run}, paper", *(f"{value:.3f}" for value in theirs)])
    note = "Similarity of errors of the last layer at the best step of each method, as published."
    columns = ("model", "Newton", "gradient descent", "online gradient descent")
    return [Table("Like Newton, or like online descent? (Table 1)", note, columns, rows)] if rows else []

"""The table of the page: Table 1 of the paper beside ours, and the same of every other model."""

from collections.abc import Sequence

from algoscope.studies.claim import Numbers
from algoscope.studies.higher_order_icl.findings import LSTM, MAIN, ONLINE, cell
from algoscope.studies.higher_order_icl.measures import GRADIENT_DESCENT, NEWTON
from algoscope.studies.study import Table, labeled

METHODS = (NEWTON, GRADIENT_DESCENT, ONLINE, "least squares")
PAPER = {MAIN: (0.991, 0.957, 0.806), LSTM: (0.920, 0.916, 0.954)}


def tables(numbers: Numbers) -> Sequence[Table]:
    rows = [
        [label, *(f"{cell(model, name).value:.3f}" for name in METHODS)] for label, model in labeled(numbers).items()
    ]
    rows += [[f"{run}, paper", *(f"{value:.3f}" for value in theirs), ""] for run, theirs in PAPER.items()]
    note = "Similarity of errors of the last layer at the best step of each method, as published."
    return [Table("Like Newton, or like online descent? (Table 1)", note, ("model", *METHODS), rows)]

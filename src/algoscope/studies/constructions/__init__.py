"""Transformers written by hand: the constructions of both papers, measured against their theorems.

subjects.py says what each should run, measures.py what is measured, claims.py what the theorems say, figures.py what is
drawn.
"""

import functools

from algoscope.studies.constructions.claims import CLAIMS
from algoscope.studies.constructions.figures import figures, tables
from algoscope.studies.constructions.measures import SIZES, measure
from algoscope.studies.constructions.subjects import SUBJECTS
from algoscope.studies.study import Case, Section, Study

CASES = tuple(Case(subject.name, functools.partial(measure, subject)) for subject in SUBJECTS)
FEW = ("Newton", "Chebyshev", "gradient descent", "Newton, looped")  # of each kind one, to check the way
STUDY = Study(
    name="constructions",
    version=5,
    about="Theorems say that transformers can run algorithms, and prove it by weights that no one ships. Here they "
    "are: networks of the same classes as those that are trained, compared step by step with the algorithms, with the "
    "sizes that were stated, and shown to the instrument, which should name them.",
    runs=dict.fromkeys(SIZES, CASES) | {"smoke": tuple(case for case in CASES if case.name in FEW)},
    claims=CLAIMS,
    figures=figures,
    centerpiece=Section(
        "How exact they are",
        "Constructions without a softmax are exact up to rounding. Those with one take differences of exponentials, so "
        "that the error falls with the square of a small number c, until rounding takes over.",
        ("errors", "over-c"),
    ),
    tables=tables,
    chosen=lambda model: "errors" in model,
)

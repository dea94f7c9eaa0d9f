"""Changes of prompts whose effect on the answer is known, and by how much a procedure breaks these laws.

    defect = relative_defect(lambda prompts: algorithm.trace(prompts).values, AddTargets(), prompts)

is zero for all methods that are linear in the targets, and 0.15 for conjugate gradients.
"""

from algoscope.contracts import Change, Symmetry
from algoscope.symmetries.defects import changed, defects, relative_defect
from algoscope.symmetries.graphs import RedrawOutsideComponent, RelabelNodes
from algoscope.symmetries.regression import (
    AddQueries,
    AddTargets,
    FlipExamples,
    MixExamples,
    PermuteExamples,
    RotateInputs,
    ScaleInputs,
)
from algoscope.symmetries.search import FreshValues
from algoscope.symmetries.separating import ExchangeSpectrum

__all__ = [
    "AddQueries",
    "AddTargets",
    "Change",
    "ExchangeSpectrum",
    "FlipExamples",
    "FreshValues",
    "MixExamples",
    "PermuteExamples",
    "RedrawOutsideComponent",
    "RelabelNodes",
    "RotateInputs",
    "ScaleInputs",
    "Symmetry",
    "changed",
    "defects",
    "relative_defect",
]

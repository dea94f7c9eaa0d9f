"""What tasks, algorithms, models, readers, measures and symmetries provide: rooms depend on these alone."""

from algoscope.contracts.algorithm import Algorithm, Memory
from algoscope.contracts.measure import Measure, Scale
from algoscope.contracts.model import NO_EDITS, Edits, Model, Network, Place, TrainingNeeds
from algoscope.contracts.symmetry import Answers, Change, Symmetry
from algoscope.contracts.task import FirstOf, Reader, Reading, Show, States, Task, View

__all__ = [
    "NO_EDITS",
    "Algorithm",
    "Answers",
    "Change",
    "Edits",
    "FirstOf",
    "Measure",
    "Memory",
    "Model",
    "Network",
    "Place",
    "Reader",
    "Reading",
    "Scale",
    "Show",
    "States",
    "Symmetry",
    "Task",
    "TrainingNeeds",
    "View",
]

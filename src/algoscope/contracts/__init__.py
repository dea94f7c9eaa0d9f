"""What a task, an algorithm, a model, a reader and a measure provide: rooms depend on these, not on each other."""

from algoscope.contracts.algorithm import Algorithm, Memory
from algoscope.contracts.measure import Measure, Scale
from algoscope.contracts.model import NO_EDITS, Edits, Model, Network, Place, TrainingNeeds
from algoscope.contracts.task import FirstOf, Reader, Reading, Show, States, Task

__all__ = [
    "NO_EDITS",
    "Algorithm",
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
    "Task",
    "TrainingNeeds",
]

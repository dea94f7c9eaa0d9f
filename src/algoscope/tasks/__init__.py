"""What has to be solved: distributions of prompts. One file a family."""

from algoscope.tasks.graphs import Connectivity
from algoscope.tasks.regression import LinearRegression
from algoscope.tasks.representation import AutoregressiveRepresentation, RepresentationRegression
from algoscope.tasks.task import Task
from algoscope.tasks.thought import ChainOfThought

__all__ = [
    "AutoregressiveRepresentation",
    "ChainOfThought",
    "Connectivity",
    "LinearRegression",
    "RepresentationRegression",
    "Task",
]

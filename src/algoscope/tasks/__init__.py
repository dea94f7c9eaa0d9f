"""What has to be solved: distributions of prompts. One file a family."""

from algoscope.contracts import Task
from algoscope.tasks.graphs import Connectivity
from algoscope.tasks.regression import LinearRegression
from algoscope.tasks.representation import AutoregressiveRepresentation, RepresentationRegression
from algoscope.tasks.search import HardSearch, UniformSearch, ZipfSearch
from algoscope.tasks.spaces import NumberSearch, SphereSearch, VectorSearch
from algoscope.tasks.streams import NumberStream, ZipfStream
from algoscope.tasks.thought import ChainOfThought

__all__ = [
    "AutoregressiveRepresentation",
    "ChainOfThought",
    "Connectivity",
    "HardSearch",
    "LinearRegression",
    "NumberSearch",
    "NumberStream",
    "RepresentationRegression",
    "SphereSearch",
    "Task",
    "UniformSearch",
    "VectorSearch",
    "ZipfSearch",
    "ZipfStream",
]

"""What has to be solved: distributions of prompts. One file a family."""

from algoscope.tasks.regression import LinearRegression
from algoscope.tasks.search import HardSearch, SphereSearch, UniformSearch, VectorSearch, ZipfSearch
from algoscope.tasks.streams import ZipfStream
from algoscope.tasks.task import Task

__all__ = [
    "HardSearch",
    "LinearRegression",
    "SphereSearch",
    "Task",
    "UniformSearch",
    "VectorSearch",
    "ZipfSearch",
    "ZipfStream",
]

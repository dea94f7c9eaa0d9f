"""What has to be solved: distributions of prompts. One file a family."""

from algoscope.tasks.graphs import Connectivity
from algoscope.tasks.regression import LinearRegression
from algoscope.tasks.task import Task

__all__ = ["Connectivity", "LinearRegression", "Task"]

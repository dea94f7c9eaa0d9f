"""algoscope finds out which algorithm a transformer has learned.

The public names load on first use, so that `algoscope --help` need not wait for torch.
"""

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from algoscope import algorithms, constructions, controls, matching, models, reading, tasks, training
    from algoscope.contracts import Algorithm, Task
    from algoscope.instrument import identify
    from algoscope.matching import compare
    from algoscope.reading import predict, probe
    from algoscope.trace import Prompts, Trace
    from algoscope.training import load, train

_HOME = {
    "Algorithm": "contracts",
    "Prompts": "trace",
    "Task": "contracts",
    "Trace": "trace",
    "compare": "matching",
    "identify": "instrument",
    "load": "training",
    "predict": "reading",
    "probe": "reading",
    "train": "training",
}  # where a public name that is not a room lives

__all__ = [
    "Algorithm",
    "Prompts",
    "Task",
    "Trace",
    "algorithms",
    "compare",
    "constructions",
    "controls",
    "identify",
    "load",
    "matching",
    "models",
    "predict",
    "probe",
    "reading",
    "tasks",
    "train",
    "training",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"algoscope has no attribute {name!r}; it has {', '.join(__all__)}")
    if name in _HOME:
        return getattr(importlib.import_module(f"algoscope.{_HOME[name]}"), name)
    return importlib.import_module(f"algoscope.{name}")


def __dir__() -> list[str]:
    return sorted(__all__)

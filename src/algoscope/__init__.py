"""algoscope finds out which algorithm a transformer has learned.

The public names load on first use, so that `algoscope --help` need not wait for torch.
"""

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from algoscope import (
        algorithms,
        constructions,
        controls,
        matching,
        models,
        reading,
        symmetries,
        tasks,
        testing,
        training,
    )
    from algoscope.contracts import Algorithm, Measure, Reader, Symmetry, Task
    from algoscope.instrument import identify
    from algoscope.matching import compare
    from algoscope.reading import induced_weights, logit_lens, patch, predict, probe, wrap
    from algoscope.trace import Prompts, Trace
    from algoscope.training import load, train

_HOME = {
    "Algorithm": "contracts",
    "Measure": "contracts",
    "Prompts": "trace",
    "Reader": "contracts",
    "Symmetry": "contracts",
    "Task": "contracts",
    "Trace": "trace",
    "compare": "matching",
    "identify": "instrument",
    "induced_weights": "reading",
    "load": "training",
    "logit_lens": "reading",
    "patch": "reading",
    "predict": "reading",
    "probe": "reading",
    "train": "training",
    "wrap": "reading",
}  # where a public name that is not a room lives

__all__ = [
    "Algorithm",
    "Measure",
    "Prompts",
    "Reader",
    "Symmetry",
    "Task",
    "Trace",
    "algorithms",
    "compare",
    "constructions",
    "controls",
    "identify",
    "induced_weights",
    "load",
    "logit_lens",
    "matching",
    "models",
    "patch",
    "predict",
    "probe",
    "reading",
    "symmetries",
    "tasks",
    "testing",
    "train",
    "training",
    "wrap",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"algoscope has no attribute {name!r}; it has {', '.join(__all__)}")
    if name in _HOME:
        return getattr(importlib.import_module(f"algoscope.{_HOME[name]}"), name)
    return importlib.import_module(f"algoscope.{name}")


def __dir__() -> list[str]:
    return sorted(__all__)

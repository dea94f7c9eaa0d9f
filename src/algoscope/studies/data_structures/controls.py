"""Controls: networks whose look-ups are known must be called by their name, and fresh ones by none.

Binary search is written into the weights of an index, so that it is read by the very code that reads trained ones.
"""

from typing import Any

from algoscope.constructions import binary_search
from algoscope.models import Index
from algoscope.randomness import stream
from algoscope.studies.data_structures.measures import called_after, measure_search, sampled
from algoscope.studies.data_structures.references import BINARY
from algoscope.studies.study import Case
from algoscope.tasks import HardSearch, UniformSearch

CONTROL = "planted binary search"
FRESH = 5  # untrained networks


def planted_case(points: int) -> Case:
    """With as many look-ups as binary search needs."""
    return Case(CONTROL, lambda scale: controls(points, scale))


def controls(points: int, scale: str) -> dict[str, Any]:
    """What the planted search is called on each distribution, and what fresh networks are; and all that is measured of
    a trained model for the first.
    """
    lookups, rows = points.bit_length(), []
    fresh = Index(lookups, layers=2, width=32, hidden=64)
    tasks = {"uniform": UniformSearch(points, queries=16), "hard": HardSearch(points, queries=16)}
    for name, task in tasks.items():
        prompts = sampled(task, scale)
        written = binary_search(task, lookups)
        rows.append(
            {"what": f"binary search on {name} points", "expected": BINARY, **called_after(written, task, prompts)}
        )
        for seed in range(FRESH):
            network = fresh.build(task.inputs, task.outputs, task.length, stream("controls", seed))
            rows.append({"what": f"fresh, {name} points", "expected": None, **called_after(network, task, prompts)})
    network = binary_search(tasks["uniform"], lookups)
    return {"controls": rows, **measure_search(tasks["uniform"], network, None, scale)}

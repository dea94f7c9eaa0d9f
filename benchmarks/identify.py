"""How long it takes to identify the included model, and the next model of its task: part by part.

python -m benchmarks.identify          writes results/benchmarks/identify.json

Seconds depend on the machine. So each part is also given in units of one pass of the model over as many prompts as the
comparison has, which is the least that any method must do.
"""

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch

import algoscope as ag
from algoscope import runs
from algoscope.instrument import Instrument

OUT = Path("results/benchmarks/identify.json")
PROMPTS = 1000
T = TypeVar("T")


def timed(part: Callable[[], T]) -> tuple[T, float]:
    begin = time.perf_counter()
    return part(), time.perf_counter() - begin


def main() -> None:
    task, model = ag.tasks.LinearRegression(dim=20, examples=40), ag.load("icl-linear-regression")
    prompts, seconds = task.sample(PROMPTS, seed=0), dict[str, float]()
    ag.predict(model, task, task.sample(100, seed=1))
    _, one_pass = timed(lambda: ag.predict(model, task, prompts))
    found, seconds["algorithms"] = timed(lambda: Instrument(task, prompts=PROMPTS, fit_on=PROMPTS))
    _, seconds["changed prompts"] = timed(lambda: (found.experiments, found.separating))
    verdict, seconds["model"] = timed(lambda: found.identify(model))
    with tempfile.TemporaryDirectory() as folder:
        _, seconds["words and page"] = timed(lambda: verdict.save(Path(folder) / "report.html"))
    _, again = timed(lambda: found.identify(model))
    whole = {"first model": sum(seconds.values()), "next model": again + seconds["words and page"]}
    record = {
        "provenance": runs.provenance(next(model.parameters()).device),
        "cores": torch.get_num_threads(),
        "prompts": PROMPTS,
        "seconds": {name: round(value, 1) for name, value in (seconds | whole).items()},
        "in_passes_of_the_model": {name: round(value / one_pass, 1) for name, value in (seconds | whole).items()},
    }
    OUT.write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()

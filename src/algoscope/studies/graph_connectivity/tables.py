"""The table of the page: what was trained, for how long, and on how many graphs."""

from collections.abc import Sequence

from algoscope.studies.claim import Numbers
from algoscope.studies.graph_connectivity.plan import RUNS
from algoscope.studies.study import Table, Training

SETTINGS = {(run.name, run.settings.steps): run for runs in RUNS.values() for run in runs if isinstance(run, Training)}


def tables(numbers: Numbers) -> Sequence[Table]:
    rows = []
    for name, seeds in numbers.items():
        model = next(iter(seeds.values()))
        run = SETTINGS.get((name, model.get("steps", 0)))
        if run is not None:
            settings, fresh = run.settings, getattr(run.task, "collection", None) is None
            seen = f"{settings.steps * settings.batch:.2g}" if fresh else f"the same {settings.batch:,}"
            rate = f"{settings.optimizer}, {run.learning_rate:g}"
            seconds = sum(each["seconds"]["training"] for each in seeds.values())
            rows.append([name, len(seeds), f"{settings.steps:,}", f"{settings.batch:,}", seen, rate, f"{seconds:.0f}"])
    columns = ("models", "seeds", "steps", "graphs a step", "graphs seen", "optimizer and rate", "seconds")
    note = "Seconds are of all seeds together, on a machine that trained other models at the same time."
    return [Table("What was trained", note, columns, rows)] if rows else []

"""algoscope studies: imports nothing heavy, since this is what one types first."""

import os
from pathlib import Path

from algoscope.studies import SCALES, broken, catalog

RESULTS = Path(__file__).parents[3] / "results"  # of the repository


def run(arguments: list[str]) -> None:
    """Lists the papers that can be reproduced, how long each takes, and what is here."""
    if arguments in (["-h"], ["--help"]):
        print(f"usage: algoscope studies\n\n{run.__doc__}")
        return
    if arguments:
        raise ValueError(f"algoscope studies takes no arguments, got {' '.join(arguments)}")
    for name, entry in catalog().items():
        times = ", ".join(f"{scale} {time}" for scale, time in zip(SCALES, entry.takes, strict=True))
        done = [scale for scale in SCALES if (Path("studies") / name / scale / "results.json").exists()]
        print(f"{name}\n  {entry.title}\n  {entry.source}\n  takes: {times}")
        print(f"  done here: {', '.join(done) or 'nothing yet'}; run: algoscope study {name} --scale laptop")
        if (RESULTS / name / "results.json.gz").exists():
            print(f"  measured at paper scale: algoscope report {Path(os.path.relpath(RESULTS)) / name}")
    for line in broken():
        print(line)

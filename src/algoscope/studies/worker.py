"""One run of a study, in a process of its own.

python -m algoscope.studies.worker STUDY SCALE FOLDER DEVICE RUN PLUGINS
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from algoscope import registry, stopping

PATIENCE = 15.0  # seconds that a run is given to write its checkpoint


def main(given: Sequence[str]) -> None:
    """It stops when the process that started it closes the pipe between them, or is gone."""
    stopping.exit_on_signal()
    stopping.end_with_parent(PATIENCE)
    import torch

    from algoscope.studies import study

    name, scale, folder, device, run, *plugins = given
    with stopping.unwinding():
        for plugin in plugins:
            registry.plug(plugin)
        study.train_and_measure(study.find(name), scale, Path(folder), torch.device(device), [run])


if __name__ == "__main__":
    main(sys.argv[1:])

"""The engine on a GPU: an interrupted run ends with the same bits, and every task can be recorded (needs a GPU)."""

import tempfile
from pathlib import Path

import torch

from algoscope import runs
from algoscope.models import Transformer
from algoscope.tasks import LinearRegression
from algoscope.training import Curriculum, Member, Settings, train_population


def main() -> None:
    model = Transformer(layers=2, heads=2, width=32)
    for covariance in ("isotropic", "ill-conditioned"):
        task = LinearRegression(dim=8, examples=12, covariance=covariance, noise=0.1)
        members = [Member(task, seed, 1e-3) for seed in range(3)]
        settings = Settings(
            steps=400, batch=16, warmup=50, log_every=50, checkpoint_every=100, precision="bf16",
            curriculum=Curriculum(3, 5, 40),
        )  # fmt: skip

        def stop_at_250(records: list[dict[str, float]]) -> None:
            if records[0]["step"] == 250:
                raise KeyboardInterrupt

        with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as halves:
            straight = train_population(model, members, settings, whole)
            try:
                train_population(model, members, settings, halves, progress=stop_at_250)
            except KeyboardInterrupt:
                print("interrupted", flush=True)
            resumed = train_population(model, members, settings, halves)
            names = ("metrics", "model", "state")
            pairs = [(getattr(runs.Folder(straight.path), n), getattr(runs.Folder(resumed.path), n)) for n in names]
            same = {a.name: Path(a).read_bytes() == Path(b).read_bytes() for a, b in pairs}
            alone = train_population(model, members[1:2], settings, whole)
            print(covariance, same, straight.final[1], alone.final[0], torch.__version__, flush=True)


if __name__ == "__main__":
    main()

"""Two sizes of one experiment: the one of the papers, and one that a laptop trains in two minutes."""

from dataclasses import dataclass

from algoscope.models import Transformer
from algoscope.tasks import LinearRegression
from algoscope.training.settings import Curriculum, Settings


@dataclass(frozen=True)
class Preset:
    task: LinearRegression
    model: Transformer
    settings: Settings
    learning_rate: float = 1e-3


PAPER = Preset(
    LinearRegression(dim=20, examples=40),
    Transformer(layers=12, heads=8, width=256),
    Settings(steps=22_000),  # an error of 2e-4 at t = 40
)
LAPTOP = Preset(
    LinearRegression(dim=5, examples=20),
    Transformer(layers=6, heads=4, width=32),
    Settings(
        steps=1500, warmup=100, curriculum=Curriculum(dims=1, points=11, interval=100)
    ),  # an error of 0.01 at t = 20
    learning_rate=1e-2,
)

"""One readable loop that trains many small models side by side."""

from algoscope.training.load import Configuration, load, load_member
from algoscope.training.loop import Diverged, Run, train, train_population
from algoscope.training.presets import LAPTOP, PAPER, Preset
from algoscope.training.settings import Curriculum, Member, Settings

__all__ = [
    "LAPTOP",
    "PAPER",
    "Configuration",
    "Curriculum",
    "Diverged",
    "Member",
    "Preset",
    "Run",
    "Settings",
    "load",
    "load_member",
    "train",
    "train_population",
]

"""One readable loop that trains many small models side by side."""

from algoscope.training.loop import Diverged, Run, train, train_population
from algoscope.training.settings import Curriculum, Member, Settings

__all__ = ["Curriculum", "Diverged", "Member", "Run", "Settings", "train", "train_population"]

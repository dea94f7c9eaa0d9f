"""What learns: networks over token vectors. Tasks decide how prompts become tokens and where predictions are read."""

from algoscope.contracts import Model, Network
from algoscope.models.algoformer import AlgoFormer, Looped
from algoscope.models.disentangled import Disentangled
from algoscope.models.index import Index
from algoscope.models.recurrent import Recurrent
from algoscope.models.sketch import LearnedSketch
from algoscope.models.transformer import Transformer

__all__ = [
    "AlgoFormer",
    "Disentangled",
    "Index",
    "LearnedSketch",
    "Looped",
    "Model",
    "Network",
    "Recurrent",
    "Transformer",
]

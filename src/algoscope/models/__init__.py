"""What learns: networks over token vectors. Tasks decide how prompts become tokens and where predictions are read."""

from algoscope.models.network import Model, Network
from algoscope.models.recurrent import Recurrent
from algoscope.models.transformer import Transformer

__all__ = ["Model", "Network", "Recurrent", "Transformer"]

"""Models whose answer is known: planted on the list of algorithms or off it, nulls, and networks written by hand.

The instrument's word counts only as far as it is right about these. `score` measures that, for `identify` or for any
other method; `algoscope controls` runs it all.
"""

from algoscope.controls.catalog import controls_of
from algoscope.controls.control import Control
from algoscope.controls.planted import Planted
from algoscope.controls.scoring import Answer, score
from algoscope.controls.variants import Coin, DecayingRate, FixedMomentum, GaussSeidel, Mixed, PrincipalComponents

__all__ = [
    "Answer",
    "Coin",
    "Control",
    "DecayingRate",
    "FixedMomentum",
    "GaussSeidel",
    "Mixed",
    "Planted",
    "PrincipalComponents",
    "controls_of",
    "score",
]

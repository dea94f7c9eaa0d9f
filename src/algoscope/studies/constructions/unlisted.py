"""Networks that run what is not on the instrument's list: it may find the closest steps, but be sure of none.

First steps are multiples of listed ones, which a read-out cannot tell apart: only there it may be sure.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from algoscope import constructions
from algoscope.instrument import Instrument
from algoscope.models.transformer import TransformerNetwork
from algoscope.studies.constructions.controls import ALPHA, DIM, EXAMPLES, LISTED, LOOPS, PLAIN, RATE, STEPS, alike
from algoscope.studies.constructions.subjects import chebyshev_terms

NAME = "not on the list"


@dataclass(frozen=True)
class Unlisted:
    """A network, and its stages that hold steps."""

    build: Callable[[], TransformerNetwork]
    stages: Sequence[str]


def _slow() -> TransformerNetwork:
    step = constructions.Term(keep=1.0, apply=-RATE / 2, start=RATE / 2)
    return constructions.recursion(DIM, EXAMPLES, 0.0, [step] * STEPS)


def _chebyshev() -> TransformerNetwork:
    return constructions.recursion(DIM, EXAMPLES, 0.0, chebyshev_terms(1.0, 1 / RATE, STEPS))


LAYERS = [f"layer {k + 2}" for k in range(1, STEPS + 1)]
UNLISTED = {
    "Chebyshev": Unlisted(_chebyshev, LAYERS),
    "gradient descent at half the rate": Unlisted(_slow, LAYERS),
    "ridge-regularized gradient descent": Unlisted(
        lambda: constructions.gradient_descent(DIM, EXAMPLES, STEPS, RATE, ridge=20.0), tuple(LOOPS)
    ),
    "Newton from another start": Unlisted(
        lambda: constructions.newton(DIM, EXAMPLES, STEPS, 1.5 * ALPHA), [f"layer {k + 3}" for k in range(STEPS + 1)]
    ),
}


@torch.no_grad()
def unlisted(compared: int, fitted: int, seed: int = 0, networks: Mapping[str, Unlisted] = UNLISTED) -> dict[str, Any]:
    """Stage by stage: what is kept, whether it is sure, and which listed steps coincide with the network's answer."""
    instrument = Instrument(PLAIN, LISTED, compared, fitted, seed, PLAIN.positions - 1, others=())
    tokens, rows = PLAIN.encode(instrument.sample.x, instrument.sample.y), []
    for name, case in networks.items():
        network = case.build()
        states = network.run(tokens, list(case.stages))[1]
        for found in instrument.identify(network, stages=tuple(case.stages), weights=False).stages:
            answers = PLAIN.read(network.read_out(states[str(found.stage)]))[:, -1]
            allowed = alike(instrument, answers)
            wrong = found.certain and not set(found.agreed) <= allowed
            said = {"words": found.words, "certain": found.certain, "same": bool(allowed), "wrong": wrong}
            rows.append({"network": name, "stage": str(found.stage), **said})
    return {"unlisted": rows}

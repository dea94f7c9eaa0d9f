"""What all methods of first order are made of."""

from dataclasses import dataclass

import torch

from algoscope import arguments
from algoscope.algorithms.least_squares import LeastSquares, keeps_as_moments
from algoscope.contracts import Algorithm, Symmetry
from algoscope.symmetries import AddTargets, ExchangeSpectrum, RotateInputs, ScaleInputs
from algoscope.trace import Prompts, Trace


@dataclass(frozen=True)
class Krylov(Algorithm):
    """w_j = (S/t)ʲ Xᵀy/t: no method, but k steps of gradient descent, momentum or conjugate gradients mix the first k.

    Krylov 1931. Mixtures of steps hold them too, so that a stage which mixes them in a way of its own is not taken for
    a step that is near.
    """

    steps: arguments.Steps

    def __post_init__(self) -> None:
        arguments.steps(self.steps)

    def keeps(self, symmetry: Symmetry) -> bool | None:
        match symmetry:
            case AddTargets() | RotateInputs() | ExchangeSpectrum():
                return True
            case ScaleInputs():
                return False
        return keeps_as_moments(symmetry)

    def trace(self, prompts: Prompts) -> Trace:
        problem, stages = LeastSquares.of(prompts), arguments.steps_to_keep(self.steps)
        seen = torch.arange(prompts.positions, device=prompts.x.device).clamp(min=1)[:, None]
        scaled = problem.eigenvalues / seen
        iterates = (scaled[..., None] ** (k + 1) * problem.solution for k in stages)
        return problem.trace(self.name, stages, iterates)

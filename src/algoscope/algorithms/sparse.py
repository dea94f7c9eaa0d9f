"""Methods for weights most of which are zero."""

from dataclasses import dataclass

import torch

from algoscope import arguments
from algoscope.algorithms.least_squares import SOLVED, LeastSquares, keeps_as_moments, weights_trace
from algoscope.contracts import Algorithm, Symmetry
from algoscope.symmetries import AddTargets, ExchangeSpectrum, RotateInputs, ScaleInputs
from algoscope.trace import Prompts, Trace


@dataclass(frozen=True)
class Lasso(Algorithm):
    """w ← shrink(w − η(Sw − Xᵀy), ηρ), shrink(a, b) = sign(a) max(|a| − b, 0), from w = 0 at the rate η = 1/λ_max.

    ISTA: iterative soft thresholding (Daubechies, Defrise and De Mol 2004) for the LASSO (Tibshirani 1996), the w with
    the least ½‖Xw − y‖² + ρ‖w‖₁. `penalty` is ρ. As the ridge, it does not grow with the number of examples: the alpha
    of scikit-learn is ρ/t. It treats the coordinates of w one by one, so it depends on the axes of x. At ρ = 0 it is
    gradient descent at the rate "safe".
    """

    aliases = ("ista",)

    steps: arguments.Steps
    penalty: float = 0.1

    def __post_init__(self) -> None:
        arguments.steps(self.steps)
        arguments.number("penalty", self.penalty)

    def keeps(self, symmetry: Symmetry) -> bool | None:
        match symmetry:
            case AddTargets() | RotateInputs() | ScaleInputs():
                return not self.penalty
            case ExchangeSpectrum():
                return False
        return keeps_as_moments(symmetry)

    def trace(self, prompts: Prompts) -> Trace:
        x, y, stages = prompts.x.double(), prompts.target_columns.double(), arguments.steps_to_keep(self.steps)
        pairs = x[:, :-1, :, None] * torch.cat([x, y], dim=2)[:, :-1, None]
        sums = torch.nn.functional.pad(pairs.cumsum(1), (0, 0, 0, 0, 1, 0))  # at t, those of the examples before it
        largest = LeastSquares.of(prompts).largest[..., None]
        pull, targets = torch.split(sums / largest, [prompts.dim, y.shape[2]], dim=3)
        pull = pull.contiguous()
        threshold, accuracy = self.penalty / largest, SOLVED * targets.flatten(2).norm(dim=2)
        w, weights, converged = torch.zeros_like(targets), [], []
        for step in range(stages[-1] + 1):
            moved = w - pull @ w + targets
            after = moved - moved.clamp(-threshold, threshold)
            if step in stages:
                weights.append(w)
                converged.append((after - w).flatten(2).norm(dim=2) <= accuracy)  # at the solution nothing moves
            w = after
        return weights_trace(self.name, stages, prompts, torch.stack(weights), torch.stack(converged))

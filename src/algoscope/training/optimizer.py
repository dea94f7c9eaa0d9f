"""One step of the optimizer, for all members at once.

Muon (Jordan et al. 2024) moves each matrix inside the blocks along the orthogonal matrix nearest to its momentum.
AdamW (Loshchilov and Hutter 2019) moves the rest, or everything. Muon's steps are as long as AdamW's usually are (Liu
et al. 2025), so that one learning rate serves both. Plain gradient descent is there for papers that train with it.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from algoscope.training.layout import ALIGNMENT, Layout, padding
from algoscope.training.settings import Settings
from algoscope.training.state import State

EPSILON = 1e-8  # AdamW's
LENGTH = 0.2  # root mean square of the entries of one of Muon's steps, in units of the learning rate
COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of Muon's polynomial
ROUNDS = 5  # singular values from 0.005 up end between 0.68 and 1.21


class Optimizer:
    """Clips, updates the moments and moves. A member whose numbers are not finite is frozen."""

    def __init__(self, peak: Float[Tensor, "members"], layout: Layout, settings: Settings) -> None:
        self.layout, self.settings = layout, settings
        steps = torch.arange(settings.steps, device=peak.device)
        corrections = [1 / (1 - beta ** (steps + 1).double()) for beta in settings.betas]
        self.factors = torch.stack([settings.rate(steps), *corrections], dim=1).to(settings.dtype)  # of each step
        self.peak, self.trained = peak.to(settings.dtype), layout.trained().to(peak.device)
        self._update, self._move = update, move

    def compile(self) -> None:
        """Makes one pass over memory out of each part."""
        for name in ("_update", "_move"):
            setattr(self, name, torch.compile(getattr(self, name), dynamic=False, fullgraph=True))

    def step(
        self, state: State, gradients: Sequence[Tensor], loss: Float[Tensor, "members"], error: Float[Tensor, "members"]
    ) -> None:
        now = state.step.clamp(max=len(self.factors) - 1)  # an engine may try more steps than a short run has
        schedule, *corrections = self.factors.index_select(0, now[None])[0].unbind()
        muon = self.layout.muon
        rate, ahead = self._update(
            state, gradients, loss, error, self.peak * schedule, corrections, self.trained, muon, self.settings
        )
        if muon:
            steps = directions(ahead, self.layout.matrices)
            self._move(state.parameters[:, :muon], steps, rate, self.settings.weight_decay)
        state.step.add_(1)


def update(
    state: State,
    gradients: Sequence[Tensor],
    loss: Float[Tensor, "members"],
    error: Float[Tensor, "members"],
    rates: Float[Tensor, "members"],
    corrections: Sequence[Float[Tensor, ""]],
    trained: Bool[Tensor, "parameters"],
    muon: int,
    settings: Settings,
) -> tuple[Float[Tensor, "members 1"], Float[Tensor, "members muon"]]:
    """Adds clipped gradients of what is `trained` to the moments, moves what AdamW moves, and records the losses.

    Returns the rates of those who train, and the Nesterov momentum of Muon's matrices; it needs no correction for its
    start at zero, since Muon does not see its scale.
    """
    dtype, (beta1, beta2) = state.parameters.dtype, settings.betas
    gradient = torch.where(trained, torch.cat([part.to(dtype) for part in gradients], dim=1), 0.0)
    norm = gradient.unflatten(1, (-1, ALIGNMENT)).norm(dim=2).norm(dim=1)  # two passes: few long rows leave a GPU idle
    trains = torch.isfinite(loss) & torch.isfinite(norm) & (state.stopped_at < 0)
    gradient = torch.where(trains[:, None], gradient * (settings.clip / norm).clamp(max=1)[:, None], 0.0)
    moves = trains.to(dtype)[:, None]  # 1, or 0 for a member that stays as it is
    state.first_moment.lerp_(gradient, moves * (1 - beta1))
    state.second_moment.lerp_(gradient[:, muon:].square(), moves * (1 - beta2))
    state.stopped_at.copy_(torch.where(trains | (state.stopped_at >= 0), state.stopped_at, state.step))
    slot = (state.step % len(state.losses))[None]
    state.losses.index_copy_(0, slot, loss[None])
    state.errors.index_copy_(0, slot, error[None])
    rate = torch.where(trains, rates, 0.0)[:, None]
    mean, square = state.first_moment[:, muon:] * corrections[0], state.second_moment * corrections[1]
    step = gradient if settings.optimizer == "sgd" else mean / (square.sqrt() + EPSILON)
    move(state.parameters[:, muon:], step, rate, settings.weight_decay)
    ahead = torch.lerp(gradient[:, :muon], state.first_moment[:, :muon], beta1)
    return rate, ahead.bfloat16() if settings.precision == "bf16" else ahead


def move(parameters: Tensor, step: Tensor, rate: Float[Tensor, "members 1"], decay: float) -> None:
    """In place."""
    parameters.copy_(parameters * (1 - rate * decay) - step * rate)


def directions(
    momentum: Float[Tensor, "members muon"], forms: Sequence[tuple[int, int, int]]
) -> Float[Tensor, "members muon"]:
    """Muon's steps for rows of matrices; `forms` says how many there are of each form, their rows and columns.

    Tall matrices are handled as their transposes, and all of one form at once.
    """
    sizes = [count * rows * columns for count, rows, columns in forms]
    parts = momentum.split([n for size in sizes for n in (size, padding(size))], dim=1)
    result, waiting = list(parts), {}
    for i, (count, rows, columns) in enumerate(forms):
        matrices = parts[2 * i].unflatten(1, (count, rows, columns))
        wide = matrices.mT if rows > columns else matrices
        waiting.setdefault(wide.shape[2:], []).append((2 * i, rows > columns, wide))
    for (_, longer), group in waiting.items():
        together = torch.cat([wide for _, _, wide in group], dim=1)
        turned = orthogonal(together.flatten(0, 1)).view_as(together) * (LENGTH * math.sqrt(longer))
        for (i, tall, _), part in zip(group, turned.split([wide.shape[1] for *_, wide in group], dim=1), strict=True):
            result[i] = (part.mT if tall else part).flatten(1)
    return torch.cat(result, dim=1)


def orthogonal(matrices: Float[Tensor, "batch rows columns"]) -> Float[Tensor, "batch rows columns"]:
    """UVᵀ for UΣVᵀ, roughly: a Newton–Schulz iteration whose polynomial pushes all singular values towards 1."""
    a, b, c = COEFFICIENTS
    x = matrices / (matrices.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(ROUNDS):
        square = torch.bmm(x, x.mT)
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x

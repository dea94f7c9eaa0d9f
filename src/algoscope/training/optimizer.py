"""One step of the optimizer, for all members at once.

Muon (Jordan et al. 2024) moves each matrix inside the blocks along the orthogonal matrix nearest to its momentum.
AdamW (Loshchilov and Hutter 2019) moves the rest, or everything. Muon's steps are as long as AdamW's usually are (Liu
et al. 2025), so that one learning rate serves both.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from algoscope.training.layout import Layout, padding
from algoscope.training.settings import Settings
from algoscope.training.state import State

EPSILON = 1e-8  # AdamW's
LENGTH = 0.2  # root mean square of the entries of one of Muon's steps, in units of the learning rate
COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of Muon's polynomial
ROUNDS = 5  # singular values from .005 up end between .68 and 1.21


def update(
    state: State,
    gradients: Sequence[Tensor],
    loss: Float[Tensor, "members"],
    error: Float[Tensor, "members"],
    peak: Float[Tensor, "members"],
    layout: Layout,
    settings: Settings,
) -> None:
    """Moves every member along its clipped gradient. One whose numbers are not finite stays as it is from then on."""
    dtype, (beta1, beta2) = state.parameters.dtype, settings.betas
    gradient = torch.cat([part.to(dtype) for part in gradients], dim=1)
    norm = gradient.norm(dim=1)
    trains = torch.isfinite(loss) & torch.isfinite(norm) & (state.stopped_at < 0)
    gradient = torch.where(trains[:, None], gradient * (settings.clip / norm).clamp(max=1)[:, None], 0.0)
    share = trains.to(dtype)[:, None]  # of the change that is made: all or nothing
    state.first_moment.lerp_(gradient, share * (1 - beta1))
    muons, adams = gradient.split([layout.muon, gradient.shape[1] - layout.muon], dim=1)
    state.second_moment.lerp_(adams.square(), share * (1 - beta2))

    count = (state.step + 1).double()
    rate = torch.where(trains, peak * settings.rate(state.step), 0.0)
    momentum, mean = state.first_moment.split([muons.shape[1], adams.shape[1]], dim=1)
    spread = (state.second_moment / (1 - beta2**count).to(dtype)).sqrt() + EPSILON
    steps = [mean / spread * (rate / (1 - beta1**count)).to(dtype)[:, None]]
    if layout.muon:
        low = torch.bfloat16 if settings.precision == "bf16" else dtype
        forms = [number for form in layout.forms for number in form]
        steps = [directions(torch.lerp(muons, momentum, beta1).to(low), forms) * rate.to(dtype)[:, None], *steps]
    if settings.weight_decay:
        state.parameters.mul_((1 - rate * settings.weight_decay).to(dtype)[:, None])
    state.parameters.sub_(torch.cat(steps, dim=1))

    state.stopped_at.copy_(torch.where(trains | (state.stopped_at >= 0), state.stopped_at, state.step))
    slot = (state.step % len(state.losses))[None]
    state.losses.index_copy_(0, slot, loss[None])
    state.errors.index_copy_(0, slot, error[None])
    state.step.add_(1)


@torch.library.custom_op("algoscope::muon", mutates_args=())  # so that a compiler leaves it as it is
def directions(momentum: Tensor, forms: list[int]) -> Tensor:
    """Muon's steps for rows of matrices; `forms` says how many there are of each form, their rows and columns.

    Tall matrices are handled as their transposes, and all of one form at once.
    """
    sizes = [count * rows * columns for count, rows, columns in zip(*[iter(forms)] * 3, strict=True)]
    parts = momentum.split([n for size in sizes for n in (size, padding(size))], dim=1)
    result, waiting = list(parts), {}
    for i, (count, rows, columns) in enumerate(zip(*[iter(forms)] * 3, strict=True)):
        matrices = parts[2 * i].unflatten(1, (count, rows, columns))
        wide = matrices.mT if rows > columns else matrices
        waiting.setdefault(wide.shape[2:], []).append((2 * i, rows > columns, wide))
    for (_, longer), group in waiting.items():
        together = torch.cat([wide for _, _, wide in group], dim=1)
        turned = orthogonal(together.flatten(0, 1)).view_as(together) * (LENGTH * math.sqrt(longer))
        for (i, tall, _), part in zip(group, turned.split([wide.shape[1] for *_, wide in group], dim=1), strict=True):
            result[i] = (part.mT if tall else part).flatten(1)
    return torch.cat(result, dim=1)


@directions.register_fake
def _(momentum: Tensor, forms: list[int]) -> Tensor:
    return torch.empty_like(momentum, memory_format=torch.contiguous_format)


def orthogonal(matrices: Float[Tensor, "batch rows columns"]) -> Float[Tensor, "batch rows columns"]:
    """UVᵀ for UΣVᵀ, roughly: a Newton–Schulz iteration whose polynomial pushes all singular values towards 1."""
    a, b, c = COEFFICIENTS
    x = matrices / (matrices.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(ROUNDS):
        square = torch.bmm(x, x.mT)
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x

"""What of a state is read, where it is not the state itself: what a stage adds, or products with x."""

import torch
from jaxtyping import Float
from torch import Tensor

from algoscope.contracts import States, View
from algoscope.reading.moments import LinearMap, Moments, solve
from algoscope.reading.probe import VALIDATION, chunks, targets_of
from algoscope.trace import Prompts

LARGEST = 1024  # products of x and a state that are read one by one
MOST = 4096  # products at all


def increments(states: dict[str, Tensor], x: Tensor) -> dict[str, Tensor]:
    """What each stage adds to the one before; the first as it is."""
    widths = {state.shape[-1] for state in states.values()}
    if len(widths) > 1:
        raise ValueError(f"increments need stages of one width, got {sorted(widths)}")
    before = [0.0, *states.values()]
    return {name: state - last for (name, state), last in zip(states.items(), before, strict=False)}


def with_products(states: States, prompts: Prompts, weights: Float[Tensor, "positions"] | None = None) -> View:
    """Each state beside its products with x, in which x·w is linear if w is linear in the state.

    Where there would be too many, only that part of a state is multiplied which is found first: E[y x] = E[x xᵀ] w, so
    the targets times x are regressed on the state.
    """
    own, sizes = states.view or (lambda seen, x: seen), states.of(next(chunks(prompts, 2)))
    large = [stage for stage, state in sizes.items() if state.shape[-1] * prompts.dim > LARGEST]
    count = prompts.dim**2 * targets_of(states.task, next(chunks(prompts, 2))).shape[-1]
    if large and count > MOST:
        raise ValueError(f"states that hold weights have at most {MOST} products with x, here these are {count}")
    parts = _parts(states, prompts, large, weights) if large else {}

    def view(seen: dict[str, Tensor], x: Tensor) -> dict[str, Tensor]:
        seen = own(seen, x)
        held = {stage: parts[stage](state) if stage in parts else state for stage, state in seen.items()}
        products = {stage: (x[..., :, None] * each[..., None, :]).flatten(-2) for stage, each in held.items()}
        return {stage: torch.cat([state, products[stage]], -1) for stage, state in seen.items()}

    return view


def _parts(
    states: States, prompts: Prompts, stages: list[str], weights: Float[Tensor, "positions"] | None
) -> dict[str, LinearMap]:
    """Of each stage, as many numbers as the targets times x have that are predicted best."""
    weights = torch.ones(prompts.positions, dtype=torch.float64) if weights is None else weights
    at, root = weights > 0, weights[weights > 0].sqrt()[:, None]
    train, validation = ({stage: Moments() for stage in stages} for _ in range(2))
    for k, chunk in enumerate(chunks(prompts, max(prompts.batch // VALIDATION, 2))):
        y, x = targets_of(states.task, chunk)[:, at], chunk.x[:, chunk.before :].double().cpu()[:, at]
        wanted, shown = (y[..., :, None] * x[..., None, :]).flatten(-2).flatten(0, 1), states.of(chunk)
        part, rows = train if k % VALIDATION else validation, root.expand(chunk.batch, -1, 1).flatten(0, 1)
        for stage in stages:
            part[stage].add(shown[stage][:, at].flatten(0, 1), wanted, rows)
    return {stage: solve(train[stage], validation[stage]) for stage in stages}

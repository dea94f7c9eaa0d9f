"""What of a state is read, where it is not the state itself: what a stage adds, or products with x."""

import torch
from torch import Tensor

from algoscope.contracts import States, View
from algoscope.reading.moments import LinearMap, Moments, solve
from algoscope.reading.probe import VALIDATION, chunks
from algoscope.trace import Prompts

LARGEST = 1024  # products of x and a state that are read one by one


def increments(states: dict[str, Tensor], x: Tensor) -> dict[str, Tensor]:
    """What each stage adds to the one before, if both are of one width."""
    before = [None, *states.values()]
    pairs = zip(states.items(), before, strict=False)
    return {name: state if last is None or last.shape != state.shape else state - last for (name, state), last in pairs}


def with_products(states: States, prompts: Prompts) -> View:
    """Each state beside its products with x, in which x·w is linear if w is linear in the state.

    Where there would be too many, only that part of a state is multiplied which is found first: E[y x] = E[x xᵀ] w, so
    the targets times x are regressed on the state.
    """
    own, sizes = states.view or (lambda seen, x: seen), states.of(next(chunks(prompts, 2)))
    large = [stage for stage, state in sizes.items() if state.shape[-1] * prompts.dim > LARGEST]
    parts = _parts(states, prompts, large) if large else {}

    def view(seen: dict[str, Tensor], x: Tensor) -> dict[str, Tensor]:
        seen = own(seen, x)
        held = {stage: parts[stage](state) if stage in parts else state for stage, state in seen.items()}
        products = {stage: (x[..., :, None] * each[..., None, :]).flatten(-2) for stage, each in held.items()}
        return {stage: torch.cat([state, products[stage]], -1) for stage, state in seen.items()}

    return view


def _parts(states: States, prompts: Prompts, stages: list[str]) -> dict[str, LinearMap]:
    """Of each stage, as many numbers as the targets times x have that are predicted best."""
    train, validation = ({stage: Moments() for stage in stages} for _ in range(2))
    for k, chunk in enumerate(chunks(prompts, max(prompts.batch // VALIDATION, 2))):
        y, x = chunk.target_columns.double().cpu(), chunk.x[:, chunk.before :].double().cpu()
        wanted, shown = (y[..., :, None] * x[..., None, :]).flatten(-2).flatten(0, 1), states.of(chunk)
        for stage in stages:
            part = train if k % VALIDATION else validation
            part[stage].add(shown[stage].flatten(0, 1), wanted)
    return {stage: solve(train[stage], validation[stage]) for stage in stages}

"""Induced weights: the linear function of the query that a stage computes, found by asking many queries."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from algoscope import arguments
from algoscope.algorithms.least_squares import LeastSquares
from algoscope.reading.probe import FittedProbe, chunks
from algoscope.trace import Prompts, Trace


@dataclass(frozen=True, eq=False)
class InducedWeights:
    """Weights of every stage at some positions, and how linear its predictions are there.

    `trace.weights` is NaN at other positions. `linearity` is the share of the predictions' variance over fresh queries
    that the weights explain: where it is not close to 1 there are no weights to speak of.
    """

    trace: Trace
    positions: tuple[int, ...]
    linearity: Float[Tensor, "stages batch asked"]


def induced_weights(
    reading: FittedProbe, prompts: Prompts, positions: tuple[int, ...], seed: int = 0
) -> InducedWeights:
    """Replaces the query x at each position by many others, and fits the first target's answers.

    Two thirds of the queries are fitted (with a shift), the rest tells how linear the answers are.
    """
    for position in positions:
        arguments.integer("positions", position, 0)
        if position >= prompts.positions:
            raise ValueError(f"positions must be below {prompts.positions}, got {position}")
    task, dim, batch = reading.states.task, prompts.dim, prompts.batch
    asked = queries_for(dim)
    fitted = 2 * asked // 3
    queries = task.sample(asked, seed, purpose="queries").x[:, -1]
    base = reading.trace(prompts)
    shape = (len(base), batch, prompts.positions, dim)
    weights = torch.full(shape, torch.nan, dtype=torch.float64)
    linearity = torch.empty(len(base), batch, len(positions), dtype=torch.float64)
    design = torch.nn.functional.pad(queries, (0, 1), value=1.0)
    for k, position in enumerate(positions):
        answers = _answers(reading, prompts, position, queries)  # [stages, batch, asked]
        solution = torch.linalg.lstsq(design[:fitted], answers[..., :fitted].flatten(0, 1).mT).solution
        weights[:, :, position] = solution[:dim].mT.unflatten(0, shape[:2])
        fresh = answers[..., fitted:]
        off = (fresh - (design[fitted:] @ solution).mT.unflatten(0, shape[:2])).square().sum(-1)
        spread = (fresh - fresh.mean(-1, keepdim=True)).square().sum(-1)
        linearity[..., k] = 1 - off / torch.where(spread > 0, spread, torch.nan)
    return InducedWeights(replace(base, weights=weights), positions, linearity)


def queries_for(dim: int) -> int:
    """How many queries to ask: twice as many to fit as there are dimensions, and half of that again to check."""
    return 3 * (dim + 1)


def _answers(
    reading: FittedProbe, prompts: Prompts, position: int, queries: Float[Tensor, "asked dim"]
) -> Float[Tensor, "stages batch asked"]:
    """What each stage predicts at a position, for each query in the place of its x."""
    x = prompts.x[:, None].repeat(1, len(queries), 1, 1)
    x[:, :, position] = queries.to(x)
    y = prompts.y[:, None].expand(-1, len(queries), *prompts.y.shape[1:])
    many = replace(prompts, x=x.flatten(0, 1), y=y.flatten(0, 1))
    parts = []
    for chunk in chunks(many):
        states = reading.states.of(chunk, position)
        read = [reading.maps[stage](states[stage][:, 0])[:, 0] for stage in reading.states.stages]
        parts.append(torch.stack(read))
    return torch.cat(parts, dim=1).unflatten(1, (prompts.batch, len(queries)))


def outside_span(
    weights: Float[Tensor, "stages batch dim"], prompts: Prompts, position: int
) -> Float[Tensor, "batch stages"]:
    """The share of the squared weights that lies outside the span of the first `position` examples."""
    problem = LeastSquares.of(prompts)
    coordinates = torch.einsum("bdk,sbd->sbk", problem.basis[:, position], weights.double()).square()
    unseen = torch.where(problem.eigenvalues[:, position] > 0, 0.0, coordinates).sum(-1)
    return (unseen / coordinates.sum(-1).clamp(min=1e-300)).mT

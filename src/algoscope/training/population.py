"""Many small models as one program.

Each member's parameters are one row of a matrix, so that the optimizer, the clipping and the check for finite numbers
are a few operations on rows, and a checkpoint is a few tensors. The forward pass is that of a single network, mapped
over the rows: members never meet, and each trains as if it were alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import pad

from algoscope.models import Model, Network
from algoscope.randomness import stream
from algoscope.training.settings import Member, Settings, check_members

EPSILON = 1e-8  # Adam's
ALIGNMENT = 64  # numbers: what fast kernels like to start at


@dataclass(frozen=True, eq=False)
class State:
    """All that a step changes. It is changed in place, so that a recorded step can be replayed."""

    parameters: Float[Tensor, "members parameters"]
    first_moment: Float[Tensor, "members parameters"]
    second_moment: Float[Tensor, "members parameters"]
    step: Int[Tensor, ""]
    stopped_at: Int[Tensor, "members"]  # the step at which a member's loss was not finite; −1 while it trains
    losses: Float[Tensor, "slots members"]  # of the latest steps
    errors: Float[Tensor, "slots members"]  # normalized, at the last position in use

    @staticmethod
    def fresh(parameters: Float[Tensor, "members parameters"], slots: int) -> "State":
        members, device = parameters.shape[0], parameters.device
        history = torch.zeros(slots, members, device=device, dtype=parameters.dtype)
        return State(
            parameters=parameters,
            first_moment=torch.zeros_like(parameters),
            second_moment=torch.zeros_like(parameters),
            step=torch.zeros((), dtype=torch.int64, device=device),
            stopped_at=torch.full((members,), -1, device=device),
            losses=history,
            errors=torch.zeros_like(history),
        )

    def tensors(self) -> dict[str, Tensor]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        for name, tensor in self.tensors().items():
            tensor.copy_(tensors[name])


class Layout:
    """How rows of parameters become the named tensors of a network, with a leading axis of members where there are
    several.

    In bf16 the matrices inside the blocks, and their biases, are handed over in 16 bits; they come first in a row. The
    stream between them, the norms, the read-in and the read-out stay in 32 bits. Every tensor starts at a multiple of
    `ALIGNMENT` numbers.
    """

    def __init__(self, network: nn.Module, low_precision: bool) -> None:
        shapes = {name: parameter.shape for name, parameter in network.named_parameters()}
        outside = ("read_in", "read_out", "positions", "norm")
        low = {name for name in shapes if low_precision and not any(part in name for part in outside)}
        self.low = {name: shape for name, shape in shapes.items() if name in low}
        self.high = {name: shape for name, shape in shapes.items() if name not in low}

    def halves(self, rows: Float[Tensor, "members parameters"]) -> tuple[Tensor, Tensor]:
        """The rows in the precision of training: what is in 16 bits, and the rest."""
        border = sum(_sizes(self.low))
        return rows[:, :border].bfloat16(), rows[:, border:]

    def tensors(self, halves: Sequence[Tensor]) -> dict[str, Tensor]:
        """By name, in the precision of training."""
        return {**_named(halves[0], self.low), **_named(halves[1], self.high)}

    def full(self, rows: Float[Tensor, "members parameters"]) -> dict[str, Tensor]:
        """By name, in the precision of the rows."""
        return _named(rows, {**self.low, **self.high})

    def row(self, network: nn.Module) -> Float[Tensor, "parameters"]:
        named, shapes = dict(network.named_parameters()), {**self.low, **self.high}
        spaces = _sizes(shapes)[1::2]
        return torch.cat([pad(named[n].detach().flatten(), (0, s)) for n, s in zip(shapes, spaces, strict=True)])


def _sizes(shapes: Mapping[str, torch.Size]) -> list[int]:
    """How many numbers each tensor takes, each followed by the padding behind it."""
    return [size for shape in shapes.values() for size in (shape.numel(), -shape.numel() % ALIGNMENT)]


def _named(rows: Float[Tensor, "members part"], shapes: Mapping[str, torch.Size]) -> dict[str, Tensor]:
    members = rows.shape[:1] if rows.shape[0] > 1 else ()
    parts = rows.split(_sizes(shapes), dim=1)[::2]  # one split, so that its gradient is one concatenation
    return {name: part.view(*members, *shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}


class Population:
    """Networks of one model in training side by side, on one device."""

    def __init__(self, model: Model, members: Sequence[Member], settings: Settings, device: torch.device) -> None:
        check_members(members)
        self.members, self.settings, self.device = tuple(members), settings, device
        self.task = members[0].task  # its tokens have the shape of all
        networks = [
            model.build(self.task.inputs, self.task.outputs, self.task.length, stream("weights", member.seed))
            for member in members
        ]
        self.layout = Layout(networks[0], settings.precision == "bf16")
        rows = torch.stack([self.layout.row(network) for network in networks]).to(device, settings.dtype)
        self.network: Network = networks[0].to(device, settings.dtype)  # lends its form, not its parameters
        self.state = State.fresh(rows, settings.log_every)
        self.generators = [stream("training prompts", member.seed, device) for member in members]
        self.rates = torch.tensor([member.learning_rate for member in members], device=device, dtype=torch.float64)
        self.power = torch.tensor([member.task.power for member in members], device=device, dtype=settings.dtype)
        self.update: Callable[..., None] = update  # an engine may put a faster version in its place

    def step(self) -> None:
        """Samples prompts, computes losses and gradients, and moves every member that still trains."""
        dims, points = self._in_use()
        drawn = [
            member.task.draw(self.settings.batch, generator, self.settings.dtype, dims)
            for member, generator in zip(self.members, self.generators, strict=True)
        ]
        x, y = (torch.stack(part) for part in zip(*drawn, strict=True))
        halves = [half.detach().requires_grad_() for half in self.layout.halves(self.state.parameters)]
        loss, error = self.losses(halves, x, y, points)
        gradients = torch.autograd.grad(loss.sum(), halves, materialize_grads=True)
        self.update(self.state, gradients, loss.detach(), error.detach() / self.power, self.rates, self.settings)

    def _in_use(self) -> tuple[Tensor | None, Int[Tensor, ""]]:
        positions = self.task.read(torch.empty(0, self.task.length, self.task.outputs)).shape[1]
        if self.settings.curriculum is None:
            return None, torch.full((), positions, device=self.device)
        dims, points = self.settings.curriculum.in_use(self.state.step)
        return dims, points.clamp(max=positions)

    def losses(
        self, halves: Sequence[Tensor], x: Tensor, y: Tensor, points: Int[Tensor, ""]
    ) -> tuple[Float[Tensor, "members"], Float[Tensor, "members"]]:
        """Mean squared error over the positions in use, and at the last of them."""
        members, batch, positions = y.shape[:3]
        x, y = x.flatten(0, 1), y.flatten(0, 1)
        tokens = self.task.encode(x, y)
        tokens = tokens.unflatten(0, (members, batch)) if members > 1 else tokens
        outputs = self._outputs(halves, tokens)
        errors = self.task.read(outputs.reshape(-1, *outputs.shape[-2:])) - y
        squares = errors.square().reshape(members, batch, positions, -1).mean((1, 3))
        in_use = torch.arange(positions, device=y.device) < points
        return torch.where(in_use, squares, 0.0).sum(1) / points, squares.index_select(1, (points - 1)[None])[:, 0]

    def _outputs(self, halves: Sequence[Tensor], tokens: Tensor) -> Tensor:
        if len(self.members) == 1 or self.network.side_by_side:
            return functional_call(self.network, self.layout.tensors(halves), (tokens,))
        turns = zip(zip(*(half.split(1) for half in halves), strict=True), tokens, strict=True)
        return torch.stack([functional_call(self.network, self.layout.tensors(own), (part,)) for own, part in turns])


def update(
    state: State,
    gradients: Sequence[Tensor],
    loss: Float[Tensor, "members"],
    error: Float[Tensor, "members"],
    peak: Float[Tensor, "members"],
    settings: Settings,
) -> None:
    """AdamW (Loshchilov and Hutter 2019) on clipped gradients. A member whose numbers are not finite stays as it is."""
    gradient = torch.cat([part.to(state.parameters.dtype) for part in gradients], dim=1)
    rate = peak * settings.rate(state.step)
    norm = gradient.norm(dim=1)
    trains = torch.isfinite(loss) & torch.isfinite(norm) & (state.stopped_at < 0)
    gradient = gradient * (settings.clip / norm).clamp(max=1)[:, None]
    beta1, beta2 = settings.betas
    first = torch.lerp(gradient, state.first_moment, beta1)
    second = torch.lerp(gradient.square(), state.second_moment, beta2)
    count = (state.step + 1).double()
    length = (rate / (1 - beta1**count)).to(gradient.dtype)[:, None]
    unit = first / ((second / (1 - beta2**count).to(gradient.dtype)).sqrt() + EPSILON)
    decay = (1 - rate * settings.weight_decay).to(gradient.dtype)[:, None]
    moved = state.parameters * decay - length * unit
    for old, new in ((state.parameters, moved), (state.first_moment, first), (state.second_moment, second)):
        old.copy_(torch.where(trains[:, None], new, old))
    state.stopped_at.copy_(torch.where(trains | (state.stopped_at >= 0), state.stopped_at, state.step))
    slot = (state.step % len(state.losses))[None]
    state.losses.index_copy_(0, slot, loss[None])
    state.errors.index_copy_(0, slot, error[None])
    state.step.add_(1)

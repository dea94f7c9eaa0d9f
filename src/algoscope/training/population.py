"""Many small models as one program.

Each member's parameters are one row of a matrix, so that the optimizer, the clipping and the check for finite numbers
are a few operations on rows, and a checkpoint is a few tensors. The forward pass is that of a single network, mapped
over the rows: members never meet, and each trains as if it were alone.
"""

from collections.abc import Callable, Sequence
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

    In bf16 the matrices inside the blocks, and their biases, are handed over in 16 bits. The stream between them, the
    norms, the read-in and the read-out stay in 32 bits. Every tensor starts at a multiple of `ALIGNMENT` numbers.
    """

    def __init__(self, network: nn.Module, low_precision: bool) -> None:
        named = dict(network.named_parameters())
        self.shapes = {name: parameter.shape for name, parameter in named.items()}
        self.sizes = [-(-parameter.numel() // ALIGNMENT) * ALIGNMENT for parameter in named.values()]
        outside = ("read_in", "read_out", "positions", "norm")
        self.low = {name for name in named if low_precision and not any(part in name for part in outside)}

    def tensors(self, rows: Float[Tensor, "members parameters"]) -> dict[str, Tensor]:
        """In the precision of training."""
        full = self.full(rows)
        short = self.full(rows.bfloat16()) if self.low else full
        return {name: (short if name in self.low else full)[name] for name in self.shapes}

    def full(self, rows: Float[Tensor, "members parameters"]) -> dict[str, Tensor]:
        """In the precision of the rows."""
        members = rows.shape[:1] if rows.shape[0] > 1 else ()
        parts = zip(self.shapes.items(), rows.split(self.sizes, dim=1), strict=True)
        return {name: part[:, : shape.numel()].view(*members, *shape) for (name, shape), part in parts}

    def row(self, network: nn.Module) -> Float[Tensor, "parameters"]:
        parts = (parameter.detach().flatten() for parameter in network.parameters())
        return torch.cat([pad(part, (0, size - part.numel())) for part, size in zip(parts, self.sizes, strict=True)])


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
        self.losses: Callable[..., tuple[Tensor, Tensor]] = self._losses  # an engine may put faster versions of
        self.update: Callable[..., None] = update  # these two in their place

    def step(self) -> None:
        """Samples prompts, computes losses and gradients, and moves every member that still trains."""
        dims, points = self._in_use()
        drawn = [
            member.task.draw(self.settings.batch, generator, self.settings.dtype, dims)
            for member, generator in zip(self.members, self.generators, strict=True)
        ]
        x, y = (torch.stack(part) for part in zip(*drawn, strict=True))
        rows = self.state.parameters.detach().requires_grad_()
        loss, error = self.losses(rows, x, y, points)
        (gradient,) = torch.autograd.grad(loss.sum(), rows)
        self.update(self.state, gradient, loss.detach(), error.detach() / self.power, self.rates, self.settings)

    def _in_use(self) -> tuple[Tensor | None, Int[Tensor, ""]]:
        positions = self.task.read(torch.empty(0, self.task.length, self.task.outputs)).shape[1]
        if self.settings.curriculum is None:
            return None, torch.full((), positions, device=self.device)
        dims, points = self.settings.curriculum.in_use(self.state.step)
        return dims, points.clamp(max=positions)

    def _losses(
        self, rows: Float[Tensor, "members parameters"], x: Tensor, y: Tensor, points: Int[Tensor, ""]
    ) -> tuple[Float[Tensor, "members"], Float[Tensor, "members"]]:
        """Mean squared error over the positions in use, and at the last of them."""
        members, batch, positions = y.shape[:3]
        x, y = x.flatten(0, 1), y.flatten(0, 1)
        tokens = self.task.encode(x, y)
        tokens = tokens.unflatten(0, (members, batch)) if members > 1 else tokens
        outputs = self._outputs(rows, tokens)
        errors = self.task.read(outputs.reshape(-1, *outputs.shape[-2:])) - y
        squares = errors.square().reshape(members, batch, positions, -1).mean((1, 3))
        in_use = torch.arange(positions, device=y.device) < points
        return torch.where(in_use, squares, 0.0).sum(1) / points, squares.index_select(1, (points - 1)[None])[:, 0]

    def _outputs(self, rows: Float[Tensor, "members parameters"], tokens: Tensor) -> Tensor:
        if len(rows) == 1 or self.network.side_by_side:
            return functional_call(self.network, self.layout.tensors(rows), (tokens,))
        turns = zip(rows.split(1), tokens, strict=True)
        return torch.stack([functional_call(self.network, self.layout.tensors(row), (part,)) for row, part in turns])


def update(
    state: State, gradient: Tensor, loss: Tensor, error: Tensor, peak: Float[Tensor, "members"], settings: Settings
) -> None:
    """AdamW (Loshchilov and Hutter 2019) on clipped gradients. A member whose numbers are not finite stays as it is."""
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

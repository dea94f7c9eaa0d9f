"""Many small models as one program.

The forward pass is that of a single network whose parameters carry an axis of members: members never meet, and each
trains as if it were alone.
"""

import itertools
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from algoscope.models import Model, Network
from algoscope.randomness import stream, uniform
from algoscope.tasks import Task
from algoscope.training.layout import Layout
from algoscope.training.optimizer import Optimizer
from algoscope.training.settings import Member, Settings, check_members
from algoscope.training.state import State


class Population:
    """Networks of one model in training side by side, on one device."""

    def __init__(self, model: Model, members: Sequence[Member], settings: Settings, device: torch.device) -> None:
        check_members(members, model)
        self.task = members[0].task  # its tokens have the shape of all
        settings = settings.on(device, self.task)
        self.members, self.settings, self.device = tuple(members), settings, device
        networks = [
            model.build(self.task.inputs, self.task.outputs, self.task.length, stream("weights", member.seed))
            for member in members
        ]
        self.layout = Layout(networks[0], settings.precision == "bf16", settings.optimizer == "muon")
        rows = torch.stack([self.layout.row(network) for network in networks]).to(device, settings.dtype)
        self.network: Network = networks[0].to(device, settings.dtype)  # lends its form, not its parameters
        if device.type == "cuda" and self.network.once and len(members) == 1:
            self.layout.defer(self.network)
        # Where the network looks its parameters up, and which lie there now. They are tensors cut from the state's rows
        # and no Parameters, so the network is of no use beside this population.
        self.holders, self.placed = self.layout.holders(self.network), None
        self.state = State.fresh(rows, self.layout.muon, settings.log_every)
        self.generators = [stream("training prompts", member.seed, device) for member in members]
        self.power = torch.tensor([member.task.power for member in members], device=device, dtype=settings.dtype)
        rates = torch.tensor([member.learning_rate for member in members], device=device, dtype=torch.float64)
        self.optimizer = Optimizer(rates, self.layout, settings)
        self.encode, self.score = self.task.encode, score  # an engine puts compiled ones in their place
        # Views of the state, which changes in place: they serve all steps. A step that a GPU records makes its own.
        self.weights = None if device.type == "cuda" or self.layout.low else self._weights()
        # What the network is given beside tokens and noise, and how answers are read from what it returns.
        selective = self.network.selective and isinstance(self.task.answers, slice)
        self.given: dict[str, object] = {"asked": self.task.answers} if selective else {}
        if self.network.scored > 1:
            self.given["every"] = True
        self.read = self.task.predictions if selective else self.task.read

    def step(self) -> None:
        """Samples prompts, computes losses and gradients, and moves every member that still trains."""
        dims, points = self.in_use()
        x, y = self._draw(dims)
        noise = self._noise()
        weights = self.weights or self._weights()
        loss, error = self.losses(weights, x, y, points, noise)
        gradients = torch.autograd.grad(loss.sum(), weights, materialize_grads=True)
        self.optimizer.step(self.state, gradients, loss.detach(), error.detach() / self.power)

    def _weights(self) -> list[Tensor]:
        """Those to differentiate: in bf16 the ones inside the blocks are a copy in 16 bits, the rest is as it is.

        That is our autocast; what the optimizer moves stays in 32 bits. Autograd is not to know (`data`) that the state
        changes: it does only when a step has its gradients.
        """
        return [part.data.requires_grad_() for part in self.layout.low_and_high(self.state.parameters)]

    def _draw(self, dims: Tensor | None) -> tuple[Tensor, Tensor]:
        """Prompts for every member; neighbors with the same task are drawn together."""
        drawn, batch = [], self.settings.batch
        pairs = zip(self.members, self.generators, strict=True)
        for task, group in itertools.groupby(pairs, key=lambda pair: pair[0].task):
            own = [generator for _, generator in group]
            drawn.append(task.draw(batch * len(own), own, self.settings.dtype, dims))
        x, y = (torch.cat(part) for part in zip(*drawn, strict=True)) if len(drawn) > 1 else drawn[0]
        return x.unflatten(0, (-1, batch)), y.unflatten(0, (-1, batch))

    def _noise(self) -> Tensor | None:
        """What the networks need of chance; each member draws as if it were alone."""
        shape, batch = self.network.noise, self.settings.batch
        if not shape:
            return None
        drawn = uniform(self.generators, batch * len(self.members), *shape, dtype=self.settings.dtype)
        return drawn.unflatten(0, (-1, batch)) if len(self.members) > 1 else drawn

    def in_use(self) -> tuple[Tensor | None, Int[Tensor, ""]]:
        """Input coordinates (None: all) and positions that the curriculum lets the next step use."""
        if self.settings.curriculum is None:
            return None, torch.full((), self.task.positions, device=self.device)
        dims, points = self.settings.curriculum.in_use(self.state.step)
        return dims, points.clamp(max=self.task.positions)

    def losses(
        self, weights: Sequence[Tensor], x: Tensor, y: Tensor, points: Int[Tensor, ""], noise: Tensor | None = None
    ) -> tuple[Float[Tensor, "members"], Float[Tensor, "members"]]:
        """The mean loss over the positions in use, and that of the last answer at the last of them."""
        members, batch = y.shape[:2]
        tokens = self.encode(x.flatten(0, 1), y.flatten(0, 1))
        tokens = tokens.unflatten(0, (members, batch)) if members > 1 else tokens
        outputs = self._outputs(weights, tokens, noise)
        answers = outputs if self.network.scored > 1 else outputs[None]
        scores = [self.score(self.task, self.read(o.reshape(-1, *o.shape[-2:])), y, points) for o in answers]
        loss = torch.stack([loss for loss, _ in scores]).mean(0) if len(scores) > 1 else scores[0][0]
        return loss, scores[-1][1]

    def _outputs(self, weights: Sequence[Tensor], tokens: Tensor, noise: Tensor | None) -> Tensor:
        """Of all members at once, or of one after another where their network cannot do that."""
        if len(self.members) == 1 or self.network.side_by_side:
            return self._output(weights, tokens, noise)
        alone = zip(*(part.split(1) for part in weights), strict=True)
        noises = itertools.repeat(None) if noise is None else noise
        return torch.stack([self._output(*own) for own in zip(alone, tokens, noises, strict=False)])

    def _output(self, weights: Sequence[Tensor], tokens: Tensor, noise: Tensor | None) -> Tensor:
        """The forward pass: the network is handed its weights, unless it has them, and called."""
        given = self.given if noise is None else {**self.given, "noise": noise}
        if self.network.paced:
            given = {**given, "progress": self.state.step / self.settings.steps}
        if weights is not self.placed:  # what functional_call does, without taking them out again
            for (parameters, name), tensor in zip(self.holders, self.layout.tensors(weights).values(), strict=True):
                parameters[name] = tensor
            self.placed = weights
        return self.network(tokens, **given)


def score(
    task: Task,
    predictions: Float[Tensor, "sequences positions *answer"],
    y: Float[Tensor, "members batch positions *target"],
    points: Int[Tensor, ""],
) -> tuple[Float[Tensor, "members"], Float[Tensor, "members"]]:
    members, batch, positions = y.shape[:3]
    losses = task.loss(predictions, y.flatten(0, 1)).reshape(members, batch, positions, -1).mean((1, 3))
    in_use = torch.arange(positions, device=y.device) < points
    return torch.where(in_use, losses, 0.0).sum(1) / points, losses.index_select(1, (points - 1)[None])[:, 0]

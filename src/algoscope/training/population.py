"""Many small models as one program.

The forward pass is that of a single network whose parameters carry an axis of members: members do not interact, and
each trains as if it were alone.
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
from algoscope.training.plan import Plan
from algoscope.training.settings import Member, Settings
from algoscope.training.state import State


class Population:
    """Networks of one model in training side by side, on one device."""

    @staticmethod
    def of(model: Model, members: Sequence[Member], settings: Settings, device: torch.device) -> "Population":
        return Population(Plan.of(model, members, settings, device))

    def __init__(self, plan: Plan) -> None:
        self.task, self.members, self.settings, self.device = plan.task, plan.members, plan.settings, plan.device
        members, settings, device = plan.members, plan.settings, plan.device
        networks = [
            plan.model.build(self.task.inputs, self.task.outputs, self.task.length, stream("weights", member.seed))
            for member in members
        ]
        self.layout = Layout(networks[0], settings.precision == "bf16", settings.optimizer == "muon")
        rows = torch.stack([self.layout.row(network) for network in networks]).to(device, settings.dtype)
        self.network: Network = networks[0].to(device, settings.dtype)  # its form only: its parameters are replaced
        self.needs = self.network.training_needs
        if device.type == "cuda" and self.needs.deferred_weight_grads and len(members) == 1:
            self.layout.defer(self.network)
        # Where the network finds its parameters, and the weights that are there now: views of the state's rows and no
        # Parameters, so the network is of no use outside this population.
        self.parameter_slots, self.placed = self.layout.parameter_slots(self.network), None
        self.state = State.fresh(rows, self.layout.muon, settings.log_every)
        self.generators = [stream("training prompts", member.seed, device) for member in members]
        self.power = torch.tensor([member.task.power for member in members], device=device, dtype=settings.dtype)
        rates = torch.tensor([member.learning_rate for member in members], device=device, dtype=torch.float64)
        self.optimizer = Optimizer(rates, self.layout, settings)
        self.encode, self.score = self.task.encode, score  # an engine puts compiled ones in their place
        # Views of the state, which changes in place: they serve all steps. A step that a GPU records makes its own.
        self.weights = None if device.type == "cuda" or self.layout.low else self._weights()
        # Keywords of the network beside noise, and how predictions are read from its outputs.
        subset = self.needs.answers_subset and isinstance(self.task.answers, slice)
        self.given: dict[str, object] = {"asked": self.task.answers} if subset else {}
        if self.needs.n_scored_outputs > 1:
            self.given["every"] = True
        self.read = self.task.predictions if subset else self.task.read

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

        That is our autocast: the optimizer moves 32 bits. `data` hides from autograd that the state changes in place,
        which it does only after the gradients of a step are there.
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
        """Of the shape that the networks need; each member draws as if it were alone."""
        shape, batch = self.needs.noise_shape, self.settings.batch
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
        answers = outputs if self.needs.n_scored_outputs > 1 else outputs[None]
        scores = [self.score(self.task, self.read(o.reshape(-1, *o.shape[-2:])), y, points) for o in answers]
        loss = torch.stack([loss for loss, _ in scores]).mean(0) if len(scores) > 1 else scores[0][0]
        return loss, scores[-1][1]

    def _outputs(self, weights: Sequence[Tensor], tokens: Tensor, noise: Tensor | None) -> Tensor:
        """Of all members at once, or one after another where the network cannot batch them."""
        if len(self.members) == 1 or self.needs.batches_members:
            return self._output(weights, tokens, noise)
        alone = zip(*(part.split(1) for part in weights), strict=True)
        noises = itertools.repeat(None) if noise is None else noise
        return torch.stack([self._output(*own) for own in zip(alone, tokens, noises, strict=False)])

    def _output(self, weights: Sequence[Tensor], tokens: Tensor, noise: Tensor | None) -> Tensor:
        """The forward pass, after the weights are put into the network unless they are there."""
        given = self.given if noise is None else {**self.given, "noise": noise}
        if self.needs.needs_progress:
            given = {**given, "progress": self.state.step / self.settings.steps}
        if weights is not self.placed:  # as functional_call, but they stay
            for (parameters, name), tensor in zip(
                self.parameter_slots, self.layout.tensors(weights).values(), strict=True
            ):
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

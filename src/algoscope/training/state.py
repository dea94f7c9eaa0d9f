"""All that a training step changes."""

from dataclasses import dataclass, fields

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True, eq=False)
class State:
    """All that a step changes, in place, so that a recorded step can be replayed."""

    parameters: Float[Tensor, "members parameters"]
    first_moment: Float[Tensor, "members parameters"]
    second_moment: Float[Tensor, "members adam"]  # of the parameters that AdamW moves
    step: Int[Tensor, ""]
    stopped_at: Int[Tensor, "members"]  # the step at which a member diverged; −1 while it trains
    losses: Float[Tensor, "slots members"]  # of the latest steps
    errors: Float[Tensor, "slots members"]  # normalized, at the last position in use

    @staticmethod
    def fresh(parameters: Float[Tensor, "members parameters"], muon: int, slots: int) -> "State":
        """Before the first step; Muon moves the first `muon` parameters, and `slots` steps are remembered."""
        members, device = parameters.shape[0], parameters.device
        history = torch.zeros(slots, members, device=device, dtype=parameters.dtype)
        return State(
            parameters=parameters,
            first_moment=torch.zeros_like(parameters),
            second_moment=torch.zeros_like(parameters[:, muon:]),
            step=torch.zeros((), dtype=torch.int64, device=device),
            stopped_at=torch.full((members,), -1, device=device),
            losses=history,
            errors=torch.zeros_like(history),
        )

    def freeze_diverged(self) -> None:
        """Freezes members whose weights are not finite: a single step can be too long for any number."""
        diverged = ~self.parameters.sum(1).isfinite() & (self.stopped_at < 0)
        self.stopped_at.copy_(torch.where(diverged, self.step, self.stopped_at))

    def tensors(self) -> dict[str, Tensor]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        for name, tensor in self.tensors().items():
            tensor.copy_(tensors[name])

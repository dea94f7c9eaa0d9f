"""Read-outs: the best linear prediction of the target, or of any other column, from each stage of a model."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from algoscope import arguments
from algoscope.reading.moments import LinearMap, Moments, solve
from algoscope.reading.states import Show, States, open_model
from algoscope.tasks import Task
from algoscope.trace import Prompts, Trace

CHUNK = 100  # prompts in flight at once
VALIDATION = 5  # every fifth chunk chooses the ridge penalties
Columns = Callable[[Prompts], Float[Tensor, "batch points columns"]]


@dataclass(frozen=True, eq=False)
class Reading:
    """A model's states, and for each stage one linear map to the targets and to further columns.

    For each further column there is also one map to the same column of another sequence: its null.
    """

    states: States
    maps: Mapping[str, LinearMap]
    moments: Mapping[str, Moments]  # of what the maps were fitted to
    columns: Columns | None = None

    def trace(self, prompts: Prompts, advance: Callable[[int], None] = lambda prompts: None) -> Trace:
        """What each stage predicts, on prompts that the read-outs should not have seen."""
        return self.trace_and_decode(prompts, 0, advance)[0]

    def trace_and_decode(
        self, prompts: Prompts, first: int, advance: Callable[[int], None] = lambda prompts: None
    ) -> tuple[Trace, Float[Tensor, "batch stages columns"]]:
        """The trace, and how well each column is read from each stage at positions from `first` on.

        The value of a sequence is what the map explains of the column beyond what the map of the null explains of the
        null, relative to the variance of the column: its mean is a held-out R² above the null's.
        """
        predicted, explained, power = [], [], torch.zeros(())
        for chunk in chunks(prompts):
            wanted = self._wanted(chunk)
            states, targets = self.states.of(chunk), chunk.target_columns.shape[2]
            read = torch.stack([self.maps[stage](states[stage]) for stage in self.states.stages])
            predicted.append(read[..., :targets])
            lost = (read - wanted)[:, :, first:, targets:].square().sum(2)
            own, null = lost.movedim(0, 1).chunk(2, dim=-1)
            explained.append(null - own)
            power = power + wanted[:, first:, targets:].chunk(2, dim=-1)[0].square().sum((0, 1))
            advance(chunk.batch)
        values = torch.cat(predicted, dim=1).reshape(len(self.states.stages), *prompts.y.shape)
        decoded = torch.cat(explained) * prompts.batch / torch.where(power > 0, power, torch.nan)
        return Trace("the model", values, self.states.stages, prompts), decoded

    def scales(self) -> Float[Tensor, "stages columns"]:
        """The factor that brings each column closest to the read-out of each stage, on the fitted prompts."""
        rows = []
        for stage in self.states.stages:
            moments, linear = self.moments[stage], self.maps[stage]
            targets = (linear.weights.shape[1] - 1) // 2 if self.columns else linear.weights.shape[1]
            raise NotImplementedError(targets, moments, rows)
        return torch.stack(rows)

    def _wanted(self, prompts: Prompts) -> Float[Tensor, "batch points targets_and_columns_and_nulls"]:
        return _wanted(prompts, self.columns)

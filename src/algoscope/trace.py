"""Prompts and traces: the two things that travel between the rooms of this project.

Prompts are what a procedure is given. A trace is what it has computed after each of its stages: the steps of an
algorithm, or the layers, loops and look-ups of a model read out into the same space.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from algoscope import arguments, tables
from algoscope.spelling import nearest

Stage: TypeAlias = int | str


@dataclass(frozen=True, eq=False)
class Prompts:
    """A batch of sequences of pairs (x, y). At position t the first t pairs have been seen and y[t] is asked for.

    `y` has the shape [batch, points], or [batch, points, targets] where a target has several coordinates. Where only
    the last points are asked about, y has as many: the points `before` them are given, as is a set to be searched.
    `noise` is the standard deviation of the noise in y, and `power` is E[y²] per coordinate, the unit of the normalized
    error.
    """

    x: Float[Tensor, "batch points dim"]
    y: Shaped[Tensor, "batch asked *target"]
    noise: float = 0.0
    power: float | None = None  # None: the mean square of y itself

    def __post_init__(self) -> None:
        arguments.real("x", self.x)
        arguments.real("y", self.y, whole=True)
        if self.x.ndim != 3 or self.y.ndim not in (2, 3) or 0 in (*self.x.shape, *self.y.shape):
            shapes = f"x {list(self.x.shape)} and y {list(self.y.shape)}"
            raise ValueError(f"x must be [batch, points, dim] and y [batch, points] or [.., targets], got {shapes}")
        if self.x.shape[0] != self.y.shape[0] or self.x.shape[1] < self.y.shape[1]:
            raise ValueError(f"x and y must agree in batch and points, got {list(self.x.shape)}, {list(self.y.shape)}")
        arguments.number("noise", self.noise)
        if self.power is not None:
            arguments.number("power", self.power, strict=True)

    def __repr__(self) -> str:
        kind = str(self.x.dtype).removeprefix("torch.")
        shapes = f"x {list(self.x.shape)}, y {list(self.y.shape)}"
        return f"Prompts({shapes}, {kind} on {self.x.device}, noise {self.noise:g})"

    @property
    def batch(self) -> int:
        return self.x.shape[0]

    @property
    def positions(self) -> int:
        """How many points are asked about."""
        return self.y.shape[1]

    @property
    def before(self) -> int:
        """How many points come before the first that is asked about."""
        return self.x.shape[1] - self.y.shape[1]

    @property
    def dim(self) -> int:
        return self.x.shape[2]

    @property
    def target_columns(self) -> Shaped[Tensor, "batch points targets"]:
        """y with its target coordinates as a last axis, also where there is only one."""
        return self.y if self.y.ndim == 3 else self.y[..., None]

    def normalizer(self) -> float:
        """E[y²] per coordinate: what a mean squared error is divided by."""
        power = float(self.y.double().square().mean()) if self.power is None else self.power
        if power == 0:
            raise ValueError("y is zero everywhere, so errors have no unit: state power, E[y²]")
        return power

    def to(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> "Prompts":
        device = None if device is None else arguments.device(device)
        if not isinstance(dtype, torch.dtype | None):
            raise ValueError(f"dtype must be a type such as torch.float32, got {arguments.shown(dtype)}")
        return replace(self, x=self.x.to(device=device, dtype=dtype), y=self.y.to(device=device, dtype=dtype))

    def same_as(self, other: "Prompts") -> bool:
        if self is other or not isinstance(other, Prompts):
            return self is other
        pairs = ((self.x, other.x), (self.y, other.y))
        return all(a.shape == b.shape and torch.equal(a.cpu().double(), b.cpu().double()) for a, b in pairs)


@dataclass(frozen=True, eq=False)
class Trace:
    """What a procedure has computed after each stage, on given prompts.

    `values[k]` has the shape of `prompts.y`. `weights[k, b, t]` is the weight vector behind `values[k, b, t]` where the
    procedure has one. `converged[k, b, t]` tells whether that weight vector solves the method's own equations, and
    `note` says in words when it never will.
    """

    name: str
    values: Shaped[Tensor, "stages batch points *target"]
    stages: tuple[Stage, ...]
    prompts: Prompts
    weights: Float[Tensor, "stages batch points dim *target"] | None = None
    converged: Bool[Tensor, "stages batch points"] | None = None
    note: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.prompts, Prompts):
            raise ValueError(f"prompts must be Prompts, such as task.sample gives, got {type(self.prompts).__name__}")
        for name in ("values", "weights", "converged"):
            value = getattr(self, name)
            if not isinstance(value, Tensor) and (name == "values" or value is not None):
                raise ValueError(f"{name} must be a torch.Tensor, got {type(value).__name__}")
            if value is not None and not arguments.in_memory(value):
                raise ValueError(f"{name} must hold numbers, got a tensor without memory or a sparse one")
        if not isinstance(self.name, str) or not isinstance(self.note, str):
            raise ValueError(f"name must be a string, as note, got {arguments.shown((self.name, self.note))}")
        if not isinstance(self.stages, tuple | list) or not all(isinstance(each, int | str) for each in self.stages):
            raise ValueError(f"stages must be a tuple of names, got {arguments.shown(self.stages)}")
        if tuple(self.values.shape[1:]) != tuple(self.prompts.y.shape):
            got, want = list(self.values.shape), list(self.prompts.y.shape)
            raise ValueError(f"values must be [stages, *{want}], one for each target of the prompts, got {got}")
        if len(self.stages) != self.values.shape[0] or not self.stages:
            raise ValueError(f"stages must name each of the {self.values.shape[0]} stages, got {self.stages!r}")
        if len(set(self.stages)) != len(self.stages):
            raise ValueError(f"stages must have different names, got {self.stages!r}")
        batch, points, *target = self.prompts.y.shape
        weights, converged = (len(self), batch, points, self.prompts.dim, *target), (len(self), batch, points)
        for name, tensor, shape in (("weights", self.weights, weights), ("converged", self.converged, converged)):
            if tensor is not None and tuple(tensor.shape) != shape:
                raise ValueError(f"{name} must be {list(shape)}, got {list(tensor.shape)}")

    def __len__(self) -> int:
        return len(self.stages)

    def __repr__(self) -> str:
        first, last = self.stages[0], self.stages[-1]
        stages = f"stages {first}..{last}" if len(self) > 1 else f"stage {first}"
        note = f"; {self.note}" if self.note else ""
        return f"Trace({self.name}, {stages}, {self.prompts.batch} prompts, {self.prompts.positions} positions{note})"

    def _repr_html_(self) -> str:
        """Errors at up to five positions, evenly spread, the last among them."""
        errors, last = self.normalized_error(), self.prompts.positions - 1
        shown = sorted({round(last * k / 4) for k in range(5)})
        rows = [
            {"stage": stage, **{f"t = {self.prompts.before + t}": float(row[t]) for t in shown}}
            for stage, row in zip(self.stages, errors, strict=True)
        ]
        return tables.to_html(rows, f"{self!r}: normalized error by position")

    def residuals(self) -> Float[Tensor, "stages batch points targets"]:
        """Prediction minus target, in float64."""
        target = self.prompts.target_columns.double()
        return self.values.double().to(target.device).reshape(len(self), *target.shape) - target

    def normalized_error(self) -> Float[Tensor, "stages points"]:
        """Mean squared error by position, divided by E[y²]: 1 is the error of always predicting zero."""
        return self.residuals().square().mean(dim=(1, 3)) / self.prompts.normalizer()

    def select(self, stages: Sequence[Stage]) -> "Trace":
        """The same trace with only the named stages."""
        if not isinstance(stages, tuple | list) or not stages or not all(isinstance(s, int | str) for s in stages):
            raise ValueError(f"stages must be a list of at least one name, got {arguments.shown(stages)}")
        missing = [stage for stage in stages if stage not in self.stages]
        if missing:
            meant = nearest(missing[0], map(str, self.stages))
            raise ValueError(f"stages must be among {list(self.stages)}, got {missing}{meant}")
        index = torch.tensor([self.stages.index(stage) for stage in stages], device=self.values.device)
        return replace(
            self,
            values=self.values[index],
            stages=tuple(stages),
            weights=None if self.weights is None else self.weights[index],
            converged=None if self.converged is None else self.converged[index],
        )

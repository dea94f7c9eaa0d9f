"""Regression on features that have to be learned first (Gao et al. 2024; Guo et al. 2024).

The features are a network of leaky ReLUs, the same for all prompts: layers without biases, each followed by the
activation, with weights that keep the scale of what they are given.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from algoscope import arguments, randomness
from algoscope.contracts import Algorithm, Symmetry, Task
from algoscope.symmetries import PermuteExamples
from algoscope.tasks.candidates import on_features, spanning, spectral, steady_rate
from algoscope.tasks.regression import Pairs, in_use
from algoscope.trace import Prompts

SLOPE = 0.01  # of a leaky ReLU below zero
PROMPTS = 4096  # from which a scale is measured that has no formula


def keeps_scale(slope: float, inputs: int) -> float:
    """The deviation of random weights that, before a leaky ReLU, leave E[x²] as it is (He et al. 2015)."""
    return math.sqrt(2 / ((1 + slope**2) * inputs))


@dataclass(frozen=True)
class Representation:
    """Φ: `layers` layers of `width` units over vectors of `inputs` coordinates, drawn from `seed`.

    If `normalized`, what comes out has the length √width.
    """

    inputs: int
    width: int
    layers: int
    slope: float
    seed: int
    normalized: bool = False

    def matrices(self, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
        """Its weights, first to last."""
        return _matrices(self, torch.device(device), dtype)

    def __call__(self, x: Float[Tensor, "*batch inputs"]) -> Float[Tensor, "*batch width"]:
        for matrix in self.matrices(x.device, x.dtype):
            x = functional.leaky_relu(x @ matrix.mT, self.slope)
        return functional.normalize(x, dim=-1) * math.sqrt(self.width) if self.normalized else x

    @property
    def power(self) -> float:
        """E‖Φ(x)‖² for x ~ N(0, I)."""
        return _power(self)


@functools.cache
def _matrices(representation: Representation, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """Kept on the device: a recorded step must not wait for the host."""
    generator = randomness.stream("representation", representation.seed)
    drawn, inputs = [], representation.inputs
    for _ in range(representation.layers):
        matrix = torch.randn(representation.width, inputs, generator=generator, dtype=torch.float64)
        drawn.append((matrix * keeps_scale(representation.slope, inputs)).to(device, dtype))
        inputs = representation.width
    return tuple(drawn)


@functools.cache
def _power(representation: Representation) -> float:
    generators = [randomness.stream("power", representation.seed)]
    x = randomness.normal(generators, 4 * PROMPTS, representation.inputs, dtype=torch.float64)
    return float(representation(x).square().sum(-1).mean())


@dataclass(frozen=True)
class RepresentationRegression(Pairs):
    """In-context linear regression on a representation that has to be learned.

    y = A Φ(x) + noise·ε with x ~ N(0, I) and A ~ N(0, I), one A per sequence; Φ is the same for all.

    Φ has `depth` layers of `dim` units; `representation` is its seed. `represented` turns prompts into those of the
    linear regression that is left once Φ is known.
    """

    dim: int = 20  # size of x
    examples: int = 40  # pairs (x, y) before the query
    depth: int = 3  # layers of Φ
    noise: float = 0.0  # standard deviation of the noise in y
    targets: int = 1  # coordinates of y
    slope: float = SLOPE  # of its leaky ReLU
    representation: int = 0  # seed of Φ

    def __post_init__(self) -> None:
        _check(self)
        arguments.size("targets", self.targets)

    def algorithms(self) -> list[Algorithm]:
        """Also on x itself: a model may not have learned Φ."""
        return [
            *on_features(self, self.noise, self.dim, steady_rate(self)),
            *spectral(self.noise, self.dim, steady_rate(self, False)),
        ]

    def spanning(self) -> list[Algorithm]:
        return spanning(self)

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """A mixture, a sign or a rotation of x is none of Φ(x)."""
        return (PermuteExamples(),)

    @property
    def features(self) -> Representation:
        return Representation(self.dim, self.dim, self.depth, self.slope, self.representation)

    @property
    def power(self) -> float:
        return self.features.power + self.noise**2

    def draw(
        self,
        batch: int,
        generators: Sequence[torch.Generator],
        dtype: torch.dtype = torch.float64,
        dims: Tensor | None = None,
    ) -> tuple[Float[Tensor, "batch points dim"], Float[Tensor, "batch points *target"]]:
        normal = functools.partial(randomness.normal, generators, batch, dtype=dtype)
        x = in_use(normal(self.examples + 1, self.dim), dims)
        y = self.features(x) @ normal(self.dim, self.targets)
        if self.noise:
            y = y + self.noise * normal(self.examples + 1, self.targets)
        return x, y if self.targets > 1 else y[..., 0]

    def represented(self, prompts: Prompts) -> Prompts:
        """The same prompts with Φ(x) in place of x: y is linear in that."""
        return replace(prompts, x=self.features(prompts.x))

    def problems(self, prompts: Prompts) -> list[Prompts]:
        return [self.represented(prompts)]

    def solved(self, values: Sequence[Tensor]) -> Tensor:
        return values[0]


@dataclass(frozen=True)
class AutoregressiveRepresentation(Task):
    """An autoregressive series on a representation that has to be learned.

    x_{t+1} = A Φ(x_{t+1−order}, …, x_t) + noise·ε, with A of its own; Φ is the same for all.

    The series begins with x_1 ~ N(0, I); before that it is zero. Tokens are the x alone; each answers with the next. A
    recursion of this kind dies out or explodes, one A within few steps and another within many. So Φ is normalized, and
    A normal with E‖AΦ‖² = E‖x_1‖²: every series keeps its size, and the noise its share. With a `gain` Φ is as drawn,
    and A scaled so that a step multiplies the size by that on average; up to .3 none explodes (docs/log.md).
    """

    dim: int = 20  # size of x
    examples: int = 40  # steps of the series before the last
    order: int = 3  # past values that the next one depends on
    depth: int = 3  # layers of Φ
    noise: float = 1.0  # standard deviation of the noise in x
    gain: float | None = None  # how much a step multiplies the size; by default 1, by a norm
    slope: float = SLOPE  # of its leaky ReLU
    representation: int = 0  # seed of Φ

    def __post_init__(self) -> None:
        _check(self)
        arguments.size("order", self.order)
        if self.gain is not None:
            arguments.scale("gain", self.gain, strict=True)
        if self.order > self.examples:
            raise ValueError(f"order must be less than the length of the series, {self.length}, got {self.order}")

    def algorithms(self) -> list[Algorithm]:
        return on_features(self, self.noise, self.dim, steady_rate(self))

    def spanning(self) -> list[Algorithm]:
        return spanning(self)

    @property
    def features(self) -> Representation:
        inputs, seed = self.order * self.dim, self.representation
        return Representation(inputs, self.dim, self.depth, self.slope, seed, normalized=self.gain is None)

    @property
    def spread(self) -> float:
        """The deviation of an entry of A."""
        return (self.gain or 1.0) / math.sqrt(self.features.power)

    @property
    def power(self) -> float:
        return _series_power(self)

    @property
    def length(self) -> int:
        return self.examples + 1

    @property
    def inputs(self) -> int:
        return self.dim

    @property
    def outputs(self) -> int:
        return self.dim

    @property
    def answers(self) -> slice:
        return slice(None)

    def draw(
        self,
        batch: int,
        generators: Sequence[torch.Generator],
        dtype: torch.dtype = torch.float64,
        dims: Tensor | None = None,
    ) -> tuple[Float[Tensor, "batch points dim"], Float[Tensor, "batch points *target"]]:
        normal = functools.partial(randomness.normal, generators, batch, dtype=dtype)
        start, noise = normal(1, self.dim), normal(self.length, self.dim)
        step = self.spread * normal(self.dim, self.dim)
        series = [torch.zeros_like(start)] * (self.order - 1) + [in_use(start, dims)]
        for t in range(self.length):
            features = self.features(torch.cat(series[-self.order :], dim=-1))
            series.append(in_use(features @ step + self.noise * noise[:, t : t + 1], dims))
        x = torch.cat(series[self.order - 1 :], dim=1)
        return x[:, :-1], x[:, 1:] if self.dim > 1 else x[:, 1:, 0]

    def encode(
        self, x: Float[Tensor, "batch points dim"], y: Float[Tensor, "batch points *target"]
    ) -> Float[Tensor, "batch length inputs"]:
        return x

    def decode(self, tokens: Float[Tensor, "batch length inputs"]) -> Prompts:
        y = functional.pad(tokens[:, 1:], (0, 0, 0, 1))
        return Prompts(tokens, y if self.dim > 1 else y[..., 0], self.noise, self.power)

    def represented(self, prompts: Prompts) -> Prompts:
        """The same prompts with Φ(x_{t+1−order}, …, x_t) in place of x_t: the next is linear in that."""
        padded = functional.pad(prompts.x, (0, 0, self.order - 1, 0))
        window = [padded[:, k : k + prompts.positions] for k in range(self.order)]
        return replace(prompts, x=self.features(torch.cat(window, dim=-1)))

    def problems(self, prompts: Prompts) -> list[Prompts]:
        return [self.represented(prompts)]

    def solved(self, values: Sequence[Tensor]) -> Tensor:
        return values[0]


@functools.cache
def _series_power(task: AutoregressiveRepresentation) -> float:
    return float(task.draw(PROMPTS, [randomness.stream("power", task.representation)])[1].square().mean())


def _check(task: RepresentationRegression | AutoregressiveRepresentation) -> None:
    arguments.size("dim", task.dim)
    arguments.size("examples", task.examples, 0)
    arguments.integer("depth", task.depth, 1, 10_000)
    arguments.scale("noise", task.noise)
    arguments.scale("slope", task.slope)
    arguments.integer("representation", task.representation, 0)

"""In-context linear regression (Garg et al. 2022; Fu et al. 2023)."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from algoscope import arguments, randomness
from algoscope import symmetries as laws
from algoscope.contracts import Algorithm, Symmetry, Task
from algoscope.tasks.candidates import regressions, spanning
from algoscope.trace import Prompts

Matrix: TypeAlias = tuple[tuple[float, ...], ...]
SPIKE = 3.0  # times as long as all others: one direction of prompts that separate methods
COVARIANCES = ("isotropic", "ill-conditioned")


class Pairs(Task):
    """Tasks whose tokens are x and y in turn, y in the first coordinates (Garg et al. 2022). The last y is left out."""

    dim: int
    examples: int
    targets: int

    @property
    @final
    def length(self) -> int:
        return 2 * self.examples + 1

    @property
    @final
    def inputs(self) -> int:
        return max(self.dim, self.targets)

    @property
    @final
    def outputs(self) -> int:
        return self.targets

    @property
    @final
    def answers(self) -> slice:
        return slice(0, None, 2)  # the tokens of x, which have seen every earlier pair

    @final
    def encode(
        self, x: Float[Tensor, "batch points dim"], y: Float[Tensor, "batch points *target"]
    ) -> Float[Tensor, "batch length inputs"]:
        columns = y if y.ndim == x.ndim else y[..., None]
        pairs = [functional.pad(part, (0, self.inputs - part.shape[-1])) for part in (x, columns)]
        return torch.stack(pairs, dim=-2).flatten(-3, -2)[..., :-1, :]

    @final
    def decode(self, tokens: Float[Tensor, "batch length inputs"]) -> Prompts:
        y = functional.pad(tokens[:, 1::2, : self.targets], (0, 0, 0, 1))
        return Prompts(tokens[:, ::2, : self.dim], y if self.targets > 1 else y[..., 0], self.noise, self.power)


@dataclass(frozen=True)
class LinearRegression(Pairs):
    """In-context linear regression.

    y = w·x + noise·ε with w ~ N(0, I) and x ~ N(0, Σ), one w per sequence; y of `targets` coordinates has as many w.

    `covariance` is Σ: "isotropic" is the identity; "ill-conditioned" has half of its eigenvalues (rounded down) at
    `condition` and the others at 1, in an eigenbasis drawn uniformly for each sequence; or a matrix. `rescale`
    divides Σ so that E‖x‖² = dim, which the released code of Fu et al. does: without it gradient descent at rate .01
    diverges on ill-conditioned data.
    """

    dim: int = 20  # size of x
    examples: int = 40  # pairs (x, y) before the query
    # of x
    covariance: Literal["isotropic", "ill-conditioned"] | Matrix | Sequence[Sequence[float]] | Tensor = "isotropic"
    noise: float = 0.0  # standard deviation of the noise in y
    targets: int = 1  # coordinates of y
    condition: float = 100.0  # condition number, where it is ill-conditioned
    rescale: bool = False  # scale x so that E‖x‖² = dim

    def __post_init__(self) -> None:
        arguments.size("dim", self.dim)
        arguments.size("examples", self.examples, 0)
        arguments.scale("noise", self.noise)
        arguments.size("targets", self.targets)
        arguments.scale("condition", self.condition, 1.0)
        arguments.boolean("rescale", self.rescale)
        if isinstance(self.covariance, str):
            arguments.choice("covariance", self.covariance, COVARIANCES, alternative="a matrix")
        else:  # kept as nested tuples, so that tasks compare, hash and serialize
            object.__setattr__(self, "covariance", _checked_matrix(self.covariance, self.dim))

    def algorithms(self) -> list[Algorithm]:
        return regressions(self, self.dim)

    def spanning(self) -> list[Algorithm]:
        return spanning()

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """A covariance that is a matrix has directions that a rotation would change."""
        rotations = (laws.RotateInputs(),) if isinstance(self.covariance, str) else ()
        queries = (laws.AddQueries(),) if self.covariance == "isotropic" else ()
        examples = laws.PermuteExamples(), laws.MixExamples(), laws.FlipExamples()
        return laws.AddTargets(), *examples, *rotations, *queries, laws.ScaleInputs(), laws.ExchangeSpectrum()

    def separating(self) -> dict[str, Task]:
        """Where one direction is far larger than all others, methods differ in how soon they solve these."""
        if self.covariance != "isotropic" or self.dim < 2:
            return {}
        unit = self.dim / (self.dim - 1 + SPIKE**2)
        spiked = tuple(
            tuple(unit * (SPIKE**2 if i == 0 else 1.0) * (i == j) for j in range(self.dim)) for i in range(self.dim)
        )
        return {"prompts with one large direction": replace(self, covariance=spiked)}

    @property
    def power(self) -> float:
        scales, _ = _spectrum(self, torch.device("cpu"), torch.float64)
        return float(scales.square().sum()) + self.noise**2

    def draw(
        self,
        batch: int,
        generators: Sequence[torch.Generator],
        dtype: torch.dtype = torch.float64,
        dims: Tensor | None = None,
    ) -> tuple[Float[Tensor, "batch points dim"], Float[Tensor, "batch points *target"]]:
        device, normal = generators[0].device, functools.partial(randomness.normal, generators, batch, dtype=dtype)
        x = normal(self.examples + 1, self.dim)
        if self.covariance != "isotropic":
            scales, basis = _spectrum(self, device, dtype)
            x = (x * scales) @ basis.mT
            if self.covariance == "ill-conditioned":
                x = _rotated(x, normal(self.dim, self.dim))
        x = in_use(x, dims)
        y = x @ normal(self.dim, self.targets)
        if self.noise:
            y = y + self.noise * normal(self.examples + 1, self.targets)
        return x, y if self.targets > 1 else y[..., 0]


@functools.cache
def _spectrum(
    task: LinearRegression, device: torch.device, dtype: torch.dtype
) -> tuple[Float[Tensor, "dim"], Float[Tensor, "dim dim"]]:
    """Square roots of the eigenvalues of Σ, rescaled, and the eigenvectors that all sequences share.

    Kept on the device: a recorded step must not wait for the host.
    """
    values, basis = torch.ones(task.dim, dtype=torch.float64), torch.eye(task.dim, dtype=torch.float64)
    if task.covariance == "ill-conditioned":
        values[: task.dim // 2] = task.condition
    elif not isinstance(task.covariance, str):
        values, basis = torch.linalg.eigh(torch.tensor(task.covariance, dtype=torch.float64))
        values = values.clamp(min=0)
    if task.rescale:
        values = values * (task.dim / values.sum())
    return values.sqrt().to(device, dtype), basis.to(device, dtype)


def _rotated(
    x: Float[Tensor, "batch points dim"], gaussian: Float[Tensor, "batch dim dim"]
) -> Float[Tensor, "batch points dim"]:
    """Every sequence in an orthonormal basis of its own, uniform (Haar) but for the signs of its vectors.

    It is a product of reflections, one a dimension, each of which takes a Gaussian vector to an axis (Stewart 1980),
    as in a QR decomposition, which a GPU would make for one sequence after another.
    """
    mirrors = gaussian.triu()  # in its rows, the k-th of dim − k coordinates
    on_axis = mirrors.diagonal(dim1=-2, dim2=-1)
    on_axis += mirrors.norm(dim=-1).copysign(on_axis)
    mirrors = mirrors / mirrors.norm(dim=-1, keepdim=True)
    for mirror in reversed(mirrors.unbind(-2)):
        x = torch.baddbmm(x, x @ mirror[:, :, None], mirror[:, None], alpha=-2)
    return x


def in_use(x: Float[Tensor, "*batch dim"], dims: Tensor | None) -> Float[Tensor, "*batch dim"]:
    """With zero in the coordinates that a curriculum does not use yet."""
    return x if dims is None else torch.where(torch.arange(x.shape[-1], device=x.device) < dims, x, 0.0)


def _checked_matrix(value: object, dim: int) -> Matrix:
    matrix = arguments.matrix("covariance", value, dim, "one of 'isotropic', 'ill-conditioned'")
    values = torch.linalg.eigvalsh(matrix)
    symmetric = torch.allclose(matrix, matrix.T, rtol=1e-9, atol=1e-12)
    if not symmetric or values[0] < -1e-9 * values.abs().max() or values[-1] <= 0:
        lowest = f"smallest eigenvalue {float(values[0]):.3g}" if symmetric else "it is not symmetric"
        raise ValueError(f"covariance must be symmetric positive semidefinite and not zero; {lowest}")
    return tuple(tuple(row) for row in matrix.tolist())

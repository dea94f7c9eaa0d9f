"""In-context linear regression (Garg et al. 2022; Fu et al. 2023)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from algoscope import arguments
from algoscope.tasks.task import Task
from algoscope.trace import Prompts

Matrix: TypeAlias = tuple[tuple[float, ...], ...]
COVARIANCES = ("isotropic", "ill-conditioned")


@dataclass(frozen=True)
class LinearRegression(Task):
    """y = w·x + noise·ε with w ~ N(0, I) and x ~ N(0, Σ), one w per sequence; y of `targets` coordinates has as many w.

    `covariance` is Σ: "isotropic" is the identity; "ill-conditioned" has half of its eigenvalues (rounded down) at
    `condition` and the others at 1, in an eigenbasis drawn uniformly for each sequence; or a matrix. `rescale`
    divides Σ so that E‖x‖² = dim, which the released code of Fu et al. does: without it gradient descent at rate .01
    diverges on ill-conditioned data.
    """

    dim: int = 20
    examples: int = 40
    covariance: Literal["isotropic", "ill-conditioned"] | Matrix | Sequence[Sequence[float]] | Tensor = "isotropic"
    noise: float = 0.0
    targets: int = 1
    condition: float = 100.0
    rescale: bool = False

    def __post_init__(self) -> None:
        arguments.integer("dim", self.dim, 1)
        arguments.integer("examples", self.examples, 0)
        arguments.number("noise", self.noise)
        arguments.integer("targets", self.targets, 1)
        arguments.number("condition", self.condition, 1.0)
        if isinstance(self.covariance, str):
            arguments.choice("covariance", self.covariance, COVARIANCES, otherwise="a matrix")
        else:  # kept as nested tuples, so that tasks compare, hash and serialize
            object.__setattr__(self, "covariance", _checked_matrix(self.covariance, self.dim))

    def draw(self, batch: int, generator: torch.Generator) -> Prompts:
        def normal(*shape: int) -> Tensor:
            return torch.randn(shape, generator=generator, device=generator.device, dtype=torch.float64)

        if self.covariance == "ill-conditioned":
            basis = _orthogonal(normal(batch, self.dim, self.dim))
        else:
            basis = self._basis().to(generator.device)
        scales = self._spectrum().sqrt().to(generator.device)
        x = (normal(batch, self.examples + 1, self.dim) * scales) @ basis.mT
        y = x @ normal(batch, self.dim, self.targets) + self.noise * normal(batch, self.examples + 1, self.targets)
        power = float(self._spectrum().sum()) + self.noise**2
        return Prompts(x=x, y=y if self.targets > 1 else y[..., 0], noise=float(self.noise), power=power)

    def _spectrum(self) -> Float[Tensor, "dim"]:
        """The eigenvalues of Σ, after rescaling."""
        if isinstance(self.covariance, str):
            values = torch.ones(self.dim, dtype=torch.float64)
            values[: self.dim // 2] = self.condition if self.covariance == "ill-conditioned" else 1.0
        else:
            values = torch.linalg.eigvalsh(torch.tensor(self.covariance, dtype=torch.float64)).clamp(min=0)
        return values * (self.dim / values.sum()) if self.rescale else values

    def _basis(self) -> Float[Tensor, "dim dim"]:
        """The eigenvectors of Σ, as columns, where all sequences share them."""
        if isinstance(self.covariance, str):
            return torch.eye(self.dim, dtype=torch.float64)
        return torch.linalg.eigh(torch.tensor(self.covariance, dtype=torch.float64)).eigenvectors


def _orthogonal(gaussian: Float[Tensor, "batch dim dim"]) -> Float[Tensor, "batch dim dim"]:
    """Uniform (Haar) orthogonal matrices: QR of a Gaussian matrix, with the signs that QR leaves open made unique."""
    basis, triangle = torch.linalg.qr(gaussian)
    return basis * triangle.diagonal(dim1=-2, dim2=-1).sign()[:, None, :]


def _checked_matrix(value: object, dim: int) -> Matrix:
    try:
        matrix = torch.as_tensor(value, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"covariance must be one of {', '.join(COVARIANCES)} or a matrix, got {value!r}") from None
    if tuple(matrix.shape) != (dim, dim):
        raise ValueError(f"covariance must be a {dim} x {dim} matrix (dim = {dim}), got shape {list(matrix.shape)}")
    arguments.finite("covariance", matrix)
    values = torch.linalg.eigvalsh(matrix)
    symmetric = torch.allclose(matrix, matrix.T, rtol=1e-9, atol=1e-12)
    if not symmetric or values[0] < -1e-9 * values.abs().max() or values[-1] <= 0:
        lowest = f"smallest eigenvalue {float(values[0]):.3g}" if symmetric else "it is not symmetric"
        raise ValueError(f"covariance must be symmetric positive semidefinite and not zero; {lowest}")
    return tuple(tuple(row) for row in matrix.tolist())

"""Laws of regression. A prompt holds examples (x, y) and, as its last point, a query.

A law about the examples is read at the last position: a token before it is a query first, and then an example. All but
`ScaleInputs` leave the distribution of a linear regression on Gaussian inputs as it is: `AddQueries` where the inputs
are N(0, I), and `RotateInputs` where no direction of the inputs is special.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from algoscope import arguments, randomness
from algoscope.contracts import Answers, Change, Symmetry
from algoscope.trace import Prompts


@dataclass(frozen=True)
class AddTargets(Symmetry):
    """Targets y₁, y₂ and (y₁ + y₂)/√2 of the same inputs: answers that are linear in the targets add up alike.

    y₂ = x·w + noise·ε with w ~ N(0, I).
    """

    def change(self, prompts: Prompts, generator: torch.Generator) -> Change:
        y = prompts.target_columns
        other = prompts.x @ normal(generator, prompts.x, prompts.dim, y.shape[2])
        other = other + prompts.noise * normal(generator, prompts.x, *y.shape[1:])
        targets = [each.to(y).reshape(prompts.y.shape) for each in (other, (y + other) / math.sqrt(2))]
        return Change((prompts, *(replace(prompts, y=each) for each in targets)), added)


@dataclass(frozen=True)
class AddQueries(Symmetry):
    """Queries q₁, q₂ and (q₁ + q₂)/√2 after the same examples: a linear predictor's answers add up alike.

    q₂ ~ N(0, I). The last target, which is asked for, stays as it is: the answer to another query is not known.
    """

    def change(self, prompts: Prompts, generator: torch.Generator) -> Change:
        query = prompts.x[:, -1]
        other = normal(generator, prompts.x, prompts.dim)
        queries = [torch.cat((prompts.x[:, :-1], each[:, None]), 1) for each in (other, (query + other) / math.sqrt(2))]
        return Change((prompts, *(replace(prompts, x=each) for each in queries)), at_last(added))


@dataclass(frozen=True)
class PermuteExamples(Symmetry):
    """The examples in another order."""

    def change(self, prompts: Prompts, generator: torch.Generator) -> Change:
        x, y = examples(prompts)
        order = randomness.uniform([generator], *x.shape[:2]).argsort(-1).to(x.device)[..., None]
        parts = (part.gather(1, order.expand(part.shape)) for part in (x, y))
        return Change((prompts, with_examples(prompts, *parts)), at_last(unchanged))


@dataclass(frozen=True)
class MixExamples(Symmetry):
    """(X, y) → (QX, Qy) with a random orthogonal Q: each example becomes a mixture of all, and XᵀX and Xᵀy stay."""

    def change(self, prompts: Prompts, generator: torch.Generator) -> Change:
        x, y = examples(prompts)
        mixture = orthogonal(generator, x, x.shape[1])
        return Change((prompts, with_examples(prompts, mixture @ x, mixture @ y)), at_last(unchanged))


@dataclass(frozen=True)
class FlipExamples(Symmetry):
    """(xᵢ, yᵢ) → ±(xᵢ, yᵢ), with random signs."""

    def change(self, prompts: Prompts, generator: torch.Generator) -> Change:
        x, y = examples(prompts)
        signs = 1 - 2 * (randomness.uniform([generator], *x.shape[:2]) < 0.5).to(x)[..., None]
        return Change((prompts, with_examples(prompts, signs * x, signs * y)), at_last(unchanged))


@dataclass(frozen=True)
class RotateInputs(Symmetry):
    """x → Qx, with one random orthogonal Q a prompt."""

    def change(self, prompts: Prompts, generator: torch.Generator) -> Change:
        turned = prompts.x @ orthogonal(generator, prompts.x, prompts.dim)
        return Change((prompts, replace(prompts, x=turned)), unchanged)


@dataclass(frozen=True)
class ScaleInputs(Symmetry):
    """x → cx and y → cy, the noise in y with it: the weights between them stay, so answers are multiplied by c."""

    factor: float = 1.5  # c

    in_distribution = False

    def __post_init__(self) -> None:
        arguments.scale("factor", self.factor, strict=True)

    def change(self, prompts: Prompts, generator: torch.Generator) -> Change:
        c = self.factor
        power = None if prompts.power is None else c**2 * prompts.power
        scaled = Prompts(c * prompts.x, c * prompts.y, c * prompts.noise, power)
        return Change((prompts, scaled), lambda answers: (answers[1], c * answers[0]))


Law = Callable[[Sequence[Answers]], tuple[Tensor, Tensor]]


def unchanged(answers: Sequence[Answers]) -> tuple[Tensor, Tensor]:
    """The answers to the changed prompts are those to the prompts."""
    return answers[1], answers[0]


def added(answers: Sequence[Answers]) -> tuple[Tensor, Tensor]:
    """The third answers are those to the first and to the second, added and divided by √2."""
    return answers[2], (answers[0] + answers[1]) / math.sqrt(2)


def at_last(law: Law) -> Law:
    """The same law about the answers at the last position alone."""
    return lambda answers: law([each[:, :, -1:] for each in answers])


def examples(prompts: Prompts) -> tuple[Float[Tensor, "batch examples dim"], Float[Tensor, "batch examples targets"]]:
    """All points but the last, which is the query."""
    if prompts.before:
        raise ValueError("prompts must ask about every point, as those of a regression")
    return prompts.x[:, :-1], prompts.target_columns[:, :-1]


def with_examples(prompts: Prompts, x: Tensor, y: Tensor) -> Prompts:
    """The prompts with other examples, and the query and its target as they are."""
    targets = torch.cat((y, prompts.target_columns[:, -1:]), 1).reshape(prompts.y.shape)
    return replace(prompts, x=torch.cat((x, prompts.x[:, -1:]), 1), y=targets)


def normal(generator: torch.Generator, like: Tensor, *shape: int) -> Tensor:
    """Standard normal numbers for each prompt: on every device the same for a seed, in every dtype up to rounding."""
    return randomness.normal([generator], like.shape[0], *shape, dtype=torch.float64).to(like)


def orthogonal(generator: torch.Generator, like: Tensor, size: int) -> Float[Tensor, "batch size size"]:
    """An orthogonal matrix for each prompt, uniform (Haar): the signs make the decomposition unique (Mezzadri 2007)."""
    drawn = randomness.normal([generator], like.shape[0], size, size, dtype=torch.float64)
    basis, triangle = torch.linalg.qr(drawn)
    return (basis * triangle.diagonal(dim1=-2, dim2=-1).sign()[:, None]).to(like)

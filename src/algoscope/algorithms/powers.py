"""Powers and Chebyshev polynomials, accurate where the textbook expression is not."""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor


def powers_of_one_minus(value: Tensor, exponents: Iterable[int]) -> Iterator[Tensor]:
    """(1 − a)^n for a >= 0 and each n, to full relative accuracy in a also when a is tiny and n is huge (Newton: 2^k).

    All that does not depend on n is done once: methods keep many steps.
    """
    value = torch.where(
        (value - 2).abs() < 1e-12, 2.0, value
    )  # |1 − a| is 1 there but for rounding, which n would blow up
    logarithm = torch.where(value < 1, torch.log1p(-value.clamp(max=1)), torch.log((value - 1).clamp(min=0)))
    constant, negative = logarithm == 0, value > 1
    for exponent in exponents:
        size = float(min(exponent, 10**300))
        magnitude = torch.exp(torch.where(constant, 0.0, size * logarithm)) if exponent else torch.ones_like(value)
        yield torch.where(negative, -magnitude, magnitude) if exponent % 2 else magnitude


def chebyshev_first(degree: int, z: Tensor) -> Tensor:
    """T_n(z) on [−1, 1]."""
    return _parity(degree, z) * torch.cos(degree * _angle(z))


def chebyshev_second(degree: int, z: Tensor) -> Tensor:
    """U_n(z) on [−1, 1], with U_{−1} = 0."""
    angle = _angle(z)
    inside = torch.where(angle > 0, angle, 1.0)
    ratio = torch.where(angle > 0, torch.sin((degree + 1) * inside) / torch.sin(inside), degree + 1.0)
    return _parity(degree, z) * ratio


def _angle(z: Tensor) -> Tensor:
    """arccos|z|: near z = −1 the angle itself would lose what the parity of the polynomial keeps."""
    return torch.acos(z.abs().clamp(max=1))


def _parity(degree: int, z: Tensor) -> Tensor:
    return torch.where(z < 0, -1.0 if degree % 2 else 1.0, 1.0)

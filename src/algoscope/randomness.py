"""Independent streams of random numbers out of one seed."""

import hashlib
from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def stream(purpose: str, seed: int, device: torch.device | str = "cpu") -> torch.Generator:
    """A generator for one purpose: the same seed gives unrelated numbers to different purposes.

    Seeding two generators alike makes their draws copies of each other, whatever the distributions: prompts and random
    starts drawn from seed 0 were correlated until they had streams of their own (docs/log.md).
    """
    digest = hashlib.sha256(f"{purpose}:{seed}".encode()).digest()
    return torch.Generator(device).manual_seed(int.from_bytes(digest[:8]) >> 1)


def normal(generators: Sequence[torch.Generator], batch: int, *shape: int, dtype: torch.dtype) -> Tensor:
    """Standard normal numbers; each of the generators draws an equal share of the batch."""
    return _shared(torch.randn, generators, batch, *shape, dtype=dtype)


def uniform(
    generators: Sequence[torch.Generator], batch: int, *shape: int, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Numbers from 0 up to but not 1, in 32 bits multiples of 2^−24; each of the generators draws an equal share."""
    return _shared(torch.rand, generators, batch, *shape, dtype=dtype)


def _shared(
    draw: Callable[..., Tensor], generators: Sequence[torch.Generator], batch: int, *shape: int, dtype: torch.dtype
) -> Tensor:
    share, device = batch // len(generators), generators[0].device
    drawn = [draw(share, *shape, generator=each, device=device, dtype=dtype) for each in generators]
    return drawn[0] if len(drawn) == 1 else torch.cat(drawn)

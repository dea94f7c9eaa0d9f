"""Independent streams of random numbers out of one seed."""

import hashlib

import torch


def stream(purpose: str, seed: int, device: torch.device | str = "cpu") -> torch.Generator:
    """A generator for one purpose: the same seed gives unrelated numbers to different purposes.

    Seeding two generators alike makes their draws copies of each other, whatever the distributions: prompts and random
    starts drawn from seed 0 were correlated until they had streams of their own (docs/log.md).
    """
    digest = hashlib.sha256(f"{purpose}:{seed}".encode()).digest()
    return torch.Generator(device).manual_seed(int.from_bytes(digest[:8]) >> 1)

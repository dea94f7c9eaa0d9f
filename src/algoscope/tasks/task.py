"""What every task provides."""

from abc import ABC, abstractmethod
from typing import final

import torch

from algoscope import arguments
from algoscope.randomness import stream
from algoscope.trace import Prompts


class Task(ABC):
    """A distribution of prompts. Concrete tasks are frozen dataclasses whose fields are its dials."""

    @abstractmethod
    def draw(self, batch: int, generator: torch.Generator) -> Prompts:
        """`batch` prompts in float64 on the generator's device; all randomness comes from the generator."""

    @final
    def sample(
        self, batch: int, seed: int, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float64
    ) -> Prompts:
        """`batch` prompts that depend on `seed` alone.

        They are drawn in float64 on the CPU and then moved, so a seed names the same prompts on every device and, up to
        rounding, in every dtype. Keep float64 where algorithms are compared: rounding y to float32 is label noise.
        """
        arguments.integer("batch", batch, 1)
        arguments.integer("seed", seed, 0)
        if not dtype.is_floating_point:
            raise ValueError(f"dtype must be a floating-point type, got {dtype}")
        return self.draw(batch, stream("prompts", seed)).to(device, dtype)

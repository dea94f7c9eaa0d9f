"""What every task provides."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal, final

import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.nn import functional

from algoscope import arguments
from algoscope.randomness import stream
from algoscope.trace import Prompts


class Task(ABC):
    """A distribution of prompts, and how a prompt becomes tokens. Concrete tasks are frozen dataclasses.

    A model sees `length` tokens of `inputs` coordinates and answers each with `outputs` coordinates; `encode` makes the
    tokens, and the predictions, one for each target, are read at the tokens `answers`.
    """

    family: ClassVar[str] = "regression"  # an algorithm of the same family makes sense of its prompts
    gradual: ClassVar[bool] = True  # whether it has easier prompts, those of fewer dimensions, for a curriculum
    noise: float = 0.0
    answer: Literal["number", "chance", "choice"] = "number"  # see `loss`

    @property
    @abstractmethod
    def power(self) -> float:
        """The unit of the normalized error: E[y²] per coordinate, or of a choice what a blind guess costs."""

    @property
    @abstractmethod
    def length(self) -> int: ...

    @property
    @abstractmethod
    def inputs(self) -> int: ...

    @property
    @abstractmethod
    def outputs(self) -> int: ...

    @property
    @abstractmethod
    def answers(self) -> slice | tuple[int, ...]:
        """Which tokens answer."""

    @property
    @final
    def positions(self) -> int:
        """How many predictions a prompt asks for."""
        return len(self.answering)

    @property
    @final
    def answering(self) -> Sequence[int]:
        """The tokens that answer, one by one."""
        return range(self.length)[self.answers] if isinstance(self.answers, slice) else self.answers

    @abstractmethod
    def draw(
        self,
        batch: int,
        generators: Sequence[torch.Generator],
        dtype: torch.dtype = torch.float64,
        dims: Tensor | None = None,
    ) -> tuple[Float[Tensor, "batch points dim"], Shaped[Tensor, "batch points *target"]]:
        """x and y of `batch` prompts, on the generators' device; all randomness comes from the generators.

        Each of them draws an equal share, in order, and the same numbers as if it were alone: see `randomness.normal`.
        `dims`, where a curriculum asks for easier prompts, is how many input coordinates are in use.
        """

    @abstractmethod
    def encode(
        self, x: Float[Tensor, "batch points dim"], y: Shaped[Tensor, "batch points *target"]
    ) -> Float[Tensor, "batch length inputs"]: ...

    @final
    def at_answers(self, tokens: Float[Tensor, "*batch length width"]) -> Float[Tensor, "*batch points width"]:
        """Of something that every token has, what those have that answer."""
        if isinstance(self.answers, slice):
            return tokens[..., self.answers, :]
        return tokens.index_select(-2, _places(self.answers, tokens.device))

    @final
    def read(self, outputs: Float[Tensor, "batch length outputs"]) -> Shaped[Tensor, "batch points *target"]:
        """The predictions; a target of one coordinate has no axis of its own, and one that is a choice has its options.

        A network may leave out the outputs before the tokens that answer, where these are counted from the end.
        """
        return self.predictions(self.at_answers(outputs))

    @final
    def predictions(self, outputs: Float[Tensor, "batch points outputs"]) -> Shaped[Tensor, "batch points *target"]:
        """The same, of outputs of the tokens that answer alone."""
        return outputs if self.outputs > 1 or self.answer == "choice" else outputs[..., 0]

    @final
    def loss(
        self, predictions: Float[Tensor, "batch points *answer"], y: Float[Tensor, "batch points *target"]
    ) -> Float[Tensor, "batch points *target"]:
        """What each prediction costs, which depends on what an answer is.

        A "number" costs its squared error. A "chance", the logit of how likely y is 1 instead of 0, and a "choice", a
        logit for each option of which y is the number, cost their cross-entropy.
        """
        if self.answer == "chance":
            return functional.binary_cross_entropy_with_logits(predictions, y, reduction="none")
        if self.answer == "choice":
            return functional.cross_entropy(predictions.movedim(-1, 1), y.long(), reduction="none")
        return (predictions - y).square()

    @final
    def sample(
        self,
        batch: int,
        seed: int,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float64,
        purpose: str = "prompts",
    ) -> Prompts:
        """`batch` prompts that depend on `seed` and `purpose` alone: other purposes never see the same prompts.

        They are drawn in float64 on the CPU and then moved, so a seed names the same prompts on every device and, up to
        rounding, in every dtype. Keep float64 where algorithms are compared: rounding y to float32 is label noise.
        """
        arguments.integer("batch", batch, 1, 2**31)
        arguments.integer("seed", seed, 0)
        if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
            raise ValueError(f"dtype must be a floating-point type such as torch.float32, got {dtype!r}")
        chosen = arguments.device(device)
        x, y = self.draw(batch, [stream(purpose, seed)])
        return Prompts(x, y, float(self.noise), self.power).to(chosen, dtype)


@functools.cache
def _places(indices: tuple[int, ...], device: torch.device) -> Tensor:
    """Kept on the device: a recorded step must not wait for the host."""
    return torch.tensor(indices, device=device)

"""What a task, an algorithm and a measure provide: rooms depend on these contracts instead of on each other."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from typing import ClassVar, Literal, final

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor
from torch.nn import functional

from algoscope import arguments
from algoscope.randomness import stream
from algoscope.trace import Prompts, Trace


class Task(ABC):
    """A distribution of prompts, and how a prompt becomes tokens. Concrete tasks are frozen dataclasses.

    A model sees `length` tokens of `inputs` coordinates and answers each with `outputs` coordinates; `encode` makes the
    tokens, and the predictions, one for each target, are read at the tokens `answers`.
    """

    family: ClassVar[str] = "regression"  # an algorithm of the same family makes sense of its prompts
    gradual: ClassVar[bool] = True  # whether it has easier prompts, those of fewer dimensions, for a curriculum
    noise: float = 0.0
    answer: Literal["number", "chance", "choice"] = "number"  # see `loss`

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if "__post_init__" in cls.__dict__:
            cls.__post_init__ = arguments.checking(cls.__post_init__)

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

    def algorithms(self) -> list["Algorithm"]:
        """Those that people know for it: what `identify` compares a model with, unless it is given others."""
        return []

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
        if not isinstance(purpose, str):
            raise ValueError(f"purpose must be a string, got {arguments.shown(purpose)}")
        if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
            raise ValueError(f"dtype must be a floating-point type such as torch.float32, got {arguments.shown(dtype)}")
        chosen = arguments.device(device)
        x, y = self.draw(batch, [stream(purpose, seed)])
        return Prompts(x, y, float(self.noise), self.power).to(chosen, dtype)


@functools.cache
def _places(indices: tuple[int, ...], device: torch.device) -> Tensor:
    """Kept on the device: a recorded step must not wait for the host."""
    return torch.tensor(indices, device=device)


class Algorithm(ABC):
    """A known procedure. Concrete algorithms are frozen dataclasses whose fields are the method's parameters."""

    family: ClassVar[str] = "regression"  # whose prompts it makes sense of: see `Task.family`

    def __init_subclass__(cls, **options: object) -> None:
        """What every `trace` checks, so that none has to: that it is given prompts."""
        super().__init_subclass__(**options)
        if "__post_init__" in cls.__dict__:
            cls.__post_init__ = arguments.checking(cls.__post_init__)
        if "trace" in cls.__dict__:
            cls.trace = _given_prompts(cls.trace)

    @abstractmethod
    def trace(self, prompts: Prompts) -> Trace:
        """Every kept step at every prefix t = 0..examples, in one batched float64 pass."""

    @property
    def name(self) -> str:
        """The class, and those parameters other than steps and look-ups that are not at their defaults."""
        told = []
        for field in fields(self) if is_dataclass(self) else ():
            value = getattr(self, field.name)
            shown = value if isinstance(value, str | int | float | None) else "…"
            if field.name not in ("steps", "lookups") and shown != field.default:
                told.append(f"{field.name}={shown}")
        return f"{type(self).__name__}({', '.join(told)})" if told else type(self).__name__


def _given_prompts(trace: Callable[..., Trace]) -> Callable[..., Trace]:
    @functools.wraps(trace)
    def checked(self: Algorithm, prompts: Prompts) -> Trace:
        if not isinstance(prompts, Prompts):
            raise ValueError(f"prompts must be Prompts, such as task.sample gives, got {type(prompts).__name__}")
        if self.family == "regression" and prompts.before:
            raise ValueError(f"prompts must ask about every point, as those of a regression, for {self.name}")
        return trace(self, prompts)

    return checked


class Scale:
    """What the numbers of a comparison mean."""

    name: ClassVar[str]
    larger_is_closer: ClassVar[bool] = True
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    resolution: ClassVar[float] = 1e-12  # smaller differences are rounding


class Measure(Scale, ABC):
    """`per_sequence[b, i, j]` compares stage i of one trace with stage j of another on sequence b."""

    @abstractmethod
    def per_sequence(self, a: Trace, b: Trace, at: Bool[Tensor, "positions"]) -> Float[Tensor, "batch a b"]: ...

    @abstractmethod
    def null(self, like: Trace) -> Trace:
        """A trace of one stage on the same prompts that has used none of the examples."""

"""A distribution of prompts, how a prompt becomes tokens, and how what a model makes of these becomes a trace."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, final

import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.nn import functional

from algoscope import arguments
from algoscope.contracts.algorithm import Algorithm, Memory
from algoscope.contracts.measure import Measure
from algoscope.contracts.symmetry import Symmetry
from algoscope.randomness import stream
from algoscope.trace import Prompts, Trace

Show = Callable[[Tensor], Mapping[str, Tensor]]  # tokens [batch, length, inputs] to states [batch, length, width]
View = Callable[[dict[str, Tensor], Tensor], dict[str, Tensor]]  # see `States`


class Task(ABC):
    """A distribution of prompts, and how a prompt becomes tokens. Concrete tasks are frozen dataclasses.

    A model sees `length` tokens of `inputs` coordinates and answers each with `outputs` coordinates; `encode` makes the
    tokens, and the predictions, one for each target, are read at the tokens `answers`.
    """

    family: ClassVar[str] = "regression"  # an algorithm of the same family makes sense of its prompts
    gradual: ClassVar[bool] = True  # whether it has easier prompts, those of fewer dimensions, for a curriculum
    noise: float = 0.0
    answer: Literal["number", "chance", "choice"] = "number"  # see `loss`
    reader: ClassVar["Reader | None"] = None  # how a model's stages become a trace; None: by the kind of answer
    measure: ClassVar[Measure | None] = None  # how alike two traces are; None: by the kind of answer
    first: ClassVar[int] = 1  # position from which on answers are compared: before it, nothing has been seen

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

    def algorithms(self) -> list[Algorithm]:
        """Those that people know for it: what `identify` compares a model with, unless it is given others."""
        return []

    def spanning(self) -> list[Algorithm]:
        """What else mixtures of algorithms hold, each step with a gain of its own at every position."""
        return []

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """Laws that tell its algorithms apart; those that are `in_distribution` give prompts as likely as its own."""
        return ()

    def separating(self) -> "Mapping[str, Task]":
        """Tasks of the same form on whose prompts its algorithms differ more, by what these prompts are called."""
        return {}

    @property
    @final
    def labels(self) -> bool:
        """Whether answers are labels, which are equal or not, instead of numbers."""
        return self.answer != "number"

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

    def decode(self, tokens: Float[Tensor, "batch length inputs"]) -> Prompts:
        """The inverse of `encode`, up to rounding; targets that no token shows are zero. Planted models need it."""
        raise ValueError(f"{type(self).__name__} must have a method decode, so that algorithms can be planted")

    def held_out(self) -> "Task":
        """The same task on data that no model is trained with; itself where prompts are generated."""
        return self

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


@dataclass(frozen=True)
class States:
    """What the stages of a `model` hold at the tokens that answer.

    `norm` says how they are seen: "none" as they are, all alike; "each" after a LayerNorm without weights, all alike;
    "last" as they are, but the last one after the model's own final norm, which is how Fu et al. read theirs. A `view`
    makes of all of them, and of x at the same positions, what is read instead.
    """

    task: Task
    model: object
    show: Show
    stages: tuple[str, ...]
    device: torch.device
    dtype: torch.dtype
    norm: str = "none"
    view: View | None = None

    @torch.no_grad()
    def of(self, prompts: Prompts, position: int | None = None) -> dict[str, Float[Tensor, "batch points width"]]:
        """The states in float64, on the CPU, at all positions or at one."""
        shown, tokens = self.shown(prompts), (prompts.batch, self.task.length)
        at = slice(None) if position is None else slice(position, position + 1)
        seen = {stage: self._seen(stage, shown[stage], tokens)[:, at].cpu().double() for stage in self.stages}
        return seen if self.view is None else self.view(seen, prompts.x[:, prompts.before :][:, at].cpu().double())

    @torch.no_grad()
    def shown(self, prompts: Prompts) -> Mapping[str, Tensor]:
        """The states as the model shows them."""
        shown = self.show(self.task.encode(prompts.x, prompts.y).to(self.device, self.dtype))
        if not isinstance(shown, Mapping) or not all(isinstance(state, Tensor) for state in shown.values()):
            raise ValueError(f"the model must show its states as tensors by name, got {type(shown).__name__}")
        missing = [stage for stage in self.stages if stage not in shown]
        if missing:
            raise ValueError(f"the model did not show its stages {missing}; it showed {list(shown)}")
        return shown

    def _seen(self, stage: str, state: Tensor, tokens: tuple[int, ...]) -> Tensor:
        if state.ndim != 3 or state.shape[:2] != tokens:
            want = f"[{tokens[0]}, {tokens[1]}, width], one state a token"
            raise ValueError(f"the state of stage {stage!r} must be {want}, got {list(state.shape)}")
        arguments.finite(f"the state of stage {stage!r}", state)
        state = self.task.at_answers(state)
        return functional.layer_norm(state.double(), state.shape[-1:]) if self.norm == "each" else state


class Reading(ABC):
    """A reader that has been fitted to the stages of one model."""

    @abstractmethod
    def trace(self, prompts: Prompts) -> Trace:
        """What each stage predicts, on prompts that the reader was not fitted to."""

    def memory(self) -> Memory | None:
        """Where the model counts, if that is what it does."""
        return None


class Reader(ABC):
    """How the stages of a model become a trace. `first | second` is the first reader that applies to a model."""

    @abstractmethod
    def applies(self, states: States) -> bool:
        """Whether it can read this model."""

    @abstractmethod
    def fit(self, states: States, prompts: Prompts) -> Reading:
        """Fits whatever is to be fitted on prompts that no comparison sees."""

    def write(
        self,
        values: Shaped[Tensor, "stages batch points *target"],
        task: Task,
        noise: float,
        fixed: torch.Generator,
        drawn: torch.Generator,
    ) -> dict[str, Float[Tensor, "batch length width"]] | None:
        """States that are read as these values, with noise: what planted models show. None: it cannot write.

        What belongs to the model comes from `fixed`, what differs from batch to batch from the generator `drawn`.
        """
        return None

    def chosen(self, states: States) -> "Reader":
        """Of several, the one that reads this model."""
        return self

    @final
    def __or__(self, other: "Reader") -> "Reader":
        return FirstOf(self, other)


class FirstOf(Reader):
    """The first of several readers that applies to a model, and the first that can write."""

    def __init__(self, *readers: Reader) -> None:
        self.readers = readers

    def applies(self, states: States) -> bool:
        return any(reader.applies(states) for reader in self.readers)

    def chosen(self, states: States) -> Reader:
        return next((reader.chosen(states) for reader in self.readers if reader.applies(states)), self.readers[-1])

    def fit(self, states: States, prompts: Prompts) -> Reading:
        return self.chosen(states).fit(states, prompts)

    def write(
        self,
        values: Shaped[Tensor, "stages batch points *target"],
        task: Task,
        noise: float,
        fixed: torch.Generator,
        drawn: torch.Generator,
    ) -> dict[str, Float[Tensor, "batch length width"]] | None:
        written = (reader.write(values, task, noise, fixed, drawn) for reader in self.readers)
        return next((states for states in written if states is not None), None)

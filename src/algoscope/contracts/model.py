"""What learns: a description of a network, and the network that it builds."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

from algoscope import arguments
from algoscope.spelling import nearest

Edits: TypeAlias = Mapping[str, Callable[[Tensor], Tensor]]  # by stage: from its state to what goes on instead
NO_EDITS: Edits = MappingProxyType({})


class Place(NamedTuple):
    """Coordinates of a stream, and a description of their content."""

    where: slice
    content: str


@dataclass(frozen=True)
class TrainingNeeds:
    """What training must know to call a network, and what it may do to be faster."""

    noise_shape: tuple[int, ...] = ()  # of the uniform numbers that a sequence takes; without them a network tests
    needs_progress: bool = False  # takes `progress`: the share of training that is over, from 0 to 1
    n_scored_outputs: int = 1  # answers in the loss: more than one where a network answers again and again
    batches_members: bool = True  # parameters may carry a leading axis of members; if not, members take turns
    deferred_weight_grads: bool = False  # a pass uses each parameter once, so their gradients may be computed last
    answers_subset: bool = False  # `run` takes `asked`, the tokens that answer, and skips the others


class Network(nn.Module, ABC):
    """A network over token vectors that can show its state after each stage.

    `stages` names the stages in order. `run` returns the outputs and the states that were asked for, and no others. A
    network whose stages are states of tokens also takes `edits`, which replace what goes on after some of them.

    A bias that changes no answer, such as one that a softmax or a mean cancels, is marked as `idle`, and training
    leaves it at zero. Its gradient is rounding alone, which AdamW would follow at full speed, since it normalizes every
    gradient, until rounding the large bias swamps the numbers that matter (docs/training.md).
    """

    stages: tuple[str, ...]
    blocks: nn.ModuleList  # of one form: what is compiled for one serves all
    ends: tuple[str, ...] = ()  # its methods before and after the blocks, each compiled as a whole
    places: Mapping[str, Place] = MappingProxyType({})  # of its stream, by name, where they are known
    whole: bool = False  # whether it makes sense of prompts of its full length alone
    append_only: bool = False  # whether nothing in its stream is ever overwritten, so that its head reads every stage
    training_needs: TrainingNeeds = TrainingNeeds()

    @abstractmethod
    def run(
        self, tokens: Float[Tensor, "*batch length inputs"], keep: Collection[str] = ()
    ) -> tuple[Float[Tensor, "*batch length outputs"], dict[str, Float[Tensor, "*batch length width"]]]: ...

    def forward(
        self, tokens: Float[Tensor, "*batch length inputs"], every: bool = False, **given: Any
    ) -> Float[Tensor, "*scored answers outputs"]:
        """`given` is what `training_needs` names: `noise`, `progress` or `asked`. With `every`, all scored answers."""
        return self.answers(tokens, **given) if every else self.run(tokens, **given)[0]

    def answers(
        self, tokens: Float[Tensor, "*batch length inputs"], noise: Tensor | None = None
    ) -> Float[Tensor, "scored *batch length outputs"]:
        """Those in the loss of training, stacked, the last one last; `noise` for a network that takes it."""
        return self(tokens, **({} if noise is None else {"noise": noise}))[None]

    def check_stages(self, keep: Collection[str]) -> None:
        unknown = [name for name in keep if name not in self.stages]
        if unknown:
            meant = nearest(unknown[0], self.stages)
            raise ValueError(f"stages must be among {list(self.stages)}, got {unknown}{meant}")

    @property
    def parameter_count(self) -> int:
        return sum(parameter.numel() for parameter in self.parameters())


class Model(ABC):
    """Describes a network up to what the task decides. Concrete models are frozen dataclasses."""

    family: ClassVar[str | None] = None  # of the tasks that it can be trained on (`Task.family`), if not all
    version: ClassVar[int] = 1  # raised when the same description builds another network; stored with results

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if "__post_init__" in cls.__dict__:
            cls.__post_init__ = arguments.checking(cls.__post_init__)

    @abstractmethod
    def build(self, inputs: int, outputs: int, length: int, generator: torch.Generator) -> Network:
        """A fresh network for at most `length` tokens of `inputs` coordinates; all draws come from `generator`."""

"""Gradient descent on the layer that a chain of thought has come to (Gao et al., Theorem 3.3).

Prompts are chains x, s¹, …, s^L, and the last one breaks off at some state: its token asks for the next. Every token
attends to the last one, learns which state of a chain is wanted, and keeps itself only if it is such a state: what is
left is a regression from these states to the next ones, with the activation undone.

A token that is left out must hold exactly nothing: a state s with |s| < B passes a gate g of 0 or 1 as
ReLU(s + B(g − 1)) − ReLU(−s + B(g − 1)). The proof refers to seven layers of another paper for all this; two suffice.
It also says that the activation can be ignored without loss of generality: it can be undone, by the same two units, but
only since its slope is not zero.
"""

import torch

from algoscope import arguments
from algoscope.constructions.loop import ASIDE, LARGE, SHARP, SMALL, LoopConstruction
from algoscope.constructions.stream import one, write_head, write_units
from algoscope.models.algoformer import AlgoFormerNetwork
from algoscope.tasks import ChainOfThought


class Chains(LoopConstruction):
    silent = "last"

    def __init__(self, task: ChainOfThought, loops: int, small: float, large: float) -> None:
        self.levels, dim = task.depth + 1, task.dim
        super().__init__(
            task, 2, 1, loops, small, large, 2,
            next=(dim, "the next token"),
            level=(self.levels, "1 for the place of a token in its chain"),
            wanted=(self.levels, "that of the last token"),
            end=(1, "the place of the last token"),
            keep=(1, "1 where the level is the wanted one"),
            last=(1, "1 at the last token"),
            x=(dim, "the state, where it is kept"),
            r=(dim, "W x − the next state, where it is kept"),
            prediction=(dim, "the next state, which is read out"),
        )  # fmt: skip
        self.network.whole = False  # a prompt may end anywhere

    def gather(self) -> None:
        """The level and the place of the last token, and the token that comes next."""
        tokens = torch.arange(self.network.length)
        self.positions[tokens + 1, self.stream["level"].start + tokens % self.levels] = 1.0
        later, aside = one(2)[:, :1], one(2)[:, 1:]
        flags = one(self.levels + 1)
        write_head(
            self.network.blocks[0], 0, self.stream,
            query={"point": SHARP * later - ASIDE * aside, "all": ASIDE * aside},
            key={"place": later @ torch.tensor([[1.0, 0.0, 1.0]]).double(), "blank": aside},
            value={"level": flags[:, :-1], "place": flags[:, -1:] @ torch.tensor([[1.0, 0.0, 0.0]]).double()},
            output={"wanted": flags[:-1], "end": flags[-1:]},
        )  # fmt: skip
        self.copy(1, "next", {"point": 1.0}, offset=1.0)

    def choose(self) -> None:
        """Which tokens are kept, and which is the last: level and wanted agree where their sum is 2."""
        block, levels, single = self.network.blocks[0], one(self.levels), one(1)
        every = torch.ones(self.levels, 1).double()
        write_units(block, self.stream, {"level": levels, "wanted": levels, "all": -every}, {"keep": every.T})
        place = torch.tensor([[1.0, 0.0, 0.0]]).double()
        write_units(block, self.stream, {"point": single, "end": -single, "place": place}, {"last": single})

    def keep(self, bound: float, slope: float) -> None:
        """x and r of the tokens that are kept; the last one has no next state."""
        block, states = self.network.blocks[1], one(self.stream.size("x"))
        gate = bound * torch.ones(len(states), 1).double()
        for sign, undone in ((1.0, 1.0), (-1.0, 1 / slope)):
            write_units(block, self.stream, {"token": sign * states, "keep": gate, "all": -gate}, {"x": sign * states})
            given = {"next": sign * states, "keep": gate, "last": -gate, "all": -gate}
            write_units(block, self.stream, given, {"r": -sign * undone * states})


def chain_of_thought(
    dim: int,
    examples: int,
    layers: int,
    loops: int,
    rate: float,
    slope: float = 0.01,
    bound: float = 64.0,
    small: float = SMALL,
    large: float = LARGE,
) -> AlgoFormerNetwork:
    """The next state of the last chain, by gradient descent on the layer that makes it, a step a loop (Theorem 3.3).

    Prompts of `ChainOfThought(dim, examples, layers)` may end at any state of their last chain but its last; the last
    token answers. Two layers with two heads choose the tokens, one is looped, one predicts. States must be smaller
    than `bound`: of larger ones the gates let a part through, and the answer is wrong by any amount, without a word.
    """
    arguments.number("rate", rate, strict=True)
    arguments.number("bound", bound, strict=True)
    task = ChainOfThought(dim, examples, layers, slope)
    written = Chains(task, loops, small, large)
    written.choose()
    written.keep(bound, slope)
    written.sum_over_examples(2, "x", "r", "r", -rate, size=float(dim))
    written.leaky_layer(3, {"r": one(dim)}, "prediction", slope)
    written.read("prediction")
    return written.network

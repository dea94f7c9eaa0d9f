"""Gradient descent on every prefix at once, in a looped decoder (Gao et al., Lemma A.5 and Theorem 4.2).

Every token t of an x carries weights w_t of its own and asks the examples before it, which answer from the tokens of
their y: those are the ones that a causal mask lets it see, and no others. So

    w_t ← w_t − η Σ_{i<t} x_i (x_i · w_t) + η Σ_{i<t} x_i y_i,

where the second sum never changes and is made once, before the loop. (The proof makes it in the second head of every
loop, by an exponential of y alone; its first head then has no partner, and its constant is not cancelled. It also lets
a token see itself, and its sink, the first y, is not seen by the first x; here the blank token comes first.) The mean
over the examples instead of their sum would need 1/t times a state, a product that a ReLU MLP only approximates.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from algoscope import arguments
from algoscope.constructions.loop import ASIDE, LARGE, SHARP
from algoscope.constructions.looped import SMALL_AT_FIRST, Pairs
from algoscope.constructions.stream import of_places, one, write_head
from algoscope.models.algoformer import AlgoFormerNetwork
from algoscope.tasks import LinearRegression


class Decoder(Pairs):
    """Tokens of y hold their example, and they answer."""

    mask, silent = "causal", "point"

    def gather(self) -> None:
        i = torch.arange(self.network.length, dtype=torch.float64)
        self.mark_points()
        self.positions[1:, self.stream["wanted"]] = of_places(i - i % 2)  # x itself, and the x before a y
        self.positions[1:, self.stream["code"]] = quasi_orthogonal(self.network.length)
        self.copy(0, "x", {"all": 1.0, "blank": -1.0}, wanted="wanted")
        self.copy(1, "y", {"all": 1.0, "blank": -1.0, "point": -1.0})

    def multiply(self, layer: int, left: str, right: str, target: str, size: float) -> None:
        """target_j += left_j · right_j, at the tokens of x: each attends to itself alone.

        It knows itself by its code: the numbers stay small, so that less is lost than with places.
        """
        dim, codes, small = self.stream.size(left), self.stream.size("code"), self.small / size
        all_rows = one(dim + codes + 1)
        same, code, lift = all_rows[:, :dim], all_rows[:, dim : dim + codes], all_rows[:, dim + codes :]
        for head, sign in enumerate((1.0, -1.0)):
            ask = {left: sign * small * same, "code": 2 * SHARP * code}
            ask |= {"all": (1 + ASIDE) * lift, "point": -ASIDE * lift}
            answer = {right: same, "code": code, "all": -2 * SHARP * lift, "blank": (self.large + 2 * SHARP) * lift}
            put = {target: sign / (2 * small) * one(1)}
            carry = {"point": math.exp(self.large) * one(1)}  # not the blank token's
            write_head(self.network.blocks[layer], head, self.stream, ask, answer, carry, put)


def quasi_orthogonal(count: int) -> Float[Tensor, "count size"]:
    """Unit vectors of which none is closer to another than by a product of ½ (Lemma A.1).

    Random signs of as few coordinates as will do, of which O(log count) are needed; the unit vectors themselves where
    that is no more.
    """
    arguments.integer("count", count, 1)
    generator = torch.Generator().manual_seed(0)
    for size in range(1, count):
        codes = torch.randint(2, (count, size), generator=generator).double().mul(2).sub(1) / size**0.5
        products = codes @ codes.T - 2 * one(count)
        if float(products.max()) <= 0.5:
            return codes
    return one(count)


def decoder_gradient_descent(
    dim: int, examples: int, loops: int, rate: float, small: float = SMALL_AT_FIRST, large: float = LARGE
) -> AlgoFormerNetwork:
    """A step of gradient descent a loop from w = 0, on every prefix of the examples.

    One layer with two heads is looped; two layers before it gather and sum x y, one after it predicts w·x. `rate`
    multiplies the sum over the examples; `small` and `large` are c and C.
    """
    arguments.number("rate", rate, strict=True)
    task = LinearRegression(dim=dim, examples=examples)
    codes = quasi_orthogonal(task.length).shape[1]
    written = Decoder(
        task, 2, 1, loops, small, large,
        wanted=(3, "the place where x is to be found"), code=(codes, "a code of the place, quasi-orthogonal"),
        b=(dim, "Xᵀy of the examples seen"), w=(dim, "the weights, at the token of x"),
        prediction=(1, "the prediction, which is read out"),
    )  # fmt: skip
    written.sum_over_examples(1, "all", "x", "b", size=float(dim) ** 0.5, answerer="y")
    written.sum_over_examples(2, "w", "x", "w", -rate, size=float(dim) ** 0.5)
    written.mlp(2, {("w", "b"): rate})
    written.multiply(3, "w", "x", "prediction", size=float(dim) ** 0.5)
    written.read("prediction")
    return written.network

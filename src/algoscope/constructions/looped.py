"""What looped transformers that regress have in common (Gao et al., Appendix A.1): full attention with softmax.

A softmax spreads one unit of attention over the tokens. A blank token with a score of C takes nearly all of it, and
what is left to token i is e^−C exp(score): values e^C times as large then come back as Σ_i v_i exp(score_i). With
scores ±c s_i, two heads whose difference is taken give

    Σ_i v_i (exp(c s_i) − exp(−c s_i)) = 2c Σ_i v_i s_i + O(c³),

a sum over examples as exact as c is small, until rounding, of size ε/c, takes over. A large C makes the rest, of
size N e^−C, vanish. What the blank token itself holds comes back e^C times as large: it must stay zero to the last bit,
which the proofs leave open, so it looks at nobody else. Copies are made by scores T(1 − (i + offset − j)²); tokens that
should not copy look at the blank one.

In the papers x and y stand in coordinates of their own; here, as in all of this project, they share them, so one layer
more comes first that brings each example together. And since predictions are read at x itself, no last layer has to
carry them elsewhere.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from algoscope import arguments
from algoscope.constructions.stream import (
    Stream,
    clear,
    match_places,
    one,
    write_head,
    write_leaky_mlp,
    write_linear_mlp,
)
from algoscope.models import AlgoFormer
from algoscope.models.algoformer import AlgoFormerNetwork
from algoscope.tasks import LinearRegression

SHARP = 60.0  # T: how much closer the right token is than any other; e^−60 is far below rounding
ASIDE = 1000.0  # how much more who is no x looks at the blank token: the others' shares are zero, not only small
MOST = 600.0
SMALL, LARGE = 6e-6, 40.0  # c, for scores of size 1, and C: about the best in float64 (ε^⅓)


class Looped:
    """A network in float64 whose first layer gathers the examples and whose others are blank, and how to fill these.

    Layers count from the first of `pre`; there are two heads.
    """

    mask: Literal["full", "causal"] = "full"
    silent = "test"  # tokens that never answer

    def __init__(
        self,
        task: LinearRegression,
        pre: int,
        post: int,
        loops: int,
        small: float,
        large: float,
        **places: tuple[int, str],
    ) -> None:
        arguments.integer("loops", loops, 0)
        arguments.number("small", small, strict=True)
        arguments.number("large", large, strict=True)
        if large > MOST:
            raise ValueError(f"large must be at most {MOST}, beyond which e^C is too large a number, got {large}")
        self.small, self.large = small, large
        self.stream = stream = Stream(
            token=(task.inputs, "the token as it is given"),
            x=(task.dim, "x, at its token"),
            y=(task.targets, "y of an example, at the token of its x"),
            **places,
            place=(3, "the place i of a token, as (i, i², 1)"),
            point=(1, "1 at the tokens of x"),
            test=(1, "1 at the test point"),
            blank=(1, "1 at the blank token"),
            all=(1, "1 everywhere"),
        )
        widest = max(stream.size(name) for name in ("x", *places))
        size = max(-(-stream.width // 2), 2 * widest + 4)  # of a head
        hidden = max(2 * sum(stream.size(name) for name in ("x", "y", *places)), 4 * widest)  # what an MLP may need
        model = AlgoFormer(
            layers=1, pre=pre, post=post, loops=loops, heads=2, width=2 * size, mlp_ratio=hidden / (2 * size),
            activation="relu", attention="softmax", mask=self.mask, norm="none", positions="given", sink=True,
        )  # fmt: skip
        self.network: AlgoFormerNetwork = model.build(task.inputs, task.outputs, task.length, torch.Generator())
        self.network.double().eval()
        clear(self.network)
        with torch.no_grad():
            self.network.read_in.weight[stream["token"]] = one(task.inputs)
        self.network.give_positions(_positions(task, stream, 2 * size))
        self.network.places, self.network.whole = stream.places, self.mask == "full"
        self.gather()

    def gather(self) -> None:
        """x and y of each example to the token of x."""
        self.copy(0, "x", {"point": 1.0})
        self.copy(1, "y", {"point": 1.0, "test": -1.0}, offset=1.0)

    def copy(
        self, head: int, target: str, askers: Mapping[str, float], offset: float = 0.0, wanted: str = "place"
    ) -> None:
        """The place `target` of the askers, a sum of flags, takes what the token at a wanted place was given."""
        taken = one(self.stream.size("token"))[: self.stream.size(target)]
        aside = ASIDE * one(4)[:, 3:]  # to the blank token, for all others
        ask = {name: ((name == "all") - askers.get(name, 0.0)) * aside for name in ("all", *askers)}
        ask[wanted] = SHARP * torch.nn.functional.pad(match_places(offset), (0, 0, 0, 1))
        answer = {"place": one(4)[:, :3], "blank": one(4)[:, 3:]}
        put = {target: one(len(taken))}
        write_head(self.network.blocks[0], head, self.stream, ask, answer, {"token": taken}, put)

    def sum_over_examples(
        self,
        layer: int,
        asker: str,
        carried: str,
        target: str,
        factor: float = 1.0,
        size: float = 1.0,
        answerer: str = "x",
    ) -> None:
        """target_j += factor · Σ_i carried_i (x_i · asker_j), by both heads, where these scores are of some size."""
        dim, values, small = self.stream.size(asker), one(self.stream.size(carried)), self.small / size
        same, lift = one(dim + 1)[:, :dim], one(dim + 1)[:, dim:]
        for head, sign in enumerate((1.0, -1.0)):
            ask = {"all": (1 + ASIDE) * lift, "point": -ASIDE * lift}
            ask[asker] = ask.get(asker, 0.0) + sign * small * same
            answer = {answerer: same, "blank": self.large * lift, self.silent: -SHARP * lift}
            carry, put = {carried: math.exp(self.large) * values}, {target: sign * factor / (2 * small) * values}
            write_head(self.network.blocks[layer], head, self.stream, ask, answer, carry, put)

    def mlp(self, layer: int, changes: Mapping[tuple[str, str], float]) -> None:
        write_linear_mlp(self.network.blocks[layer], self.stream, changes)

    def leaky_layer(self, layer: int, source: str, target: str, matrix: Float[Tensor, "to from"], slope: float) -> None:
        """target = leaky ReLU(W source), exactly: it is ReLU(a) − slope·ReLU(−a), and what was there is taken away."""
        changes = {(target, target): -1.0} if layer > 1 else {}
        write_linear_mlp(self.network.blocks[layer], self.stream, changes)
        write_leaky_mlp(self.network.blocks[layer], self.stream, source, target, matrix, slope)

    def read(self, place: str) -> None:
        """The predictions stand there."""
        with torch.no_grad():
            self.network.read_out.weight[:, self.stream[place]] = one(self.stream.size(place))


def _positions(task: LinearRegression, stream: Stream, width: int) -> Float[Tensor, "places width"]:
    """That of the blank token first."""
    positions = torch.zeros(task.length + 1, width, dtype=torch.float64)
    i = torch.arange(task.length, dtype=torch.float64)
    positions[1:, stream["place"]] = torch.stack([i, i.square(), torch.ones_like(i)], dim=1)
    positions[1::2, stream["point"]] = 1.0
    positions[-1, stream["test"]] = 1.0
    positions[0, stream["blank"]] = 1.0
    positions[:, stream["all"]] = 1.0
    return positions


def gradient_descent(
    dim: int,
    examples: int,
    loops: int,
    rate: float,
    ridge: float = 0.0,
    targets: int = 1,
    small: float = SMALL,
    large: float = LARGE,
) -> AlgoFormerNetwork:
    """A step of gradient descent a loop, from A = 0 (Lemma A.2, and Theorem 3.1 without a representation).

    One layer with two heads is looped. Every token j of an x carries the residual r_j = A x_j − y_j (at the test point
    there is no y, so it is the prediction), and since A ← A − η(Σ_i r_i x_iᵀ + ρA),

        r_j ← r_j − η Σ_i r_i (x_i · x_j) − ηρ (r_j + y_j).

    `rate` η multiplies the sum over the examples, not the mean; `ridge` is ρ. `small` and `large` are c and C: c is
    chosen for inputs of variance 1, and should be as many times smaller as scores x·x' are larger.
    """
    task = LinearRegression(dim=dim, examples=examples, targets=targets)
    arguments.number("rate", rate, strict=True)
    arguments.number("ridge", ridge)
    written = Looped(task, 1, 0, loops, small, large, r=(targets, "A x − y, at the token of x"))
    written.mlp(0, {("r", "y"): -1.0})
    shrunk = 1 - rate * ridge
    if shrunk <= 0:
        raise ValueError(f"rate times ridge must be below 1, got {rate * ridge}")
    written.sum_over_examples(1, "x", "r", "r", -rate / shrunk, size=float(dim))
    written.mlp(1, {("r", "r"): shrunk - 1, ("r", "y"): shrunk - 1})  # also of what attention has just added
    written.read("r")
    return written.network


def representation_regression(
    matrices: Sequence[Tensor],
    examples: int,
    loops: int,
    rate: float,
    slope: float = 0.01,
    targets: int = 1,
    small: float = SMALL,
    large: float = LARGE,
) -> AlgoFormerNetwork:
    """Gradient descent on y = A Φ(x), a step a loop, where Φ is an MLP that is known (Theorem 3.1).

    `matrices` are those of Φ, first to last, each followed by a leaky ReLU of the given `slope`. Of the layers before
    the loop, the first gathers and each other is a layer of Φ, as the theorem states: L + 1 for L layers.
    """
    matrices = [torch.as_tensor(w, dtype=torch.float64) for w in matrices]
    if not matrices or any(w.ndim != 2 or 0 in w.shape or not w.isfinite().all() for w in matrices):
        raise ValueError("matrices must be at least one matrix of finite numbers, the weights of a representation")
    widths = [matrices[0].shape[1], *(len(w) for w in matrices)]
    if any(w.shape[1] != width for w, width in zip(matrices, widths, strict=False)):
        raise ValueError(f"matrices must fit each other, got {[list(w.shape) for w in matrices]}")
    arguments.number("rate", rate, strict=True)
    arguments.number("slope", slope)
    task = LinearRegression(dim=widths[0], examples=examples, targets=targets)
    widest = max(widths[1:])
    written = Looped(
        task, 1 + len(matrices), 0, loops, small, large,
        features=(widest, "Φ(x) as far as it is made, at the token of x"), r=(targets, "A Φ(x) − y, at the token of x"),
    )  # fmt: skip
    written.mlp(0, {("r", "y"): -1.0})
    for k, matrix in enumerate(matrices):
        written.leaky_layer(1 + k, "features" if k else "x", "features", matrix, slope)
    last = 1 + len(matrices)
    written.sum_over_examples(last, "features", "r", "r", -rate, size=float(widths[-1]), answerer="features")
    written.read("r")
    return written.network


def looped_newton(
    dim: int, examples: int, loops: int, alpha: float, small: float = SMALL, large: float = LARGE
) -> AlgoFormerNetwork:
    """A step of Iterative Newton a loop, from M = αS (Lemma A.4 and Theorem 4.1).

    One layer with two heads is looped; two layers before it gather and start, one after it predicts. Every token j of
    an x carries u_j = M x_j. Attention takes half of Σ_i u_i (x_i·u_j) away, and the MLP doubles what is left.
    """
    arguments.number("alpha", alpha, strict=True)
    task = LinearRegression(dim=dim, examples=examples)
    written = Looped(
        task, 2, 1, loops, small, large,
        u=(dim, "M x, at the token of x"), prediction=(1, "the prediction, which is read out"),
    )  # fmt: skip
    written.sum_over_examples(1, "x", "x", "u", alpha, size=float(dim))
    written.sum_over_examples(2, "u", "u", "u", -0.5)
    written.mlp(2, {("u", "u"): 1.0})
    written.sum_over_examples(3, "u", "y", "prediction")
    written.read("prediction")
    return written.network

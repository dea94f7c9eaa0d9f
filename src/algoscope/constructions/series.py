"""Gradient descent on a series whose next value is linear in known features of the latest (Gao et al., Theorem 3.2).

A token takes what the tokens before it were given (Lemma A.3, one head for each), and the next token, which is its
target. (The proof writes Φ(x_{t+1−q}, …, x_t) under x_t itself, which would predict x_t from x_t; what is meant is
Φ(x_{t−q}, …, x_{t−1}) under x_t, or here x_{t+1} beside Φ(x_{t+1−q}, …, x_t).) Where nothing comes before, a token
takes nothing: the proof filters this in an MLP, here its position says so.
"""

from collections.abc import Sequence

from algoscope import arguments
from algoscope.constructions.loop import LARGE, SMALL, LoopConstruction, Matrix, checked_matrices
from algoscope.models.algoformer import AlgoFormerNetwork
from algoscope.tasks import AutoregressiveRepresentation


class Series(LoopConstruction):
    silent = "test"

    def __init__(
        self, task: AutoregressiveRepresentation, pre: int, loops: int, small: float, large: float, widest: int
    ) -> None:
        self.order, back = task.order, range(1, task.order)
        places = {f"before {k}": (task.dim, f"the x of {k} token{'s' * (k > 1)} before") for k in back}
        starts = {f"start {k}": (1, f"1 at the first {k} token{'s' * (k > 1)}") for k in back}
        super().__init__(
            task, pre, 0, loops, small, large, max(task.order, 2),
            **places,
            y=(task.dim, "the next x"),
            features=(widest, "Φ of the latest x, as far as it is made"),
            r=(task.dim, "A Φ − y"),
            **starts,
            test=(1, "1 at the last token"),
        )  # fmt: skip

    def gather(self) -> None:
        """The x before, and the next one, each by a head of its own."""
        self.positions[-1, self.stream["test"]] = 1.0
        for k in range(1, self.order):
            self.positions[1 : k + 1, self.stream[f"start {k}"]] = 1.0
            self.copy(k - 1, f"before {k}", {"point": 1.0, f"start {k}": -1.0}, offset=-float(k))
        self.copy(self.order - 1, "y", {"point": 1.0, "test": -1.0}, offset=1.0)


def autoregression(
    matrices: Sequence[Matrix],
    order: int,
    examples: int,
    loops: int,
    rate: float,
    slope: float = 0.01,
    small: float = SMALL,
    large: float = LARGE,
) -> AlgoFormerNetwork:
    """Gradient descent on x_{t+1} = A Φ(x_{t+1−order}, …, x_t), a step a loop (Theorem 3.2); the last token answers.

    `matrices` are those of Φ, first to last, each followed by a leaky ReLU; nothing normalizes, so this is for series
    with a gain. One layer copies, with a head for each of `order` tokens, and each other layer before the loop is one
    of Φ: L + 1 for L, where the theorem states L + 2.
    """
    weights = checked_matrices(matrices)
    arguments.integer("order", order, 1)
    arguments.number("rate", rate, strict=True)
    arguments.number("slope", slope)
    dim, rest = divmod(weights[0].shape[1], order)
    if rest or not dim:
        raise ValueError(f"the first of matrices must read {order} values, got {weights[0].shape[1]} columns")
    task = AutoregressiveRepresentation(dim, examples, order)
    written = Series(task, 1 + len(weights), loops, small, large, max(len(w) for w in weights))
    written.mlp(0, {("r", "y"): -1.0})
    oldest_first = [f"before {k}" for k in range(order - 1, 0, -1)] + ["token"]
    given = dict(zip(oldest_first, weights[0].split(dim, dim=1), strict=True))
    for k, matrix in enumerate(weights):
        written.leaky_layer(1 + k, {"features": matrix} if k else given, "features", slope)
    written.sum_over_examples(
        1 + len(weights), "features", "r", "r", -rate, size=float(len(weights[-1])), answerer="features"
    )
    written.read("r")
    return written.network

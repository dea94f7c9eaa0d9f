"""The constructions, each with prompts of its kind and the algorithm that it should run on them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from algoscope import algorithms, constructions
from algoscope.constructions.loop import LARGE, SMALL
from algoscope.constructions.looped import SMALL_AT_FIRST
from algoscope.contracts import Task
from algoscope.models.algoformer import AlgoFormerNetwork
from algoscope.models.transformer import TransformerNetwork
from algoscope.tasks import AutoregressiveRepresentation, ChainOfThought, LinearRegression, RepresentationRegression
from algoscope.trace import Prompts


@dataclass(frozen=True)
class Size:
    """Of the prompts, and how many steps or loops."""

    dim: int
    examples: int
    steps: int
    batch: int


@dataclass(frozen=True)
class Comparison:
    """What a network says after each step, beside what it should say, and the network."""

    network: TransformerNetwork
    steps: Sequence[int]
    found: Float[Tensor, "steps batch *answer"]
    exact: Float[Tensor, "steps batch *answer"]


Compare = Callable[[Size, int, float, float], Comparison]  # given a seed of prompts, c and C


@dataclass(frozen=True)
class Stated:
    """How many layers a theorem allows, each counted once, and how many heads in the layer with most, if it says so."""

    layers: int
    heads: int | None = None


@dataclass(frozen=True)
class Subject:
    """`stated` is what its theorem allows, at a size; None where it has no theorem."""

    name: str
    source: str
    runs: str
    bound: float  # of the relative error
    compare: Compare
    stated: Callable[[Size], Stated] | None
    softmax: bool = False  # so that it is as exact as c is small
    small: float = SMALL  # c, where it is not varied

    def compared(self, size: Size, seed: int) -> Comparison:
        """With c and C as they are by default."""
        return self.compare(size, seed, self.small, LARGE)


def largest(x: Float[Tensor, "batch points dim"]) -> float:
    """The largest eigenvalue of S in a batch."""
    return float(torch.linalg.matrix_norm(x[:, :-1], 2).max()) ** 2


def scaled(small: float, x: Float[Tensor, "batch points dim"]) -> float:
    """c for scores x·x' of another size than inputs of variance 1 have."""
    return small * x.shape[-1] / float(x.square().sum(-1).mean())


def sums(size: Size, seed: int, small: float, large: float) -> Comparison:
    prompts = LinearRegression(size.dim, size.examples).sample(size.batch, seed)
    network = constructions.sum_of_tokens(size.dim, size.examples + 1)
    exact = prompts.x.sum(1, keepdim=True).expand_as(prompts.x)
    return Comparison(network, [1], network(prompts.x)[None].detach(), exact[None])


def newton(size: Size, seed: int, small: float, large: float) -> Comparison:
    task = LinearRegression(size.dim, size.examples)
    prompts = task.sample(size.batch, seed)
    alpha = 1 / largest(prompts.x) ** 2
    network = constructions.newton(size.dim, size.examples, size.steps, alpha)
    steps = range(size.steps + 1)
    exact = algorithms.Newton(size.steps, start=alpha).trace(prompts).values[:, :, -1]
    return Comparison(network, steps, at_last(network, task, prompts, [f"layer {k + 3}" for k in steps]), exact)


def chebyshev_terms(low: float, high: float, steps: int) -> list[constructions.Term]:
    """Chebyshev's iteration for eigenvalues between these."""
    center, radius = (high + low) / 2, (high - low) / 2
    terms, rho = [constructions.Term(start=1 / center)], radius / center
    for _ in range(steps - 1):
        following = 1 / (2 * center / radius - rho)
        apply = -2 * following / radius
        terms.append(constructions.Term(1 + rho * following, apply, -rho * following, -apply))
        rho = following
    return terms


def chebyshev(size: Size, seed: int, small: float, large: float) -> Comparison:
    """For eigenvalues between 1 and the largest: any such recursion is a sum of moments."""
    task = LinearRegression(size.dim, size.examples)
    prompts = task.sample(size.batch, seed)
    terms = chebyshev_terms(1.0, largest(prompts.x), size.steps)
    s = prompts.x[:, :-1].mT @ prompts.x[:, :-1]
    xy = (prompts.x[:, :-1] * prompts.y[:, :-1, None]).sum(1)
    weights = [torch.zeros_like(xy)]
    for keep, apply, before, start in terms:
        w, earlier = weights[-1], weights[-2] if len(weights) > 1 else 0.0
        weights.append(keep * w + apply * (s @ w[..., None])[..., 0] + before * earlier + start * xy)
    network = constructions.recursion(size.dim, size.examples, 0.0, terms)
    steps = range(size.steps + 1)
    exact = torch.stack([(w * prompts.x[:, -1]).sum(-1) for w in weights])
    return Comparison(network, steps, at_last(network, task, prompts, [f"layer {k + 2}" for k in steps]), exact)


def gradient_descent_steps(
    size: Size, task: Task, prompts: Prompts, left: Prompts, build: Callable[[float], TransformerNetwork]
) -> Comparison:
    """Gradient descent on what is `left` of the prompts after the layers before the loop."""
    rate = 1 / largest(left.x)
    exact = algorithms.GradientDescent(size.steps, rate=rate).trace(left).values[1:, :, -1]
    network, stages = build(rate), [f"loop {k}" for k in range(1, size.steps + 1)]
    return Comparison(network, range(1, size.steps + 1), at_last(network, task, prompts, stages), exact)


def on_prompts(size: Size, seed: int, small: float, large: float) -> Comparison:
    task = LinearRegression(size.dim, size.examples)
    prompts = task.sample(size.batch, seed)
    return gradient_descent_steps(size, task, prompts, prompts, lambda rate: constructions.gradient_descent(
        size.dim, size.examples, size.steps, rate, small=small, large=large
    ))  # fmt: skip


def on_features(size: Size, seed: int, small: float, large: float) -> Comparison:
    task = RepresentationRegression(size.dim, size.examples)
    prompts = task.sample(size.batch, seed)
    left = task.represented(prompts)
    return gradient_descent_steps(size, task, prompts, left, lambda rate: constructions.representation_regression(
        task.features.matrices(), size.examples, size.steps, rate, task.slope, small=scaled(small, left.x), large=large
    ))  # fmt: skip


def on_series(size: Size, seed: int, small: float, large: float) -> Comparison:
    task = AutoregressiveRepresentation(size.dim, size.examples, noise=1.0, gain=0.3)  # Φ as drawn: no layer divides
    prompts = task.sample(size.batch, seed)
    left = task.represented(prompts)
    return gradient_descent_steps(size, task, prompts, left, lambda rate: constructions.autoregression(
        task.features.matrices(), task.order, size.examples, size.steps, rate, task.slope, scaled(small, left.x), large
    ))  # fmt: skip


@torch.no_grad()
def on_chains(size: Size, seed: int, small: float, large: float) -> Comparison:
    """Prompts end at the second state of the last chain."""
    task = ChainOfThought(size.dim, size.examples)
    prompts, level = task.sample(size.batch, seed), 1
    layer = task.problems(prompts)[level]
    rate = 1 / largest(layer.x)
    network = constructions.chain_of_thought(
        size.dim, size.examples, task.depth, size.steps, rate, task.slope, small=scaled(small, layer.x), large=large
    )
    tokens = task.encode(prompts.x, prompts.y)[:, : size.examples * (task.depth + 1) + level + 1]
    found = []
    for count in range(1, size.steps + 1):
        network.run_loops(count)
        found.append(network(tokens)[:, -1])
    exact = algorithms.GradientDescent(size.steps, rate=rate).trace(layer).values[1:, :, -1]
    answers = torch.nn.functional.leaky_relu(exact, task.slope)
    return Comparison(network, range(1, size.steps + 1), torch.stack(found), answers)


def looped_newton(size: Size, seed: int, small: float, large: float) -> Comparison:
    task = LinearRegression(size.dim, size.examples)
    prompts = task.sample(size.batch, seed)
    alpha = 1 / largest(prompts.x) ** 2
    network = constructions.looped_newton(size.dim, size.examples, 1, alpha, small, large)
    exact = algorithms.Newton(size.steps, start=alpha).trace(prompts).values[1:, :, -1]
    return Comparison(network, range(1, size.steps + 1), after_loops(network, task, prompts, size, True), exact)


def decoder(size: Size, seed: int, small: float, large: float) -> Comparison:
    task = LinearRegression(size.dim, size.examples)
    prompts = task.sample(size.batch, seed)
    rate = 1 / largest(prompts.x)
    network = constructions.decoder_gradient_descent(size.dim, size.examples, 1, rate, small, large)
    exact = algorithms.GradientDescent(size.steps, rate=rate).trace(prompts).values[1:]
    return Comparison(network, range(1, size.steps + 1), after_loops(network, task, prompts, size, False), exact)


def causal(size: Size, seed: int, small: float, large: float) -> Comparison:
    """Its width grows with d², so it is small."""
    dim = min(size.dim, 5)
    task = LinearRegression(dim, size.examples)
    prompts = task.sample(size.batch, seed)
    alpha, most = 1 / largest(prompts.x) ** 2, min(size.steps, 8)
    network = constructions.causal_newton(dim, size.examples, most, alpha)
    with torch.no_grad():
        stages = [f"layer {2 * k + 4}" for k in range(most + 1)]
        states = network.run(task.encode(prompts.x, prompts.y), stages)[1]
        found = torch.stack([task.read(network.read_out(states[stage])) for stage in stages])
    return Comparison(network, range(most + 1), found, algorithms.Newton(most, start=alpha).trace(prompts).values)


@torch.no_grad()
def at_last(network: TransformerNetwork, task: Task, prompts: Prompts, stages: Sequence[str]) -> Tensor:
    """What the network's own head predicts at the last token after each stage."""
    states = network.run(task.encode(prompts.x, prompts.y), stages)[1]
    return torch.stack([task.read(network.read_out(states[stage]))[:, -1] for stage in stages])


@torch.no_grad()
def after_loops(network: AlgoFormerNetwork, task: Task, prompts: Prompts, size: Size, last: bool) -> Tensor:
    """Its answers with 1, 2, … loops."""
    found = []
    for count in range(1, size.steps + 1):
        network.run_loops(count)
        answers = task.read(network(task.encode(prompts.x, prompts.y)))
        found.append(answers[:, -1] if last else answers)
    return torch.stack(found)


def of_newton(size: Size) -> Stated:
    """Theorem 1 of Fu et al. only says O(k); k + 8 is what we ask of it, and what its proof needs."""
    return Stated(size.steps + 8)


def of_features(size: Size) -> Stated:
    """A layer to gather and one for each of Φ, the loop, and one after it."""
    return Stated(RepresentationRegression(size.dim, size.examples).depth + 1 + 1 + 1, 2)


def of_series(size: Size) -> Stated:
    """One more to gather, by as many heads as there are values; two in the loop."""
    task = AutoregressiveRepresentation(size.dim, size.examples)
    return Stated(task.depth + 2 + 1 + 1, max(task.order, 2))


def always(layers: int, heads: int | None = None) -> Callable[[Size], Stated]:
    return lambda size: Stated(layers, heads)


CHAIN_OF_THOUGHT, LOOPED = always(7 + 1 + 1, 2), always(1 + 1 + 2, 2)
GAO, FU = "Gao et al., ", "Fu et al., "
SUBJECTS = (
    Subject("Newton", FU + "Theorem 1", "Iterative Newton", 1e-9, newton, of_newton),
    Subject("Chebyshev", FU + "B.3", "Chebyshev's iteration, a sum of moments", 1e-10, chebyshev, None),
    Subject("gradient descent", GAO + "Lemma A.2", "gradient descent", 1e-8, on_prompts, None, True),
    Subject(
        "regression on features", GAO + "Theorem 3.1", "gradient descent on Φ(x)", 1e-8, on_features,
        of_features, True,
    ),
    Subject(
        "AR series", GAO + "Theorem 3.2", "gradient descent on Φ of the latest values", 1e-8, on_series,
        of_series, True,
    ),
    Subject(
        "chain of thought", GAO + "Theorem 3.3", "gradient descent on a layer of the chain", 1e-8, on_chains,
        CHAIN_OF_THOUGHT, True,
    ),
    Subject(
        "Newton, looped", GAO + "Theorem 4.1", "Iterative Newton", 1e-8, looped_newton, LOOPED, True,
        SMALL_AT_FIRST,
    ),
    Subject(
        "decoder", GAO + "Theorem 4.2", "gradient descent on every prefix", 1e-8, decoder, LOOPED, True,
        SMALL_AT_FIRST,
    ),
    Subject("Newton, causal", "open in both papers", "Iterative Newton on every prefix", 1e-9, causal, None),
    Subject("sum of tokens", FU + "Lemma 1", "the sum of all tokens", 1e-12, sums, always(1)),
)  # fmt: skip

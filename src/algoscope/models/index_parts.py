"""The parts of an index that have no weights: sorting, look-ups, answers."""

import itertools
import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from algoscope.models.transformer import INITIAL

TINY = 1e-20  # keeps the logarithm of a number between 0 and 1 finite
NEVER = -1e9  # the logarithm of a weight of zero, but finite
BARRED = -1e4  # far below every logit, but not so far that 32 bits lose what is added: all places may be barred
FAINT = 0.02  # a weight this small, relative to that of a blind guess, does not pull harder than a smaller one
STEEP, SPREAD = 20.0, 3.0  # of a fold; of scores that are folded, so that they are as far apart as others
SAME = 1e-6  # a variance so small is that of points that are all the same
TEMPERATURE, FINAL_TEMPERATURE = 2.0, 0.25  # of soft choices, and of those that are cooled at the end of training
COOLING = 0.3, 0.9  # shares of the training between which look-ups are cooled
FINE = 1000.0  # differences from one part in so many on are seen on a logarithmic scale


class Sort(nn.Module):
    """The order of the scores, and in training a soft permutation [place, point] that has a gradient.

    It is SoftSort (Prillo and Eisenschlos 2020): a place weighs the points by how close their scores are to its own.
    """

    def __init__(self, softness: float) -> None:
        super().__init__()
        self.softness = softness

    def forward(
        self, scores: Float[Tensor, "*batch points"], soft: bool
    ) -> tuple[Int[Tensor, "*batch points"], Float[Tensor, "*batch points points"] | None]:
        order = scores.argsort(dim=-1, stable=True)
        if not soft:
            return order, None
        gap = (scores.gather(-1, order)[..., :, None] - scores[..., None, :]).abs()
        return order, (-gap / self.softness).softmax(-1)


class Score(nn.Module):
    """By which points are sorted: the first of the numbers that each has, folded by the others.

    Numbers are standardized over the set. Orders do not depend on their scale, but the gradients of soft sorts and of
    folds do: where numbers grow these become steps, gradients noise, and sooner or later the order is lost.
    """

    def forward(self, numbers: Float[Tensor, "*batch points folds_and_one"]) -> Float[Tensor, "*batch points"]:
        gap = numbers - numbers.mean(-2, keepdim=True)
        standard = gap / (gap.square().mean(-2, keepdim=True) + SAME).sqrt()
        return SPREAD * folded(standard) if standard.shape[-1] > 1 else standard[..., 0]


def folded(numbers: Float[Tensor, "*batch points folds_and_one"]) -> Float[Tensor, "*batch points"]:
    """From −1 to 1: the last number halves the set, and each half is folded by the numbers before it; then the upper
    half is turned round and put behind the lower one.

    That is a Gray code whose digits are the halves, so neighbors in the order are neighbors in space, as in a k-d tree
    with other directions. Halves have equal sizes, so that a query knows about where each begins: folds are soft, and
    points next to one are put next to it.
    """
    count, last = numbers.shape[-2], numbers[..., -1]
    if numbers.shape[-1] == 1 or not count:
        return last.tanh()
    order = last.argsort(dim=-1, stable=True)
    last, half = last.gather(-1, order), count // 2
    rest = numbers[..., :-1].gather(-2, order[..., None].expand(*order.shape, numbers.shape[-1] - 1))
    inner = torch.cat((folded(rest[..., :half, :]), folded(rest[..., half:, :])), -1)
    middle = (last[..., max(half - 1, 0)] + last[..., half]).detach() / 2
    side = (STEEP * (last - middle[..., None])).tanh()
    return torch.zeros_like(last).scatter(-1, order, side * (1 - inner) / 2)


class Look(nn.Module):
    """One look-up: the logarithms of the weights of the places, and what is read with them.

    With noise the weights are soft, a sample of the Gumbel-softmax distribution (Jang et al. 2017); without it they are
    hard, and what is read is what is stored. The product is written as a sum: a GPU may round those that are not.
    """

    def __init__(self, temperature: float, noisy: bool) -> None:
        super().__init__()
        self.temperature, self.noisy = temperature, noisy

    def forward(
        self,
        logits: Float[Tensor, "*batch queries places"],
        stored: Float[Tensor, "*batch places inputs"],
        noise: Float[Tensor, "*batch queries places"] | None,
        temperature: Float[Tensor, ""] | None = None,
    ) -> tuple[Float[Tensor, "*batch queries places"], Float[Tensor, "*batch queries inputs"]]:
        weights = weigh(logits, noise, self.temperature if temperature is None else temperature, self.noisy)
        return weights, (weights.exp()[..., None] * stored[..., None, :, :]).sum(-2)


class Visit(nn.Module):
    """A look-up and all that follows from it, in one part, which a compiler makes few operations of.

    Returns the logarithms of the weights of places; what the next look-ups see of it: a place, what was read there,
    and how it compares with the query; and the weights by point where `places` are given, or `known` points that what
    is read may stand for. What is `barred` is added to the logits. `stored` points come before the slots. The last
    look-up is among them, if there are any; at those before it the logits of slots are raised by `slot_bias`: where it
    is infinite they read nothing else. These are at the `temperature`, if one is given. The last places, as many as a
    `directory` has vectors, are known by these, and the others by logits of their own.
    """

    def __init__(self, stored: int, look: Look, slot_bias: float, fourier_octaves: int) -> None:
        super().__init__()
        self.stored, self.look, self.slot_bias, self.fourier_octaves = stored, look, slot_bias, fourier_octaves

    def forward(
        self,
        logits: Float[Tensor, "*batch queries address"],
        queries: Float[Tensor, "*batch queries inputs"],
        stored: Float[Tensor, "*batch places inputs"],
        noise: Float[Tensor, "*batch queries places"] | None,
        barred: Float[Tensor, "*batch some places"] | None,
        places: Int[Tensor, "*batch points"] | None,
        soft: Float[Tensor, "*batch points points"] | None,
        known: Float[Tensor, "*batch points inputs"] | None,
        directory: Float[Tensor, "*members listed size"] | None,
        last: bool,
        temperature: Float[Tensor, ""] | None = None,
    ) -> tuple[Tensor, Float[Tensor, "*batch queries entry"] | None, Float[Tensor, "*batch queries found"]]:
        if directory is not None:
            alone = logits.shape[-1] - directory.shape[-1]
            others = of_each(logits[..., alone:], directory.mT) / math.sqrt(directory.shape[-1])
            logits = torch.cat((logits[..., :alone], others), -1)
        points, slots = logits[..., : self.stored], logits[..., self.stored :]
        if last and self.stored:
            logits = torch.cat((points, torch.full_like(slots, NEVER)), -1)
        elif self.slot_bias == math.inf:
            logits = torch.cat((torch.full_like(points, NEVER), slots), -1)
        elif self.slot_bias:
            logits = torch.cat((points - self.slot_bias, slots), -1)
        logits = logits if barred is None else logits + barred
        weights, value = self.look(logits, stored, noise, None if last else temperature)
        found = weights if places is None else by_point(weights, places, soft)
        found = found if known is None else standing_for(value, known, hard=noise is None)
        if last:
            return weights, None, found
        address = weights.exp()
        if directory is not None:
            alone = address.shape[-1] - directory.shape[-2]
            address = torch.cat((address[..., :alone], of_each(address[..., alone:], directory)), -1)
        return (
            weights,
            torch.cat((address, fourier_features(value, self.fourier_octaves), compared(queries, value)), -1),
            found,
        )


class Answer(nn.Module):
    """The answers that training counts, the last one last: logarithms of how much each weighs the points."""

    def __init__(self, points: int, answer: str) -> None:
        super().__init__()
        self.points, self.answer = points, answer

    def forward(self, *weights: Float[Tensor, "*batch queries places"]) -> list[Float[Tensor, "*batch queries points"]]:
        read = [each[..., : self.points] for each in weights]
        if self.answer == "last":
            return read[-1:]
        totals = itertools.accumulate(read, torch.logaddexp)
        answers = [total - math.log(m) for m, total in enumerate(totals, 1)]
        return answers if self.answer == "each" else answers[-1:]


def weigh(
    logits: Float[Tensor, "*shape places"],
    noise: Float[Tensor, "*shape places"] | None,
    temperature: float | Tensor,
    noisy: bool,
) -> Float[Tensor, "*shape places"]:
    """Logarithms of the weights of places: without noise all of it on one; else softly, with Gumbel noise."""
    if noise is None:
        return largest_alone(logits)
    gumbel = -(-noise.clamp(min=TINY).log()).clamp(min=TINY).log() if noisy else 0.0
    return ((logits + gumbel) / temperature).log_softmax(-1)


def cooled(progress: Float[Tensor, ""]) -> Float[Tensor, ""]:
    """The temperature after a share of the training: constant at first, and then falling by equal factors."""
    begin, end = COOLING
    return TEMPERATURE * (FINAL_TEMPERATURE / TEMPERATURE) ** ((progress - begin) / (end - begin)).clamp(0, 1)


def largest_alone(logits: Float[Tensor, "*shape places"]) -> Float[Tensor, "*shape places"]:
    return torch.full_like(logits, NEVER).scatter(-1, logits.argmax(-1, keepdim=True), 0.0)


def waves(places: int, size: int, generator: torch.Generator) -> Float[Tensor, "places size"]:
    """A vector for each place, neighbors alike: the first cosines of a discrete cosine transform, and some noise."""
    place, frequency = torch.arange(places)[:, None] + 0.5, torch.arange(size)
    noise = torch.randn(places, size, generator=generator)
    return torch.cos(torch.pi / places * place * frequency) + INITIAL * noise


def fourier_features(
    numbers: Float[Tensor, "*batch inputs"], fourier_octaves: int
) -> Float[Tensor, "*batch more_inputs"]:
    """The numbers, and sines and cosines of them, of which each octave has half the wave length of the one before."""
    angles = [torch.pi * 2**octave * numbers for octave in range(fourier_octaves)]
    return torch.cat([numbers, *(wave for angle in angles for wave in (angle.sin(), angle.cos()))], -1)


def of_each(vectors: Float[Tensor, "*batch queries size"], matrix: Float[Tensor, "*members size columns"]) -> Tensor:
    """The product with a matrix, or in a population with that of each member."""
    if matrix.ndim == 2:
        return vectors @ matrix
    return torch.bmm(vectors.flatten(1, -2), matrix).unflatten(1, vectors.shape[1:-1])


def compared(query: Tensor, value: Tensor) -> Tensor:
    """How far and on which side of the query a value is, on a logarithmic scale: near ones differ as much as far."""
    gap = value - query
    return gap.sign() * (FINE * gap.abs()).log1p() / math.log1p(FINE)


def sorted_by(points: Tensor, order: Int[Tensor, "*batch points"], soft: Tensor | None) -> Tensor:
    """The points themselves, in order; in training with the gradient of a soft sort."""
    exact = points.gather(-2, order[..., None].expand(points.shape))
    return exact if soft is None else straight(exact, soft @ points)


def by_point(weights: Tensor, places: Int[Tensor, "*batch points"], soft: Tensor | None) -> Tensor:
    """Logarithms of weights of places as those of the points, of which `places` are known; slots stay behind them.

    The gradient of the order is that of log(weights @ soft), but bounded where a point weighs next to nothing.
    """
    count = places.shape[-1]
    points = weights[..., :count].gather(-1, places[..., None, :].expand(*weights.shape[:-1], count))
    if soft is not None:
        share = points.detach().exp().clamp(min=FAINT / count)
        points = straight(points, weights[..., :count].detach().exp() @ soft / share)
    return torch.cat((points, weights[..., count:]), -1)


def standing_for(
    values: Float[Tensor, "*batch queries inputs"], points: Float[Tensor, "*batch points inputs"], hard: bool
) -> Float[Tensor, "*batch queries points"]:
    """Logarithms of how much each value stands for each point: all for the nearest if that is `hard`, else by the
    inverse of their squared distances.
    """
    gap = (values[..., :, None, :] - points[..., None, :, :]).square().sum(-1)
    near = -(gap + SAME**2).log()
    return largest_alone(near) if hard else near.log_softmax(-1)


def nearest_places(
    points: Float[Tensor, "*batch points inputs"], stored: Float[Tensor, "*batch places inputs"]
) -> Tensor:
    """For each point the place of what is stored nearest to it."""
    gap = (points[..., :, None, :] - stored.detach()[..., None, :, :]).square().sum(-1)
    return gap.argmin(-1).to(points.dtype)


def straight(value: Tensor, soft: Tensor) -> Tensor:
    """A value with the gradient of another as well."""
    return value + (soft - soft.detach())

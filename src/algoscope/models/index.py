"""The index: a network that stores a set of points in an order of its choice, and looks some of them up for a query.

After Salemohamed, Charlin, Garg, Sharan and Valiant, "Discovering Data Structures" (2024).
"""

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from algoscope import arguments
from algoscope.models.encoder import check_picture, encoder
from algoscope.models.network import Linear, Model, Network, Norm, draw_linear, draw_normal
from algoscope.models.transformer import INITIAL, Block, Transformer, added

ADDRESSES = ("all", "pointer")
ANSWERS = ("last", "any")
BEFORE = ("all", "slots")
TINY = 1e-20  # keeps the logarithm of a number between 0 and 1 finite
NEVER = -1e9  # the logarithm of a weight of zero, but finite
FAINT = 0.02  # a weight this small, relative to that of a blind guess, does not pull harder than a smaller one
FINE = 1000.0  # differences from one part in so many on are seen on a logarithmic scale


@dataclass(frozen=True)
class Index(Model):
    """A transformer of `layers` puts the points of a set in order; `lookups` networks each look up one of them.

    The transformer gives each point a score, and the points are stored sorted by it, as they are. It also writes
    `slots` vectors of its own behind them. A query network, a perceptron of two hidden layers, sees the query and all
    that was looked up so far, and chooses the next place; they are one network for all look-ups if `shared`.
    `address` says how a place is chosen: "all" gives each place a logit of its own and "pointer" compares a vector
    with one for each place, so that networks do not grow with the set. The answer is the "last" point looked up, or
    "any" of them. Look-ups `before` the last read "all" places or "slots" alone, whose use is else learned late.

    In training places are weighed by a softmax at `temperature` of logits with Gumbel noise (without it if not
    `noisy`), and sorting has the gradient of a soft sort of `softness`. Otherwise both are hard, and where any look-up
    may answer none goes where another has been.

    Tokens that are pictures, of the height and width `picture`, first become `features` by an encoder whose first
    convolution has `channels`: these are all that is stored, asked and compared.

    Ablations: an order that is not `ordered` by training, and query networks that are not `adaptive`, so that they see
    the query alone.
    """

    lookups: int = 7
    slots: int = 0
    layers: int = 8
    heads: int = 8
    width: int = 64
    hidden: int = 1024
    address: Literal["all", "pointer"] = "all"
    pointer: int = 64  # size of the vectors that are compared
    shared: bool = False
    answer: Literal["last", "any"] = "last"
    before: Literal["all", "slots"] = "all"
    temperature: float = 2.0
    softness: float = 0.1
    noisy: bool = True
    ordered: bool = True
    adaptive: bool = True
    picture: tuple[int, int] | None = None
    features: int = 1
    channels: int = 32

    def __post_init__(self) -> None:
        arguments.integer("lookups", self.lookups, 1)
        arguments.integer("slots", self.slots, 0)
        arguments.integer("hidden", self.hidden, 1)
        arguments.integer("pointer", self.pointer, 1)
        arguments.choice("address", self.address, ADDRESSES)
        arguments.choice("answer", self.answer, ANSWERS)
        arguments.choice("before", self.before, BEFORE)
        if self.before == "slots" and not self.slots:
            raise ValueError('before must be "all" where there are no slots, got "slots"')
        arguments.number("temperature", self.temperature, strict=True)
        arguments.number("softness", self.softness, strict=True)
        for name in ("shared", "noisy", "ordered", "adaptive"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} must be True or False, got {getattr(self, name)!r}")
        check_picture(self.picture, self.features, self.channels)
        self.transformer()

    def transformer(self) -> Transformer:
        return Transformer(self.layers, self.heads, self.width, mask="full", positions="none")

    def build(self, inputs: int, outputs: int, length: int, generator: torch.Generator) -> "IndexNetwork":
        """For `outputs` points, and queries that are the rest of the `length` tokens."""
        if length <= outputs:
            raise ValueError(f"Index needs a search task: {outputs} points and at least one query, got {length} tokens")
        return IndexNetwork(self, inputs, outputs, length - outputs, generator)


class IndexNetwork(Network):
    """Stages: with pictures "features", what they became [length, features]; "order", the scores of the points
    [points, 1]; with extra space "slots", what they hold [slots, inputs]; and "look-up 1" … "look-up M", how each query
    weighs points and slots [queries, points + slots].

    Outputs, for queries alone, are logarithms of how much the answer weighs each point.
    """

    def __init__(self, model: Index, inputs: int, points: int, queries: int, generator: torch.Generator) -> None:
        super().__init__()
        self.model, self.points, places = model, points, points + model.slots
        self.encoder = encoder(model.picture, inputs, model.features, model.channels, generator)
        inputs = inputs if self.encoder is None else model.features
        self.read_in, self.norm, self.read_out = Linear(inputs, model.width), Norm(model.width), Linear(model.width, 1)
        draw_linear(self.read_in, generator)
        draw_linear(self.read_out, generator)
        self.slots = nn.Parameter(torch.empty(model.slots, model.width)) if model.slots else None
        self.write = Linear(model.width, inputs) if model.slots else None
        if self.slots is not None and self.write is not None:
            draw_normal(self.slots, 1.0, generator)
            draw_linear(self.write, generator)
        pointer = model.address == "pointer"
        self.directory = nn.Parameter(waves(places, min(model.pointer, places), generator)) if pointer else None
        address = places if self.directory is None else self.directory.shape[1]
        entry = address + 2 * inputs  # a place, what was read there, and how it compares with the query
        blocks = [Block(model.transformer(), generator) for _ in range(model.layers)]
        asked = (
            [(model.lookups - 1) * entry + model.lookups] if model.shared else [m * entry for m in range(model.lookups)]
        )
        past = asked if model.adaptive else [model.lookups * model.shared for _ in asked]
        askers = [Asker(inputs + size, model.hidden, address, generator) for size in past]
        self.blocks = nn.ModuleList([*blocks, *askers])
        # Without a bias a norm leaves the direction of a point alone, of a number its sign: orders then break at zero.
        draw_normal(self.read_in.bias, 1 / math.sqrt(inputs), generator)
        self.sort, self.visit = Sort(model.softness), Visit(points, Look(model.temperature, model.noisy), model.before)
        self.columns = [model.lookups, inputs, *[entry] * (model.lookups - 1) * model.adaptive]  # of a shared network
        self.noise = (model.lookups, queries, places)
        seen, extra = ("features",) if self.encoder else (), ("slots",) if model.slots else ()
        self.stages = (*seen, "order", *extra, *(f"look-up {m + 1}" for m in range(model.lookups)))

    def run(
        self,
        tokens: Float[Tensor, "*batch length inputs"],
        keep: Collection[str] = (),
        noise: Float[Tensor, "*batch lookups queries places"] | None = None,
    ) -> tuple[Float[Tensor, "*batch queries outputs"], dict[str, Tensor]]:
        if tokens.shape[-2] <= self.points:
            raise ValueError(f"tokens must be {self.points} points and at least one query, got {tokens.shape[-2]}")
        self.check_stages(keep)
        tokens = tokens if self.encoder is None else self.encoder(tokens)
        points, queries = tokens[..., : self.points, :], tokens[..., self.points :, :]
        scores, slots = self.arrange(points)
        order, soft = self.sort(scores if self.model.ordered else scores.detach(), noise is not None)
        stored = torch.cat((sorted_by(points, order, soft), slots), -2)
        kept = {"features": tokens, "order": scores[..., None], "slots": slots}
        kept, weights = {name: kept[name] for name in keep if name in kept}, []
        for m, looked_up in enumerate(self.lookups(queries, stored, noise, order.argsort(-1), soft)):
            weights.append(looked_up)
            if self.stages[m - self.model.lookups] in keep:
                kept[self.stages[m - self.model.lookups]] = weights[-1].exp()
        if self.model.answer == "last":
            return weights[-1][..., : self.points], kept
        return torch.stack(weights).logsumexp(0)[..., : self.points] - math.log(len(weights)), kept

    def arrange(self, points: Float[Tensor, "*batch points inputs"]) -> tuple[Tensor, Tensor]:
        """A score for each point, and what the slots hold."""
        state = self.read_in(points)
        if self.slots is not None:
            slots = self.slots if self.slots.ndim == 2 else self.slots[:, None]
            state = torch.cat((state, slots.expand(*state.shape[:-2], *slots.shape[-2:])), -2)
        stream = (state,)
        for block in self.blocks[: self.model.layers]:
            stream = block(*stream)
        state = self.norm(added(*stream))
        slots = points[..., :0, :] if self.write is None else self.write(state[..., self.points :, :])
        return self.read_out(state[..., : self.points, :])[..., 0], slots

    def lookups(
        self,
        queries: Float[Tensor, "*batch queries inputs"],
        stored: Float[Tensor, "*batch places inputs"],
        noise: Float[Tensor, "*batch lookups queries places"] | None = None,
        places: Int[Tensor, "*batch points"] | None = None,
        soft: Float[Tensor, "*batch points points"] | None = None,
    ) -> Iterator[Float[Tensor, "*batch queries places"]]:
        """The logarithms of how each look-up weighs what is stored: by place, or by point if their `places` are given.

        A network for one look-up sees the query and all that was read. One that is shared is also told which look-up it
        is, and what its first layer makes of each read is added to what it made of those before.
        """
        shared, count, seen, told = self.model.shared, self.model.lookups, queries, [()] * self.model.lookups
        columns, once = list[Tensor](), noise is None and self.model.answer == "any"
        barred = torch.zeros_like(stored[..., None, :, 0]) if once else None
        if shared:
            seen, told, columns = self.first_of_shared(queries)
        for m in range(count):
            asker, last = self.blocks[self.model.layers + (0 if shared else m)], m == count - 1
            own = None if noise is None else noise[..., m, :, :]
            logits = asker(seen, *told[m])
            weights, entry, found = self.visit(logits, queries, stored, own, barred, places, soft, self.directory, last)
            yield found
            barred = None if barred is None else barred + NEVER * weights.exp()
            if entry is not None and self.model.adaptive:
                seen = seen + of_each(entry, columns[m].mT) if shared else torch.cat((seen, entry), -1)

    def first_of_shared(self, queries: Tensor) -> tuple[Tensor, list[tuple[Tensor]], list[Tensor]]:
        """Of the network that is shared: what its first layer makes of the queries, what it adds to tell each look-up,
        and its columns for what each reads.
        """
        asker = self.blocks[-1]
        assert isinstance(asker, Asker)
        told, asked, *columns = asker.first.weight.split(self.columns, -1)  # at once, and so is its gradient
        alone = told.ndim == 2
        bias = asker.first.bias if alone else asker.first.bias[:, None, None]
        rows = told.mT.contiguous().unbind(-2)
        each = [(row if alone else row[:, None, None],) for row in rows]
        return of_each(queries, asked.mT) + bias, each, columns


class Asker(nn.Module):
    """A query network. Its first and last layer stay in 32 bits: 16 do not tell close neighbors apart."""

    def __init__(self, inputs: int, hidden: int, outputs: int, generator: torch.Generator) -> None:
        super().__init__()
        self.first, self.first_norm = Linear(inputs, hidden, exact=True), Norm(hidden)
        self.middle, self.middle_norm = Linear(hidden, hidden), Norm(hidden)
        self.last = Linear(hidden, outputs, exact=True)
        for layer in (self.first, self.middle, self.last):
            draw_linear(layer, generator)

    def forward(
        self, known: Float[Tensor, "*batch queries inputs"], told: Tensor | None = None
    ) -> Float[Tensor, "*batch queries outputs"]:
        """With what it is `told`, `known` is what the first layer has made of the rest."""
        state = self.first(known) if told is None else known + told
        state = self.first_norm(state).relu()
        state = self.middle_norm(self.middle(state).to(state.dtype)).relu()
        return self.last(state)


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
        apart = (scores.gather(-1, order)[..., :, None] - scores[..., None, :]).abs()
        return order, (-apart / self.softness).softmax(-1)


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
    ) -> tuple[Float[Tensor, "*batch queries places"], Float[Tensor, "*batch queries inputs"]]:
        weights = weigh(logits, noise, self.temperature, self.noisy)
        return weights, (weights.exp()[..., None] * stored[..., None, :, :]).sum(-2)


class Visit(nn.Module):
    """A look-up and all that follows from it, in one part, which a compiler makes few operations of.

    Returns the logarithms of the weights of places; what the next look-ups see of it: a place, what was read there,
    and how it compares with the query; and the weights by point where `places` are given. What is `barred` is added to
    the logits. The last look-up is among the points: slots hold none.
    """

    def __init__(self, points: int, look: Look, before: str) -> None:
        super().__init__()
        self.points, self.look, self.before = points, look, before

    def forward(
        self,
        logits: Float[Tensor, "*batch queries address"],
        queries: Float[Tensor, "*batch queries inputs"],
        stored: Float[Tensor, "*batch places inputs"],
        noise: Float[Tensor, "*batch queries places"] | None,
        barred: Float[Tensor, "*batch some places"] | None,
        places: Int[Tensor, "*batch points"] | None,
        soft: Float[Tensor, "*batch points points"] | None,
        directory: Float[Tensor, "*members places size"] | None,
        last: bool,
    ) -> tuple[Tensor, Float[Tensor, "*batch queries entry"] | None, Float[Tensor, "*batch queries places"]]:
        if directory is not None:
            logits = of_each(logits, directory.mT) / math.sqrt(directory.shape[-1])
        points, slots = logits[..., : self.points], logits[..., self.points :]
        if last:
            logits = torch.cat((points, torch.full_like(slots, NEVER)), -1)
        elif self.before == "slots":
            logits = torch.cat((torch.full_like(points, NEVER), slots), -1)
        weights, value = self.look(logits if barred is None else logits + barred, stored, noise)
        found = weights if places is None else by_point(weights, places, soft)
        if last:
            return weights, None, found
        address = weights.exp() if directory is None else of_each(weights.exp(), directory)
        return weights, torch.cat((address, value, compared(queries, value)), -1), found


def weigh(
    logits: Float[Tensor, "*shape places"],
    noise: Float[Tensor, "*shape places"] | None,
    temperature: float,
    noisy: bool,
) -> Float[Tensor, "*shape places"]:
    """Logarithms of the weights of places: without noise all of it on one; else softly, with Gumbel noise."""
    if noise is None:
        return torch.full_like(logits, NEVER).scatter(-1, logits.argmax(-1, keepdim=True), 0.0)
    gumbel = -(-noise.clamp(min=TINY).log()).clamp(min=TINY).log() if noisy else 0.0
    return ((logits + gumbel) / temperature).log_softmax(-1)


def waves(places: int, size: int, generator: torch.Generator) -> Float[Tensor, "places size"]:
    """A vector for each place, neighbors alike: the first cosines of a discrete cosine transform, and some noise."""
    place, frequency = torch.arange(places)[:, None] + 0.5, torch.arange(size)
    noise = torch.randn(places, size, generator=generator)
    return torch.cos(torch.pi / places * place * frequency) + INITIAL * noise


def of_each(vectors: Float[Tensor, "*batch queries size"], matrix: Float[Tensor, "*members size columns"]) -> Tensor:
    """The product with a matrix, or in a population with that of each member."""
    if matrix.ndim == 2:
        return vectors @ matrix
    return torch.bmm(vectors.flatten(1, -2), matrix).unflatten(1, vectors.shape[1:-1])


def compared(query: Tensor, value: Tensor) -> Tensor:
    """How far and on which side of the query a value is, on a logarithmic scale: near ones differ as much as far."""
    apart = value - query
    return apart.sign() * (FINE * apart.abs()).log1p() / math.log1p(FINE)


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


def straight(value: Tensor, soft: Tensor) -> Tensor:
    """A value with the gradient of another as well."""
    return value + (soft - soft.detach())

"""The index: a network that stores a set of points in an order of its choice, and looks some of them up for a query.

After Salemohamed, Charlin, Garg, Sharan and Valiant, "Discovering Data Structures" (2024).
"""

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from algoscope import arguments
from algoscope.contracts import Model, Network, TrainingNeeds
from algoscope.models.encoder import check_picture, encoder
from algoscope.models.index_parts import (
    BARRED,
    TEMPERATURE,
    Answer,
    Look,
    Score,
    Sort,
    Visit,
    cooled,
    fourier_features,
    nearest_places,
    of_each,
    sorted_by,
    waves,
)
from algoscope.models.network import MOST_LAYERS, Linear, Norm, draw_linear, draw_normal
from algoscope.models.transformer import Block, Transformer, added

ADDRESSES = ("logit", "pointer", "slot_bias", "token")
ANSWERS = ("last", "any", "each")
ABLATIONS = ("noise", "learned order", "feedback", "points")
HEAD = 8  # units of a head of attention
POINTER = 64  # size of a vector that names a place
SLOT_BIAS = 6.0  # how much the logits of slots are raised at first: far above what noise adds


@dataclass(frozen=True)
class Index(Model):
    """A data structure that is learned: points in an order, and networks that look them up.

    A transformer of `layers`, with heads of 8 units, scores the points of a set, which are stored sorted by their
    scores, as they are. It also writes `slots` vectors of its own behind them. A query network, a perceptron of two
    hidden layers, sees the query and all that was looked up so far, and chooses the next place; `lookups` of them each
    look up one. Which look-ups may `answer`: the "last", each by a network of its own, as published; or "any", all by
    one network; "each" is the same, but training has a loss at every look-up, so that early ones matter, too. With
    slots the last look-up is always at a point.

    `address` says how a place is chosen. "logit": each place has a logit of its own. "pointer": a vector is compared
    with one for each place, so that networks do not grow with the set. Slots alone are often not used at all, so there
    are two ways to begin with them; both write slots with a separate encoder, which leaves the order alone, and cool
    the look-ups before the last in training, since soft ones read several slots at once and hard ones cannot.
    "slot_bias": the logits of slots are raised at first, which training can undo. "token": look-ups before the last
    read slots alone, which are addressed by the tokens that they begin as, which begin as waves: where there are more
    slots than `width` neighbors are alike, and what is learned of one slot serves its neighbors.

    A score begins as a nearly linear function of the point, and in many dimensions stays one: an order along a single
    direction. With `folds` the order is folded so many times: each halves all parts of the set once more, along another
    direction, and turns every second part round, so that the order winds through space.

    Networks learn coarse functions of a number long before fine ones. With `fourier_octaves` they also see Fourier
    features of queries and of what was read: sines and cosines of so many octaves, from the wave length 2 on. So does
    what writes slots, whose contents are fine functions of the points; an order is none, and they spoil it.

    In training places are weighed by a softmax of logits with Gumbel noise, and sorting has the gradient of a soft sort
    of `softness`. Otherwise both are hard, and where any look-up may answer none goes where another has been.

    Tokens that are pictures become features by an encoder: `picture` is their height and width, how many features there
    are, and how many channels the first convolution has. The features are all that is stored, asked and compared.

    Ablations, `without`: the Gumbel "noise"; a "learned order", so that that of a fresh network stays; "feedback", so
    that queries do not see what was read; or "points", so that slots are all that is stored, and what is read from one
    stands for the point nearest to it.
    """

    family = "search"
    version = 2  # query networks with biases, and scores standardized over their set

    lookups: int = 7  # of a query
    slots: int = 0  # vectors of its own
    layers: int = 8  # of the transformer
    width: int = 64  # of the transformer
    hidden: int = 1024  # units of a query network
    answer: Literal["last", "any", "each"] = "last"  # which look-ups may answer
    address: Literal["logit", "pointer", "slot_bias", "token"] = "logit"  # how a place is chosen
    folds: int = 0  # of the order, for many dimensions
    fourier_octaves: int = 0  # of what networks see
    softness: float = 0.1  # of the soft sort in training
    picture: tuple[int, int, int, int] | None = None  # height, width, features and channels, where tokens are pictures
    without: Literal["noise", "learned order", "feedback", "points"] | None = None  # an ablation

    def __post_init__(self) -> None:
        arguments.integer("lookups", self.lookups, 1, MOST_LAYERS)
        arguments.integer("slots", self.slots, 0)
        arguments.integer("folds", self.folds, 0, MOST_LAYERS)
        arguments.integer("fourier_octaves", self.fourier_octaves, 0, MOST_LAYERS)
        arguments.integer("width", self.width, 1)
        arguments.integer("hidden", self.hidden, 1)
        arguments.choice("answer", self.answer, ANSWERS)
        arguments.choice("address", self.address, ADDRESSES)
        arguments.number("softness", self.softness, strict=True)
        if self.without is not None:
            arguments.choice("without", self.without, ABLATIONS)
        if self.separate_slot_encoder and (not self.slots or self.lookups == 1 or not self.stores_points):
            raise ValueError(
                f'address must be "logit" or "pointer" where no look-up has both slots and points, got "{self.address}"'
            )
        if not self.stores_points and not self.slots:
            raise ValueError("slots must be at least 1 without points: they are all that is stored")
        if not self.stores_points and self.folds:
            raise ValueError(f"folds must be 0 without points, which have no order, got {self.folds}")
        if self.width > HEAD and self.width % HEAD:
            raise ValueError(f"width must be a multiple of {HEAD}, the units of a head, got {self.width}")
        check_picture(self.picture)
        self.transformer()

    @property
    def stores_points(self) -> bool:
        return self.without != "points"

    @property
    def shared(self) -> bool:
        """Whether one query network serves all look-ups."""
        return self.answer != "last"

    @property
    def separate_slot_encoder(self) -> bool:
        """Whether slots are written by a transformer of their own, and read by look-ups that are cooled."""
        return self.address in ("slot_bias", "token")

    def transformer(self) -> Transformer:
        return Transformer(self.layers, max(self.width // HEAD, 1), self.width, mask="full", positions="none")

    def build(self, inputs: int, outputs: int, length: int, generator: torch.Generator) -> "IndexNetwork":
        """For `outputs` points, and queries that are the rest of the `length` tokens."""
        if length <= outputs:
            raise ValueError(f"Index needs a search task: {outputs} points and at least one query, got {length} tokens")
        return IndexNetwork(self, inputs, outputs, length - outputs, generator)


def slot_tokens(model: Index, generator: torch.Generator) -> Float[Tensor, "slots width"]:
    """What slots begin as."""
    if model.address == "token":
        return waves(model.slots, model.width, generator)
    tokens = torch.empty(model.slots, model.width)
    draw_normal(tokens, 1.0, generator)
    return tokens


class IndexNetwork(Network):
    """Stages: with pictures "features", what they became [length, features]; "order", the scores of the points
    [points, 1]; with extra space "slots", what they hold [slots, inputs]; and "look-up 1" … "look-up M", how each query
    weighs points and slots [queries, points + slots]. Where points are not permuted, their order is that of the slots
    nearest to them, and look-ups weigh the points [queries, points] by how near they are to what is read.

    Outputs, for queries alone, are logarithms of how much the answer weighs each point.
    """

    def __init__(self, model: Index, inputs: int, points: int, queries: int, generator: torch.Generator) -> None:
        super().__init__()
        self.model, self.points, stored = model, points, points * model.stores_points
        places, separate = stored + model.slots, model.separate_slot_encoder
        self.encoder = encoder(model.picture, inputs, generator)
        inputs = inputs if self.encoder is None else self.encoder.features
        seen = inputs * (1 + 2 * model.fourier_octaves)  # of a query, or of what was read
        self.fourier_octaves = model.fourier_octaves if model.slots and not separate else 0  # of an ordered point
        self.read_in, self.norm = Linear(inputs * (1 + 2 * self.fourier_octaves), model.width), Norm(model.width)
        self.read_out = Linear(model.width, 1 + model.folds)
        self.read_out.idle = slice(None)  # scores are standardized over their set
        self.norm.idle = slice(None) if separate or not model.slots else None  # the shift that scores alone see
        draw_linear(self.read_in, generator, 1 / math.sqrt(inputs))
        nn.init.zeros_(self.read_in.weight.data[:, inputs:])  # of waves: orders begin smooth, and are learned sooner
        draw_linear(self.read_out, generator)
        self.slots = nn.Parameter(slot_tokens(model, generator)) if model.slots else None
        self.write = Linear(model.width, inputs) if model.slots else None
        if self.write is not None:
            draw_linear(self.write, generator)
        self.see, self.written = (Linear(seen, model.width), Norm(model.width)) if separate else (None, None)
        if self.see is not None:
            draw_linear(self.see, generator, 1 / math.sqrt(inputs))  # waves, too: what slots hold is fine
            draw_normal(self.see.bias, 1 / math.sqrt(inputs), generator)
        size = min(POINTER, places)
        self.directory = nn.Parameter(waves(places, size, generator)) if model.address == "pointer" else None
        address = {"pointer": size, "token": stored + model.width}.get(model.address, places)
        entry = address + seen + inputs  # a place, what was read there, and how that compares with the query
        self.arranging = model.layers * (1 + separate)  # blocks; query networks follow
        blocks = [Block(model.transformer(), generator) for _ in range(self.arranging)]
        asked = (
            [(model.lookups - 1) * entry + model.lookups] if model.shared else [m * entry for m in range(model.lookups)]
        )
        feedback = model.without != "feedback"
        past = asked if feedback else [model.lookups * model.shared for _ in asked]
        query_mlps = [QueryMLP(seen + size, model.hidden, address, generator) for size in past]
        self.blocks = nn.ModuleList([*blocks, *query_mlps])
        # Without a bias a norm leaves the direction of a point alone, of a number its sign: orders then break at zero,
        # and all queries on one side of it are looked up alike. A shared network sees which look-up it is: a bias.
        draw_normal(self.read_in.bias, 1 / math.sqrt(inputs), generator)
        for query_mlp in () if model.shared else query_mlps:
            draw_normal(query_mlp.first.bias, 1 / math.sqrt(query_mlp.first.in_features), generator)
        self.score, self.sort = Score(), Sort(model.softness)
        first = {"slot_bias": SLOT_BIAS, "token": math.inf}.get(model.address, 0.0)
        look = Look(TEMPERATURE, noisy=model.without != "noise")
        self.visit = Visit(stored, look, first, model.fourier_octaves)
        self.answer, scored = Answer(points, model.answer), model.lookups if model.answer == "each" else 1
        self.columns = [model.lookups, seen, *[entry] * (model.lookups - 1) * feedback]  # of a shared network
        self.training_needs = TrainingNeeds((model.lookups, queries, places), separate, scored)
        pictures, extra = ("features",) if self.encoder else (), ("slots",) if model.slots else ()
        self.stages = (*pictures, "order", *extra, *(f"look-up {m + 1}" for m in range(model.lookups)))

    def run(
        self,
        tokens: Float[Tensor, "*batch length inputs"],
        keep: Collection[str] = (),
        noise: Float[Tensor, "*batch lookups queries places"] | None = None,
        progress: Float[Tensor, ""] | None = None,
    ) -> tuple[Float[Tensor, "*batch queries outputs"], dict[str, Tensor]]:
        weights, kept = self._read(tokens, keep, noise, progress)
        return self.answer(*weights)[-1], kept

    def answers(
        self,
        tokens: Float[Tensor, "*batch length inputs"],
        noise: Float[Tensor, "*batch lookups queries places"] | None = None,
        progress: Float[Tensor, ""] | None = None,
    ) -> Float[Tensor, "scored *batch queries outputs"]:
        return torch.stack(self.answer(*self._read(tokens, (), noise, progress)[0]))

    def _read(
        self, tokens: Tensor, keep: Collection[str], noise: Tensor | None, progress: Tensor | None
    ) -> tuple[list[Float[Tensor, "*batch queries places"]], dict[str, Tensor]]:
        """How each look-up weighs points and slots, and what is to be kept."""
        if tokens.shape[-2] <= self.points:
            raise ValueError(f"tokens must be {self.points} points and at least one query, got {tokens.shape[-2]}")
        self.check_stages(keep)
        tokens = tokens if self.encoder is None else self.encoder(tokens)
        points, queries = tokens[..., : self.points, :], tokens[..., self.points :, :]
        scores, slots = self.arrange(points)
        kept = {"features": tokens, "order": scores[..., None], "slots": slots}
        kept, weights = {name: kept[name] for name in keep if name in kept}, []
        if self.model.stores_points:
            frozen = self.model.without == "learned order"
            order, soft = self.sort(scores.detach() if frozen else scores, noise is not None)
            stored, known = torch.cat((sorted_by(points, order, soft), slots), -2), (order.argsort(-1), soft)
        else:
            stored, known = slots, (None, None, points)
        temperature = cooled(progress) if self.training_needs.needs_progress and progress is not None else None
        for m, looked_up in enumerate(self.lookups(queries, stored, noise, *known, temperature=temperature)):
            weights.append(looked_up)
            if self.stages[m - self.model.lookups] in keep:
                kept[self.stages[m - self.model.lookups]] = weights[-1].exp()
        return weights, kept

    def arrange(self, points: Float[Tensor, "*batch points inputs"]) -> tuple[Tensor, Tensor]:
        """A score for each point, and what the slots hold."""
        ordering, writing = self.blocks[: self.model.layers], self.blocks[self.model.layers : self.arranging]
        state = self.read_in(fourier_features(points, self.fourier_octaves))
        if self.see is None or self.written is None:
            state = self.norm(through(ordering, self.with_slots(state)))
            slots = state[..., self.points :, :]
        else:
            seen = self.see(fourier_features(points, self.model.fourier_octaves))
            slots = self.written(through(writing, self.with_slots(seen))[..., self.points :, :])
            state = self.norm(through(ordering, state))
        slots = points[..., :0, :] if self.write is None else self.write(slots)
        if not self.model.stores_points:
            return nearest_places(points, slots), slots
        return self.score(self.read_out(state[..., : self.points, :])), slots

    def with_slots(self, state: Float[Tensor, "*batch points width"]) -> Float[Tensor, "*batch places width"]:
        if self.slots is None:
            return state
        slots = self.slots if self.slots.ndim == 2 else self.slots[:, None]
        return torch.cat((state, slots.expand(*state.shape[:-2], *slots.shape[-2:])), -2)

    def lookups(
        self,
        queries: Float[Tensor, "*batch queries inputs"],
        stored: Float[Tensor, "*batch places inputs"],
        noise: Float[Tensor, "*batch lookups queries places"] | None = None,
        places: Int[Tensor, "*batch points"] | None = None,
        soft: Float[Tensor, "*batch points points"] | None = None,
        points: Float[Tensor, "*batch points inputs"] | None = None,
        temperature: Float[Tensor, ""] | None = None,
    ) -> Iterator[Float[Tensor, "*batch queries places"]]:
        """The logarithms of how each look-up weighs what is stored: by place; by point if their `places` are given, or
        `points` for which what is read may stand. Those before the last are at the `temperature`, if one is given.

        A network for one look-up sees the query and all that was read. One that is shared also sees which look-up it
        is, and what its first layer makes of each read is added to what it made of those before.
        """
        shared, count, number = self.model.shared, self.model.lookups, [()] * self.model.lookups
        seen = fourier_features(queries, self.model.fourier_octaves)
        columns, once = list[Tensor](), noise is None and self.model.answer != "last"
        barred = torch.zeros_like(stored[..., None, :, 0]) if once else None
        directory = self.slots if self.model.address == "token" else self.directory
        if shared:
            seen, number, columns = self.first_of_shared(seen)
        for m in range(count):
            query_mlp, last = self.blocks[self.arranging + (0 if shared else m)], m == count - 1
            own = None if noise is None else noise[..., m, :, :]
            logits = query_mlp(seen, *number[m])
            weights, entry, found = self.visit(
                logits, queries, stored, own, barred, places, soft, points, directory, last, temperature
            )
            yield found
            barred = None if barred is None else barred + BARRED * weights.exp()
            if entry is not None and self.model.without != "feedback":
                seen = seen + of_each(entry, columns[m].mT) if shared else torch.cat((seen, entry), -1)

    def first_of_shared(self, seen: Tensor) -> tuple[Tensor, list[tuple[Tensor]], list[Tensor]]:
        """Of the network that is shared: what its first layer makes of the queries, what it adds for the number of each
        look-up, and its columns for what each reads.
        """
        query_mlp = self.blocks[-1]
        assert isinstance(query_mlp, QueryMLP)
        number, asked, *columns = query_mlp.first.weight.split(self.columns, -1)  # at once, and so is its gradient
        alone = number.ndim == 2
        bias = query_mlp.first.bias if alone else query_mlp.first.bias[:, None, None]
        rows = number.mT.contiguous().unbind(-2)
        each = [(row if alone else row[:, None, None],) for row in rows]
        return of_each(seen, asked.mT) + bias, each, columns


def through(blocks: Iterable[nn.Module], state: Tensor) -> Tensor:
    """What blocks make of a state."""
    stream = (state,)
    for block in blocks:
        stream = block(*stream)
    return added(*stream)


class QueryMLP(nn.Module):
    """A query network. Its first and last layer stay in 32 bits: 16 do not tell close neighbors apart."""

    def __init__(self, inputs: int, hidden: int, outputs: int, generator: torch.Generator) -> None:
        super().__init__()
        self.first, self.first_norm = Linear(inputs, hidden, exact=True), Norm(hidden)
        self.middle, self.middle_norm = Linear(hidden, hidden), Norm(hidden)
        self.last = Linear(hidden, outputs, exact=True)
        for layer in (self.first, self.middle, self.last):
            draw_linear(layer, generator)

    def forward(
        self, known: Float[Tensor, "*batch queries inputs"], number: Tensor | None = None
    ) -> Float[Tensor, "*batch queries outputs"]:
        """With what the first layer makes of the `number` of the look-up, `known` is what it has made of the rest."""
        state = self.first(known) if number is None else known + number
        state = self.first_norm(state).relu()
        state = self.middle_norm(self.middle(state).to(state.dtype)).relu()
        return self.last(state)

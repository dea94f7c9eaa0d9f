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
from algoscope.models.encoder import check_picture, encoder
from algoscope.models.index_parts import (
    BARRED,
    Answer,
    Look,
    Score,
    Sort,
    Visit,
    cooled,
    in_octaves,
    nearest_places,
    of_each,
    sorted_by,
    waves,
)
from algoscope.models.network import MOST_LAYERS, Linear, Model, Network, Norm, draw_linear, draw_normal
from algoscope.models.transformer import Block, Transformer, added

ADDRESSES = ("all", "pointer", "token")
ANSWERS = ("last", "any", "each")
BEFORE = ("all", "slots")
MOST_FAVOR = 100.0  # far above what noise adds, and far below what bars a place


@dataclass(frozen=True)
class Index(Model):
    """A data structure that is learned: points in an order, and networks that look them up.

    A transformer of `layers` puts the points of a set in order; `lookups` networks each look up one of them.

    The transformer gives each point a score, and the points are stored sorted by it, as they are. It also writes
    `slots` vectors of its own behind them. A query network, a perceptron of two hidden layers, sees the query and all
    that was looked up so far, and chooses the next place; they are one network for all look-ups if `shared`.
    `address` says how a place is chosen: "all" gives each place a logit of its own and "pointer" compares a vector
    with one for each place, so that networks do not grow with the set. "token" does so for slots alone, with the tokens
    that they begin as, which begin as waves: where there are more slots than `width` neighbors are alike, and what is
    learned of one slot, to write it and to read it, serves its neighbors (of many slots most are else never read). The
    answer is the "last" point looked up, or "any" of them; "each" is the same,
    but training counts what was found after each look-up, so that early ones matter. Look-ups `before` the last read
    "all" places or "slots" alone, whose use is else learned late; or they may read all, but `favor` slots to begin
    with: the logits of points are lower by so much, which training can undo.

    A score begins as a nearly linear function of the point, and in many dimensions stays one: an order along a single
    direction. With `folds` the order is folded so many times: each halves all parts of the set once more, along another
    direction, and turns every second part round, so that the order winds through space.

    Networks learn coarse functions of a number long before fine ones. With `octaves` they also see the coordinates of
    queries and of what was read as waves: so many octaves, from the wave length 2 on. Points are seen so where there
    are slots, whose contents are fine functions of them; an order is none, and waves spoil it: with slots `apart` they
    are written by a transformer of their own, and the one that orders sees points as they are.

    In training places are weighed by a softmax at `temperature` of logits with Gumbel noise (without it if not
    `noisy`), and sorting has the gradient of a soft sort of `softness`. Otherwise both are hard, and where any look-up
    may answer none goes where another has been. Soft look-ups can read several places at once, which hard ones cannot:
    so those before the last may be cooled, down to the temperature `coldest`, from 30 to 90% of training.

    Tokens that are pictures, of the height and width `picture`, first become `features` by an encoder whose first
    convolution has `channels`: these are all that is stored, asked and compared.

    Ablations: an order that is not `ordered` by training; query networks that are not `adaptive`, so that they see the
    query alone; and points that are not `permuted`, but left out: slots are all that is stored, and what is read from
    one stands for the point nearest to it.
    """

    family = "search"
    version = 2  # query networks with biases, and scores standardized over their set

    lookups: int = 7  # of a query
    slots: int = 0  # vectors of its own
    layers: int = 8  # of the transformer
    heads: int = 8  # of attention
    width: int = 64  # of the transformer
    hidden: int = 1024  # units of a query network
    address: Literal["all", "pointer", "token"] = "all"  # how a place is chosen
    pointer: int = 64  # size of a pointer
    shared: bool = False  # one query network for all look-ups
    answer: Literal["last", "any", "each"] = "last"  # which look-ups may answer
    before: Literal["all", "slots"] = "all"  # what look-ups before the last may read
    favor: float = 0.0  # how much slots are preferred at first
    folds: int = 0  # of the order, for many dimensions
    octaves: int = 0  # of Fourier features
    apart: bool = False  # slots are written by a transformer of their own
    temperature: float = 2.0  # of soft choices in training
    coldest: float | None = None  # temperature at the end; by default the same
    softness: float = 0.1  # of the soft sort in training
    noisy: bool = True  # Gumbel noise in training
    ordered: bool = True  # ablation: whether training orders points
    adaptive: bool = True  # ablation: whether later look-ups see earlier ones
    permuted: bool = True  # ablation: whether points are stored
    picture: tuple[int, int] | None = None  # height and width, where tokens are pictures
    features: int = 1  # that a picture becomes
    channels: int = 32  # of the first convolution

    def __post_init__(self) -> None:
        arguments.integer("lookups", self.lookups, 1, MOST_LAYERS)
        arguments.integer("slots", self.slots, 0)
        arguments.integer("folds", self.folds, 0, MOST_LAYERS)
        arguments.integer("octaves", self.octaves, 0, MOST_LAYERS)
        arguments.integer("hidden", self.hidden, 1)
        arguments.integer("pointer", self.pointer, 1)
        arguments.choice("address", self.address, ADDRESSES)
        if self.address == "token" and (not self.slots or self.lookups == 1):
            raise ValueError('address must be "all" or "pointer" where no look-up reads slots, got "token"')
        arguments.choice("answer", self.answer, ANSWERS)
        arguments.choice("before", self.before, BEFORE)
        if self.before == "slots" and not self.slots:
            raise ValueError('before must be "all" where there are no slots, got "slots"')
        if self.before == "slots" and self.lookups == 1:
            raise ValueError('before must be "all" where there is one look-up, which answers, got "slots"')
        arguments.number("favor", self.favor)
        if self.favor and (not self.slots or self.before == "slots" or self.lookups == 1):
            raise ValueError(
                "favor must be 0 where there are no slots, or nothing else is read before the last look-up"
            )
        if self.favor > MOST_FAVOR:
            raise ValueError(f"favor must be at most {MOST_FAVOR:g}, got {self.favor:g}")
        arguments.number("temperature", self.temperature, strict=True)
        if self.coldest is not None:
            arguments.number("coldest", self.coldest, strict=True)
            if self.lookups == 1:
                raise ValueError("coldest must be None where there is one look-up: those before the last are cooled")
            if self.coldest > self.temperature:
                raise ValueError(f"coldest must be at most temperature = {self.temperature}, got {self.coldest}")
        arguments.number("softness", self.softness, strict=True)
        for name in ("shared", "noisy", "ordered", "adaptive", "permuted", "apart"):
            arguments.boolean(name, getattr(self, name))
        if self.apart and not (self.slots and self.permuted):
            raise ValueError("apart must be False where there are not both slots and an order")
        if not self.permuted and not self.slots:
            raise ValueError("slots must be at least 1 where points are not permuted: they are all that is stored")
        if not self.permuted and (self.folds or not self.ordered or self.before != "all" or self.favor):
            raise ValueError(
                "folds, ordered, before and favor must be as by default where points are not permuted: no order"
            )
        check_picture(self.picture, self.features, self.channels)
        self.transformer()

    def transformer(self) -> Transformer:
        return Transformer(self.layers, self.heads, self.width, mask="full", positions="none")

    def build(self, inputs: int, outputs: int, length: int, generator: torch.Generator) -> "IndexNetwork":
        """For `outputs` points, and queries that are the rest of the `length` tokens."""
        if length <= outputs:
            raise ValueError(f"Index needs a search task: {outputs} points and at least one query, got {length} tokens")
        return IndexNetwork(self, inputs, outputs, length - outputs, generator)


def slot_tokens(model: Index, generator: torch.Generator) -> Float[Tensor, "slots width"]:
    """What slots begin as."""
    if model.address == "token":
        return waves(model.slots, model.width, generator)
    return torch.randn(model.slots, model.width, generator=generator)


class IndexNetwork(Network):
    """Stages: with pictures "features", what they became [length, features]; "order", the scores of the points
    [points, 1]; with extra space "slots", what they hold [slots, inputs]; and "look-up 1" … "look-up M", how each query
    weighs points and slots [queries, points + slots]. Where points are not permuted, their order is that of the slots
    nearest to them, and look-ups weigh the points [queries, points] by how near they are to what is read.

    Outputs, for queries alone, are logarithms of how much the answer weighs each point.
    """

    def __init__(self, model: Index, inputs: int, points: int, queries: int, generator: torch.Generator) -> None:
        super().__init__()
        self.model, self.points, stored = model, points, points * model.permuted
        places = stored + model.slots
        self.encoder = encoder(model.picture, inputs, model.features, model.channels, generator)
        inputs = inputs if self.encoder is None else model.features
        seen = inputs * (1 + 2 * model.octaves)  # of a query, or of what was read
        self.octaves = model.octaves if model.slots and not model.apart else 0  # of a point that is to be ordered
        self.read_in, self.norm = Linear(inputs * (1 + 2 * self.octaves), model.width), Norm(model.width)
        self.read_out = Linear(model.width, 1 + model.folds)
        self.read_out.idle = slice(None)  # scores are standardized over their set
        self.norm.idle = slice(None) if model.apart or not model.slots else None  # the shift that scores alone see
        draw_linear(self.read_in, generator, 1 / math.sqrt(inputs))
        nn.init.zeros_(self.read_in.weight.data[:, inputs:])  # of waves: orders begin smooth, and are learned sooner
        draw_linear(self.read_out, generator)
        self.slots = nn.Parameter(slot_tokens(model, generator)) if model.slots else None
        self.write = Linear(model.width, inputs) if model.slots else None
        if self.write is not None:
            draw_linear(self.write, generator)
        self.see, self.written = (Linear(seen, model.width), Norm(model.width)) if model.apart else (None, None)
        if self.see is not None:
            draw_linear(self.see, generator, 1 / math.sqrt(inputs))  # waves, too: what slots hold is fine
            draw_normal(self.see.bias, 1 / math.sqrt(inputs), generator)
        size = min(model.pointer, places)
        self.directory = nn.Parameter(waves(places, size, generator)) if model.address == "pointer" else None
        address = {"all": places, "pointer": size, "token": stored + model.width}[model.address]
        entry = address + seen + inputs  # a place, what was read there, and how that compares with the query
        self.arranging = model.layers * (1 + model.apart)  # blocks; query networks follow
        blocks = [Block(model.transformer(), generator) for _ in range(self.arranging)]
        asked = (
            [(model.lookups - 1) * entry + model.lookups] if model.shared else [m * entry for m in range(model.lookups)]
        )
        past = asked if model.adaptive else [model.lookups * model.shared for _ in asked]
        askers = [Asker(seen + size, model.hidden, address, generator) for size in past]
        self.blocks = nn.ModuleList([*blocks, *askers])
        # Without a bias a norm leaves the direction of a point alone, of a number its sign: orders then break at zero,
        # and all queries on one side of it are looked up alike. A shared network is told the look-up: a bias.
        draw_normal(self.read_in.bias, 1 / math.sqrt(inputs), generator)
        for asker in () if model.shared else askers:
            draw_normal(asker.first.bias, 1 / math.sqrt(asker.first.in_features), generator)
        self.score, self.sort = Score(), Sort(model.softness)
        before = model.before if model.permuted else None
        self.visit = Visit(points, Look(model.temperature, model.noisy), before, model.favor, model.octaves)
        self.answer, self.scored = Answer(points, model.answer), model.lookups if model.answer == "each" else 1
        self.columns = [model.lookups, seen, *[entry] * (model.lookups - 1) * model.adaptive]  # of a shared network
        self.noise, self.paced = (model.lookups, queries, places), model.coldest is not None
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
        if self.model.permuted:
            order, soft = self.sort(scores if self.model.ordered else scores.detach(), noise is not None)
            stored, known = torch.cat((sorted_by(points, order, soft), slots), -2), (order.argsort(-1), soft)
        else:
            stored, known = slots, (None, None, points)
        warm, coldest = self.model.temperature, self.model.coldest
        temperature = None if coldest is None or progress is None else cooled(progress, warm, coldest)
        for m, looked_up in enumerate(self.lookups(queries, stored, noise, *known, temperature=temperature)):
            weights.append(looked_up)
            if self.stages[m - self.model.lookups] in keep:
                kept[self.stages[m - self.model.lookups]] = weights[-1].exp()
        return weights, kept

    def arrange(self, points: Float[Tensor, "*batch points inputs"]) -> tuple[Tensor, Tensor]:
        """A score for each point, and what the slots hold."""
        ordering, writing = self.blocks[: self.model.layers], self.blocks[self.model.layers : self.arranging]
        state = self.read_in(in_octaves(points, self.octaves))
        if self.see is None or self.written is None:
            state = self.norm(through(ordering, self.with_slots(state)))
            slots = state[..., self.points :, :]
        else:
            seen = self.see(in_octaves(points, self.model.octaves))
            slots = self.written(through(writing, self.with_slots(seen))[..., self.points :, :])
            state = self.norm(through(ordering, state))
        slots = points[..., :0, :] if self.write is None else self.write(slots)
        if not self.model.permuted:
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

        A network for one look-up sees the query and all that was read. One that is shared is also told which look-up it
        is, and what its first layer makes of each read is added to what it made of those before.
        """
        shared, count, told = self.model.shared, self.model.lookups, [()] * self.model.lookups
        seen = in_octaves(queries, self.model.octaves)
        columns, once = list[Tensor](), noise is None and self.model.answer != "last"
        barred = torch.zeros_like(stored[..., None, :, 0]) if once else None
        directory = self.slots if self.model.address == "token" else self.directory
        if shared:
            seen, told, columns = self.first_of_shared(seen)
        for m in range(count):
            asker, last = self.blocks[self.arranging + (0 if shared else m)], m == count - 1
            own = None if noise is None else noise[..., m, :, :]
            logits = asker(seen, *told[m])
            weights, entry, found = self.visit(
                logits, queries, stored, own, barred, places, soft, points, directory, last, temperature
            )
            yield found
            barred = None if barred is None else barred + BARRED * weights.exp()
            if entry is not None and self.model.adaptive:
                seen = seen + of_each(entry, columns[m].mT) if shared else torch.cat((seen, entry), -1)

    def first_of_shared(self, seen: Tensor) -> tuple[Tensor, list[tuple[Tensor]], list[Tensor]]:
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
        return of_each(seen, asked.mT) + bias, each, columns


def through(blocks: Iterable[nn.Module], state: Tensor) -> Tensor:
    """What blocks make of a state."""
    stream = (state,)
    for block in blocks:
        stream = block(*stream)
    return added(*stream)


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

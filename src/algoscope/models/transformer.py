"""The transformer: a decoder in the style of GPT-2 over token vectors, with the options that the studies need."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, cast

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn
from torch.nn import functional

from algoscope import arguments
from algoscope.contracts import NO_EDITS, Edits, Model, Network, TrainingNeeds
from algoscope.models.kernels import short_attention
from algoscope.models.network import MOST_LAYERS, Linear, Norm, biased, draw_linear, draw_normal

COARSE = (torch.bfloat16,)  # precisions in which keys may go without what they have in common
FUSED_FROM = 256  # tokens; below, a CPU is faster with plain products
INITIAL = 0.02  # GPT-2's standard deviation of fresh weights
ACTIVATIONS = ("gelu", "relu", "bilinear")
ATTENTIONS = ("softmax", "relu", "linear")
MASKS = ("causal", "full")
NORMS = ("before", "after", "none")
POSITIONS = ("learned", "given", "none")
GELU = (math.sqrt(8 / math.pi), math.sqrt(8 / math.pi) * 0.044715)  # a and b of the tanh form


@dataclass(frozen=True)
class Transformer(Model):
    """A transformer in the style of GPT-2.

    GPT-2 without a vocabulary (Radford et al. 2019): linear embedding, `layers` blocks, linear head.

    `activation` of the MLP, which is `mlp_ratio` times as wide as the stream (0: no MLP): "gelu" (the tanh form, as
    in GPT-2), "relu", or "bilinear", the product of two linear maps. `attention` weighs a visible token by the
    "softmax" of its scores, or by "relu" or "linear" scores over the number of visible tokens. `mask`: "causal",
    "full", or a number w, which lets a token see itself and the w − 1 tokens before it. `norm`: LayerNorm "before"
    each part and at the end, "after" each part, or "none". `positions`: "learned", "given" to the network by
    `give_positions`, or "none". `sink` puts a blank token before the others, which all may see, and drops its output.
    """

    layers: int = 12  # blocks
    heads: int = 8  # of attention
    width: int = 256  # of the residual stream
    mlp_ratio: float = 4.0  # width of the MLP over that of the stream
    activation: Literal["gelu", "relu", "bilinear"] = "gelu"  # of the MLP
    attention: Literal["softmax", "relu", "linear"] = "softmax"  # how scores become weights
    mask: Literal["causal", "full"] | int = "causal"  # which tokens a token sees
    norm: Literal["before", "after", "none"] = "before"  # where LayerNorm stands
    positions: Literal["learned", "given", "none"] = "learned"  # how a token knows its place
    sink: bool = False  # a blank token before the others

    def __post_init__(self) -> None:
        arguments.integer("layers", self.layers, 0, MOST_LAYERS)
        arguments.integer("heads", self.heads, 1)
        arguments.integer("width", self.width, 1)
        if self.width % self.heads:
            raise ValueError(f"width must be a multiple of heads = {self.heads}, got {self.width}")
        arguments.scale("mlp_ratio", self.mlp_ratio)
        if self.mlp_ratio and round(self.mlp_ratio * self.width) == 0:
            raise ValueError(f"mlp_ratio must be 0 or leave the MLP at least one unit, got {self.mlp_ratio!r}")
        arguments.choice("activation", self.activation, ACTIVATIONS)
        arguments.boolean("sink", self.sink)
        arguments.choice("attention", self.attention, ATTENTIONS)
        if isinstance(self.mask, str):
            arguments.choice("mask", self.mask, MASKS, alternative="a window of tokens")
        else:
            arguments.integer("mask", self.mask, 1)
        arguments.choice("norm", self.norm, NORMS)
        arguments.choice("positions", self.positions, POSITIONS)

    @property
    def depth(self) -> int:
        """How many blocks it has."""
        return self.layers

    def build(self, inputs: int, outputs: int, length: int, generator: torch.Generator) -> "TransformerNetwork":
        return TransformerNetwork(self, inputs, outputs, length, generator)


class TransformerNetwork(Network):
    """Stages: "embedding", "layer 1" … "layer L", and with norm "before" also "norm", which the head reads."""

    ends = ("embedded", "answer")
    describe: Callable[["TransformerNetwork"], object] | None = None  # what it prints as, if not as its modules

    def __init__(self, model: Transformer, inputs: int, outputs: int, length: int, generator: torch.Generator) -> None:
        super().__init__()
        self.length, self.sink, places = length, model.sink, length + model.sink
        self.read_in = Linear(inputs, model.width)
        self.positions: Tensor | None
        if model.positions == "learned":
            self.positions = nn.Parameter(torch.empty(places, model.width))
            draw_normal(self.positions, INITIAL, generator)
        else:
            self.register_buffer("positions", torch.zeros(places, model.width) if model.positions == "given" else None)
        draw_linear(self.read_in, generator)
        self.blocks = nn.ModuleList(Block(model, generator) for _ in range(model.depth))
        self.norm = Norm(model.width) if model.norm == "before" else nn.Identity()
        self.read_out = Linear(model.width, outputs)
        draw_linear(self.read_out, generator)
        self.normed = model.norm == "before"
        self.training_needs = TrainingNeeds(
            deferred_weight_grads=True, answers_subset=model.depth > 0 and not model.sink
        )
        self.name_stages(f"layer {i + 1}" for i in range(model.layers))

    def __str__(self) -> str:
        return repr(self) if self.describe is None else str(self.describe(self))

    def name_stages(self, names: Iterable[str]) -> None:
        self.stages = ("embedding", *names, *(["norm"] if self.normed else []))

    def give_positions(self, positions: Float[Tensor, "places width"]) -> None:
        """Sets the position vectors of a network with positions "given"; that of a sink comes first."""
        if self.positions is None or isinstance(self.positions, nn.Parameter):
            raise ValueError("give_positions needs a Transformer(positions='given')")
        if positions.shape != self.positions.shape:
            raise ValueError(f"positions must be {list(self.positions.shape)}, got {list(positions.shape)}")
        self.positions.copy_(positions)

    def run(
        self,
        tokens: Float[Tensor, "*batch length inputs"],
        keep: Collection[str] = (),
        asked: slice | None = None,
        edits: Edits = NO_EDITS,
    ) -> tuple[Float[Tensor, "*batch asked outputs"], dict[str, Float[Tensor, "*batch length width"]]]:
        """With `asked`, outputs and the states of the last block are of these tokens alone."""
        if tokens.shape[-2] > self.length or (self.whole and tokens.shape[-2] != self.length):
            least = "" if self.whole else "at most "
            raise ValueError(
                f"tokens must be {least}{self.length}, the length it was built for, got {tokens.shape[-2]}"
            )
        self.check_stages(keep)
        stream = self._edited("embedding", (self.embedded(tokens),), edits)
        kept = {"embedding": self._shown(stream[0])} if "embedding" in keep else {}
        for name, later in self.passes(stream, asked, edits):
            stream = later
            if name in keep:
                kept[name] = self._shown(added(*stream))
        if "norm" in keep:
            kept["norm"] = self.norm(self._shown(added(*stream)))
            return self.read_out(kept["norm"]), kept
        return self.answer(stream), kept

    def embedded(self, tokens: Float[Tensor, "*batch length inputs"]) -> Float[Tensor, "*batch places width"]:
        """The input of the first block: tokens read in, after a blank one where there is a sink, plus positions."""
        state = self.read_in(tokens)
        if self.sink:
            state = functional.pad(state, (0, 0, 1, 0))
        if self.positions is not None:
            places = self.positions[..., : state.shape[-2], :]
            state = state + (places if places.ndim == 2 else places[:, None])  # of a population, each has its own
        return state

    def answer(self, stream: tuple[Tensor, ...]) -> Float[Tensor, "*batch length outputs"]:
        """The outputs, from the stream after the last block."""
        return self.read_out(self.norm(self._shown(added(*stream))))

    def passes(
        self, stream: tuple[Tensor, ...], asked: slice | None = None, edits: Edits = NO_EDITS
    ) -> Iterator[tuple[str, tuple[Tensor, ...]]]:
        """The stream after each stage between the embedding and the norm."""
        for name, block in zip(self.stages[1:], self.blocks, strict=False):
            stream = self._edited(name, block(*stream, asked=asked if block is self.blocks[-1] else None), edits)
            yield name, stream

    def _edited(self, name: str, stream: tuple[Tensor, ...], edits: Edits) -> tuple[Tensor, ...]:
        """With another state of the tokens, if that is edited; a sink stays as it is."""
        if name not in edits:
            return stream
        state = added(*stream)
        return (torch.cat([state[..., : int(self.sink), :], edits[name](self._shown(state))], -2),)

    def _shown(self, state: Tensor) -> Tensor:
        return state[..., 1:, :] if self.sink else state


class Block(nn.Module):
    """Attention, then an MLP, each added to the stream.

    Blocks return the terms of that sum: what reads the stream next adds them, in the same pass over memory. After the
    attention of a block only the tokens that are `asked` are computed.
    """

    def __init__(self, model: Transformer, generator: torch.Generator) -> None:
        super().__init__()
        self.after, normed = model.norm == "after", model.norm != "none"
        self.attention = Attention(model, generator)
        self.attention_norm = Norm(model.width) if normed else None
        self.mlp = Mlp(model, generator) if model.mlp_ratio else None
        self.mlp_norm = Norm(model.width) if normed and model.mlp_ratio else None

    def forward(self, *stream: Tensor, asked: slice | None = None) -> tuple[Tensor, ...]:
        # x = x + attention(norm(x)); x = x + mlp(norm(x))
        for part, norm in ((self.attention, self.attention_norm), (self.mlp, self.mlp_norm)):
            if part is None:
                continue
            state = added(*stream)
            stream, asked = (chosen(state, asked), *part(state, None if self.after else norm, asked)), None
            if norm and self.after:
                stream = (norm(added(*stream)),)
        return stream


def chosen(state: Shaped[Tensor, "*batch length width"], asked: slice | None) -> Shaped[Tensor, "*batch asked width"]:
    """Of the tokens that are asked; None: all."""
    return state if asked is None else state[..., asked, :]


def added(state: Tensor, *terms: Tensor) -> Tensor:
    """A state and what a part of the network adds to it."""
    if not terms:
        return state
    part = biased(*terms)
    return state + part if part.dtype == state.dtype else cast(Tensor, Added.apply(state, part))


class Added(torch.autograd.Function):
    """A sum whose gradient is in the precision of the part, also where it flows on: half the memory to move."""

    @staticmethod
    def forward(ctx, state: Tensor, part: Tensor) -> Tensor:
        ctx.dtype = part.dtype
        return state + part

    @staticmethod
    def backward(ctx, above: Tensor) -> tuple[Tensor, Tensor]:  # pyright: ignore[reportIncompatibleMethodOverride]
        rounded = above.to(ctx.dtype)
        return rounded.to(above.dtype), rounded


class Attention(nn.Module):
    def __init__(self, model: Transformer, generator: torch.Generator) -> None:
        super().__init__()
        self.heads, self.kind, self.mask = model.heads, model.attention, model.mask
        self.queries_keys_values = Linear(model.width, 3 * model.width, stacked=3)
        if self.kind == "softmax":  # a vector added to all keys adds one number to all scores of a query
            self.queries_keys_values.idle = slice(model.width, 2 * model.width)
        self.relative = False  # whether keys go without what the first one has, where numbers are coarse
        self.output = Linear(model.width, model.width)
        draw_linear(self.queries_keys_values, generator, INITIAL)
        draw_linear(self.output, generator, INITIAL / math.sqrt(2 * model.layers))

    def forward(
        self, state: Float[Tensor, "*batch length width"], norm: Norm | None = None, asked: slice | None = None
    ) -> tuple[Tensor, ...]:
        """What is added to the state of the tokens that are asked, in terms."""
        length, width = state.shape[-2:]
        split = (3, self.heads, width // self.heads)
        softmax, windowed = self.kind == "softmax", isinstance(self.mask, int)
        short = softmax and short_attention.fits(self.queries_keys_values.weight, length, split[-1])
        parts, bias = self._parts(state, norm, apart=short)
        parts = parts.reshape(-1, length, *split)
        if short and bias is not None:
            bias = bias.reshape(-1, *split)
            mixed = chosen(short_attention.attend(parts, bias, reach(self.mask, length)).flatten(2), asked)
        else:
            parts = parts if bias is None else (parts + bias.reshape(-1, 1, *split)).to(parts.dtype)
            q, k, v = (part.transpose(1, 2) for part in parts.unbind(2))  # [sequences, heads, length, width of a head]
            if softmax and not windowed and (state.is_cuda or length > FUSED_FROM):
                mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=self.mask == "causal")
                mixed = chosen(mixed, asked)
            else:
                mixed = mix(q, k, v, self.kind, self.mask, asked)
            mixed = mixed.transpose(1, 2)
        return self.output.terms(mixed.reshape(*state.shape[:-2], -1, width))

    def _parts(self, state: Tensor, norm: Norm | None, apart: bool) -> tuple[Tensor, Tensor | None]:
        """Queries, keys and values, side by side, and what is still to be added to all of a member, if that is wanted
        `apart`, or of a sequence.

        What all keys of a sequence have in common adds the same to all scores of a query, which a softmax takes out
        again, but may be many times what tells them apart, and 16 bits then leave little of that: keys that are
        `relative` go without what the first one has.
        """
        layer = self.queries_keys_values
        if not self.relative or layer.weight.dtype not in COARSE:
            return layer.product(state, norm) if apart else (layer(state, norm), None)
        parts, first = layer.relative(state, norm)
        queries, keys, values = first.chunk(3, -1)
        return parts, torch.cat((queries, torch.zeros_like(keys), values), -1)


def reach(mask: str | int, length: int) -> int:
    """How many tokens a token sees, itself and those before it; 0: all."""
    return mask if isinstance(mask, int) else length if mask == "causal" else 0


def mix(
    q: Float[Tensor, "sequences heads length width"],
    k: Float[Tensor, "sequences heads length width"],
    v: Float[Tensor, "sequences heads length width"],
    kind: str,
    mask: str | int,
    asked: slice | None = None,
) -> Float[Tensor, "sequences heads asked width"]:
    """What each token that is asked gathers, in plain products."""
    visible, q = chosen(visible_tokens(q.shape[-2], mask, q.device), asked), chosen(q, asked)
    scale = 1 / math.sqrt(q.shape[-1])
    if kind == "softmax":
        return cast(Tensor, Mixed.apply(q, k, v, torch.where(visible, 0.0, -torch.inf).to(q.dtype), scale))
    scores = q * scale @ k.mT
    weights = torch.where(visible, scores.relu() if kind == "relu" else scores, 0.0)
    return weights / visible.sum(-1, keepdim=True) @ v


class Mixed(torch.autograd.Function):
    """Softmax attention. Heads are narrow: products of which the first is a head are three times as fast on a CPU as
    those of which the second is.
    """

    @staticmethod
    def forward(ctx, q: Tensor, k: Tensor, v: Tensor, hidden: Tensor, scale: float) -> Tensor:
        heads, (q, k, v) = q.shape[:2], (part.flatten(0, 1) for part in (q, k, v))
        weights = torch.baddbmm(hidden, q, k.mT, alpha=scale).softmax(-1)
        ctx.save_for_backward(q, k, v, weights)
        ctx.heads, ctx.scale = heads, scale
        return torch.bmm(v.mT, weights.mT).mT.unflatten(0, heads)

    @staticmethod
    def backward(ctx, above: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (q, k, v, weights), above = ctx.saved_tensors, above.flatten(0, 1)
        scores = torch.baddbmm(weights, above, v.mT, beta=0, alpha=ctx.scale)  # the first is only there for its form
        scores = torch.ops.aten._softmax_backward_data(scores, weights, -1, weights.dtype)
        products = torch.bmm(k.mT, scores.mT), torch.bmm(q.mT, scores), torch.bmm(above.mT, weights)
        return *(product.mT.unflatten(0, ctx.heads) for product in products), None, None


def visible_tokens(length: int, mask: str | int, device: torch.device) -> Bool[Tensor, "length length"]:
    """[i, j]: whether token i sees token j."""
    everything = torch.ones(length, length, dtype=torch.bool, device=device)
    if mask == "full":
        return everything
    return everything.tril() if mask == "causal" else everything.tril().triu(1 - int(mask))


class Mlp(nn.Module):
    def __init__(self, model: Transformer, generator: torch.Generator) -> None:
        super().__init__()
        self.activation, hidden = model.activation, round(model.mlp_ratio * model.width)
        bilinear = model.activation == "bilinear"
        self.up = Linear(model.width, 2 * hidden if bilinear else hidden, stacked=1 + bilinear)
        self.down = Linear(hidden, model.width)
        draw_linear(self.up, generator, INITIAL)
        draw_linear(self.down, generator, INITIAL / math.sqrt(2 * model.layers))

    def forward(
        self, state: Float[Tensor, "*batch length width"], norm: Norm | None = None, asked: slice | None = None
    ) -> tuple[Tensor, ...]:
        """What is added to the state of the tokens that are asked, in terms."""
        hidden = self.up(chosen(state, asked), norm)
        if self.activation == "bilinear":
            left, right = hidden.chunk(2, dim=-1)
            return self.down.terms(left * right)
        return self.down.terms(hidden.relu() if self.activation == "relu" else gelu(hidden))


def gelu(x: Tensor) -> Tensor:
    """The tanh form, written with a sigmoid: x·σ(ax + bx³). That takes half the time on a GPU, a quarter on a CPU."""
    if not x.is_cuda:
        return cast(Tensor, Gelu.apply(x))
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    return (wide * torch.sigmoid(GELU[0] * wide + GELU[1] * wide**3)).to(x.dtype)


class Gelu(torch.autograd.Function):
    """The backward pass reuses the sigmoid, and copies nothing."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        share = torch.addcmul(x.new_full((), GELU[0]), x, x, value=GELU[1]).mul_(x).sigmoid_()
        ctx.save_for_backward(x, share)
        return x * share

    @staticmethod
    def backward(ctx, above: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        x, share = ctx.saved_tensors
        slope = torch.addcmul(x.new_full((), GELU[0]), x, x, value=3 * GELU[1])  # of what the sigmoid sees
        return torch.ops.aten.sigmoid_backward(slope.mul_(x), share).add_(share).mul_(above)

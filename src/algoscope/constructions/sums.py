"""Lemma 1 of Fu et al.: one layer of attention sums all tokens."""

import torch

from algoscope import arguments
from algoscope.constructions.anatomy import name_places
from algoscope.constructions.stream import Stream, clear, one, write_head
from algoscope.models import Transformer
from algoscope.models.transformer import TransformerNetwork


def sum_of_tokens(dim: int, length: int) -> TransformerNetwork:
    """Every token answers with the sum of all, in float64: all scores are 1, so ReLU/n makes the mean.

    One head does; the lemma takes two. The factor n is a weight, as there, so prompts have exactly `length` tokens.
    """
    arguments.integer("dim", dim, 1)
    arguments.integer("length", length, 1)
    stream = Stream(
        token=(dim, "the token as it is given"), total=(dim, "the sum of all tokens"), all=(1, "1 everywhere")
    )
    model = Transformer(
        layers=1, heads=1, width=stream.width, mlp_ratio=0.0, attention="relu", mask="full", norm="none",
        positions="given",
    )  # fmt: skip
    network = model.build(dim, dim, length, torch.Generator()).double().eval()
    clear(network)
    with torch.no_grad():
        network.read_in.weight[stream["token"]] = one(dim)
        network.read_out.weight[:, stream["total"]] = one(dim)
    positions = torch.zeros(length, stream.width, dtype=torch.float64)
    positions[:, stream["all"]] = 1.0
    network.give_positions(positions)
    name_places(network, stream.places)
    ask = {"all": one(1)}
    write_head(network.blocks[0], 0, stream, ask, ask, {"token": one(dim)}, {"total": length * one(dim)})
    return network

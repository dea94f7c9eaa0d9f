"""Where each parameter of a network lies in a row of numbers.

Each member is one row of a matrix, so that clipping, moments and the check for finite numbers are a few operations on
whole rows, and a checkpoint is a few tensors. First come the matrices inside the blocks, which Muon may move, equal
shapes together; then what else training may round to 16 bits; then the rest.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn
from torch.nn.functional import pad

from algoscope.models import Network
from algoscope.models.kernels.deferred_grads import Cut
from algoscope.models.network import Linear, Norm

INSIDE = ("blocks.", "encoder.")  # of a network, where matrices are: names of parts
ALIGNMENT = 64  # numbers: what fast kernels like to start at


class Form(NamedTuple):
    """The shape of a parameter, and how many independent matrices are stacked in it."""

    shape: torch.Size
    stacked: int


class Layout:
    """How rows become the named tensors of a network, with a leading axis of members where there are several.

    In bf16 the matrices inside the blocks, and their biases, are rounded to 16 bits. The residual stream (not its
    gradient: see `Added`), the norms, the first and the last map stay in 32 bits.
    """

    def __init__(self, network: Network, low_precision: bool, muon: bool) -> None:
        forms = {name: _form(network, name) for name, _ in network.named_parameters()}
        inside = {name for name in forms if name.startswith(INSIDE) and "norm" not in name} - set(_exact(network))
        order = sorted(forms, key=lambda name: (name not in inside, -len(forms[name].shape), forms[name]))
        self.forms = {name: forms[name] for name in order}
        self.low = {name: form for name, form in self.forms.items() if low_precision and name in inside}
        self.high = {name: form for name, form in self.forms.items() if name not in self.low}
        self.deferred_grads = False  # whether gradients of what is in 16 bits are computed last
        moved = {name: form for name, form in self.forms.items() if muon and name in inside and len(form.shape) == 2}
        self.muon = sum(_sizes(moved))  # how many numbers Muon moves
        self.matrices = [_count(moved[names[0]], len(names)) for names in _groups(moved)]
        self.size = sum(_sizes(self.forms))  # of a row
        parts = ((name, part) for name, part in network.named_modules() if isinstance(part, Linear | Norm))
        self.idle = {f"{name}.bias": part.idle for name, part in parts if part.idle is not None}

    def trained(self) -> Bool[Tensor, "parameters"]:
        """Which parameters training moves: all that can change an answer."""
        row = torch.ones(1, self.size, dtype=torch.bool)
        named = self.full(row)
        for name, part in self.idle.items():
            named[name][part] = False
        return row[0]

    def defer(self, network: Network) -> None:
        """Defers the gradients of what is in 16 bits (models/kernels/deferred_grads.py): one small model does not fill
        a GPU, a population does.
        """
        for name, layer in network.named_modules():
            if isinstance(layer, Linear):
                layer.deferred_grads = f"{name}.weight" in self.low
        self.deferred_grads = bool(self.low)

    def low_and_high(self, rows: Float[Tensor, "members parameters"]) -> tuple[Tensor, Tensor]:
        """The rows in the precision of training: the part in 16 bits (empty in other precisions), and the rest."""
        border = sum(_sizes(self.low))
        low = rows.bfloat16() if self.low else rows  # all of it: whole rows are the faster to convert
        return low[:, :border], rows[:, border:]

    def tensors(self, low_and_high: Sequence[Tensor]) -> dict[str, Tensor]:
        """By name, in the precision of training."""
        low, high = low_and_high
        cut = Cut.apply if self.deferred_grads else _split
        return {**_named(low, self.low, cut), **_named(high, self.high, _split)}

    def parameter_slots(self, network: nn.Module) -> list[tuple[dict[str, Any], str]]:
        """Where a network finds each of its parameters: a dictionary and a name."""
        paths = (name.rpartition(".") for name in (*self.low, *self.high))
        return [(network.get_submodule(module)._parameters, name) for module, _, name in paths]

    def full(self, rows: Shaped[Tensor, "members parameters"]) -> dict[str, Tensor]:
        """By name, in the precision of the rows, of which they are views."""
        return _named(rows, self.forms, _split)

    def row(self, network: nn.Module) -> Float[Tensor, "parameters"]:
        named, parts = dict(network.named_parameters()), []
        for names in _groups(self.forms):
            together = torch.cat([named[name].detach().flatten() for name in names])
            parts.append(pad(together, (0, padding(len(together)))))
        return torch.cat(parts)


def _exact(network: nn.Module) -> Iterator[str]:
    """Names of the parameters that stay in 32 bits wherever they are."""
    for name, layer in network.named_modules():
        if isinstance(layer, Linear) and layer.exact:
            yield from (f"{name}.{own}" for own, _ in layer.named_parameters())


def _form(network: nn.Module, name: str) -> Form:
    layer = network.get_submodule(name.rpartition(".")[0])
    return Form(network.get_parameter(name).shape, layer.stacked if isinstance(layer, Linear) else 1)


def _count(form: Form, tensors: int) -> tuple[int, int, int]:
    """How many matrices there are in equal tensors, and their rows and columns."""
    rows, columns = form.shape
    return tensors * form.stacked, rows // form.stacked, columns


def _groups(forms: Mapping[str, Form]) -> Iterator[list[str]]:
    """Names of neighbors of one form, which lie without gaps; only after them comes padding."""
    return (list(names) for _, names in itertools.groupby(forms, key=lambda name: forms[name]))


def padding(numbers: int) -> int:
    return -numbers % ALIGNMENT


def _sizes(forms: Mapping[str, Form]) -> list[int]:
    """How many numbers each tensor takes, and after the last of a group how many its padding takes."""
    sizes: list[int] = []
    for names in _groups(forms):
        own = [forms[name].shape.numel() for name in names]
        sizes += [*own, padding(sum(own))]
    return sizes


def _split(rows: Tensor, sizes: list[int]) -> Sequence[Tensor]:
    return rows.split(sizes, dim=1)


def _named(rows: Shaped[Tensor, "members part"], forms: Mapping[str, Form], cut: Callable) -> dict[str, Tensor]:
    """By name; split in one operation, so that gradients are put together in one."""
    members = rows.shape[:1] if rows.shape[0] > 1 else ()
    parts = iter(cut(rows, _sizes(forms)))
    named = {}
    for names in _groups(forms):
        named |= {name: next(parts).view(*members, *forms[name].shape) for name in names}
        next(parts)  # the padding
    return named

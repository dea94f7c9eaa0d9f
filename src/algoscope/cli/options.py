"""From the signature of a command to its options."""

import contextlib
import functools
import io
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import fields
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import tyro
from torch import Tensor
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from algoscope import stopping
from algoscope.training import Curriculum

REGISTRY = ConstructorRegistry()


def parse_and_call(main: Callable[..., None], prog: str, arguments: Sequence[str], config: Sequence[Any] = ()) -> None:
    """Turns the signature of `main` into options. What is wrong with the arguments is said in one line."""

    @functools.wraps(main)
    def later(*given: object, **named: object) -> Callable[[], None]:
        return functools.partial(main, *given, **named)

    with contextlib.redirect_stderr(io.StringIO()) as output:
        try:
            with REGISTRY:
                call = tyro.cli(later, prog=prog, args=arguments, config=config)
        except SystemExit as end:
            if not end.code or isinstance(end, stopping.Terminated):
                raise
            box = output.getvalue().split("\n", 1)[-1]  # without its title
            words = re.sub(r"[│╭╮╰╯─\s]+|[-+|]{3,}", " ", box.split("Argument helptext")[0].split("For full")[0])
            raise ValueError(f"{' '.join(words.split()).rstrip('.')}; see {prog} --help") from None
    call()


@REGISTRY.primitive_rule
def names_or_matrix(wanted: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """Where a tensor is allowed, a matrix is typed as JSON: '[[2, 0], [0, 1]]'."""
    choices = get_args(wanted.type)
    if Tensor not in choices:
        return None
    names = [name for choice in choices if get_origin(choice) is Literal for name in get_args(choice)]
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar="|".join([*names, "MATRIX"]),
        instance_from_str=lambda words: words[0] if not words[0].startswith("[") else json.loads(words[0]),
        is_instance=lambda value: isinstance(value, str | tuple | list | Tensor),
        str_from_instance=lambda value: [value if isinstance(value, str) else json.dumps(value)],
    )


@REGISTRY.primitive_rule
def something_or_none(wanted: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """An option that may be left out is shown as what it takes, INT instead of {None}|INT."""
    kinds = [kind for kind in get_args(wanted.type) if kind is not NoneType]
    if NoneType not in get_args(wanted.type) or kinds not in ([int], [float], [str]):
        return None
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=kinds[0].__name__.upper(),
        instance_from_str=lambda words: None if words[0].lower() == "none" else kinds[0](words[0]),
        is_instance=lambda value: value is None or isinstance(value, kinds[0]),
        str_from_instance=lambda value: [str(value)],
    )


@REGISTRY.primitive_rule
def curriculum(wanted: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """One option for what is one argument in Python: --curriculum dims=1,interval=100 is Curriculum(dims=1,
    interval=100), and --curriculum none is None.
    """
    if Curriculum not in get_args(wanted.type):
        return None
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar="none|dims=INT,points=INT,interval=INT",
        instance_from_str=lambda words: _curriculum(words[0]),
        is_instance=lambda value: value is None or isinstance(value, Curriculum),
        str_from_instance=lambda value: [_typed(value)],
    )


def _curriculum(text: str) -> Curriculum | None:
    if text.lower() == "none":
        return None
    known = [field.name for field in fields(Curriculum)]
    pairs = [part.split("=") for part in text.split(",")]
    if any(len(pair) != 2 or pair[0] not in known for pair in pairs):
        raise ValueError(f"curriculum must be none or such as dims=1,points=11,interval=100, got {text!r}")
    return Curriculum(**{name: int(value) for name, value in pairs})


def _typed(value: Curriculum | None) -> str:
    """As one would type it."""
    if value is None:
        return "none"
    return ",".join(f"{name}={part}" for name, part in vars(value).items() if part is not None)

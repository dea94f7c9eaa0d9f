"""Formats of a configuration: one table says what each later one renamed, so that what is on file keeps loading."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Renamed:
    """Classes, fields of a class, and values of a field of a class, by their older names."""

    kinds: Mapping[Any, str]
    fields: Mapping[tuple[Any, str], str]
    values: Mapping[tuple[Any, str, str], str]


ROOMS = {  # of the classes that configurations called by their names alone, up to format 2
    "constructions": ("Written",),
    "models": ("AlgoFormer", "Disentangled", "Index", "LearnedSketch", "Looped", "Recurrent", "Transformer"),
    "tasks": (
        *("AutoregressiveRepresentation", "ChainOfThought", "Connectivity", "HardSearch", "LinearRegression"),
        *("NumberSearch", "NumberStream", "RepresentationRegression", "SphereSearch", "UniformSearch"),
        *("VectorSearch", "ZipfSearch", "ZipfStream"),
    ),
    "training": ("Curriculum", "Member", "Settings"),
}
ADDRESSES = {name: f"algoscope.{room}.{name}" for room, names in ROOMS.items() for name in names}

FORMATS = {  # how each format became the next one
    1: Renamed(kinds={}, fields={}, values={("Settings", "optimizer", "descent"): "sgd"}),
    2: Renamed(
        kinds=ADDRESSES,
        fields={
            ("Settings", "keep"): "checkpoint_steps",
            ("AlgoFormer", "scored"): "scored_loops",
            ("Looped", "scored"): "scored_loops",
        },
        values={},
    ),
}
FORMAT = max(FORMATS) + 1  # that we write
NAMES_ALONE = 2  # the last format with names of classes without their modules


def up_to_date(value: Any, written: int) -> Any:
    """Part of a configuration, or a whole one, in the names of today; `written` is its format."""
    for older in range(written, FORMAT):
        value = _renamed(value, FORMATS[older])
    return value


def in_format(value: Any, written: int) -> Any:
    """The inverse: a configuration in the names of an older format."""
    for older in reversed(range(written, FORMAT)):
        value = _renamed(value, _inverse(FORMATS[older]))
    return value


def _inverse(by: Renamed) -> Renamed:
    kind = {new: old for old, new in by.kinds.items()}
    fields = {(by.kinds.get(old, old), new): name for (old, name), new in by.fields.items()}
    values = {
        (by.kinds.get(old, old), by.fields.get((old, name), name), new): value
        for (old, name, value), new in by.values.items()
    }
    return Renamed(kind, fields, values)


def shortened(value: Any, package: str = "") -> Any:
    """With the names of classes alone, without their modules; of a package, or of all."""
    if isinstance(value, list):
        return [shortened(part, package) for part in value]
    if not isinstance(value, dict):
        return value
    return {name: short(part, package) if name == "kind" else shortened(part, package) for name, part in value.items()}


def short(kind: Any, package: str = "algoscope.") -> Any:
    """The name of a class without its module, if that is of a package."""
    return kind.rpartition(".")[2] if isinstance(kind, str) and kind.startswith(package) else kind


def _renamed(value: Any, by: Renamed) -> Any:
    if isinstance(value, list):
        return [_renamed(part, by) for part in value]
    if not isinstance(value, dict):
        return value
    kind = value["kind"] if isinstance(value.get("kind"), str) else None
    found = {}
    for name, part in value.items():
        new = by.values.get((kind, name, part), part) if isinstance(part, str) else part
        found[by.fields.get((kind, name), name)] = _renamed(new, by)
    return {**found, "kind": by.kinds.get(kind, kind)} if kind is not None else found

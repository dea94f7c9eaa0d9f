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


FORMATS = {  # how each format became the next one
    1: Renamed(kinds={}, fields={}, values={("Settings", "optimizer", "descent"): "sgd"}),
}
FORMAT = max(FORMATS) + 1  # that we write


def up_to_date(value: Any, written: int) -> Any:
    """Part of a configuration, or a whole one, in the names of today; `written` is its format."""
    for older in range(written, FORMAT):
        value = _renamed(value, FORMATS[older])
    return value


def _renamed(value: Any, by: Renamed) -> Any:
    if isinstance(value, list):
        return [_renamed(part, by) for part in value]
    if not isinstance(value, dict):
        return value
    kind, found = value.get("kind"), {}
    for name, part in value.items():
        new = by.values.get((kind, name, part), part) if isinstance(part, str) else part
        found[by.fields.get((kind, name), name)] = _renamed(new, by)
    return {**found, "kind": by.kinds.get(kind, kind)} if "kind" in value else found

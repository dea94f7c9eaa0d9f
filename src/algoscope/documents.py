"""What our JSON documents hold: a schema for each, and how a document is checked against one.

A schema is a type, or several (`int | None`); `[schema]`, a list of such; `{str: schema}`, an object of such under any
names; or `{"name": schema, ...}`, an object that has these entries, and maybe others. A name that ends in "?" may be
missing. `float` admits integers; no number is a boolean.
"""

from types import UnionType
from typing import Any, TypeAlias, get_args

Schema: TypeAlias = type | UnionType | list | dict
Number: TypeAlias = float | None  # None: not finite
Step: TypeAlias = int | str

CONFIG: Schema = {
    "model": {"kind": str},
    "members": [{"kind": str}],
    "settings": {"kind": str},
    "version?": int,
    "format?": int,
}
RECORD: Schema = {"step": int, "member": int, "points": int, "loss": Number, "error": Number, "stopped_at": int}
FINAL: Schema = {"stopped_at": int, "loss?": Number, "error?": Number}  # of the model that ships, neither is known
SUMMARY: Schema = {"steps": int, "final": [FINAL], "metrics?": str}
CLOCK: Schema = {"seconds": float}
PROVENANCE: Schema = {str: str | int}
ENVIRONMENT: Schema = {"device": str, "torch": str, "python": str}

RATE: Schema = {"rate": float, "low": float, "high": float}
OPTIONAL_RATE: Schema = dict.fromkeys(("rate", "low", "high"), Number)  # None: it was never certain
RATES: Schema = {  # of one family of tasks
    "certain_when_absent?": RATE,
    "wrong_step_when_absent?": RATE,
    "planted": {
        "models": int,
        **dict.fromkeys(("certain", "sure?", "right_when_certain", "planted_among_the_kept"), RATE),
        "exact_when_certain?": OPTIONAL_RATE,
    },
    "false_alarms": {"models": int, **RATE},
}
CONTROLS: Schema = {"rates": {str: RATES}}

EXPERIMENT: Schema = {
    **dict.fromkeys(("law", "algorithm", "outcome"), str),
    **dict.fromkeys(("own", "slope", "low", "high"), Number),
    "step": Step,
}
CANDIDATE: Schema = {"name": str, "step": Step, "similarity": Number, "low": Number, "high": Number}
STAGE: Schema = {
    "stage": str,
    "error": float,
    "words": str,
    "null": bool,
    "certain": bool,
    "family?": str | None,
    "excluded?": [str],
    "experiments?": [EXPERIMENT],
    "defects?": {str: Number},
    "separated?": {str: [str]},
    "linearity": Number,
    "mixture_gain": [Number],
    "agreed": [[Step]],
    "candidates": {str: [CANDIDATE]},
}
MATCH: Schema = {
    **{name: [[Number]] for name in ("similarity", "low", "high")},
    "null": [Number],
    "steps": [Step],
    "best": [Step | None],
    "ties": [[Step]],
    "none": [bool],
}
LAW: Schema = {
    **dict.fromkeys(("growth", "low", "high", "start"), Number),
    **dict.fromkeys(("law", "path", "reason"), str),
    "used": [Step],
}
VERDICT: Schema = {
    "text": str,
    "confidence": float,
    "prompts": int,
    "family": str,
    "labels": bool,
    "methods?": {str: str},
    "unsolved?": [str],
    "measure": str,
    "larger_is_closer": {str: bool},
    "stages": [STAGE],
    "errors_by_position": {str: {str: [Number]}},
    "matches": {str: {str: MATCH}},
    "laws": {str: LAW},
    "controls?": dict | None,
    "provenance?": PROVENANCE,
    "title?": str,
    "command?": str,
}

SECONDS: Schema = {"training": float, "measuring": float}
MEASURED: Schema = {"run": str, "version": int, "seconds": SECONDS, "provenance": PROVENANCE, "config?": dict}
RESULTS: Schema = {"study": str, "version": int, "scale": str, "runs": {str: {str: MEASURED}}}


def problem(value: object, schema: Schema, where: str = "") -> str:
    """What is wrong with a document, and where; nothing if it is as it should be."""
    if isinstance(schema, list):
        if not isinstance(value, list):
            return _wrong(where, "a list", value)
        parts = ((part, schema[0], f"{where}[{i}]") for i, part in enumerate(value))
    elif isinstance(schema, dict):
        if not isinstance(value, dict):
            return _wrong(where, "an object", value)
        parts = _entries(value, schema, where)
    else:
        kinds = get_args(schema) if isinstance(schema, UnionType) else (schema,)
        return "" if any(_is(value, one) for one in kinds) else _wrong(where, _names(kinds), value)
    return next((found for part in parts if (found := problem(*part))), "")


def kind(value: object) -> str:
    """What JSON calls a value."""
    return next((name for one, name in KINDS.items() if _is(value, one)), type(value).__name__)


KINDS = {
    type(None): "null",
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
}


def _entries(value: dict[str, Any], schema: dict[Any, Any], where: str) -> list[tuple[object, Schema, str]]:
    if str in schema:
        return [(part, schema[str], f"{where}.{name}") for name, part in value.items()]
    found = []
    for name, part in schema.items():
        plain = name.removesuffix("?")
        if plain in value:
            found.append((value[plain], part, f"{where}.{plain}"))
        elif plain == name:
            found.append((_MISSING, part, f"{where}.{name}"))
    return found


class _Missing:
    """In place of an entry that is not there."""


_MISSING = _Missing()


def _is(value: object, one: type) -> bool:
    if isinstance(value, bool):
        return one is bool
    return isinstance(value, (int, float) if one is float else one)


def _names(kinds: tuple[type, ...]) -> str:
    return " or ".join(KINDS[one] for one in kinds)


def _wrong(where: str, wanted: str, value: object) -> str:
    place = where.removeprefix(".") or "it"
    return f"it lacks {place}" if value is _MISSING else f"{place} must be {wanted}, got {kind(value)}"

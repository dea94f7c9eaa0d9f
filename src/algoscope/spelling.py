"""The names that someone may have meant. This file imports nothing heavy."""

import difflib
from collections.abc import Iterable


def nearest(value: object, known: Iterable[str]) -> str:
    """The nearest names, as the end of a message: "; did you mean 'linear-regression'?"; nothing where none
    is near."""
    names = {name.lower(): name for name in known}
    near = difflib.get_close_matches(value.lower(), names, n=2) if isinstance(value, str) else []
    found = [names[name] for name in near]
    return f"; did you mean {' or '.join(map(repr, found))}?" if found else ""

"""Rows of names and values, as text that spreadsheets and notebooks show."""

import csv
import html
import io
from collections.abc import Mapping, Sequence

Row = Mapping[str, object]


def to_csv(rows: Sequence[Row]) -> str:
    """What is missing stays empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: "" if value is None else value for name, value in row.items()} for row in rows)
    return text.getvalue()


def to_html(rows: Sequence[Row], caption: str = "") -> str:
    """Numbers with three digits."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in (rows[0] if rows else ()))
    body = "".join("<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row.values()) + "</tr>" for row in rows)
    above = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    return "" if value is None else html.escape(str(value))

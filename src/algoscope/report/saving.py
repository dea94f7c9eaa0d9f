"""Verdicts as files: a page, a figure, a table or all numbers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from algoscope import arguments, files, tables
from algoscope.report import charts, figures
from algoscope.report.page import page

SUFFIXES = (".html", ".json", ".csv", ".png", ".svg", ".pdf")


@runtime_checkable
class Saved(Protocol):
    """What can be saved."""

    def table(self) -> list[dict[str, Any]]: ...

    def record(self) -> Mapping[str, Any]: ...


def save(verdict: Saved, path: Path, figure: str, title: str, command: str) -> Path:
    """Writes what the suffix of the path says, and returns the path."""
    for name, text in (("title", title), ("command", command)):
        if not isinstance(text, str):
            raise ValueError(f"{name} must be a string, got {arguments.shown(text)}")
    if path.suffix not in SUFFIXES:
        raise ValueError(f"path must end in one of {', '.join(SUFFIXES)}, got {str(path)!r}")
    if not path.parent.is_dir():
        raise ValueError(f"path must be in a folder that is there, got {str(path)!r}")
    if path.suffix == ".csv":
        files.write_text(path, tables.to_csv(verdict.table()))
        return path
    record = {**verdict.record(), "title": title, "command": command}
    if path.suffix == ".json":
        files.write_json(path, record)
    elif path.suffix == ".html":
        files.write_text(path, page(record))
    else:
        made = figures.figures(record, figures.leading(record))
        arguments.choice("figure", figure, made)
        charts.save(made[figure], path.with_suffix(""), (path.suffix.removeprefix("."),))
    return path

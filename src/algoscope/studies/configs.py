"""How models were trained, as results hold it, and in words."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from algoscope import runs
from algoscope.models import Model
from algoscope.tasks import Task
from algoscope.training import Settings
from algoscope.training.load import kinds

Config = Mapping[str, Any]


def config(task: Task, model: Model, settings: Settings, learning_rate: float) -> dict[str, Any]:
    parts = {"task": task, "model": model, "settings": settings}
    return {name: runs.plain(part) for name, part in parts.items()} | {"learning_rate": learning_rate}


def in_words(found: Config) -> list[str]:
    """The task, the model and the settings of a configuration, of each what is not by default; and its rate."""
    return [*(_part(found[name]) for name in ("task", "model", "settings")), _value(found["learning_rate"])]


def _part(part: Config) -> str:
    known = fields(kinds()[part["kind"]]) if part["kind"] in kinds() else ()
    usual = {field.name: _value(runs.plain(field.default)) for field in known}
    values = {name: _value(value) for name, value in part.items() if name != "kind"}
    told = [f"{name} {value}" for name, value in values.items() if usual.get(name) != value]
    return f"{part['kind']}: {', '.join(told)}" if told else part["kind"]


def _value(value: object) -> str:
    """Numbers on file have few digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def rows(numbers: Mapping[str, Any]) -> list[list[object]]:
    """For each run of which it is on file: how it was trained, at which rate, for how many minutes, and where."""
    found = []
    for run, seeds in numbers.items():
        models = [model for model in seeds.values() if "config" in model]
        if models:
            first, minutes = models[0], sum(model["seconds"]["training"] for model in models) / 60
            found.append([run, *in_words(first["config"]), minutes, first["provenance"]["device"]])
    return found

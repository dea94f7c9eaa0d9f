"""How models are trained: as plans say it, as results hold it, and in words."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, cast

from algoscope import registry, runs
from algoscope.formats import FORMAT, short, shortened, up_to_date
from algoscope.models import Model
from algoscope.tasks import Task
from algoscope.training import Settings
from algoscope.training.load import NAMED

Config = Mapping[str, Any]


@dataclass(frozen=True)
class Training:
    """Models that differ in their seed only, trained side by side.

    It `needs` a variable of the environment, such as one that names a folder of images; without it, it is left out.
    """

    name: str
    task: Task
    model: Model
    settings: Settings
    learning_rate: float = 1e-3
    seeds: tuple[int, ...] = (0,)
    needs: str = ""


def config(of: Training) -> dict[str, Any]:
    parts = {"task": of.task, "model": of.model, "settings": of.settings}
    rest = {"learning_rate": of.learning_rate, "version": of.model.version, "format": FORMAT}
    return {name: runs.plain(part) for name, part in parts.items()} | rest


def config_changed(planned: Training, seeds: Mapping[str, Any]) -> bool:
    """Whether numbers on file are of another training than the one that is planned now, or of an earlier network."""
    known = [model["config"] for model in seeds.values() if "config" in model]
    same = (in_words(config(planned)), planned.model.version)
    return any((in_words(each), each.get("version", 1)) != same for each in known)


def in_words(found: Config) -> list[str]:
    """The task, the model and the settings of a configuration, of each what is not by default; and its rate."""
    found = up_to_date(found, found.get("format", 1))
    return [*(_part(found[name]) for name in ("task", "model", "settings")), _value(found["learning_rate"])]


def _part(part: Config) -> str:
    kind, name = registry.loaded(part["kind"], *NAMED), short(part["kind"])
    defaults = {field.name: _value(runs.plain(field.default)) for field in (fields(cast(Any, kind)) if kind else ())}
    values = {key: _value(value) for key, value in part.items() if key != "kind"}
    described = [f"{key} {value}" for key, value in values.items() if defaults.get(key) != value]
    return f"{name}: {', '.join(described)}" if described else name


def _value(value: object) -> str:
    """Numbers on file have few digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(shortened(value, "algoscope."))


def rows(numbers: Mapping[str, Any]) -> list[list[object]]:
    """For each run of which it is on file: how it was trained, at which rate, for how many minutes, where, and by which
    commit; and by how much its error fell in the last third of the steps.
    """
    found = []
    for run, seeds in numbers.items():
        models = [model for model in seeds.values() if "config" in model]
        if models:
            first, minutes = models[0], sum(model["seconds"]["training"] for model in models) / 60
            where = first.get("trained_on", first["provenance"])
            fell = max((fell for fell in map(_fell, models) if math.isfinite(fell)), default=None)
            described = [minutes, where["device"], where.get("commit", "")[:7], "" if fell is None else f"{fell:.0%}"]
            found.append([run, *in_words(first["config"]), *described])
    return found


def _fell(model: Mapping[str, Any]) -> float:
    """By how much of itself, from the second third to the last."""
    errors = [error for error in model.get("learning", {}).get("error", ()) if error is not None]
    third = len(errors) // 3
    before, last = errors[-2 * third : -third], errors[-third:]
    return 1 - sum(last) / sum(before) if third and sum(before) else math.nan

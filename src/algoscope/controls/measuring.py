"""The benchmark on file: controls are measured in parts, which processes share, and then joined.

A part is saved every few models, and a control that it holds already is not measured again: a stop loses nothing.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import torch

from algoscope import files, runs
from algoscope.controls.catalog import Set, controls_of
from algoscope.controls.control import Control
from algoscope.controls.scoring import Method, Outcome, outcome, summary
from algoscope.progress import Bar

OFTEN = 20.0  # seconds between savings
Found = dict[str, Outcome]  # by the lines of the controls


@dataclass(frozen=True)
class Files:
    """Where the numbers of a method on a set of controls are; those of `identify` have no name of their own."""

    folder: Path
    method: str
    chosen: Set

    @property
    def name(self) -> str:
        own = [] if self.method == "identify" else [runs.slug(self.method)]
        return "-".join([*own, "controls" if self.chosen == "tuning" else self.chosen])

    @property
    def rates(self) -> Path:
        return self.folder / f"{self.name}.json"

    @property
    def models(self) -> Path:
        """What was found of each model."""
        return self.folder / ("models.json.gz" if self.name == "controls" else f"{self.name}-models.json.gz")

    def part(self, k: int, of: int) -> Path:
        return self.folder / f"part-{self.name}-{k}-of-{of}.json.gz"

    def parts(self) -> list[Path]:
        return sorted(self.folder.glob(f"part-{self.name}-*-of-*.json.gz"))


def order(control: Control) -> tuple[str, ...]:
    """One instrument after the other: controls that share one stand together."""
    whole = control.network is not None and control.kind == "by hand"
    return str(control.task), str(control.seed), control.left_out, str(whole and control.group)


def part_of(controls: Iterable[Control], part: int, of: int) -> list[Control]:
    """The share of one process: whole groups that share an instrument, so that all processes have about as much to do.
    The time that a model takes is about as long as its prompts.
    """
    groups = [list(group) for _, group in groupby(sorted(controls, key=order), order)]
    costs = [len(group) * group[0].task.length for group in groups]
    totals, mine = [0] * of, list[int]()
    for k in sorted(range(len(groups)), key=lambda k: -costs[k]):
        chosen = totals.index(min(totals))
        totals[chosen] += costs[k]
        mine += [k] if chosen == part else []
    return [control for k in sorted(mine) for control in groups[k]]


@dataclass(frozen=True)
class Part:
    """The file of one process; what other parts hold is known as well."""

    files: Files
    k: int
    of: int
    prompts: int  # how many the method was given

    @property
    def path(self) -> Path:
        return self.files.part(self.k, self.of)

    def known(self) -> tuple[Found, Found]:
        """What is in this part, and what is in any."""
        every = {path: read_part(path, self.prompts) for path in self.files.parts()}
        return every.get(self.path, {}), {line: found for part in every.values() for line, found in part.items()}

    def write(self, found: Found) -> None:
        files.write_json(self.path, {"prompts": self.prompts, "models": found}, indent=None)


def measured(method: Method, controls: Sequence[Control], part: Part | None = None) -> list[Outcome]:
    """What a method says of each control; what a part knows is not asked again, and what is new is saved there."""
    own, known = part.known() if part is not None else ({}, {})
    left = [control for control in controls if control.line() not in known]
    commit, done, saved = runs.provenance(torch.device("cpu"))["commit"], len(controls) - len(left), time.monotonic()
    bar, new = Bar(len(controls), done, unit="models"), Found()
    try:
        for k, control in enumerate(left):
            new[control.line()] = {**outcome(method, control), "commit": commit}
            bar.show(done + k + 1)
            if part is not None and time.monotonic() - saved > OFTEN:
                part.write(own | new)
                saved = time.monotonic()
    finally:
        if part is not None and new:
            part.write(own | new)
    found = known | new
    return [found[control.line()] for control in controls]


def read_part(path: Path, prompts: int) -> Found:
    content = files.read_json(path, {"prompts": int, "models": dict})
    if content["prompts"] != prompts:
        raise ValueError(
            f"{path} was measured with {content['prompts']} prompts, not {prompts}: delete it to begin anew"
        )
    return content["models"]


def merged(where: Files, families: Sequence[str], prompts: int) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Joins the parts, and writes the rates of those families that are complete, which are named; parts of which
    nothing is left to write are deleted. Of a family that was not measured, the numbers on file stay.
    """
    found: Found = {}
    for path in where.parts():
        found |= read_part(path, prompts)
    lines = {family: [control.line() for control in controls_of(family, where.chosen)] for family in families}
    own = {family: [found[line] for line in wanted if line in found] for family, wanted in lines.items()}
    complete = [family for family, wanted in lines.items() if len(own[family]) == len(wanted)]
    rates = {family: summary(models) for family, models in own.items() if models}
    if complete:
        save(where, {family: own[family] for family in complete}, rates, prompts)
    if found.keys() <= {line for family in complete for line in lines[family]}:
        for path in where.parts():
            path.unlink()
    return rates, complete


def save(
    where: Files, found: Mapping[str, Sequence[Outcome]], rates: Mapping[str, dict[str, Any]], prompts: int
) -> None:
    """The families that were measured, beside those on file."""
    known = files.read_json(where.rates) if where.rates.exists() else {}
    models = files.read_json(where.models) if where.models.exists() else {}
    source = runs.provenance(torch.device("cpu"))
    sources = {
        family: {**source, "commit": ", ".join(dict.fromkeys(each["commit"] for each in own))}
        for family, own in found.items()
    }
    joined = {"rates": known.get("rates", {}) | {family: rates[family] for family in found}, "prompts": prompts}
    files.write_json(where.rates, joined | {"provenance": known.get("provenance", {}) | sources}, indent=1)
    files.write_json(where.models, models | {family: list(own) for family, own in found.items()}, indent=None)

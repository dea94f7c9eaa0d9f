"""What a study is, and how it is carried out.

A study trains models, measures each of them, and judges claims by what was measured. All that was measured is in
`results.json`; claims, figures and the page are functions of that file, and anyone rebuilds them without a model.
"""

import importlib
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import altair as alt
import torch

from algoscope import arguments, runs
from algoscope.models import Model, Network
from algoscope.studies import CATALOG, SCALES
from algoscope.tasks import Task
from algoscope.training import Member, Settings, load, train_population

Numbers = Mapping[str, Any]
RESULTS, PAGE = "results.json", "index.html"


@dataclass(frozen=True)
class Training:
    """Models that differ in their seed only, trained side by side."""

    name: str
    task: Task
    model: Model
    settings: Settings
    learning_rate: float = 1e-3
    seeds: tuple[int, ...] = (0,)


class Value(NamedTuple):
    """A number that was measured on one model, its interval, and on how many prompts."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Finding:
    """What was found about a claim: a value for each seed, and whether they all say the same."""

    values: tuple[Value, ...]
    verdict: Literal["holds", "fails", "undecided"]

    @staticmethod
    def judged(values: Sequence[Value], at_least: float = -math.inf, at_most: float = math.inf) -> "Finding":
        """It holds if every seed's interval lies between the bounds, and fails if every one lies outside."""
        inside = all(at_least <= value.low and value.high <= at_most for value in values)
        outside = all(value.high < at_least or value.low > at_most for value in values)
        return Finding(tuple(values), "holds" if inside else "fails" if outside else "undecided")


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper in our words. `find` judges it by the numbers of a study; None where they do not tell."""

    id: str
    says: str
    where: str
    find: Callable[[Numbers], Finding | None]
    paper: float | str | None = None
    convention: str = ""

    def record(self, numbers: Numbers) -> dict[str, Any]:
        told = {"id": self.id, "says": self.says, "where": self.where, "convention": self.convention}
        found = self.find(numbers)
        if found is None or not found.values:
            blank = dict.fromkeys(("ours", "low", "high", "n", "seeds"))
            return {**told, "paper": self.paper, **blank, "verdict": "not run"}
        values = found.values
        return {
            **told,
            "paper": self.paper,
            "ours": sum(value.value for value in values) / len(values),
            "low": min(value.low for value in values),
            "high": max(value.high for value in values),
            "n": min(value.n for value in values),  # of each seed
            "seeds": [value.value for value in values],
            "verdict": found.verdict,
        }


@dataclass(frozen=True)
class Study:
    """`trainings` by scale; `measure` is called for each trained model. Its `version` changes when it measures anew."""

    name: str
    version: int
    about: str
    trainings: Mapping[str, Sequence[Training]]
    measure: Callable[[Training, Network, str], Numbers]
    claims: Sequence[Claim]
    figures: Callable[[Numbers], dict[str, alt.LayerChart]]


def find(name: str) -> Study:
    """A study by its name."""
    arguments.choice("study", name, CATALOG)
    return importlib.import_module(f"algoscope.studies.{CATALOG[name].module}").STUDY


def carry_out(
    study: Study, scale: str, out: Path, device: torch.device | str | None = None, progress: bool = True
) -> Path:
    """Trains, measures and judges, and returns the page. What is finished is not done again."""
    arguments.choice("scale", scale, SCALES)
    folder, chosen = out / study.name / scale, arguments.device(device)
    measured: dict[str, dict[str, Numbers]] = {}
    trainings = study.trainings[scale]
    for k, training in enumerate(trainings):
        if progress:
            print(f"{k + 1} of {len(trainings)}: {training.name}", flush=True)
        members = [Member(training.task, seed, training.learning_rate) for seed in training.seeds]
        begin = time.monotonic()
        done = train_population(training.model, members, training.settings, folder / "runs", chosen, progress)
        spent = time.monotonic() - begin
        for i, seed in enumerate(training.seeds):
            network = load(done.path, i, chosen)
            found = _measured(study, training, network, done.path, seed, folder, scale, spent / len(members))
            measured.setdefault(training.name, {})[str(seed)] = found
    facts = {"study": study.name, "version": study.version, "scale": scale, "provenance": runs.provenance(chosen)}
    results = {**facts, "runs": measured}
    runs.write_text(folder / RESULTS, json.dumps(judged(study, results)) + "\n")
    return build_page(folder)


def _measured(
    study: Study, training: Training, network: Network, path: Path, seed: int, folder: Path, scale: str, spent: float
) -> Numbers:
    """The numbers of one model: those on file, if they are of this very run."""
    file = folder / "measured" / f"{runs.slug(training.name)}-{seed}.json"
    known = runs.read_json(file, needs=("run", "version", "seconds")) if file.exists() else {}
    if known.get("run") == path.name:
        spent = known["seconds"]["training"]  # then, and not now, when it was only looked up
        if known.get("version") == study.version:
            return known
    file.parent.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    numbers = study.measure(training, network, scale)
    seconds = {"training": round(spent, 1), "measuring": round(time.monotonic() - begin, 1)}
    found = {"run": path.name, "version": study.version, "seconds": seconds, **numbers}
    runs.write_text(file, json.dumps(found) + "\n")
    return found


def judged(study: Study, results: Numbers) -> dict[str, Any]:
    """The results with what the study's claims say about them."""
    return {**results, "claims": [claim.record(results["runs"]) for claim in study.claims]}


def read(folder: Path) -> tuple[Study, dict[str, Any]]:
    """A study that was carried out, and its results, judged anew."""
    results = runs.read_json(folder / RESULTS, needs=("study", "version", "scale", "runs", "provenance"))
    study = find(str(results.get("study")))
    if results.get("version") != study.version:
        again = f"algoscope study {study.name} --scale {results.get('scale')}"
        raise runs.RunError(f"{folder} was measured by another version of the study: run {again}")
    return study, judged(study, results)


def build_page(folder: Path) -> Path:
    """The page of a study from its saved numbers, with a page for each model; claims are judged anew."""
    from algoscope.report.page import page, study_page

    study, results = read(folder)
    models = {}
    for name, seeds in results["runs"].items():
        for seed, numbers in seeds.items():
            file = folder / f"{runs.slug(name)}-{seed}.html"
            command = f"algoscope study {study.name} --scale {results['scale']}"
            known = {"title": f"{name}, seed {seed}", "controls": runs.controls(), "command": command}
            runs.write_text(file, page({**known, "provenance": results["provenance"], **numbers["verdict"]}))
            models[f"{name}, seed {seed}"] = file.name
    entry = CATALOG[study.name]
    text = study_page(results, study.figures(results["runs"]), entry.title, entry.source, study.about, models)
    runs.write_text(folder / PAGE, text)
    return folder / PAGE

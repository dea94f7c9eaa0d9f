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
from algoscope.training import Member, Run, Settings, load, train_population

Numbers = Mapping[str, Any]
RESULTS, PAGE = "results.json", "index.html"
DIGITS = 5  # of a saved number


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
    headline: bool = False  # told first
    what: str = ""  # the numbers count
    why: str = ""  # what a difference may come from, at paper scale

    def record(self, numbers: Numbers) -> dict[str, Any]:
        told = {name: getattr(self, name) for name in ("id", "says", "where", "convention", "headline", "what", "why")}
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
    study: Study,
    scale: str,
    out: Path,
    device: torch.device | str | None = None,
    only: Sequence[str] = (),
    progress: bool = True,
) -> Path:
    """Trains, measures and judges, and returns the page. What is finished is not done again.

    `only` names the runs to carry out, by default all: so a study can be split over processes or machines that share a
    folder. The page shows whatever has been measured by then.
    """
    arguments.choice("scale", scale, SCALES)
    folder = out / study.name / scale
    train_and_measure(study, scale, folder, arguments.device(device), only, progress)
    collect(study, scale, folder)
    return build_page(folder)


def train_and_measure(
    study: Study, scale: str, folder: Path, device: torch.device, only: Sequence[str] = (), progress: bool = True
) -> None:
    """The part of a study that takes long, and wants a GPU; what it finds is a file for each model."""
    trainings = study.trainings[scale]
    for name in only:
        arguments.choice("only", name, [training.name for training in trainings])
    chosen = [training for training in trainings if not only or training.name in only]
    for k, training in enumerate(chosen):
        if progress:
            print(f"{k + 1} of {len(chosen)}: {training.name}", flush=True)
        members = [Member(training.task, seed, training.learning_rate) for seed in training.seeds]
        run = train_population(training.model, members, training.settings, folder / "runs", device, progress)
        for i in range(len(members)):
            _measure(study, scale, folder, training, run, i, device)


def _measure(
    study: Study, scale: str, folder: Path, training: Training, run: Run, i: int, device: torch.device
) -> None:
    """The numbers of one model, unless they are on file already, of this very run."""
    file, name = _file(folder, training, training.seeds[i]), run.path.name
    known = runs.read_json(file, needs=("run", "version")) if file.exists() else {}
    if (known.get("run"), known.get("version")) == (name, study.version):
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    numbers = study.measure(training, load(run.path, i, device), scale)
    spent = {"training": run.seconds / len(training.seeds), "measuring": time.monotonic() - begin}
    seconds = {what: round(taken, 1) for what, taken in spent.items()}
    told = {"run": name, "version": study.version, "seconds": seconds, "provenance": runs.provenance(device)}
    runs.write_text(file, json.dumps({**told, **numbers}) + "\n")


def _file(folder: Path, training: Training, seed: int) -> Path:
    return folder / "measured" / f"{runs.slug(training.name)}-{seed}.json"


def collect(study: Study, scale: str, folder: Path) -> None:
    """All that has been measured, in one file, with what the claims say about it."""
    measured: dict[str, dict[str, Numbers]] = {}
    for training, seed in ((each, seed) for each in study.trainings[scale] for seed in each.seeds):
        if (file := _file(folder, training, seed)).exists():
            found = runs.read_json(file, needs=("version", "provenance", "seconds", "verdict"))
            if found["version"] == study.version:
                measured.setdefault(training.name, {})[str(seed)] = shortened(found)
    results = {"study": study.name, "version": study.version, "scale": scale, "runs": measured}
    runs.write_text(folder / RESULTS, json.dumps(judged(study, results), separators=(",", ":")) + "\n")


def shortened(numbers: Any) -> Any:
    """With as many digits as an interval leaves a meaning to: results of many models stay a file that one can ship."""
    if isinstance(numbers, dict):
        return {name: shortened(number) for name, number in numbers.items()}
    if isinstance(numbers, list):
        return [shortened(number) for number in numbers]
    return float(f"{numbers:.{DIGITS}g}") if isinstance(numbers, float) else numbers


def judged(study: Study, results: Numbers) -> dict[str, Any]:
    """The results with what the study's claims say about them."""
    return {**results, "claims": [claim.record(results["runs"]) for claim in study.claims]}


def read(folder: Path) -> tuple[Study, dict[str, Any]]:
    """A study that was carried out, and its results, judged anew."""
    results = runs.read_json(folder / RESULTS, needs=("study", "version", "scale", "runs"))
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
            runs.write_text(file, page({**known, "provenance": numbers["provenance"], **numbers["verdict"]}))
            models[f"{name}, seed {seed}"] = file.name
    entry = CATALOG[study.name]
    text = study_page(results, study.figures(results["runs"]), entry.title, entry.source, study.about, models)
    runs.write_text(folder / PAGE, text)
    return folder / PAGE

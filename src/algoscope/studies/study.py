"""What a study is, and how it is carried out.

A study trains models, or takes them as they are, measures each, and judges claims by what was measured. All of that is
in `results.json`; claims, figures and the page are functions of that file, and anyone rebuilds them without a model.
"""

import functools
import importlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import altair as alt
import torch

from algoscope import arguments, documents, files, registry, runs
from algoscope.models import Network
from algoscope.studies import SCALES, broken, catalog, configs, processes
from algoscope.studies.claim import Claim, Numbers
from algoscope.studies.configs import Training
from algoscope.training import Configuration, Member, Run, load, train_population

RESULTS, PAGE = "results.json", "index.html"
DIGITS = 4  # of a saved number


@dataclass(frozen=True)
class Case:
    """What is measured as it is, without training, on a processor; `measure` is given the scale.

    What is `timed` is measured on the device of the study, which it is given, too.
    """

    name: str
    measure: Callable[..., Numbers]
    seeds: tuple[int, ...] = (0,)
    timed: bool = False


@dataclass(frozen=True)
class Section:
    """A part of the page: its heading, what it shows, and the figures in it."""

    heading: str
    note: str
    figures: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """Of words and numbers, for the page."""

    heading: str
    note: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True)
class Study:
    """`runs` by scale; `measure` is called for each trained model, with a training of its seed alone, and
    `measure_checkpoint` for the weights that it kept on the way. Its `version` changes when it measures anew.

    The page begins with the figures of its `centerpiece`, and at paper scale with what was `found`, one thing after the
    other.
    """

    name: str
    version: int
    about: str
    runs: Mapping[str, Sequence[Training | Case]]
    claims: Sequence[Claim]
    figures: Callable[[Numbers], dict[str, alt.LayerChart]]
    centerpiece: Section
    measure: Callable[[Training, Network, str], Numbers] | None = None
    measure_checkpoint: Callable[[Training, Network, str], Numbers] | None = None
    found: Sequence[str] = ()
    tables: Callable[[Numbers], Sequence[Table]] = lambda numbers: ()
    learning: bool = False  # whether the results tell how the error fell in training
    chosen: Callable[[Numbers], bool] = lambda model: True  # whether figures that show one model may show this one


def find(name: str) -> Study:
    """A study by its name."""
    known = catalog()
    if not isinstance(name, str) or name not in known:
        raise ValueError("; ".join([registry.unknown("study", name, known), *broken()]))
    found = getattr(importlib.import_module(known[name].module), "STUDY", None)
    if not isinstance(found, Study) or found.name != name:
        raise ValueError(
            f"{known[name].module} must have a Study called {name!r} as STUDY, got {arguments.shown(found)}"
        )
    return found


def carry_out(
    study: Study,
    scale: str,
    out: Path,
    device: torch.device | str | None = None,
    only: Sequence[str] = (),
    progress: bool = True,
    known: Path | None = None,
    at_once: int = 1,
) -> Path:
    """Trains, measures and judges, and returns the page. What is finished is not done again.

    `only` names the runs to carry out, by default all: so a study can be split over processes or machines that share a
    folder. The page shows whatever has been measured by then. What is `known`, a folder of results, is taken as it is,
    and only what it lacks is carried out. With `at_once` above 1 so many runs go on at a time, in processes of their
    own.
    """
    arguments.choice("scale", scale, SCALES)
    arguments.integer("at_once", at_once, 1)
    for name in only:
        arguments.choice("only", name, [run.name for run in study.runs[scale]])
    folder = out / study.name / scale
    if known is not None:
        read(known)  # before anything is made
    folder.mkdir(parents=True, exist_ok=True)
    lacking = [run.name for run in study.runs[scale]] if known is None else take(study, scale, folder, known)
    wanted, failed = _possible(study, scale, only or lacking), list[str]()
    if at_once > 1:
        failed = processes.at_once(study.name, scale, folder, arguments.device(device), wanted, at_once, progress)
    elif wanted:
        train_and_measure(study, scale, folder, arguments.device(device), wanted, progress)
    collect(study, scale, folder)
    page = build_page(folder)
    if failed:
        facts = f"see {folder / processes.LOGS}; {page} has the others"
        raise files.RunError(f"{len(failed)} of {len(wanted)} runs failed ({'; '.join(failed)}): {facts}")
    return page


def _possible(study: Study, scale: str, names: Sequence[str]) -> list[str]:
    """The runs that need nothing, or have what they need; the others are told."""
    needs = {run.name: run.needs for run in study.runs[scale] if isinstance(run, Training)}
    without = [name for name in names if needs.get(name) and not os.environ.get(needs[name])]
    for name in without:
        print(f"left out: {name} needs the variable {needs[name]}", flush=True)
    return [name for name in names if name not in without]


def take(study: Study, scale: str, folder: Path, known: Path) -> list[str]:
    """Puts results that are known where they would be if they had been measured here; returns the runs they lack, or
    have of an earlier plan.
    """
    results = read(known)[1]
    if (results["study"], results["scale"]) != (study.name, scale):
        raise files.RunError(
            f"{known} holds {results['study']} at {results['scale']} scale, not {study.name} at {scale}"
        )
    if strange := [seed for seeds in results["runs"].values() for seed in seeds if not seed.isdecimal()]:
        raise files.RunError(f"{known} is damaged: {strange[0]!r} is no seed")  # it becomes part of a file's name
    for name, seeds in results["runs"].items():
        for seed, numbers in seeds.items():
            if not (file := _file(folder, name, seed)).exists():
                file.parent.mkdir(parents=True, exist_ok=True)
                files.write_json(file, numbers, indent=None)
    return [
        run.name
        for run in study.runs[scale]
        if not all(_file(folder, run.name, seed).exists() for seed in run.seeds)
        or (isinstance(run, Training) and configs.config_changed(run, results["runs"].get(run.name, {})))
    ]


def train_and_measure(
    study: Study, scale: str, folder: Path, device: torch.device, only: Sequence[str] = (), progress: bool = True
) -> None:
    """The part of a study that takes long, and wants a GPU; what it finds is a file for each model. `only` as above."""
    chosen = [run for run in study.runs[scale] if not only or run.name in only]
    for k, each in enumerate(chosen):
        if progress:
            print(f"{k + 1} of {len(chosen)}: {each.name}", flush=True)
        if isinstance(each, Case):
            where, given = (device, (scale, device)) if each.timed else (torch.device("cpu"), (scale,))
            _measure(study, folder, each, 0, "", 0.0, functools.partial(each.measure, *given), where)
            continue
        own = replace(each, seeds=_to_train(study, folder, each))
        if not own.seeds:
            continue
        members = [Member(own.task, seed, own.learning_rate) for seed in own.seeds]
        run = train_population(own.model, members, own.settings, folder / "runs", device, progress)
        for i, seed in enumerate(own.seeds):
            measure = functools.partial(_measure_model, study, own, run, i, scale, device)
            _measure(study, folder, own, seed, run.path.name, run.seconds / len(members), measure, device)


def _to_train(study: Study, folder: Path, of: Training) -> tuple[int, ...]:
    """The seeds of which nothing is on file, of this very training; and those that were trained together with one of
    them in a run that is here, so that this run is found again.
    """
    trained_in: dict[int, str] = {}
    for seed in of.seeds:
        if (file := _file(folder, of.name, seed)).exists():
            found = files.read_json(file, documents.MEASURED)
            if found["version"] == study.version and not configs.config_changed(of, {str(seed): found}):
                trained_in[seed] = found["run"]
    lacking = set(of.seeds) - trained_in.keys()
    here = {run for run in trained_in.values() if lacking & _trained_together(folder / "runs" / run)}
    return tuple(seed for seed in of.seeds if seed in lacking or trained_in[seed] in here)


def _trained_together(run: Path) -> set[int]:
    folder = runs.Folder(run)
    return {member.seed for member in Configuration.read(run).members} if folder.config.exists() else set()


def _measure_model(study: Study, training: Training, run: Run, i: int, scale: str, device: torch.device) -> Numbers:
    assert study.measure is not None, f"{study.name} trains models, so it must say how to measure one"
    alone = replace(training, seeds=(training.seeds[i],))  # so that a fresh network can be built beside it
    folder = runs.Folder(run.path)
    facts: dict[str, Any] = {"trained_on": folder.read_json(folder.environment, documents.ENVIRONMENT)}
    if study.measure_checkpoint is not None:
        kept = {step: load(run.path, i, device, step) for step in training.settings.checkpoint_steps}
        facts["along"] = [{"step": step, **study.measure_checkpoint(alone, kept[step], scale)} for step in kept]
    if study.learning:
        facts["learning"] = _learning(run, i)
    return _joined(study.measure(alone, load(run.path, i, device), scale), facts)


def _joined(numbers: Numbers, facts: Numbers) -> Numbers:
    """What a study measures, and what is recorded of every model; a name that both have would hide one of the two."""
    if both := numbers.keys() & facts.keys():
        raise ValueError(f"a study must not measure what is recorded of every model by that name: {', '.join(both)}")
    return {**facts, **numbers}


def _learning(run: Run, member: int) -> dict[str, list[int | float | None]]:
    """The error at the last position in use; while a curriculum rises, that is of easier prompts."""
    return {name: [record[name] for record in run.learning(member)] for name in ("step", "points", "error")}


def _measure(
    study: Study,
    folder: Path,
    of: Training | Case,
    seed: int,
    run: str,
    trained: float,
    measure: Callable[[], Numbers],
    device: torch.device,
) -> None:
    """The numbers of one model, unless they are on file already, of this very run."""
    file = _file(folder, of.name, seed)
    known = files.read_json(file, documents.MEASURED) if file.exists() else {}
    if (known.get("run"), known.get("version")) == (run, study.version):
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    numbers = measure()
    seconds = {"training": round(trained, 1), "measuring": round(time.monotonic() - begin, 1)}
    facts = {"run": run, "version": study.version, "seconds": seconds, "provenance": runs.provenance(device)}
    if isinstance(of, Training):
        facts["config"] = configs.config(of)
    files.write_json(file, _joined(numbers, facts), indent=None)


def _file(folder: Path, name: str, seed: int | str) -> Path:
    return folder / "measured" / f"{runs.slug(name)}-{seed}.json"


def collect(study: Study, scale: str, folder: Path) -> None:
    """All that has been measured, in one file, with what the claims say about it."""
    measured: dict[str, dict[str, Numbers]] = {}
    for run, seed in ((each, seed) for each in study.runs[scale] for seed in each.seeds):
        if (file := _file(folder, run.name, seed)).exists():
            found = files.read_json(file, documents.MEASURED)
            if found["version"] == study.version:
                with files.blamed(file):
                    measured.setdefault(run.name, {})[str(seed)] = shortened(found)
    results = {"study": study.name, "version": study.version, "scale": scale, "runs": measured}
    with files.blamed(folder / "measured"):
        results = judged(study, results)
    files.write_json(folder / RESULTS, results, indent=None)


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


def results_file(folder: Path) -> Path:
    """Where the results of a study are; those that ship are compressed."""
    plain, packed = folder / RESULTS, folder / f"{RESULTS}.gz"
    return packed if packed.exists() and not plain.exists() else plain


def read(folder: Path) -> tuple[Study, dict[str, Any]]:
    """A study that was carried out, and its results, judged anew."""
    results = files.read_json(results_file(folder), documents.RESULTS)
    study = find(results["study"])
    if results["scale"] not in SCALES:
        raise files.RunError(f"{results_file(folder)} is damaged: there is no scale {results['scale']!r}")
    if results["version"] != study.version:
        again = f"algoscope study {study.name} --scale {results['scale']}"
        raise files.RunError(f"{folder} was measured by another version of the study: run {again}")
    with files.blamed(results_file(folder)):
        return study, judged(study, results)


def build_page(folder: Path, out: Path | None = None) -> Path:
    """The page of a study from its saved numbers, with a page for each model of which there is a verdict; claims are
    judged anew. It is written beside the numbers, or to the folder `out`.
    """
    study, results = read(folder)
    with files.blamed(results_file(folder)):
        return _write_pages(study, results, out or folder)


def _write_pages(study: Study, results: Numbers, out: Path) -> Path:
    from algoscope.report.page import page, study_page

    pages, texts = {}, {}
    for label, numbers in labeled(results["runs"]).items():
        if "verdict" in numbers:
            file = out / f"{runs.slug(label)}.html"
            command = f"algoscope study {study.name} --scale {results['scale']}"
            known = {"title": label, "controls": runs.controls(), "command": command}
            texts[file] = page({**known, "provenance": numbers["provenance"], **numbers["verdict"]})
            pages[label] = file.name
    entry, figures, planned = catalog()[study.name], study.figures(results["runs"]), study.runs[results["scale"]]
    trained = [run for run in planned if isinstance(run, Training)]
    facts = {
        "title": entry.title,
        "source": entry.source,
        "about": study.about,
        "found": study.found if results["scale"] == "paper" else (),
        "models": list(labeled(results["runs"])),
        "missing": [lacking for run in planned if (lacking := _lacking(run, results["runs"].get(run.name, {})))],
        "earlier": [run.name for run in trained if configs.config_changed(run, results["runs"].get(run.name, {}))],
        "choices": [label for label, model in labeled(results["runs"]).items() if study.chosen(model)],
    }
    tables = [*study.tables(results["runs"]), *_trained(results["runs"])]
    sections = {"centerpiece": study.centerpiece, "tables": tables}
    texts[out / PAGE] = study_page({**results, **facts, **sections}, figures, pages)
    for file, text in texts.items():  # all or none of them
        files.write_text(file, text)
    return out / PAGE


def _lacking(run: Training | Case, seeds: Numbers) -> str:
    """A run, or the seeds of one, of which nothing is on file."""
    without = [str(seed) for seed in run.seeds if str(seed) not in seeds]
    if len(without) == len(run.seeds):
        return run.name
    return f"{run.name} (seed{'s' * (len(without) > 1)} {' and '.join(without)})" if without else ""


def _trained(numbers: Numbers) -> list[Table]:
    note = (
        "Of tasks, networks and settings what is not by default. Minutes are those of all seeds, also where runs share "
        "a device. The error in training fell by so much from the second third of the steps to the last, in the seed "
        "in which it fell most: at a rate that falls to zero every curve ends flat, so that less than a tenth is the "
        "least to ask of one that longer training would not change."
    )
    columns = ("run", "task", "network", "settings", "rate", "minutes", "device", "commit", "fell")
    rows = configs.rows(numbers)
    return [Table("How they were trained", note, columns, rows)] if rows else []


def beginning_with(numbers: Numbers, label: str) -> dict[str, Numbers]:
    """The same numbers in another order: figures of one model show the first."""
    places = [(run, seed) for run, seeds in numbers.items() for seed in seeds]
    labels = list(labeled(numbers))
    arguments.choice("model", label, labels)
    run, seed = places[labels.index(label)]
    others = {name: seeds for name, seeds in numbers.items() if name != run}
    return {run: {seed: numbers[run][seed], **numbers[run]}, **others}


def labeled(numbers: Numbers) -> dict[str, Numbers]:
    """The numbers of each model, by what it is called."""
    return {
        f"{run}, seed {seed}" if len(seeds) > 1 or seed != "0" else run: model
        for run, seeds in numbers.items()
        for seed, model in seeds.items()
    }

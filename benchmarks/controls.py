"""The instrument on models whose answer is known: how often it is certain, right, and alarmed by nothing.

python -m benchmarks.controls [--family NAME] [--part K --of N]   writes results/controls/controls.json, or a part of it
python -m benchmarks.controls --merge                             joins the parts

Of a family that is not measured, the numbers on file stay. planted.py says what is tried.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import torch

from algoscope import files, runs
from algoscope.instrument import Instrument
from algoscope.matching.statistics import wilson
from algoscope.progress import Bar
from algoscope.randomness import stream
from algoscope.tasks import Task
from algoscope.trace import Trace
from benchmarks.planted import KINDS, PLANTINGS, Case

RESULT = Path("results/controls/controls.json")
MODELS = RESULT.with_name("models.json.gz")  # what was found of each model
PROMPTS = 500  # compared, and as many fitted
Models = list[dict[str, Any]]


def outcome(case: Case, instrument: Instrument) -> dict[str, Any]:
    about = {"task": type(case.task).__name__, "of": runs.plain(case.task), "prompts": case.prompts}
    if case.model is None:
        return {**about, "untrained": runs.plain(case.untrained), "stages": of_network(case, instrument)}
    stages = of_shuffled(case, instrument) if case.model.shuffled else of_planted(case, instrument)
    name = type(case.model.algorithm).__name__
    return {**about, "planted": name, "noise": case.model.noise, "shuffled": case.model.shuffled, "stages": stages}


def of_planted(case: Case, instrument: Instrument) -> list[dict[str, Any]]:
    """Is each stage named as the step that it holds, or as one that is equal?"""
    assert case.model is not None
    unsaturated, rows = case.model.before_saturation(), []
    held = dict(zip(case.model.stages, case.model.algorithm.trace(instrument.sample).values, strict=True))
    for found in instrument.identify(case.model, weights=False).stages:
        truth = (case.model.algorithm.name, case.model.stages[str(found.stage)])
        truth = instrument.solved.get(truth, truth)
        truth = instrument.steps.equal.get(truth, truth)
        row = {"stage": found.stage, "agreed": [list(pair) for pair in found.agreed[:8]], "truth": list(truth)}
        row |= {"unsaturated": unsaturated[str(found.stage)], "certain": found.certain, "kept": truth in found.agreed}
        if case.absent:  # an equal step of another algorithm is an answer
            row["listed"] = bool(steps_that_are(held[str(found.stage)], instrument))
        rows.append(row | {"right": found.certain and found.agreed[0] == truth})
    return rows


def of_shuffled(case: Case, instrument: Instrument) -> list[dict[str, Any]]:
    """There is nothing to find: whatever beats the null is an alarm."""
    assert case.model is not None
    found = instrument.identify(case.model, weights=False).stages
    return [{"stage": each.stage, "agreed": each.agreed[:8], "alarm": bool(each.agreed)} for each in found]


def of_network(case: Case, instrument: Instrument) -> list[dict[str, Any]]:
    """A fresh network has learned nothing: any step is an alarm, except one that is the prompt itself."""
    task, generator = case.task, stream("untrained", case.seed)
    assert case.untrained is not None
    network = case.untrained.build(task.inputs, task.outputs, task.length, generator)
    prompt, rows = steps_that_are(instrument.sample.x, instrument), []
    for found in instrument.identify(network, weights=False).stages:
        alarm = any(pair not in prompt for pair in found.agreed)
        rows.append({"stage": found.stage, "agreed": found.agreed[:8], "alarm": alarm})
    return rows


def steps_that_are(values: torch.Tensor, instrument: Instrument) -> list[tuple[str, Any]]:
    """The steps on the list that have just these values."""

    def same(trace: Trace, k: int) -> bool:
        own = trace.values[k].double()
        return own.shape == values.shape and torch.allclose(own, values.double(), rtol=1e-9, atol=1e-12)

    found = [(trace, k) for trace in instrument.traces.values() for k in range(len(trace)) if same(trace, k)]
    return [(trace.name, trace.stages[k]) for trace, k in found]


def share(rows: list[list[bool]], seed: int = 0) -> dict[str, Any]:
    """A rate over stages, with a 95% interval by resampling whole models, or Wilson's over models where all agree."""
    counts = torch.tensor([[sum(row), len(row)] for row in rows if row], dtype=torch.float64)
    if not len(counts):
        return {"rate": None, "low": None, "high": None, "models": len(rows), "stages": 0}
    hit, total = counts.sum(0).tolist()
    if hit in (0, total):
        low, high = wilson(hit / total, len(counts))
    else:
        drawn = torch.randint(len(counts), (2000, len(counts)), generator=stream("controls", seed))
        hits, trials = counts[drawn].sum(1).unbind(1)
        low, high = torch.quantile(hits / trials, torch.tensor([0.025, 0.975], dtype=torch.float64)).tolist()
    return {"rate": hit / total, "low": low, "high": high, "models": len(rows), "stages": int(total)}


def of_models(hits: list[bool]) -> dict[str, Any]:
    """A rate over models, with Wilson's 95% interval."""
    rate = sum(hits) / len(hits)
    low, high = wilson(rate, len(hits))
    return {"rate": rate, "low": low, "high": high, "models": len(hits)}


def by(key: str, models: Models) -> dict[str, Models]:
    """Models in groups, by what is said of them."""
    values = sorted({model[key] for model in models})
    return {str(value): [model for model in models if model[key] == value] for value in values}


def rates(models: Models) -> dict[str, Any]:
    stages = [[row for row in model["stages"] if row["unsaturated"]] for model in models]
    return {
        "certain": share([[row["certain"] for row in rows] for rows in stages]),
        "right_when_certain": share([[row["right"] for row in rows if row["certain"]] for rows in stages]),
        "planted_among_the_kept": share([[row["kept"] for row in rows] for rows in stages]),
    }


def fooled(models: Models) -> dict[str, Any]:
    stages = [[row for row in model["stages"] if row["unsaturated"] and not row.get("listed")] for model in models]
    return share([[row["certain"] for row in rows] for rows in stages])


def summary(found: Models, missing: Models, empty: Models) -> dict[str, Any]:
    kinds = {"shuffled": [m for m in empty if "planted" in m], "untrained": [m for m in empty if "untrained" in m]}
    alarms = {name: [any(row["alarm"] for row in model["stages"]) for model in kind] for name, kind in kinds.items()}
    return {
        "planted": {"models": len(found), **rates(found)},
        **{f"by_{key}": {name: rates(part) for name, part in by(kind, found).items()} for key, kind in TABLES.items()},
        "certain_when_absent": fooled(missing),
        **{
            f"certain_when_absent_by_{key}": {name: fooled(part) for name, part in by(kind, missing).items()}
            for key, kind in TABLES.items()
        },
        "false_alarms": of_models([alarm for kind in alarms.values() for alarm in kind]),
        "false_alarms_by_kind": {name: of_models(kind) for name, kind in alarms.items()},
    }


TABLES = {"algorithm": "planted", "noise": "noise", "task": "task"}


def order(case: Case) -> tuple[str, ...]:
    """One instrument after the other."""
    return str(case.task), str(case.prompts), case.left_out


def measured(cases: list[Case], prompts: int = PROMPTS) -> Models:
    instruments: dict[tuple[Task, int, str], Instrument] = {}
    bar, found = Bar(len(cases), unit="models"), []
    for k, case in enumerate(cases):
        key = (case.task, case.prompts, case.left_out)
        if key not in instruments:
            instruments = {key: Instrument(case.task, case.compared, prompts, prompts, case.prompts, others=[])}
        found.append(outcome(case, instruments[key]))
        bar.show(k + 1)
    return found


def save(found: dict[str, dict[str, Models]]) -> None:
    """The families that were measured, beside those on file."""
    known = files.read_json(RESULT) if RESULT.exists() else {}
    models = files.read_json(MODELS) if MODELS.exists() else {}
    sources = {family: runs.provenance(torch.device("cpu")) for family in found}
    numbers = {name: summary(*(kinds[kind] for kind in KINDS)) for name, kinds in found.items()}
    merged = {"rates": known.get("rates", {}) | numbers, "prompts": PROMPTS}
    files.write_json(RESULT, merged | {"provenance": known.get("provenance", {}) | sources}, indent=1)
    files.write_json(MODELS, models | found, indent=None)
    for name, each in numbers.items():
        shown = {**each["planted"], "certain_when_absent": each["certain_when_absent"], "alarms": each["false_alarms"]}
        print(name, json.dumps(shown, indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", choices=list(PLANTINGS), help="by default all")
    parser.add_argument("--part", type=int, default=0)
    parser.add_argument("--of", type=int, default=1)
    parser.add_argument("--merge", action="store_true")
    options = parser.parse_args()
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[str, Models]] = {}
    if options.merge:
        for path in sorted(RESULT.parent.glob("part-*.json")):
            for family, kinds in files.read_json(path).items():
                own = found.setdefault(family, {kind: [] for kind in KINDS})
                found[family] = {kind: own[kind] + kinds[kind] for kind in KINDS}
        save(found)
        return
    for family in [options.family] if options.family else PLANTINGS:
        cases = {kind: sorted(make(family), key=order)[options.part :: options.of] for kind, make in KINDS.items()}
        found[family] = {kind: measured(some) for kind, some in cases.items()}
        if options.of > 1:
            files.write_json(RESULT.with_name(f"part-{family}-{options.part}.json"), {family: found[family]})
    if options.of == 1:
        save(found)


if __name__ == "__main__":
    main()

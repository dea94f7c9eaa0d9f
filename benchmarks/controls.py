"""The instrument on models whose answer is known: how often it is certain, right, and alarmed by nothing.

python -m benchmarks.controls [--part K --of N]     writes results/controls/controls.json (or its K-th of N parts)
python -m benchmarks.controls --merge               joins the parts
"""

import argparse
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from algoscope import algorithms, runs
from algoscope.algorithms import Algorithm
from algoscope.controls import Planted
from algoscope.instrument import Instrument
from algoscope.models import Transformer
from algoscope.progress import Bar
from algoscope.randomness import stream
from algoscope.tasks import LinearRegression

RESULT = Path("results/controls/controls.json")
PROMPTS = 500  # compared, and as many fitted
LAYERS = 6
NOISES = (0.0, 0.1, 0.3)
FIRST = 100  # seed: those before it were looked at while the thresholds of the instrument were chosen
TASKS = {5: LinearRegression(dim=5, examples=20), 20: LinearRegression(dim=20, examples=40)}
NOISY = {dim: LinearRegression(dim=task.dim, examples=task.examples, noise=0.5) for dim, task in TASKS.items()}


@dataclass(frozen=True)
class Case:
    task: LinearRegression
    prompts: int  # seed of the prompts
    model: Planted | None = None
    untrained: Transformer | None = None
    seed: int = 0
    absent: bool = False  # the planted algorithm is not among those compared


def planted() -> Iterator[Case]:
    """Newton, gradient descent and conjugate gradients at 1 to 3 steps a layer; online descent and ridge."""
    for dim, seeds in ((5, 5), (20, 2)):
        task, noisy = TASKS[dim], NOISY[dim]
        for seed, noise in itertools.product(range(FIRST, FIRST + seeds), NOISES):
            for per_layer in (1, 2, 3):
                steps = [per_layer * (k + 1) for k in range(LAYERS)]
                short = [step for step in steps if step <= dim]
                methods: list[Algorithm] = [
                    algorithms.Newton(steps),
                    algorithms.GradientDescent(steps),
                    algorithms.ConjugateGradients(short),
                ]
                yield from (Case(task, seed, Planted(task, method, noise, seed=seed)) for method in methods)
            yield Case(task, seed, Planted(task, algorithms.OnlineGradientDescent(), noise, seed=seed))
            yield Case(noisy, seed, Planted(noisy, algorithms.Ridge(), noise, seed=seed))


def absent() -> Iterator[Case]:
    """Planted models whose algorithm is not on the list: whatever is closest, it is not the answer."""
    for case in planted():
        if case.model is not None and (case.task.dim == 5 or case.prompts == FIRST):
            yield replace(case, absent=True)


def nulls() -> Iterator[Case]:
    """Planted models with shuffled labels, and untrained transformers."""
    for case in planted():
        if case.model is not None and case.task.dim == 5 and case.model.noise < 0.3:
            shuffled = Planted(case.task, case.model.algorithm, case.model.noise, seed=case.model.seed, shuffled=True)
            yield Case(case.task, case.prompts, shuffled)
    shapes = itertools.product((1, 3, 6), (1, 4), (16, 64), range(8))
    for layers, heads, width, seed in shapes:
        yield Case(TASKS[5], FIRST + seed % 5, untrained=Transformer(layers, heads, width), seed=seed)


def outcome(case: Case, instrument: Instrument) -> dict[str, Any]:
    if case.model is None:
        assert case.untrained is not None
        generator = stream("untrained", case.seed)
        network = case.untrained.build(case.task.inputs, case.task.outputs, case.task.length, generator)
        verdict = instrument.identify(network, weights=False)
        said = {"untrained": runs.plain(case.untrained)}
    else:
        verdict = instrument.identify(case.model, weights=False)
        said = {"planted": case.model.algorithm.name, "noise": case.model.noise, "shuffled": case.model.shuffled}
    stages, told = [], case.model is not None and not case.model.shuffled
    unsaturated = case.model.before_saturation() if case.model is not None and told else {}
    for found in verdict.stages:
        row: dict[str, Any] = {"stage": found.stage, "null": found.null, "agreed": [list(p) for p in found.agreed[:8]]}
        if case.model is not None and told:
            truth = (case.model.algorithm.name, case.model.layers[str(found.stage)])
            truth = instrument.solved.get(truth, truth)
            row |= {"truth": list(truth), "unsaturated": unsaturated[str(found.stage)], "certain": found.certain}
            row |= {"kept": truth in found.agreed, "right": found.certain and found.agreed[0] == truth}
        stages.append(row)
    return {"dim": case.task.dim, "task_noise": case.task.noise, "prompts": case.prompts, **said, "stages": stages}


def share(rows: list[list[bool]], seed: int = 0) -> dict[str, Any]:
    """A rate over stages, with a 95% interval by resampling whole models, or Wilson's over models where all agree."""
    counts = torch.tensor([[sum(row), len(row)] for row in rows], dtype=torch.float64)
    if not len(counts) or not counts[:, 1].sum():
        return {"rate": None, "low": None, "high": None, "models": len(rows), "stages": 0}
    drawn = torch.randint(len(counts), (2000, len(counts)), generator=stream("controls", seed))
    hits, trials = counts[drawn].sum(1).unbind(1)
    low, high = torch.quantile(hits / trials.clamp(min=1), torch.tensor([0.025, 0.975], dtype=torch.float64)).tolist()
    hit, total = counts.sum(0).tolist()
    if hit in (0, total):
        models = int((counts[:, 1] > 0).sum())
        low, high = (binomial(models if hit else 0, models)[end] for end in ("low", "high"))
    return {"rate": hit / total, "low": low, "high": high, "models": len(rows), "stages": int(total)}


def fooled(models: list[dict[str, Any]]) -> dict[str, Any]:
    return share([[row["certain"] for row in model["stages"] if row["unsaturated"]] for model in models])


def binomial(hits: int, trials: int) -> dict[str, Any]:
    """A rate over models, with Wilson's 95% interval."""
    z, p = 1.96, hits / trials
    middle, half = p + z**2 / (2 * trials), z * (p * (1 - p) / trials + z**2 / (4 * trials**2)) ** 0.5
    low, high = ((middle + sign * half) / (1 + z**2 / trials) for sign in (-1, 1))
    return {"rate": p, "low": max(low, 0.0), "high": min(high, 1.0), "models": trials}


def summary(found: list[dict[str, Any]], missing: list[dict[str, Any]], empty: list[dict[str, Any]]) -> dict[str, Any]:
    def rates(models: list[dict[str, Any]]) -> dict[str, Any]:
        stages = [[row for row in model["stages"] if row["unsaturated"]] for model in models]
        return {
            "certain": share([[row["certain"] for row in rows] for rows in stages]),
            "right_when_certain": share([[row["right"] for row in rows if row["certain"]] for rows in stages]),
            "planted_among_the_kept": share([[row["kept"] for row in rows] for rows in stages]),
        }

    names = sorted({model["planted"] for model in found})
    alarms = [any(row["agreed"] for row in model["stages"]) for model in empty]
    kinds = ["shuffled labels" if "planted" in model else "untrained" for model in empty]
    return {
        "planted": {"models": len(found), **rates(found)},
        "by_algorithm": {name: rates([model for model in found if model["planted"] == name]) for name in names},
        "by_noise": {str(n): rates([model for model in found if model["noise"] == n]) for n in NOISES},
        "by_dim": {str(dim): rates([model for model in found if model["dim"] == dim]) for dim in TASKS},
        "certain_when_absent": fooled(missing),
        "certain_when_absent_by_algorithm": {n: fooled([m for m in missing if m["planted"] == n]) for n in names},
        "certain_when_absent_by_noise": {str(n): fooled([m for m in missing if m["noise"] == n]) for n in NOISES},
        "false_alarms": {
            "all": binomial(sum(alarms), len(alarms)),
            **{
                kind: binomial(
                    sum(a for a, k in zip(alarms, kinds, strict=True) if k == kind), kinds.count(kind)
                )
                for kind in sorted(set(kinds))
            },
        },
    }  # fmt: skip


def left_out(case: Case) -> str:
    return type(case.model.algorithm).__name__ if case.model is not None and case.absent else ""


def order(case: Case) -> tuple[object, ...]:
    """One instrument after the other."""
    return case.task.dim, case.task.noise, case.prompts, left_out(case)


def measured(cases: list[Case]) -> list[dict[str, Any]]:
    instruments: dict[tuple[LinearRegression, int, str], Instrument] = {}
    bar, found = Bar(len(cases), unit="models"), []
    for k, case in enumerate(cases):
        key = (case.task, case.prompts, left_out(case))
        if key not in instruments:
            known = [algorithm for algorithm in case.task.algorithms() if type(algorithm).__name__ != left_out(case)]
            instruments = {key: Instrument(case.task, known, PROMPTS, PROMPTS, case.prompts, others=known)}
        found.append(outcome(case, instruments[key]))
        bar.show(k + 1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", type=int, default=0)
    parser.add_argument("--of", type=int, default=1)
    parser.add_argument("--merge", action="store_true")
    options = parser.parse_args()
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    if options.merge:
        parts = [json.loads(path.read_text()) for path in sorted(RESULT.parent.glob("part-*.json"))]
        result = {key: [row for part in parts for row in part[key]] for key in ("planted", "absent", "nulls")}
    else:
        kinds = {"planted": planted(), "absent": absent(), "nulls": nulls()}
        result = {key: measured(sorted(kind, key=order)[options.part :: options.of]) for key, kind in kinds.items()}
    stamp = {"prompts": PROMPTS, "provenance": runs.provenance(torch.device("cpu"))}
    if options.of > 1:
        RESULT.with_name(f"part-{options.part}.json").write_text(json.dumps(result))
        return
    rates = summary(result["planted"], result["absent"], result["nulls"])
    RESULT.write_text(json.dumps({"rates": rates, **stamp}, indent=1) + "\n")
    RESULT.with_name("models.json").write_text(json.dumps(result) + "\n")
    print(json.dumps(rates, indent=1))


if __name__ == "__main__":
    main()

"""How often a method is right about models whose answer is known: `identify`, or any other.

A method is a function of a model and its task; it answers for stages by name. Where it has parameters of the names
`algorithms`, the list that it should compare with, or `seed`, that of its prompts, it is given these as well.
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from algoscope import arguments
from algoscope.algorithms.least_squares import without_weights
from algoscope.contracts import Algorithm, Task
from algoscope.controls.control import Control
from algoscope.instrument import Instrument, positions_for
from algoscope.matching.statistics import wilson
from algoscope.randomness import stream
from algoscope.trace import Prompts, Stage, Trace

PROMPTS = 200  # on which steps are compared with what a stage holds
SAME = 1e-4  # squared distance at which they are the same: 1%
DIFFERING = 0.01  # share of labels, likewise
EXPECTED = 2.0  # times the mean square of the targets: a step may have, before its position counts less
SHOWN = 8  # steps that are kept on file
Outcome: TypeAlias = dict[str, Any]  # what was found of one control, as JSON can hold it


@dataclass(frozen=True)
class Answer:
    """What a method says of one stage.

    `method` is the one that it surely is a step of, or None; `sure` says whether that is meant as an answer. `steps`
    are those that it may be, as (algorithm, step); if it is `certain`, it is one step, and these are its names.
    """

    method: str | None
    sure: bool
    steps: tuple[tuple[str, Stage], ...] = ()
    certain: bool = False


Method: TypeAlias = Callable[..., Mapping[str, Answer]]


class Identify:
    """`identify` as a method: one instrument serves all models that are shown the same prompts."""

    def __init__(self, prompts: int = 1000) -> None:
        arguments.integer("prompts", prompts, 2)
        self.prompts = prompts
        self.instruments: dict[object, Instrument] = {}

    def __call__(
        self, model: Any, task: Task, algorithms: Sequence[Algorithm] | None = None, seed: int = 0
    ) -> dict[str, Answer]:
        compared, positions = task.algorithms() if algorithms is None else algorithms, positions_for(model, task)
        key = (task, seed, tuple(each.name for each in compared), positions)
        if key not in self.instruments:  # others are forgotten: each fills much memory
            count = self.prompts
            self.instruments = {key: Instrument(task, compared, count, count, seed, positions, others=[])}
        found = self.instruments[key].identify(model, weights=False).stages
        answers = {}
        for each in found:
            method = each.methods[each.agreed[0][0]] if each.certain else each.family
            answers[str(each.stage)] = Answer(method, method is not None, each.spellings, each.certain)
        return answers


def score(method: Method, controls: Iterable[Control]) -> dict[str, dict[str, Any]]:
    """How often a method is right, by family of tasks: rates over stages, with 95% intervals over models."""
    return summaries([outcome(method, control) for control in controls])


def outcome(method: Method, control: Control) -> Outcome:
    """What a method says of one control, stage by stage, and whether it is so."""
    known = inspect.signature(method).parameters
    asked = {"algorithms": control.compared, "seed": control.seed}
    answers = method(control.model(), control.task, **{name: asked[name] for name in asked if name in known})
    rows = of_null(control, answers) if control.kind == "null" else of_stages(control, answers)
    return {
        "family": control.family,
        "kind": control.kind,
        "group": control.group,
        "task": type(control.task).__name__,
        "algorithm": control.algorithm and control.algorithm.name,
        "method": control.algorithm and control.algorithm.method,
        "noise": control.noise,
        "seed": control.seed,
        "stages": rows,
    }


def of_stages(control: Control, answers: Mapping[str, Answer]) -> list[dict[str, Any]]:
    """Is each stage named as the step that it holds, or as one that is equal? Or as the method, at least?"""
    algorithm, unsaturated, rows = control.algorithm, control.before_saturation(), []
    assert algorithm is not None
    with without_weights():
        held = dict(zip(control.steps, algorithm.trace(_prompts(control.task)).values, strict=True))
    for stage, step in control.steps.items():
        answer = answers.get(stage, Answer(None, False))
        own = (algorithm.name, step)
        kept = any(pair == own or _is(control.task, held[stage], pair) for pair in answer.steps)
        rows.append({
            "stage": stage,
            "step": step,
            "unsaturated": unsaturated[stage],
            "sure": answer.sure,
            "certain": answer.certain,
            "right": answer.sure and (answer.method == algorithm.method or kept),
            "exact": answer.certain and kept,
            "kept": kept,
            **_shown(answer),
        })  # fmt: skip
    return rows


def of_null(control: Control, answers: Mapping[str, Answer]) -> list[dict[str, Any]]:
    """There is nothing to find: whatever is named is an alarm, except a step that is the prompt itself."""
    rows = []
    for stage, answer in answers.items():
        prompt = bool(answer.steps) and all(_is_prompt(control.task, pair) for pair in answer.steps)
        alarm = bool(answer.steps or answer.method) and not prompt
        rows.append({"stage": stage, "alarm": alarm, **_shown(answer)})
    return rows


def _shown(answer: Answer) -> dict[str, Any]:
    return {"method": answer.method, "steps": [list(pair) for pair in answer.steps[:SHOWN]]}


@functools.lru_cache(maxsize=4)
def _prompts(task: Task) -> Prompts:
    return task.sample(PROMPTS, seed=0, purpose="controls")


@functools.lru_cache(maxsize=64)
def _listed(task: Task, name: str) -> tuple[Trace, bool] | None:
    """The steps of an algorithm of the list on the same prompts, and whether it is a closed form."""
    found = next((each for each in task.algorithms() if each.name == name), None)
    if found is None:
        return None
    with without_weights():
        return found.trace(_prompts(task)), found.closed_form


def _is(task: Task, held: Tensor, pair: tuple[str, Stage]) -> bool:
    """Whether a step of the list is what a stage holds, up to 1%; or, if it is a closed form, what that has become."""
    listed = _listed(task, pair[0])
    if listed is None or pair[1] not in listed[0].stages:
        return False
    trace, closed = listed
    return same(held, trace.values[trace.stages.index(pair[1])], task, _prompts(task), closed)


def same(held: Tensor, named: Tensor, task: Task, prompts: Prompts, closed: bool) -> bool:
    """Labels: whether hardly any differ. Numbers: whether one is a multiple of the other up to 1%, or as near to a
    closed form as 1% of the targets. A position where either is far larger than targets counts less.
    """
    at = slice(max(task.first - prompts.before, 0), None)
    a, b = (values.double().reshape(*prompts.y.shape[:2], -1)[:, at] for values in (held, named))
    if task.labels:
        return bool((a != b).double().mean() <= DIFFERING)
    unit = prompts.normalizer()
    largest = torch.maximum(a.square().mean((0, 2)), b.square().mean((0, 2))) / unit
    weights = (EXPECTED / largest.clamp(min=EXPECTED)).square()[:, None]
    power, product = (weights * a.square()).sum(), (weights * a * b).sum()
    left = power - product.square() / (weights * b.square()).sum().clamp(min=1e-300)
    apart = (weights * (a - b).square()).mean() / weights.mean() / unit
    return bool((left <= SAME * power) & (power > 0)) or (closed and bool(apart <= SAME))


def _is_prompt(task: Task, pair: tuple[str, Stage]) -> bool:
    """Whether a step has just the values of the prompt."""
    listed, x = _listed(task, pair[0]), _prompts(task).x.double()
    if listed is None or pair[1] not in listed[0].stages:
        return False
    own = listed[0].values[listed[0].stages.index(pair[1])].double()
    return own.shape == x.shape and torch.allclose(own, x, rtol=1e-9, atol=1e-12)


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


def summaries(models: Sequence[Outcome]) -> dict[str, dict[str, Any]]:
    """Rates by family of tasks."""
    return {family: summary(own) for family, own in by("family", models).items()}


def by(key: str, models: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    """Models in groups, by one thing that is known of them."""
    values = dict.fromkeys(model[key] for model in models)
    return {str(value): [model for model in models if model[key] == value] for value in values}


def summary(models: Sequence[Outcome]) -> dict[str, Any]:
    """Of one family: what there are no models for is left out."""
    kinds, found = by("kind", models), dict[str, Any]()
    if listed := kinds.get("listed"):
        found["planted"] = {"models": len(listed), **rates(listed)}
        found |= {f"by_{name}": _parts(key, listed, rates) for name, key in TABLES.items()}
    if missing := kinds.get("unlisted"):
        found["wrong_step_when_absent"] = fooled(missing, "certain")
        found["certain_when_absent"] = fooled(missing)
        tables = {**TABLES, "group": "group"}
        found |= {f"certain_when_absent_by_{name}": _parts(key, missing, fooled) for name, key in tables.items()}
    if nulls := kinds.get("null"):
        found["false_alarms"] = alarms(nulls)
        found["false_alarms_by_kind"] = _parts("group", nulls, alarms)
    if written := kinds.get("by hand"):
        found["by_hand"] = {"models": len(written), **rates(written)}
        found["by_hand_by_group"] = _parts("group", written, rates)
    return found


TABLES = {"algorithm": "method", "noise": "noise", "task": "task"}


def _parts(key: str, models: Sequence[Outcome], rate: Callable[[list[Outcome]], Any]) -> dict[str, Any]:
    return {name: rate(part) for name, part in sorted(by(key, models).items())}


def rates(models: Sequence[Outcome]) -> dict[str, Any]:
    """Of stages before saturation. It is sure of one step, where it is certain, or of a method."""
    stages = [[row for row in model["stages"] if row["unsaturated"]] for model in models]
    return {
        "certain": share([[row["certain"] for row in rows] for rows in stages]),
        "sure": share([[row["sure"] for row in rows] for rows in stages]),
        "right_when_certain": share([[row["right"] for row in rows if row["sure"]] for rows in stages]),
        "exact_when_certain": share([[row["exact"] for row in rows if row["certain"]] for rows in stages]),
        "planted_among_the_kept": share([[row["kept"] for row in rows] for rows in stages]),
    }


def fooled(models: Sequence[Outcome], how: Literal["sure", "certain"] = "sure") -> dict[str, Any]:
    """How often it is sure of a step or a method, or certain of one step, and wrong: the right step is not listed."""
    stages = [[row for row in model["stages"] if row["unsaturated"]] for model in models]
    return share([[row[how] and not row["right"] for row in rows] for rows in stages])


def alarms(models: Sequence[Outcome]) -> dict[str, Any]:
    return of_models([any(row["alarm"] for row in model["stages"]) for model in models])

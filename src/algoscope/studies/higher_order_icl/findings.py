"""What the numbers say: functions from what was measured to findings, which the claims put together."""

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from algoscope.studies.claim import Finding, Numbers, Value
from algoscope.studies.higher_order_icl.measures import NEWTON, table
from algoscope.studies.higher_order_icl.published import beside_published

Model = Mapping[str, Any]  # the numbers of one model
ENOUGH = 0.99  # similarity of errors that counts as least squares
LEARNED = 0.5  # normalized error of a model that has learned something
ONLINE = "online gradient descent"
MAIN, HARD, ONE_HEAD, LSTM = "transformer", "ill-conditioned", "one head", "LSTM"


def each(
    find: Callable[[Model], Value | None], run: str = MAIN, **bounds: float
) -> Callable[[Numbers], Finding | None]:
    """Judges a value of every seed of a run."""

    def judge(numbers: Numbers) -> Finding | None:
        models = list(numbers.get(run, {}).values())
        values = [found for model in models if (found := find(model)) is not None]
        return undecided_if_untrained(models, Finding.judged(values, **bounds)) if values else None

    return judge


def above_null(model: Model) -> list[str]:
    """The stages at which some algorithm beats the null."""
    none = [found["none"] for found in model["verdict"]["matches"]["errors"].values()]
    stages = [found["stage"] for found in model["verdict"]["stages"]]
    return [stage for i, stage in enumerate(stages) if not all(row[i] for row in none)]


def undecided_if_untrained(models: Iterable[Model], finding: Finding) -> Finding:
    """Of models whose last stage is like no algorithm, nothing is claimed."""
    empty = any(model["verdict"]["stages"][-1]["stage"] not in above_null(model) for model in models)
    return finding.undecided() if empty else finding


def minus(a: Value, b: Value) -> Value:
    """A difference of two numbers that are not paired: its interval is as wide as both together."""
    return Value(a.value - b.value, a.low - b.high, a.high - b.low, min(a.n, b.n))


def pairs(numbers: Numbers, one: str, other: str) -> list[tuple[Model, Model]]:
    """Models of two runs with the same seed."""
    first, second = numbers.get(one, {}), numbers.get(other, {})
    return [(first[seed], second[seed]) for seed in first if seed in second]


def improves(numbers: Numbers) -> Finding | None:
    """Where a layer that is like some algorithm gains least on the one before: by how much it is better."""
    models, values = list(numbers.get(MAIN, {}).values()), []
    for model in models:
        held = above_null(model)
        rows = [row for row in model["progress"][1:] if row["stage"] in held]
        if rows:
            row = min(rows, key=lambda row: row["better_low"])
            values.append(Value(row["better"], row["better_low"], row["better_high"], row["n"]))
    return undecided_if_untrained(models, Finding.judged(values, at_least=0.0)) if values else None


def grows(
    algorithm: str, law: str, by: str = "errors", run: str = MAIN, **bounds: float
) -> Callable[[Numbers], Finding | None]:
    """How much the matching step grows a layer, and whether by that law; where another law is seen, it fails."""

    def judge(numbers: Numbers) -> Finding | None:
        models, values, laws = list(numbers.get(run, {}).values()), [], set()
        for model in models:
            places = {"errors": model["verdict"]["laws"], "weights": model["laws_by_weights"]}
            found = (places | {"published": model["published"]["laws"]})[by].get(algorithm)
            if found is None or found["growth"] is None:
                continue
            laws.add(found["law"])
            if found["path"] == law:  # of the other path it would be another number
                n = found.get("n", model["verdict"]["prompts"])
                values.append(Value(found["growth"], found["low"], found["high"], n))
        if not values:
            return None
        found = Finding.judged(values, **bounds)
        judged = found.verdict
        if not laws & {law, "undecided"}:
            judged = "fails"
        elif len(values) < len(models) or (judged == "holds" and laws != {law}):
            judged = "undecided"
        return undecided_if_untrained(models, replace(found, verdict=judged))

    return judge


def cell(model: Model, name: str) -> Value:
    """The best similarity of the last stage to an algorithm, as the paper measures it."""
    found = model["published"]["maps"][name]
    row = [-1.0 if value is None else value for value in found["similarity"][-1]]
    best = max(range(len(row)), key=row.__getitem__)
    return Value(row[best], found["low"][-1][best], found["high"][-1][best], model["verdict"]["prompts"])


def level(name: str) -> Callable[[Model], Value]:
    return lambda model: cell(model, name)


def step_of(name: str) -> Callable[[Model], Value | None]:
    """The matching step of the last stage, and the range of its ties; None where nothing matches."""

    def find(model: Model) -> Value | None:
        found = model["published"]["maps"][name]
        ties = [float(step) for step in found["ties"][-1] if isinstance(step, int)]
        if found["none"][-1] or not ties:
            return None
        return Value(float(found["best"][-1]), min(ties), max(ties), model["verdict"]["prompts"])

    return find


def ahead(one: str, other: str) -> Callable[[Model], Value | None]:
    """How much closer the last layer is to one algorithm than to another, each at its best step, paired by prompt.

    Where the two have met only a third, the interval is as wide as both together.
    """

    def duel(model: Model, one: str, other: str) -> Value | None:
        rows = table(model["published"], "duels", stage=f"{one} over {other}")
        return Value(*(rows[0][part] for part in ("by", "low", "high", "n"))) if rows else None

    def find(model: Model) -> Value | None:
        direct = duel(model, one, other)
        if direct is not None:
            return direct
        met, own = duel(model, NEWTON, other), duel(model, NEWTON, one)  # each was measured against this one
        return minus(met, own) if met and own else None

    return find


def closer_than(one: str, other: str, name: str) -> Callable[[Numbers], Finding | None]:
    """Whether the models of one run are closer to an algorithm than those of another."""

    def judge(numbers: Numbers) -> Finding | None:
        both = pairs(numbers, one, other)
        values = [minus(cell(a, name), cell(b, name)) for a, b in both]
        return undecided_if_untrained(itertools.chain(*both), Finding.judged(values, at_least=0.0)) if values else None

    return judge


def second_over_first(model: Model) -> Value | None:
    """The error of the second layer over that of the first, paired by prompt."""
    rows = {row["stage"]: row for row in model["progress"]}
    if "layer 2" not in rows:
        return None
    first, second = rows["layer 1"]["error"], rows["layer 2"]
    ends = (1 - second[part] / first for part in ("better", "better_high", "better_low"))
    return Value(*ends, n=second["n"])


def forgets(what: str) -> Callable[[Model], Value]:
    """The error on the oldest example minus that on the latest."""

    def find(model: Model) -> Value:
        rows = table(model, "forgetting", stage=what)
        new, old = min(rows, key=lambda row: row["gap"]), max(rows, key=lambda row: row["gap"])
        return minus(*(Value(row["error"], row["low"], row["high"], row["n"]) for row in (old, new)))

    return find


def outside(model: Model) -> Value | None:
    """The largest share of the last layer's weights outside the span of the examples, over its chance."""
    stage = model["verdict"]["stages"][-1]["stage"]
    rows = table(model, "span", stage=stage)
    if not rows:
        return None
    row = max(rows, key=lambda row: row["outside"] / row["chance"])
    share, low, high = (row[part] / row["chance"] for part in ("outside", "low", "high"))
    return Value(share, low, high, row["n"])


def _weights(model: Model, stage: str, t: int, algorithm: str) -> Value | None:
    rows = table(model, "by_examples", stage=stage, t=t, algorithm=algorithm)
    if not rows or rows[0]["similarity"] is None:
        return None
    return Value(*(rows[0][part] for part in ("similarity", "low", "high", "n")))


def few_examples(model: Model) -> Value | None:
    """After two examples: how much closer to least squares than to Newton is the first layer that is like either."""
    held = above_null(model)
    names = ("OrdinaryLeastSquares", "Newton")
    a, b = (_weights(model, held[0], 2, name) if held else None for name in names)
    return minus(a, b) if a and b else None


def deeper_dip(model: Model) -> Value | None:
    """How much deeper the dip of least squares is than that of Newton."""
    one, other = dip("OrdinaryLeastSquares")(model), dip("Newton")(model)
    return minus(one, other) if one and other else None


def dip(algorithm: str) -> Callable[[Model], Value | None]:
    """How far the last layer's weights are further from an algorithm's at n = d than at n = d/2 and 3d/2."""

    def find(model: Model) -> Value | None:
        stage, d = model["verdict"]["stages"][-1]["stage"], model["dim"]
        at = [_weights(model, stage, t, algorithm) for t in (d // 2, 3 * d // 2, d)]
        if any(value is None for value in at):
            return None
        before, after, here = (value for value in at if value is not None)
        value, low, high = ((a + b) / 2 for a, b in zip(before[:3], after[:3], strict=True))
        return minus(Value(value, low, high, here.n), here)

    return find


def off_the_table(name: str) -> Callable[[Model], Value | None]:
    """How far the cells of a map are from the published ones, on average."""

    def find(model: Model) -> Value | None:
        cells = list(beside_published(model, name))
        if not cells:
            return None
        off, spread = ([abs(cell["off"]) for cell in cells], [(cell["high"] - cell["low"]) / 2 for cell in cells])
        pairs = list(zip(off, spread, strict=True))
        low, high = sum(max(o - s, 0.0) for o, s in pairs), sum(o + s for o, s in pairs)
        return Value(sum(off) / len(cells), low / len(cells), high / len(cells), model["verdict"]["prompts"])

    return find


def survives_late(model: Model) -> Value | None:
    """Of a foreign answer patched in before the last layer, the share that survives."""
    row = model["patched"][-2] if len(model.get("patched", ())) > 1 else None
    return None if row is None else Value(row["survives"], row["low"], row["high"], row["n"])


def narrower(numbers: Numbers) -> Finding | None:
    """How close width 32 comes to least squares; the claim needs that it reaches it, and that width 16 falls short."""
    models = pairs(numbers, "width 16", "width 32")
    both = [(cell(a, "least squares"), cell(b, "least squares")) for a, b in models]
    if not both:
        return None
    supported = all(a.high < ENOUGH <= b.low for a, b in both)
    fails = all(a.low >= ENOUGH or b.high < ENOUGH for a, b in both)
    found = Finding(tuple(b for _, b in both), "holds" if supported else "fails" if fails else "undecided")
    learned = all(model["progress"][-1]["error"] < LEARNED for pair in models for model in pair)
    return undecided_if_untrained(itertools.chain(*models), found if learned else found.undecided())

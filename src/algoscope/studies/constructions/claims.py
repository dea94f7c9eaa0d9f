"""What the theorems claim, and what was found of each."""

import math
from collections.abc import Callable

from algoscope.runs import slug
from algoscope.studies.constructions.controls import CONTROLS, SAME
from algoscope.studies.constructions.measures import SEEDS
from algoscope.studies.constructions.subjects import SUBJECTS, Subject
from algoscope.studies.study import Claim, Finding, Numbers, Value

STATED = 0.0183  # the false alarms that results/controls allow for: none in 206 models, so at most this
ORDER = 0.1  # how far the order of an error may be from 2


def exactness(subject: Subject) -> Callable[[Numbers], Finding | None]:
    """The largest error of all steps, for each seed of prompts."""

    def find(numbers: Numbers) -> Finding | None:
        rows = numbers.get(subject.name, {}).get("0", {}).get("errors", [])
        worst = [
            max((row for row in rows if row["seed"] == seed), key=lambda row: row["error"]) for seed in SEEDS if rows
        ]
        values = [Value(row["error"], row["low"], row["high"], row["n"]) for row in worst]
        return Finding.judged(values, at_most=subject.bound) if values else None

    return find


def fits(subject: Subject) -> Callable[[Numbers], Finding | None]:
    """How many layers it has."""

    def find(numbers: Numbers) -> Finding | None:
        size = numbers.get(subject.name, {}).get("0", {}).get("size")
        if not size or size["stated"] is None:
            return None
        count = float(size["layers"])
        return Finding.judged([Value(count, count, count, 1)], at_most=float(size["stated"]))

    return find


def order_in_c(numbers: Numbers) -> Finding | None:
    """By which power of c the error falls, for each construction with a softmax, where C is largest."""
    values = []
    for subject in (subject for subject in SUBJECTS if subject.softmax):
        rows = numbers.get(subject.name, {}).get("0", {}).get("grid", [])
        largest = max((row["C"] for row in rows), default=0.0)
        error = {row["c"]: row["error"] for row in rows if row["C"] == largest}
        if error:
            power = math.log10(error[1e-2] / error[1e-3])
            values.append(Value(power, power, power, 1))
    return Finding.judged(values, at_least=2 - ORDER, at_most=2 + ORDER) if values else None


def best_error(numbers: Numbers) -> Finding | None:
    """The smallest error over c and C, for each construction with a softmax."""
    values = []
    for subject in (subject for subject in SUBJECTS if subject.softmax):
        rows = numbers.get(subject.name, {}).get("0", {}).get("grid", [])
        if rows:
            least = min(row["error"] for row in rows)
            values.append(Value(least, least, least, 1))
    return Finding.judged(values, at_most=1e-8) if values else None


def named(name: str, how: str) -> Callable[[Numbers], Finding | None]:
    """The share of stages at which the instrument keeps the right step ("kept"), or no other ("named"), less those at
    which it is sure of another.
    """

    def find(numbers: Numbers) -> Finding | None:
        found = numbers.get(name, {}).get("0", {}).get("named")
        if not found:
            return None
        share = (found[how] - found["wrong"]) / found["expected"]
        return Finding.judged([Value(share, share, share, found["expected"])], at_least=1.0)

    return find


def quiet(numbers: Numbers) -> Finding | None:
    """The share of stages without a step at which the instrument keeps one, over all controls."""
    counts = [seeds["0"]["named"] for seeds in numbers.values() if "named" in seeds.get("0", {})]
    empty = sum(found["empty"] for found in counts)
    if not empty:
        return None
    share = sum(found["alarms"] for found in counts) / empty
    return Finding.judged([Value(share, share, share, empty)], at_most=STATED)


CLAIMS = (
    *(
        Claim(
            f"exact-{slug(subject.name)}",
            f"{subject.name}: a transformer runs {subject.runs}, at every step.",
            subject.source,
            exactness(subject),
            None,
            f"largest relative error over the steps, at most {subject.bound:g}; seeds are those of prompts",
            headline=subject.name in ("Newton", "chains of thought", "decoder", "Newton, causal"),
            what="relative error",
        )
        for subject in SUBJECTS
    ),
    *(
        Claim(
            f"size-{slug(subject.name)}",
            f"{subject.name}: it needs no more layers than stated.",
            subject.source,
            fits(subject),
            None,
            "layers, each counted once; where a theorem says O(k), we ask for k + 8",
            what="layers",
        )
        for subject in SUBJECTS
        if subject.stated
    ),
    Claim(
        "order",
        "The error of a softmax falls with the square of c.",
        "Ours: the two heads have ±c",
        order_in_c,
        None,
        "power of c between .01 and .001, one value for each construction",
    ),
    Claim(
        "best",
        "The error can be made as small as one likes.",
        "Gao et al., Theorems 3.1 to 4.2",
        best_error,
        None,
        "smallest error over c and C in float64, at most 1e-8, one value for each construction: rounding sets a floor",
    ),
    *(
        Claim(
            f"{how}-{slug(name)}",
            f"{name}: the instrument {words}.",
            "Ours, a control",
            named(name, how),
            None,
            f"share of stages at which the right step is {meant}, less those at which it is sure of another",
            headline=name == "Newton" and how == "named",
            what="of the stages",
        )
        for name in CONTROLS
        for how, words, meant in (
            ("kept", "never excludes the right step, nor is sure of another", "kept"),
            (
                "named",
                "names the right step at every stage, alone wherever the steps differ",
                f"kept, and with it only steps that are its multiples up to {SAME:g} of its square",
            ),
        )
    ),
    Claim(
        "quiet",
        "Where a stage holds no step, the instrument names none.",
        "Ours, a control",
        quiet,
        None,
        "share of such stages at which some step is kept, no more than the controls with planted algorithms state",
        what="of the stages",
    ),
)

"""What the theorems claim, and what was found of each."""

import math
from collections.abc import Callable

from algoscope.studies.hand_written.controls import CONTROLS
from algoscope.studies.hand_written.measures import SEEDS
from algoscope.studies.hand_written.subjects import SUBJECTS, Subject
from algoscope.studies.study import Claim, Finding, Numbers, Value

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
    return Finding.judged(values, at_most=1e-6) if values else None


def named(name: str) -> Callable[[Numbers], Finding | None]:
    """The share of stages at which the instrument keeps the right step, less those at which it is sure of another."""

    def find(numbers: Numbers) -> Finding | None:
        found = numbers.get(name, {}).get("0", {}).get("named")
        if not found:
            return None
        share = (found["kept"] - found["alarms"]) / found["expected"]
        return Finding.judged([Value(share, share, share, found["expected"])], at_least=1.0)

    return find


CLAIMS = (
    *(
        Claim(
            f"exact-{subject.name.replace(', ', '-').replace(' ', '-').lower()}",
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
            f"size-{subject.name.replace(', ', '-').replace(' ', '-').lower()}",
            f"{subject.name}: it needs no more layers than stated.",
            subject.source,
            fits(subject),
            None,
            "layers, each counted once",
            what="layers",
        )
        for subject in SUBJECTS
        if subject.stated
    ),
    Claim(
        "order",
        "The error of a softmax falls with the square of c.",
        "Gao et al., Appendix A",
        order_in_c,
        2.0,
        "power of c between .01 and .001, one value for each construction",
    ),
    Claim(
        "best",
        "The error can be made as small as one likes.",
        "Gao et al., Theorems 3.1 to 4.2",
        best_error,
        None,
        "smallest error over c and C in float64, at most 1e-6, one value for each construction: rounding sets a floor",
    ),
    *(
        Claim(
            f"named-{name.replace(', ', '-').replace(' ', '-').lower()}",
            f"{name}: the instrument finds its algorithm and step at every stage.",
            "Ours, a control",
            named(name),
            None,
            "share of stages at which the right step is kept, less those at which it is sure of another",
            headline=name == "Newton",
            what="of the stages",
        )
        for name in CONTROLS
    ),
)

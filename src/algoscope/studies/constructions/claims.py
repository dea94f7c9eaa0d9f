"""What the theorems claim, and what was found of each."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from algoscope.runs import slug
from algoscope.studies.claim import Claim, Finding, Numbers, Value
from algoscope.studies.constructions.controls import SAME
from algoscope.studies.constructions.measures import SEEDS, SIZES
from algoscope.studies.constructions.subjects import SUBJECTS, Subject
from algoscope.studies.shares import share_of

INTERVAL = "Wilson's interval, of each construction"
ORDER = 0.1  # how far the order of an error may be from 2
Find = Callable[[Numbers], Finding | None]


def exactly(value: float) -> Value:
    """Of a number that does not vary."""
    return Value(value, value, value, 1)


def exactness(subject: Subject) -> Find:
    """The largest error of all steps, for each seed of prompts."""

    def find(numbers: Numbers) -> Finding | None:
        rows = numbers.get(subject.name, {}).get("0", {}).get("errors", [])
        worst = [
            max((row for row in rows if row["seed"] == seed), key=lambda row: row["error"]) for seed in SEEDS if rows
        ]
        values = [Value(row["error"], row["low"], row["high"], row["n"]) for row in worst]
        return Finding.judged(values, at_most=subject.bound) if values else None

    return find


def fits(subject: Subject, what: str, stated: str) -> Find:
    """How many layers or heads it has, beside what is stated."""

    def find(numbers: Numbers) -> Finding | None:
        size = numbers.get(subject.name, {}).get("0", {}).get("size")
        return Finding.judged([exactly(float(size[what]))], at_most=float(size[stated])) if size else None

    return find


def order_in_c(numbers: Numbers) -> Finding | None:
    """By which power of c the error falls, for each construction with a softmax, where C is largest."""
    values = []
    for found in of_each(numbers, "grid"):
        largest = max(row["C"] for row in found["grid"])
        error = {row["c"]: row["error"] for row in found["grid"] if row["C"] == largest}
        values.append(exactly(math.log10(error[1e-2] / error[1e-3])))
    return Finding.judged(values, at_least=2 - ORDER, at_most=2 + ORDER) if values else None


def best_error(numbers: Numbers) -> Finding | None:
    """The smallest error over c and C, for each construction with a softmax."""
    values = [exactly(min(row["error"] for row in found["grid"])) for found in of_each(numbers, "grid")]
    return Finding.judged(values, at_most=1e-8) if values else None


def of_each(numbers: Numbers, what: str) -> list[Mapping[str, Any]]:
    """The numbers of the constructions of which this was measured."""
    return [seeds["0"] for seeds in numbers.values() if what in seeds.get("0", {})]


def everywhere(how: str) -> Find:
    """For each construction the share of stages at which the instrument keeps the right step and no other ("named"),
    or says that it is all there is ("computes"), less those at which it is sure of another. All have to be so.
    """

    def find(numbers: Numbers) -> Finding | None:
        counts = [(found["named"][how] - found["named"]["wrong"], found["named"]["expected"])
                  for found in of_each(numbers, "named")]  # fmt: skip
        values = tuple(share_of(max(count, 0), trials) for count, trials in counts)
        verdict = "holds" if all(count == trials for count, trials in counts) else "fails"
        return Finding(values, verdict, bounds=(1.0, math.inf)) if counts else None

    return find


def nowhere(what: str, among: str) -> Find:
    """The share of stages over all constructions. None may be so; Wilson's interval tells how many might be."""

    def find(numbers: Numbers) -> Finding | None:
        counts = [found["named"] for found in of_each(numbers, "named")]
        count, trials = (sum(found[part] for found in counts) for part in (what, among))
        verdict = "fails" if count else "holds"
        return Finding((share_of(count, trials),), verdict, bounds=(-math.inf, 0.0)) if trials else None

    return find


def law(numbers: Numbers) -> Finding | None:
    """How many steps a stage the matching step grows by. Another law that is decided is as wrong as another number."""
    values, verdicts = [], set[str]()
    for measured in of_each(numbers, "law"):
        found = measured["law"]
        if found["growth"] is not None:
            right = found["law"] == "linear" and found["low"] <= 1 <= found["high"]
            verdicts.add("holds" if right else "undecided" if found["law"] == "undecided" else "fails")
            values.append(Value(found["growth"], found["low"], found["high"], measured["verdict"]["prompts"]))
    worst = "fails" if "fails" in verdicts else "undecided" if "undecided" in verdicts else "holds"
    return Finding(tuple(values), worst) if values else None


EXACT = tuple(
    Claim(
        f"exact-{slug(subject.name)}",
        f"{subject.name}: a transformer runs {subject.runs}, at every step.",
        subject.source,
        exactness(subject),
        None,
        f"largest relative error over the steps, at most {subject.bound:g}; in brackets its range over eighths of "
        "the batch; seeds are those of prompts",
        headline=subject.name in ("Newton", "chain of thought", "decoder", "Newton, causal"),
        what="relative error",
    )
    for subject in SUBJECTS
)
SMALL = tuple(
    Claim(
        f"{name}-{slug(subject.name)}",
        f"{subject.name}: it needs no more {what} than stated.",
        subject.source,
        fits(subject, what, stated),
        None,
        description,
        what=what,
    )
    for subject in SUBJECTS
    for name, what, stated, description in (
        ("size", "layers", "stated", "layers, each counted once; where a theorem says O(k), we ask for k + 8"),
        ("heads", "heads", "stated_heads", "heads of all layers: as many as the one with most needs"),
    )
    if subject.stated and (what == "layers" or subject.stated(SIZES["smoke"]).heads)
)
CONTROL = "Ours, a control"
CLAIMS = (
    *EXACT,
    *SMALL,
    Claim(
        "order", "The error of a softmax falls with the square of c.", "Ours: the two heads have ±c", order_in_c, None,
        "power of c between .01 and .001, one value for each construction",
    ),
    Claim(
        "best", "The error falls below 1e-8 before rounding takes over.", "Gao et al., Theorems 3.1 to 4.2",
        best_error, None,
        "smallest error over c and C in float64, one value for each construction; in exact numbers there is no floor",
    ),
    Claim(
        "named", "The instrument names the right step at every stage, alone wherever the steps differ.", CONTROL,
        everywhere("named"), None,
        "share of stages at which the right step is kept, and with it only steps that are its multiples up to "
        f"{SAME:g} of its square, less those where it is sure of another; {INTERVAL}",
        headline=True, what="of the stages",
    ),
    Claim(
        "computes", "The instrument says that every stage computes the right step, and nothing else.", CONTROL,
        everywhere("computes"), None,
        f"share of stages at which it is said to be all there is, less those where it is sure of another; {INTERVAL}",
        what="of the stages",
    ),
    Claim(
        "law", "The instrument finds one step a stage.", CONTROL, law, None,
        "steps a stage by its rate law, of each construction, which must be linear, and its interval must contain 1",
        headline=True, what="steps a stage",
    ),
    Claim(
        "quiet", "Where a stage holds no step, the instrument names none.", CONTROL, nowhere("alarms", "empty"), None,
        "share of such stages at which some step is kept; Wilson's interval", what="of the stages",
    ),
    Claim(
        "whole", "Where a stage holds one step, the instrument never says that there is more to it.", CONTROL,
        nowhere("denied", "expected"), None,
        "share of such stages of which a mixture of steps is said to explain more; Wilson's interval",
        what="of the stages",
    ),
)  # fmt: skip

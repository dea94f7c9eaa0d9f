"""What the theorems claim, and what was found of each."""

import math
from collections.abc import Callable

from algoscope.runs import slug
from algoscope.studies.claim import Claim, Finding, Numbers, Value
from algoscope.studies.constructions.controls import CONTROLS, SAME
from algoscope.studies.constructions.measures import ANATOMY, SEEDS
from algoscope.studies.constructions.subjects import SUBJECTS, Subject
from algoscope.studies.constructions.unlisted import NAME
from algoscope.studies.shares import share_of

INTERVAL = "Wilson's interval"
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


def fits(subject: Subject, what: str, stated: str) -> Callable[[Numbers], Finding | None]:
    """How many layers or heads it has, beside what is stated."""

    def find(numbers: Numbers) -> Finding | None:
        size = numbers.get(subject.name, {}).get("0", {}).get("size")
        if not size or size[stated] is None:
            return None
        count = float(size[what])
        return Finding.judged([Value(count, count, count, 1)], at_most=float(size[stated]))

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
    """The share of stages at which the instrument keeps the right step ("kept"), or no other ("named"), or says that
    it is all there is ("computes"), less those at which it is sure of another.
    """

    def find(numbers: Numbers) -> Finding | None:
        found = numbers.get(name, {}).get("0", {}).get("named")
        return all_of(found[how] - found["wrong"], found["expected"]) if found else None

    return find


def all_of(count: int, trials: int) -> Finding:
    """It holds if all are so; Wilson's interval tells how much that says."""
    value = share_of(max(count, 0), trials)
    return Finding((value,), "holds" if count == trials else "fails", bounds=(1.0, math.inf))


def none_of(count: int, trials: int) -> Finding | None:
    """It holds if none is so; Wilson's interval tells how many might be."""
    if not trials:
        return None
    return Finding((share_of(count, trials),), "fails" if count else "holds", bounds=(-math.inf, 0.0))


def law(name: str) -> Callable[[Numbers], Finding | None]:
    """How many steps a stage its matching step grows by. Another law that is decided is as wrong as another number."""

    def find(numbers: Numbers) -> Finding | None:
        measured = numbers.get(name, {}).get("0", {})
        found = measured.get("law")
        if not found or found["growth"] is None:
            return None
        right = found["law"] == "linear" and found["low"] <= 1 <= found["high"]
        verdict = "holds" if right else "undecided" if found["law"] == "undecided" else "fails"
        value = Value(found["growth"], found["low"], found["high"], measured["verdict"]["prompts"])
        return Finding((value,), verdict)

    return find


def counted(numbers: Numbers, what: str, among: str) -> Finding | None:
    """The share of stages over all controls."""
    counts = [seeds["0"]["named"] for seeds in numbers.values() if "named" in seeds.get("0", {})]
    return none_of(sum(found[what] for found in counts), sum(found[among] for found in counts))


def quiet(numbers: Numbers) -> Finding | None:
    """The share of stages without a step at which the instrument keeps one."""
    return counted(numbers, "alarms", "empty")


def whole(numbers: Numbers) -> Finding | None:
    """The share of stages that hold one step of which it says that there is more to them."""
    return counted(numbers, "denied", "expected")


def unlisted(numbers: Numbers) -> Finding | None:
    """The share of stages that hold a step which is not listed at which it is sure of one that does not coincide."""
    rows = numbers.get(NAME, {}).get("0", {}).get("unlisted", ())
    return none_of(sum(row["wrong"] for row in rows), len(rows))


CLAIMS = (
    *(
        Claim(
            f"exact-{slug(subject.name)}",
            f"{subject.name}: a transformer runs {subject.runs}, at every step.",
            subject.source,
            exactness(subject),
            None,
            f"largest relative error over the steps, at most {subject.bound:g}; in brackets its range over eighths of "
            "the batch; seeds are those of prompts",
            headline=subject.name in ("Newton", "chains of thought", "decoder", "Newton, causal"),
            what="relative error",
        )
        for subject in SUBJECTS
    ),
    *(
        Claim(
            f"{name}-{slug(subject.name)}",
            f"{subject.name}: it needs no more {what} than stated.",
            subject.source,
            fits(subject, what, stated),
            None,
            told,
            what=what,
        )
        for subject in SUBJECTS
        for name, what, stated, told in (
            ("size", "layers", "stated", "layers, each counted once; where a theorem says O(k), we ask for k + 8"),
            ("heads", "heads", "stated_heads", "heads of all layers: as many as the one with most needs"),
        )
        if subject.stated and (what == "layers" or subject.stated(ANATOMY).heads)
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
        "The error falls below 1e-8 before rounding takes over.",
        "Gao et al., Theorems 3.1 to 4.2",
        best_error,
        None,
        "smallest error over c and C in float64, one value for each construction; in exact numbers there is no floor",
    ),
    *(
        Claim(
            f"{how}-{slug(name)}",
            f"{name}: the instrument {words}.",
            "Ours, a control",
            named(name, how),
            None,
            f"share of stages at which the right step is {meant}, less those where it is sure of another; {INTERVAL}",
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
            ("computes", "says that every stage computes the right step, and nothing else", "said to be all there is"),
        )
    ),
    *(
        Claim(
            f"law-{slug(name)}",
            f"{name}: the instrument finds one step a stage.",
            "Ours, a control",
            law(name),
            None,
            "steps a stage by its rate law, which must be linear, and its interval must contain 1",
            headline=name == "gradient descent",
            what="steps a stage",
        )
        for name in CONTROLS
    ),
    Claim(
        "quiet",
        "Where a stage holds no step, the instrument names none.",
        "Ours, a control",
        quiet,
        None,
        f"share of such stages at which some step is kept; {INTERVAL}",
        what="of the stages",
    ),
    Claim(
        "whole",
        "Where a stage holds one step, the instrument never says that there is more to it.",
        "Ours, a control",
        whole,
        None,
        f"share of such stages of which a mixture of steps is said to explain more; {INTERVAL}",
        what="of the stages",
    ),
    Claim(
        "unlisted",
        "Where a stage holds a step that is not listed, the instrument is sure of no other.",
        "Ours, a control",
        unlisted,
        None,
        f"share of such stages at which it is sure of a step that is no multiple of the right one; {INTERVAL}",
        what="of the stages",
    ),
)

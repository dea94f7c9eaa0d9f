"""Claims about which model is better, how much that hangs on depth, heads and rates, and how long training is.

That training was long enough was asked after both lengths had been measured, and how near errors are to the least that
is possible after that had been computed.
"""

import itertools
import math

from algoscope.runs import slug
from algoscope.studies.algoformer import names
from algoscope.studies.algoformer.findings import best_of, near_least, ratio
from algoscope.studies.algoformer.names import (
    ALGOFORMER,
    CHAINS,
    LOOPED,
    LOUD,
    REPRESENTATION,
    SERIES,
    STANDARD,
    TOLD,
    VIEWS,
    run,
)
from algoscope.studies.claim import Claim

FEWER = "ours is trained for far fewer steps than 500,000: see the curves of learning."
MAIN = run(ALGOFORMER, REPRESENTATION)
FAR = 2.0  # times the error: what counts as far behind
FLAT = 0.1  # of the error: what longer training may change where it would be of no use
NAMED = {ALGOFORMER: "AlgoFormer", LOOPED: "the looped transformer", STANDARD: "the standard transformer"}
LENGTHS = {
    (kind, task): names.lengths(kind, task)
    for task in names.LONGER
    for kind in (names.KINDS if task in names.MAIN else (ALGOFORMER,))
}  # of all that is trained for more than one


def _beats(task: str, view: str) -> list[Claim]:
    noise = {SERIES: "noise .1, ", LOUD: "noise 1 as in the text, "}.get(task, "")
    return [
        Claim(
            f"beats-{rival}-{slug(task)}-{view}",
            f"AlgoFormer beats the {rival} transformer on {TOLD[task]}.",
            "§5.2, Fig. 2",
            ratio(run(ALGOFORMER, task), run(rival, task), view, at_most=1.0),
            "below 1",
            f"{noise}ratio of errors {VIEWS[view]}",
            headline=view == "last" and task in names.MAIN,
            what="times its error",
            why=FEWER,
        )
        for rival in (STANDARD, LOOPED)
    ]


def _injected(injection: str) -> list[Claim]:
    """The comparison again, with something else that a loop is given."""
    own = run(ALGOFORMER, REPRESENTATION, names.injected(injection))
    return [
        Claim(
            f"beats-{rival}-{slug(names.injected(injection))}",
            f"AlgoFormer beats the {rival} transformer on {TOLD[REPRESENTATION]}, whatever a loop is given.",
            "§5.2, Fig. 2",
            ratio(own, run(rival, REPRESENTATION), at_most=1.0),
            "below 1",
            f"injection {injection}, ratio of errors {VIEWS['last']}",
            why=FEWER,
        )
        for rival in (STANDARD, LOOPED)
    ]


def _longer(task: str) -> list[Claim]:
    """The comparison again, after a longer training."""
    more = names.longer(task)
    own, of = run(ALGOFORMER, task, more), "" if task == REPRESENTATION else f"{slug(task)}-"
    return [
        Claim(
            f"beats-{rival}-{of}longer-{view}",
            f"AlgoFormer beats the {rival} transformer on {TOLD[task]}, after {more}.",
            "§5.2, Fig. 2",
            ratio(own, run(rival, task, more), view, at_most=1.0),
            "below 1",
            f"ratio of errors {VIEWS[view]}",
            headline=rival == STANDARD and view == "last",
            what="times its error",
        )
        for rival in (STANDARD, LOOPED)
        for view in VIEWS
    ]


def _flat(task: str, kind: str, less: str, more: str, view: str) -> Claim:
    """Whether longer training would change what is told."""
    return Claim(
        f"flat-{slug(run(kind, task, less))}-{view}",
        f"Training was long enough for {TOLD.get(task, task)}: {more} change the error of {NAMED[kind]} by less than a "
        "tenth.",
        "Ours: the paper trains for 500,000 steps",
        ratio(run(kind, task, more), run(kind, task, less), view, at_least=1 - FLAT, at_most=1 + FLAT),
        None,
        f"error after {more} over that after {less or 'the steps of the other claims'}, {VIEWS[view]}; where rates "
        "are told, they differ too",
        what="times the error",
    )


def _near(task: str, kind: str, more: str) -> Claim:
    """How much lower errors could get by any training."""
    return Claim(
        f"least-{slug(run(kind, task, '' if more == names.longer(task) else more))}",
        f"After {more} the error of {NAMED[kind]} on {TOLD.get(task, task)} is so near to the least that is possible "
        "that no training would lower it by more than a tenth, on average over the examples.",
        "Ours: the paper trains for 500,000 steps",
        near_least(run(kind, task, more), task, at_most=1 / (1 - FLAT)),
        None,
        "error over that of the target to be expected, given the examples and how prompts are drawn; "
        f"{VIEWS['mean']}; where it fails, whether training gets there is not told",
        headline=task == CHAINS,
        what="times the least possible error",
    )


def _same_depth() -> list[Claim]:
    shallow = run(ALGOFORMER, REPRESENTATION, names.window(12, 10))
    compared = (
        (3, MAIN, "with one layer each", "as many as it has weights for"),
        (14, shallow, "with 12 loops, 10 of them scored,", "as deep as these make it"),
        (22, MAIN, "with one layer each", "as deep as its 20 loops make it"),
    )
    return [
        Claim(
            f"depth-{layers}-{view}",
            f"AlgoFormer {told} beats a standard transformer of {layers} layers, {why}.",
            "§5.3, Fig. 4a",
            ratio(own, run(STANDARD, REPRESENTATION, names.layers(layers)), view, at_most=1.0),
            "below 1",
            f"ratio of errors {VIEWS[view]}",
            headline=layers == 22 and view == "last",
            what="times its error",
            why=FEWER,
        )
        for layers, own, told, why in compared
        for view in VIEWS
    ]


def _rates() -> list[Claim]:
    """The comparison again, each model at the best of several rates of learning."""
    runs = {
        kind: [run(kind, REPRESENTATION), *(run(kind, REPRESENTATION, names.rated(rate)) for rate in names.RATES[kind])]
        for kind in (ALGOFORMER, STANDARD)
    }
    return [
        Claim(
            "beats-standard-best-rate",
            f"AlgoFormer beats the standard transformer on {TOLD[REPRESENTATION]}, each at its best rate of learning.",
            "§5.2, Fig. 2",
            best_of(runs[ALGOFORMER], runs[STANDARD], at_most=1.0),
            "below 1",
            f"one seed, {len(runs[ALGOFORMER])} and {len(runs[STANDARD])} rates; ratio of errors {VIEWS['last']}",
            why=FEWER,
        )
    ]


def _larger() -> list[Claim]:
    """More heads and layers help until they do not."""
    sizes = {
        "heads-2": ("8 heads are better than 2.", names.heads(2)),
        "heads-4": ("8 heads are better than 4.", names.heads(4)),
        "heads-16": ("16 heads are worse than 8.", names.heads(16)),
        "layers-2": ("Two layers each are better than one.", names.layers(2)),
    }
    found = []
    for id, (says, told) in sizes.items():
        low, high, paper = (0.0, 1.0, "below 1") if id == "layers-2" else (1.0, math.inf, "above 1")
        compared = f"error with {told} over that with the default"
        find = ratio(run(ALGOFORMER, REPRESENTATION, told), MAIN, at_least=low, at_most=high)
        found.append(Claim(id, says, "§5.3, Fig. 4", find, paper, compared, why=FEWER))
    return found


COMPARISONS = (
    *(claim for task in names.MAIN for claim in _beats(task, "last")),
    *(claim for task in (*names.MAIN, LOUD) for claim in _beats(task, "mean")),
    *_beats(LOUD, "last"),
    *(claim for injection in names.OTHER_INJECTIONS for claim in _injected(injection)),
    *(
        Claim(
            f"chains-looped{'-longer' if more else ''}",
            f"On chains of thought the looped transformer is far behind the standard one{told}.",
            "§5.2, Fig. 2c",
            ratio(run(LOOPED, CHAINS, more), run(STANDARD, CHAINS, more), at_least=FAR),
            "far above 1",
            f"ratio of errors {VIEWS['last']}; far is twice",
            headline=True,
            what="times its error",
            why=FEWER,
        )
        for more, told in (("", ""), (names.longer(CHAINS), f", after {names.longer(CHAINS)}"))
    ),
    *(claim for task in names.MAIN for claim in _longer(task)),
    *_rates(),
    *_same_depth(),
    *_larger(),
    *(
        _flat(task, kind, less, more, view)
        for view in VIEWS
        for (kind, task), lengths in LENGTHS.items()
        for less, more in itertools.pairwise(lengths)
    ),
    *(_near(task, kind, more) for (kind, task), lengths in LENGTHS.items() for more in lengths[1:]),
)

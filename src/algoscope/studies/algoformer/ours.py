"""Our own claims: which algorithm does the loop run, where does it end, and are the controls named rightly?"""

from algoscope.runs import slug
from algoscope.studies.algoformer import names
from algoscope.studies.algoformer.controls import BY_HAND
from algoscope.studies.algoformer.findings import (
    certain,
    each,
    grows,
    least_squares_nearest,
    named,
    nearer,
    on_features,
    unless_denied,
)
from algoscope.studies.algoformer.loops import RIGHT
from algoscope.studies.algoformer.names import (
    ALGOFORMER,
    CHAINS,
    LOOPED,
    REPRESENTATION,
    SERIES,
    TOLD,
    VIEWS,
    linear,
    run,
)
from algoscope.studies.claim import Claim

PLAIN, SAFE, NEWTON, KRYLOV = "GradientDescent", "GradientDescent(rate=safe)", "Newton", "ConjugateGradients"


def _loop(kind: str, task: str, more: str = "") -> list[Claim]:
    """Ours: which algorithm does the loop run?"""
    own, told = run(kind, task, more), f"{kind}, {TOLD.get(task, task)}" + (f", after {more}" if more else "")
    told += "; written after the numbers had been seen" if more else ""
    main = own == run(ALGOFORMER, REPRESENTATION)
    found = [
        Claim(
            f"one-algorithm-{slug(own)}",
            "The loop runs a known algorithm: most loops hold one step of one, for certain.",
            "Ours",
            unless_denied(
                each(certain, own, at_least=0.5), names.by_hand("chains of thought") if task == CHAINS else ""
            ),
            None,
            f"{told}; share of the loops of training",
            headline=main,
            what="of the loops",
        ),
        *_laws(own, told, main),
        Claim(
            f"nearest-{slug(own)}",
            "After the loops of training the nearest of the closed forms is least squares.",
            "Ours",
            each(least_squares_nearest, own, at_least=0.0),
            None,
            f"{told}; squared distance from the next (ridge regressions, mean) minus that from it, over E[y²]",
            headline=main,
            what="nearer than the next",
        ),
    ]
    return found if task != REPRESENTATION or more else [*found, _on_features(kind)]


def _laws(own: str, told: str, main: bool) -> list[Claim]:
    """How the step that fits best grows with the loops."""
    algorithms = {
        "descent at one rate": PLAIN,
        "descent at 1/λ_max": SAFE,
        "Newton": NEWTON,
        "conjugate gradients": KRYLOV,
    }
    found = [
        Claim(
            f"law-{slug(name)}-{slug(own)}",
            f"A loop is a step of {name}: the matching step grows by one a loop.",
            "Ours; §3 and §4 construct it" if algorithm != KRYLOV else "Ours",
            grows(algorithm, "linear", own, at_least=0.5, at_most=2.0),
            1.0 if algorithm != KRYLOV else None,
            f"{told}; each step scaled to the stage, while the loop moves; where it grows by factors, "
            "in the first loop, later ones more; undecided where others are closer at most loops",
            headline=main and algorithm in (NEWTON, KRYLOV),
            what="steps a loop",
        )
        for name, algorithm in algorithms.items()
    ]
    faster = Claim(
        f"speeds-up-{slug(own)}",
        "While the loop makes progress, the number of steps of descent that fits best is multiplied in every loop.",
        "Ours",
        grows(PLAIN, "exponential", own, at_least=1.5),
        None,
        f"{told}; descent at one rate; undecided where the path ends with the list of steps; written after the numbers "
        "had been seen",
        headline=main,
        what="times the step, a loop",
    )
    return [*found, faster]


def _on_features(kind: str) -> Claim:
    return Claim(
        f"features-{kind.lower()}",
        "The loop works on the representation, not on x: algorithms on Φ(x) are closer.",
        "Ours; §3.1 constructs it",
        each(on_features, run(kind, REPRESENTATION), at_least=0.0),
        None,
        f"{kind}; similarity of errors of the best on Φ(x) minus that of the best on x, last loop of training",
        headline=kind == ALGOFORMER,
        what="similarity ahead",
    )


def _ridge_point(noise: float) -> list[Claim]:
    return [
        Claim(
            f"ridge-point-{noise:g}-{view}",
            "With noise, the answers after the loops of training are nearer to ridge regression with the right λ than "
            "to least squares.",
            "Ours",
            each(nearer(RIGHT, view), run(ALGOFORMER, linear(noise)), at_least=0.0),
            None,
            f"σ = {noise:g}; squared distances over E[y²], {VIEWS[view]}",
        )
        for view in ("mean", "last")
    ]


def _controls() -> list[Claim]:
    found = [
        Claim(
            f"by-hand-{slug(name)}",
            f"Control: the hand-built AlgoFormer of {name} is named rightly.",
            "Ours",
            named(names.by_hand(name)),
            None,
            "share of the stages that hold a step at which it is kept; never sure of another",
        )
        for name in BY_HAND
    ]
    descent = names.by_hand("gradient descent")
    found += [
        Claim(
            f"law-{slug(algorithm)}-by-hand",
            f"Control: a loop of the hand-built descent is a step of {told}.",
            "Ours",
            grows(algorithm, "linear", descent, at_least=0.5, at_most=2.0),
            None,
            why,
            what="steps a loop",
        )
        for algorithm, told, why in (
            (PLAIN, "descent", "must hold"),
            (NEWTON, "Newton", "must not hold, though ever later steps of it are matched"),
        )
    ]
    fresh = Claim(
        "by-chance",
        "Control: in an untrained AlgoFormer no step is found but the mean of y, which attention takes by itself.",
        "Ours",
        named(names.FRESH),
    )
    planted = [
        Claim(
            f"planted-{task}",
            f"Control: what is planted on prompts of {TOLD[task]} is found.",
            "Ours",
            named(names.planted(task)),
            None,
            "the same prompts and list: ridge regression, Newton, descent, conjugate gradients and the mean",
        )
        for task in (REPRESENTATION, CHAINS)
    ]
    return [*found, fresh, *planted]


OURS = (
    *_loop(ALGOFORMER, REPRESENTATION),
    *_loop(LOOPED, REPRESENTATION),
    *(claim for task in (linear(0.0), SERIES, CHAINS) for claim in _loop(ALGOFORMER, task)),
    *_loop(LOOPED, CHAINS, names.longest(LOOPED, CHAINS)),
    *(claim for noise in names.NOISES[1:] for claim in _ridge_point(noise)),
    *_controls(),
)

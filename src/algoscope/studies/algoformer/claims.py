"""The paper's claims and ours: what each says, where, and the bounds that judge it.

Most are older than the runs at paper scale. Written after numbers had been seen: that the loop speeds up, those about a
representation with noise, those on average over examples of other depths and longer trainings, those about loops of
the looped transformer but on a representation, and that a law needs its algorithm to be among the closest at most of
its loops; the control of an untrained model was stated anew after it had failed.
"""

from collections.abc import Sequence

from algoscope.runs import slug
from algoscope.studies.algoformer import names, references
from algoscope.studies.algoformer.comparisons import COMPARISONS, FEWER, MAIN
from algoscope.studies.algoformer.findings import (
    absolute,
    ahead_of,
    beyond,
    cost,
    each,
    known_error,
    steadier,
)
from algoscope.studies.algoformer.names import (
    ALGOFORMER,
    HURTS,
    LOOPED,
    REPRESENTATION,
    STANDARD,
    VIEWS,
    linear,
    run,
)
from algoscope.studies.algoformer.ours import OURS
from algoscope.studies.claim import Claim

POLE = "least squares has a pole where there are as many examples as dimensions."


ENDS = {names.TWICE: "after twice as many loops", names.MOST: "after the most loops"}


def _beyond(
    id: str, says: str, own: str, told: str, paper: str | None, views: Sequence[str] = ("last",)
) -> list[Claim]:
    """Whether loops beyond training hurt, soon and late."""
    return [
        Claim(
            f"beyond-{id}-{end}" + (f"-{view}" if view != "last" else ""),
            f"{says}, {when}.",
            "§5.3, Fig. 3",
            each(beyond(end, view), own, at_most=HURTS),
            paper,
            f"{told}; error {when} over that after training's, {VIEWS[view]}",
            headline=own == MAIN and view == "last",
            what="times the error of training's loops",
        )
        for end, when in ENDS.items()
        for view in views
    ]


def _long_inference() -> list[Claim]:
    says = "Loops beyond those of training do not hurt"
    found = _beyond("default", says, MAIN, "as in training", "no rise", ("last", "mean"))
    for window in ((12, 5), (12, 10), (50, 5), (50, 15)):
        told = names.window(*window)
        paper = None if window[1] == 5 else "no rise"  # the paper shows that ΔT = 5 is less stable
        found += _beyond(slug(told), says, run(ALGOFORMER, REPRESENTATION, told), told, paper)
    found += [
        Claim(
            f"beyond-improves-{end}",
            "With more loops than in training the error falls further, and then stays.",
            "§5.3, Fig. 3",
            each(beyond(end), MAIN, at_most=1.0),
            "below 1",
            f"error {when} over that after training's",
        )
        for end, when in ENDS.items()
    ]
    return found


def _steady() -> list[Claim]:
    """What makes long inference stable: what a loop is given, a norm in the loop, and the number of scored loops."""
    found = []
    for injection in names.OTHER_INJECTIONS:
        more, says = names.injected(injection), "Loops beyond those of training do not hurt, whatever a loop is given"
        found += _beyond(slug(more), says, run(ALGOFORMER, REPRESENTATION, more), more, "no rise")
    for injection in names.NORMED_INJECTIONS:
        given = "" if injection == names.INJECTION else f" and the {injection} in it"
        more, says = names.normed(injection), f"With a norm at the end of each loop{given}, more loops do not hurt"
        found += _beyond(slug(more), says, run(ALGOFORMER, REPRESENTATION, more), f"injection {injection}", None)
    says = "The looped transformer can be run for longer than in training"
    for task, more in ((name, told) for name in names.MAIN for told in names.lengths(LOOPED, name)):
        own = run(LOOPED, task, more)
        id = slug(LOOPED if own == run(LOOPED, REPRESENTATION) else own)
        told = "; ".join(("prompt and norm in each loop", task, *([f"after {more}"] if more else [])))
        found += _beyond(id, says, own, told, None)
    return found + [
        Claim(
            f"steady-{loops}-{view}",
            f"With a larger ΔT the error rises less beyond training ({loops} loops in training).",
            "§5.3, Fig. 3",
            steadier(
                *(run(ALGOFORMER, REPRESENTATION, names.window(loops, scored)) for scored in (5, most)),
                view=view,
                at_least=1.0,
            ),
            "above 1",
            f"rise of the error with twice the loops at ΔT = 5 over that at ΔT = {most}, {VIEWS[view]}",
            what="times the rise",
        )
        for loops, most in ((12, 10), (50, 15))
        for view in ("last", "mean")
    ]


def _solvers(noise: float, more: str = "") -> list[Claim]:
    """With `more`, of a longer run of one seed: the paper's fastest and the best that is possible alone."""
    rivals = {
        references.newton(20): "Newton's method",
        references.descent(20): "gradient descent",
        references.safe(20): "gradient descent at 1/λ_max",
        references.RIDGE: "ridge regression with the right λ",
        references.LEAST_SQUARES: "least squares",
        references.TUNED: "gradient descent with a tuned rate and number of steps",
    }
    both = (references.newton(20), references.RIDGE)
    return [
        Claim(
            f"noise-{noise:g}-{slug(name.split(',')[0])}-{'longer-' if more else ''}{view}",
            f"With noise {noise:g}, AlgoFormer beats {told}{f', after {more}' if more else ''}.",
            "§5.4, Fig. 5" if name in list(rivals)[:2] else "Ours: left out in Fig. 5",
            each(ahead_of(name, view), run(ALGOFORMER, linear(noise), more), at_least=0.0),
            "above 0" if name in list(rivals)[:2] else None,
            f"σ = {noise:g}; {name}: its error minus ours, {VIEWS[view]}",
            headline=noise == 1.0 and view == "mean" and name in both and not more,
            what="more normalized error than ours",
            why={
                references.RIDGE: "with the right λ ridge regression is the best that is possible.",
                references.LEAST_SQUARES: POLE,
            }.get(name, FEWER),
        )
        for name, told in rivals.items()
        if name in both or not more
        for view in (("mean", "last") if name in both else ("mean",))
    ]


def _noisy_representation() -> list[Claim]:
    """The same with a representation, against the best that is possible and the paper's fastest."""
    rivals = {references.newton(20): "Newton's method", references.RIDGE: "ridge regression with the right λ"}
    return [
        Claim(
            f"noise-{noise:g}-representation-{slug(name.split(',')[0])}",
            f"With noise {noise:g} and a representation, AlgoFormer beats {told}, which is given the representation.",
            "§5.2" if name != references.RIDGE else "Ours",
            each(ahead_of(f"{name} on features", "mean"), run(ALGOFORMER, names.noisy(noise)), at_least=0.0),
            None,
            f"σ = {noise:g}, one seed; its error minus ours, {VIEWS['mean']}",
            what="more normalized error than ours",
        )
        for noise in names.NOISES[1:]
        for name, told in rivals.items()
    ]


def _noiseless() -> list[Claim]:
    quiet, known = run(ALGOFORMER, linear(0.0)), names.references(linear(0.0))
    return [
        *(
            Claim(
                f"floor{suffix}",
                f"Without noise AlgoFormer stays at an error near .001{f', after {trained}' if trained else ''}.",
                "§5.4, Fig. 5a",
                each(absolute, run(ALGOFORMER, linear(0.0), trained), at_least=3e-4, at_most=3e-3),
                1e-3,
                "not divided by E[y²]; at the last number of examples; within a factor of 3",
                headline=not trained,
                what="squared error",
                why=FEWER,
            )
            for suffix, trained in zip(("", "-longer", "-longest"), names.lengths(ALGOFORMER, linear(0.0)), strict=True)
        ),
        Claim(
            "newton-exact",
            "Without noise Newton's method reaches machine precision.",
            "§5.4, Fig. 5a",
            known_error(known, references.newton(20), at_most=1e-20),
            "nearly zero",
            "20 steps, at the last number of examples",
        ),
        *(
            Claim(
                f"few-examples-{slug(name.split(',')[0])}",
                f"Without noise and with few examples AlgoFormer beats {told}.",
                "§5.4, Fig. 5a",
                each(ahead_of(name, "few"), quiet, at_least=0.0),
                "above 0",
                "its error minus ours, mean over up to d examples",
            )
            for name, told in (
                (references.newton(20), "Newton's method"),
                (references.descent(20), "gradient descent"),
                (references.safe(20), "gradient descent at 1/λ_max"),
            )
        ),
    ]


def _costs() -> list[Claim]:
    shares = {
        "inference_share_same": ("at T = 20, at inference", 0.1, 0.08, 0.12),
        "inference_share_long": ("at T = 200, at inference", 0.01, 0.008, 0.012),
        "training_share": ("at T = 20, in training, where post answers after each scored loop", 0.1, 0.08, 0.12),
    }
    counts = {ALGOFORMER: 2.4e6, LOOPED: 0.79e6, STANDARD: 9.5e6}
    found = [
        Claim(
            slug(what),
            f"Pre and post are about {paper:g} of the computation {told}.",
            "§5.6",
            cost(ALGOFORMER, what, at_least=low, at_most=high),
            paper,
            "share of floating-point operations",
            headline=what == "training_share",
            what="of all operations",
            why="the loss of equation 3 needs post after each of the ΔT scored loops."
            if what == "training_share"
            else "",
        )
        for what, (told, paper, low, high) in shares.items()
    ]
    return found + [
        Claim(
            f"parameters-{kind.lower()}",
            f"The {kind} model has {paper / 1e6:g} million parameters.",
            "§5.1, counted",
            cost(kind, "parameters", at_least=0.95 * paper, at_most=1.05 * paper),
            paper,
            "within 5%; the first version of the abstract calls all three equal",
        )
        for kind, paper in counts.items()
    ]


CLAIMS = (
    *COMPARISONS,
    *_long_inference(),
    *_steady(),
    *_noiseless(),
    *(claim for noise in names.NOISES[1:] for claim in _solvers(noise)),
    *(claim for noise in names.NOISES[1:] for claim in _solvers(noise, names.longer(linear(noise)))),
    *_noisy_representation(),
    *_costs(),
    *OURS,
)

"""The paper's claims and ours: what each says, where, and the bounds that judge it.

Most are older than the runs at paper scale. Written after numbers had been seen: that the loop speeds up, those about a
representation with noise, those on average over examples of other depths and longer trainings, those about loops of
the looped transformer but on a representation, and that a law needs its algorithm to be among the closest at most of
its loops; the control of an untrained model was stated anew after it had failed.
"""

import math
from collections.abc import Sequence

from algoscope.runs import slug
from algoscope.studies.algoformer import names, references
from algoscope.studies.algoformer.findings import (
    absolute,
    ahead_of,
    best_of,
    beyond,
    cost,
    each,
    known_error,
    ratio,
    steadier,
)
from algoscope.studies.algoformer.names import (
    ALGOFORMER,
    CHAINS,
    HURTS,
    LOOPED,
    LOUD,
    REPRESENTATION,
    SERIES,
    STANDARD,
    TOLD,
    VIEWS,
    linear,
    run,
)
from algoscope.studies.algoformer.ours import OURS
from algoscope.studies.claim import Claim

FEWER = "ours is trained for far fewer steps than 500,000: see the curves of learning."
POLE = "least squares has a pole where there are as many examples as dimensions."
MAIN = run(ALGOFORMER, REPRESENTATION)
FAR = 2.0  # times the error: what counts as far behind


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


def _same_depth() -> list[Claim]:
    return [
        Claim(
            f"depth-{layers}-{view}",
            f"AlgoFormer with one layer each beats a standard transformer of {layers} layers, {why}.",
            "§5.3, Fig. 4a",
            ratio(MAIN, run(STANDARD, REPRESENTATION, names.layers(layers)), view, at_most=1.0),
            "below 1",
            f"ratio of errors {VIEWS[view]}",
            headline=layers == 22 and view == "last",
            what="times its error",
            why=FEWER,
        )
        for layers, why in ((3, "as many as it has weights for"), (22, "as deep as its 20 loops make it"))
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
    for task, more in ((name, told) for name in names.MAIN for told in ("", names.longer(name))):
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


def _larger() -> list[Claim]:
    """More heads and layers help until they do not."""
    sizes = {
        "heads-2": ("8 heads are better than 2.", names.heads(2)),
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
    more = names.longer(linear(0.0))
    return [
        *(
            Claim(
                "floor-longer" if trained else "floor",
                f"Without noise AlgoFormer stays at an error near .001{f', after {trained}' if trained else ''}.",
                "§5.4, Fig. 5a",
                each(absolute, run(ALGOFORMER, linear(0.0), trained), at_least=3e-4, at_most=3e-3),
                1e-3,
                "not divided by E[y²]; at the last number of examples; within a factor of 3",
                headline=not trained,
                what="squared error",
                why=FEWER,
            )
            for trained in ("", more)
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
    *_long_inference(),
    *_steady(),
    *_larger(),
    *_noiseless(),
    *(claim for noise in names.NOISES[1:] for claim in _solvers(noise)),
    *(claim for noise in names.NOISES[1:] for claim in _solvers(noise, names.longer(linear(noise)))),
    *_noisy_representation(),
    *_costs(),
    *OURS,
)

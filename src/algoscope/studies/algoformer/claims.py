"""The paper's claims and ours: what each says, where, and the bounds that judge it.

A comparison is judged by the longest training on file. Written after numbers had been seen: those about a
representation with noise, those on average over examples and about longer trainings.
"""

import math
from collections.abc import Iterator

from algoscope.runs import slug
from algoscope.studies.algoformer import findings, names, references
from algoscope.studies.algoformer.findings import Find, each, longest, ratio
from algoscope.studies.algoformer.names import (
    ALGOFORMER,
    CHAIN_OF_THOUGHT,
    LOOPED,
    LOUD,
    REPRESENTATION,
    STANDARD,
    VIEWS,
    run,
)
from algoscope.studies.claim import Claim

FEWER = "ours is trained for far fewer steps than 500,000."
LONGEST = "after the longest training on file"
MAIN = run(ALGOFORMER, REPRESENTATION)
FAR = 2.0  # times the error: what counts as far behind
HURTS = 1.1  # times the error: what counts as worse
NEAR = 1 / 0.9  # times the least possible error: a tenth of the error is left


def _ratio(id: str, sentence: str, where: str, find: Find, more: str = "", paper: str = "below 1") -> Claim:
    """Of the errors of two models; those of Figure 2 are told first."""
    convention = f"ratio of errors {VIEWS['last']}" + (f", {more}" if more else "")
    return Claim(id, sentence, where, find, paper, convention, more.startswith(LONGEST), "times its error", FEWER)


def _better() -> Iterator[Claim]:
    """Figure 2: the three models, trained equally long."""
    for task in (*names.MAIN, LOUD):
        for rival in (STANDARD, LOOPED):

            def compared(more: str, task: str = task, rival: str = rival) -> Find:
                return ratio(run(ALGOFORMER, task, more), run(rival, task, more), at_most=1.0)

            find = longest(compared, names.lengths(ALGOFORMER, task))
            more = "one seed" if task == LOUD else LONGEST + (", noise 0.1" if task == names.AR_SERIES else "")
            sentence = f"AlgoFormer beats the {rival} transformer on {names.IN_WORDS[task]}."
            yield _ratio(f"beats-{rival}-{slug(task)}", sentence, "§5.2, Fig. 2", find, more)
    prompt = names.injected("prompt")
    for rival in (STANDARD, LOOPED):
        sentence = (
            f"AlgoFormer beats the {rival} transformer on {names.IN_WORDS[REPRESENTATION]}, each loop given the prompt."
        )
        find = ratio(run(ALGOFORMER, REPRESENTATION, prompt), run(rival, REPRESENTATION), at_most=1.0)
        yield _ratio(f"beats-{rival}-{slug(prompt)}", sentence, "§5.2, Fig. 2", find, "one seed")
    yield _ratio(
        "chains-looped",
        "On chain of thought the looped transformer is far behind the standard one.",
        "§5.2, Fig. 2c",
        longest(
            lambda more: ratio(
                run(LOOPED, CHAIN_OF_THOUGHT, more), run(STANDARD, CHAIN_OF_THOUGHT, more), at_least=FAR
            ),
            names.lengths(STANDARD, CHAIN_OF_THOUGHT),
        ),
        f"{LONGEST}; far is twice",
        "far above 1",
    )


def _beyond() -> Iterator[Claim]:
    """Figure 3: loops beyond those of training."""
    unharmed = "Loops beyond those of training do not hurt"
    unstable = "Loops beyond those of training hurt where ΔT is 5."
    none, some = ("no rise", {"at_most": HURTS}), ("a rise", {"at_least": HURTS})
    prompt, normed = names.injected("prompt"), names.normed("prompt")
    for id, sentence, more, end, (paper, bounds) in (
        ("default-twice", f"{unharmed}, up to twice as many.", "", names.TWICE, none),
        ("default-most", f"{unharmed}, up to 200.", "", names.MOST, none),
        ("12-loops-10-scored", f"{unharmed}, up to 200.", names.window(12, 10), names.MOST, none),
        ("50-loops-15-scored", f"{unharmed}, up to 200.", names.window(50, 15), names.MOST, none),
        (slug(prompt), f"{unharmed} if each is given the prompt.", prompt, names.MOST, none),
        (slug(normed), f"{unharmed} if each is given the prompt and ends with a norm.", normed, names.MOST, none),
        ("12-loops-5-scored", unstable, names.window(12, 5), names.MOST, some),
        ("50-loops-5-scored", unstable, names.window(50, 5), names.MOST, some),
    ):
        yield Claim(
            f"beyond-{id}",
            sentence,
            "§5.3, Fig. 3",
            each(findings.beyond(end), run(ALGOFORMER, REPRESENTATION, more), **bounds),
            paper,
            f"{more or 'the default'}; error {VIEWS['last']}",
            headline=not more,
            what="times the error of training's loops",
            why=FEWER,
        )
    for loops, scored in ((12, 10), (50, 15)):
        few, many = (run(ALGOFORMER, REPRESENTATION, names.window(loops, each)) for each in (5, scored))
        yield Claim(
            f"steady-{loops}",
            f"With a larger ΔT the error rises less beyond training ({loops} loops in training).",
            "§5.3, Fig. 3",
            findings.steadier(few, many, at_least=1.0),
            "above 1",
            f"rise of the error with twice the loops at ΔT = 5 over that at ΔT = {scored}, {VIEWS['last']}",
            what="times the rise",
        )


def _sizes() -> Iterator[Claim]:
    """Figure 4: layers and heads."""
    shallow = run(ALGOFORMER, REPRESENTATION, names.window(12, 10))
    for layers, own, described in (
        (3, MAIN, "with as many weights"),
        (14, shallow, "as deep as 12 loops make it"),
        (22, MAIN, "as deep as its 20 loops make it"),
    ):
        sentence = f"AlgoFormer beats a standard transformer of {layers} layers, {described}."
        find = ratio(own, run(STANDARD, REPRESENTATION, f"{layers} layers"), at_most=1.0)
        yield _ratio(f"depth-{layers}", sentence, "§5.3, Fig. 4a", find)
    for sentence, more, low, high in (
        ("8 heads are better than 2.", "2 heads", 1.0, math.inf),
        ("8 heads are better than 4.", "4 heads", 1.0, math.inf),
        ("16 heads are worse than 8.", "16 heads", 1.0, math.inf),
        ("Two layers each are better than one.", "2 layers", 0.0, 1.0),
    ):
        find = ratio(run(ALGOFORMER, REPRESENTATION, more), MAIN, at_least=low, at_most=high)
        paper = "above 1" if high == math.inf else "below 1"
        yield _ratio(
            "-".join(reversed(more.split())), sentence, "§5.3, Fig. 4", find, f"{more} over the default", paper
        )


def _solvers() -> Iterator[Claim]:
    """Figure 5, and the same with a representation (§5.2): AlgoFormer against known methods."""
    newton, gradient = references.newton(20), references.gradient_descent(20)
    quiet = names.linear(0.0)
    yield Claim(
        "floor",
        "Without noise AlgoFormer stays at an error near 0.001.",
        "§5.4, Fig. 5a",
        longest(
            lambda more: each(findings.absolute, run(ALGOFORMER, quiet, more), at_least=3e-4, at_most=3e-3),
            names.lengths(ALGOFORMER, quiet),
        ),
        1e-3,
        f"{VIEWS['last']}, not divided by E[y²]; within a factor of 3; {LONGEST}",
        headline=True,
        what="squared error",
        why=FEWER,
    )
    exact = findings.known_error(names.references(quiet), newton, at_most=1e-20)
    sentence = "Without noise Newton's method reaches machine precision."
    yield Claim("newton-exact", sentence, "§5.4, Fig. 5a", exact, "nearly zero", f"20 steps, {VIEWS['last']}")
    rows = [("few-examples", 0.0, run(ALGOFORMER, quiet), method, "few") for method in (newton, gradient)]
    for noise in names.NOISES[1:]:
        own, more = run(ALGOFORMER, names.linear(noise)), names.longer(names.linear(noise))
        rows += [(f"noise-{noise:g}", noise, own, method, "mean") for method in (newton, gradient)]
        rows += [(f"noise-{noise:g}-longer", noise, f"{own}, {more}", newton, "mean")]
        features = run(ALGOFORMER, names.noisy(noise))
        rows += [(f"noise-{noise:g}-representation", noise, features, f"{newton} on features", "mean")]
    for id, noise, own, method, view in rows:
        yield Claim(
            f"{id}-{slug(method.split(',')[0])}",
            f"With {f'noise {noise:g}' if noise else 'few examples'}, AlgoFormer beats {method}.",
            "§5.2" if method.endswith("features") else "§5.4, Fig. 5",
            each(findings.ahead_of(method, view), own, at_least=0.0),
            "above 0",
            f"{own}; its error minus ours, {VIEWS.get(view, 'mean over up to d examples')}",
            headline=id == "noise-1",
            what="more normalized error than ours",
            why=FEWER,
        )


def _costs() -> Iterator[Claim]:
    after_each = "the loss of equation 3 needs post after each of the ΔT scored loops."
    for what, described, paper, why in (
        ("inference_share_same", "at T = 20, at inference", 0.1, ""),
        ("inference_share_long", "at T = 200, at inference", 0.01, ""),
        ("training_share", "at T = 20, in training, where post answers after each scored loop", 0.1, after_each),
    ):
        yield Claim(
            slug(what),
            f"Pre and post are about {paper:g} of the computation {described}.",
            "§5.6",
            findings.cost(ALGOFORMER, what, at_least=0.8 * paper, at_most=1.2 * paper),
            paper,
            "share of floating-point operations",
            headline=bool(why),
            what="of all operations",
            why=why,
        )
    for kind, paper in {ALGOFORMER: 2.4e6, LOOPED: 0.79e6, STANDARD: 9.5e6}.items():
        find = findings.cost(kind, "parameters", at_least=0.95 * paper, at_most=1.05 * paper)
        sentence = f"The {kind} model has {paper / 1e6:g} million parameters."
        yield Claim(f"parameters-{kind.lower()}", sentence, "§5.1, counted", find, paper, "within 5%")


def _ours() -> Iterator[Claim]:
    """Could any training lower the errors? Which algorithm does the loop run? And is what is known found?"""
    for task in names.MAIN:
        for kind in (ALGOFORMER, STANDARD):

            def near(more: str, kind: str = kind, task: str = task) -> Find:
                return findings.near_least(run(kind, task, more), task, at_most=NEAR)

            yield Claim(
                f"least-{kind.lower()}-{slug(task)}",
                f"No training would lower the error of {kind} on {names.IN_WORDS[task]} by more than a tenth.",
                "Ours: the paper trains for 500,000 steps",
                longest(near, names.lengths(kind, task)),
                convention=f"error over that of the best of all predictors, {VIEWS['mean']}, {LONGEST}",
                what="times the least possible error",
            )
    yield Claim(
        "one-algorithm",
        "The loop runs a known algorithm: most loops hold one step of one, for certain.",
        "Ours",
        each(findings.certain, MAIN, at_least=0.5),
        convention="AlgoFormer; share of the loops of training",
        headline=True,
        what="of the loops",
    )
    yield Claim(
        "features",
        "The loop works on the representation, not on x: algorithms on Φ(x) are closer.",
        "Ours; §3.1 constructs it",
        each(findings.on_features, MAIN, at_least=0.0),
        convention="AlgoFormer; similarity of errors of the best on Φ(x) minus that of the best on x, last loop",
        headline=True,
        what="similarity ahead",
    )
    untrained = "Control: in an untrained AlgoFormer no step is found but the mean of y, which its attention takes."
    yield Claim("by-chance", untrained, "Ours", findings.named(names.FRESH))
    for task in (REPRESENTATION, CHAIN_OF_THOUGHT):
        sentence = f"Control: what is planted on prompts of {names.IN_WORDS[task]} is found."
        yield Claim(f"planted-{slug(task)}", sentence, "Ours", findings.named(names.planted(task)))


CLAIMS = (*_better(), *_beyond(), *_sizes(), *_solvers(), *_costs(), *_ours())

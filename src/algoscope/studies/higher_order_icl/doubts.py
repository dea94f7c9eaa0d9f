"""Claims that were doubted or never made: which algorithm it is, layer by layer, and whether that holds elsewhere."""

from algoscope.studies.claim import Claim
from algoscope.studies.higher_order_icl.findings import (
    HARD,
    MAIN,
    ahead,
    alone,
    behind_somewhere,
    each,
    grows,
    still_predicts,
    survives_late,
)
from algoscope.studies.higher_order_icl.measures import DESCENT, NEWTON

SHIFTS = ("inputs twice as large", "inputs half as large", "skewed covariance", "ill-conditioned", "noise",
          "half of the space")  # fmt: skip
STARTS = {1: "Newton, start 1/frobenius", 2: NEWTON}
AFTER = "written after the numbers were seen"
AT_ONE = "Newton from 2/frobenius predicts zero after the first example, where it is on the edge of convergence."
PUBLISHED = "similarity of errors as published: unscaled, t from 1"
DOUBTED = (
    *(
        Claim(
            f"newton-over-conjugate-{start}",
            "Newton fits the last layer better than conjugate gradients.",
            "Fig. 9, doubted",
            each(ahead(name, "conjugate gradients"), at_least=0.0),
            None,
            f"{name}; {PUBLISHED}",
            headline=start == 1,
            what="similarity ahead",
            why=AT_ONE,
        )
        for start, name in STARTS.items()
    ),
    *(
        Claim(
            f"descent-cannot-{start}",
            "Gradient descent cannot reach the similarity that Newton reaches.",
            "Fig. 9, doubted",
            each(ahead(name, DESCENT), at_least=0.0),
            0.994 - 0.988,
            f"{name}; {PUBLISHED}, start at zero",
            headline=start == 1,
            what="similarity ahead",
            why="the published gradient descent starts at random weights, and keeps them where no example has been. "
            + AT_ONE,
        )
        for start, name in STARTS.items()
    ),
    Claim(
        "descent-cannot-published",
        "Gradient descent cannot reach the similarity that Newton reaches.",
        "Fig. 9, doubted",
        each(ahead(NEWTON, f"{DESCENT}, random start"), at_least=0.0),
        0.994 - 0.988,
        PUBLISHED + ", random start",
    ),
    *(
        Claim(
            f"plus-plus-{start}",
            "GD++ explains the last layer as well as Newton does.",
            "Asked by reviewers",
            each(ahead(name, "GD++"), at_most=0.005),
            None,
            f"{name}; {PUBLISHED}",
        )
        for start, name in STARTS.items()
    ),
    Claim(
        "plus-plus-layers",
        "GD++ explains every layer as well as Newton does.",
        "Asked by reviewers",
        each(behind_somewhere(STARTS[1], "GD++"), at_most=0.005),
        None,
        f"the layer at which it is furthest behind; {STARTS[1]}; {PUBLISHED}; {AFTER}",
    ),
    *(
        Claim(
            f"{name}-alone-{kind}",
            f"There are layers at which the instrument keeps {words} and no other, {where}.",
            "Fig. 9, doubted",
            each(alone(algorithm), run, at_least=1.0),
            None,
            f"number of layers, by similarity of errors and decodability; {AFTER}",
        )
        for name, algorithm, words in (
            ("newton", "Newton", "Newton"),
            ("conjugate", "ConjugateGradients", "conjugate gradients"),
        )
        for kind, run, where in (("plain", MAIN, "Σ = I"), ("hard", HARD, "ill-conditioned data"))
    ),
    *(
        Claim(
            f"shifted-{kind.replace(' ', '-')}",
            f"Also on other prompts the method named for the last layer predicts it: {kind}.",
            "Ours",
            each(still_predicts(kind), at_least=0.95),
            None,
            f"similarity of errors to Newton, gradient descent or least squares, whichever is closest; {AFTER}",
        )
        for kind in SHIFTS
    ),
    Claim(
        "faster-than-conjugate",
        "The model is faster than conjugate gradients: it advances more than a step a layer.",
        "Later version, doubted",
        grows("ConjugateGradients", "linear", at_least=1.0),
        None,
        "each step scaled to the stage",
        why="two seeds advance 1.8 steps a layer along a line; the third fits a factor of 1.4 a layer better.",
    ),
    Claim(
        "settled-late",
        "Before the last layer the answer is settled in the query's token.",
        "Ours, causal",
        each(survives_late, MAIN, at_least=0.5),
        None,
        "share of a foreign answer, planted there, that survives",
    ),
)

"""The paper's claims, and those that we add: what each says, where, and the bounds that judge it."""

from algoscope.studies.claim import Claim
from algoscope.studies.data_structures.controls import CONTROL
from algoscope.studies.data_structures.findings import (
    agrees,
    ahead_at_last,
    ahead_early,
    ahead_least,
    alike,
    begins_unsorted,
    controls_right,
    each,
    first_read,
    found_at_last,
    found_halfway,
    gains,
    if_learned,
    is_called,
    less_error_than,
    loses,
    sorted_share,
)
from algoscope.studies.data_structures.forms import AS_WAVES, FORMS, HARD_FORMS, PAIRED
from algoscope.studies.data_structures.line import LINE
from algoscope.studies.data_structures.published import value
from algoscope.studies.data_structures.references import (
    BINARY,
    CELLS,
    HASH,
    INTERPOLATION,
    MINIMUM,
    TREAP,
    TREE,
    UNTRAINED,
)
from algoscope.studies.data_structures.seen import SEEN
from algoscope.studies.data_structures.space import SPACE
from algoscope.studies.data_structures.trainings import (
    BLIND,
    FIXED,
    FROZEN,
    HARD_MORE,
    HASTY,
    LARGE,
    NOISELESS,
    OURS,
    PLANE,
    PLANE_HARD,
    PUBLISHED,
    SPHERE,
    STREAM,
    UNPERMUTED,
    ZIPF,
)


def _hard() -> list[Claim]:
    made = []
    for run, (suffix, form) in HARD_FORMS.items():
        made += [
            Claim(
                f"hard-finds{suffix}",
                "On the hard distribution the model finds nearly every nearest neighbor in log2 N look-ups.",
                "text and figures of 1D hard",
                each(found_at_last, run, at_least=0.95),
                "about 1",
                form,
            ),
            Claim(
                f"hard-is-binary{suffix}",
                "On the hard distribution the model learns binary search.",
                "text and figures of 1D hard",
                is_called(run, BINARY),
                "binary search",
                f"agreement before the last look-up, while searching; also where it is wrong; {form}",
                headline=not suffix,
                what="of the look-ups read what binary search reads",
            ),
            Claim(
                f"hard-first-in-the-middle{suffix}",
                "On the hard distribution the first look-up is always in the middle.",
                "figures of 1D hard",
                each(first_read("in the middle"), run, at_least=0.95),
                1.0,
                form,
            ),
        ]
    return made


OTHERS = (
    Claim(
        "fresh-does-not-sort",
        "An untrained network has about 9% of the points in place.",
        "text on 1D uniform",
        each(sorted_share(UNTRAINED), OURS, at_least=0.04, at_most=0.15),
        value(OURS, "untrained", "in place"),
        why="a fresh network's scores are often nearly monotone: how much is in place depends on the seed.",
    ),
    Claim(
        "plane-finds",
        "In two dimensions the model finds 75% in six look-ups.",
        "text on 2D uniform, Fig. 7",
        each(found_at_last, PLANE, points=100, at_least=0.73),
        value(PLANE),
        "100 points; an order that is folded once",
    ),
    Claim(
        "plane-beats-tree",
        "In two dimensions the model finds more than a k-d tree.",
        "text on 2D uniform, Fig. 7",
        each(ahead_at_last(TREE), PLANE, at_least=0.0),
        value(PLANE) - value(PLANE, TREE),
        PAIRED,
        headline=True,
        what="more found than by a k-d tree",
    ),
    Claim(
        "plane-hard-finds",
        "On hard points in two dimensions the model finds as much as a k-d tree.",
        "text and figures of 2D hard",
        each(ahead_at_last(TREE), PLANE_HARD, at_least=-0.03),
        None,
        PAIRED,
    ),
    Claim(
        "plane-hard-is-tree",
        "On hard points in two dimensions the model recovers a k-d tree.",
        "text and figures of 2D hard",
        is_called(PLANE_HARD, TREE),
        "a k-d tree",
        "agreement before the last look-up, while searching; also where it is wrong",
    ),
    Claim(
        "sphere-finds",
        "In 30 dimensions the model finds 35% in six look-ups.",
        "Table 1",
        each(found_at_last, SPHERE, points=100, at_least=0.33),
        value(SPHERE),
        "a small network; an order that is folded four times, into as many parts as its rivals have cells",
    ),
    Claim(
        "sphere-beats-hash",
        "In 30 dimensions the model finds more than SimHash.",
        "Table 1",
        each(ahead_at_last(HASH), SPHERE, at_least=0.0),
        value(SPHERE) - value(SPHERE, HASH),
        PAIRED,
    ),
    Claim(
        "sphere-matches-cells",
        "In 30 dimensions the model finds as much as cells of k-means.",
        "Table 1",
        each(ahead_at_last(CELLS), SPHERE, at_least=-0.02),
        value(SPHERE) - value(SPHERE, CELLS),
        PAIRED,
    ),
    Claim(
        "zipf-beats-binary",
        "Where queries follow Zipf's law the model finds more than binary search, early.",
        "figure of Zipf queries",
        each(ahead_early(BINARY), ZIPF, at_least=0.0),
        "above",
        f"the least lead in the first half, {PAIRED}",
    ),
    Claim(
        "zipf-beats-treap",
        "Where queries follow Zipf's law the model finds as much as a treap in the end.",
        "figure of Zipf queries",
        each(ahead_at_last(TREAP), ZIPF, at_least=-0.02),
        None,
        PAIRED,
    ),
    Claim(
        "zipf-reaches-interpolation",
        "Where queries follow Zipf's law the model finds as much as interpolation search.",
        "ours: not a baseline of the paper",
        each(ahead_least(INTERPOLATION), ZIPF, at_least=-0.02),
        None,
        f"the least lead among all look-ups, {PAIRED}",
    ),
    *SPACE,
    Claim(
        "hard-more",
        "The hard distribution can be learned beyond 16 points.",
        "ours: the paper found more than 16 hard to train",
        each(found_at_last, HARD_MORE, at_least=0.95),
        None,
        f"31 points in 5 look-ups; {FORMS[OURS][1]}",
    ),
    Claim(
        "large",
        "Among 500 points more is found in five look-ups than published.",
        "Fig. 27",
        each(found_at_last, LARGE, at_least=0.5),
        "0.4 to 0.5",
        f"with pointers instead of a logit for each place; {AS_WAVES}; the paper's number is read off an axis",
        headline=True,
        what="found",
    ),
    Claim(
        "noise-matters",
        "Without noise in training less is found.",
        "text on training",
        loses(OURS, NOISELESS),
        None,
        "found after the last look-up",
        headline=True,
        what="less found without noise",
    ),
    Claim(
        "adaptive-matters",
        "Queries that do not see what was read find less.",
        "text on ablations",
        loses(OURS, BLIND),
        None,
        "found after the last look-up",
    ),
    Claim(
        "order-matters",
        "With an order that is not learned less is found.",
        "text on ablations",
        loses(OURS, FROZEN, begins_unsorted),
        None,
        "found after the last look-up; of seeds whose fresh order is not sorted",
    ),
    Claim(
        "permutation-matters",
        "Where a network stores vectors of its own instead of the points in an order, less is found.",
        "text on ablations, by squared error",
        if_learned(loses(OURS, UNPERMUTED), f"{OURS}, {UNPERMUTED}"),
        None,
        "found after the last look-up: what is read from a vector stands for the point nearest to it; at a rate of "
        "its own, since it diverges at that of the others; undecided where training has found nothing",
    ),
    Claim(
        "haste-pays",
        "Where training counts what is found after each look-up, the first half of them find more.",
        "ours",
        gains(HASTY, OURS, found_halfway),
        None,
        "found after half of the look-ups",
    ),
    Claim(
        "one-network",
        "Any look-up answering, and one network for all, finds more than the published form.",
        "ours",
        alike(gains(OURS, PUBLISHED), OURS, PUBLISHED),
        None,
        "found after the last look-up; undecided where sizes, steps or rates differ, too",
    ),
    *(
        Claim(
            name,
            f"The learned sketch is at least as good as count-min on a stream with {ranks} ranks.",
            "text on frequency estimation, Fig. 5",
            each(less_error_than(MINIMUM), run, at_least=0.0),
            paper,
            f"less mean absolute error, {note}",
            headline=run == STREAM,
            what="less error than count-min",
        )
        for name, run, ranks, paper, note in (
            ("stream", STREAM, "random", "matches or beats", "on the same streams"),
            (
                "stream-fixed",
                FIXED,
                "fixed",
                value(FIXED, MINIMUM, "error") - value(FIXED, quantity="error"),
                "on the same streams; the paper's model sees items as images",
            ),
        )
    ),
    Claim(
        "control-planted",
        "A model that is handed binary search is called binary search.",
        "control",
        controls_right(CONTROL, fresh=False),
        None,
        "binary search written into the weights, on two distributions",
        headline=True,
        what="of the planted models are called right",
    ),
    Claim("control-fresh", "Untrained models are called by no name.", "control", controls_right(CONTROL, fresh=True)),
    Claim(
        "control-agreement",
        "The planted model reads what binary search reads.",
        "control",
        each(agrees(BINARY), CONTROL, at_least=0.999),
    ),
)
CLAIMS = (
    *LINE,
    *_hard(),
    *OTHERS,
    *SEEN,
)

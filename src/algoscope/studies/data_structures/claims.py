"""The paper's claims, and those that we add: sentences, where they are, and the bounds that judge them."""

from algoscope.studies.claim import Claim
from algoscope.studies.data_structures import findings as found
from algoscope.studies.data_structures import references as known
from algoscope.studies.data_structures import trainings as runs
from algoscope.studies.data_structures.controls import CONTROL
from algoscope.studies.data_structures.published import value

PAIRED, AT_LAST = "on the same sets and queries", "found after the last look-up"
SLACK = 0.02  # points and counts that may be missing to a published number
AS_PUBLISHED = "a network for each look-up, the last of which answers, as published"
ONE_NETWORK = "one network for all look-ups, any of which may answer"
EVERY_LOSS = "one network for all look-ups, and a loss at each"
LONGER = f"a loss at every look-up; {runs.MOST:,} steps, half the rate, in 32 bits; a sharper sort; weight decay"
SHORT = "ours is trained for a small part of the published steps."


def _paper_on_a_line(run: str, suffix: str, form: str) -> list[Claim]:
    """How uniform points on a line are stored, what is found of them, and where the first look-up lands."""
    main = run == runs.LONGEST
    text, figures = "text on 1D uniform", "text and figures of 1D uniform"
    return [
        Claim(
            f"sorts{suffix}", "The model learns to sort: nearly all points are stored where they belong.", text,
            found.each(found.sorted_share(), run, at_least=0.99), value(runs.OURS, quantity="in place"), form, main,
            "of the points are in place",
        ),
        Claim(
            f"finds{suffix}", "After the last look-up nearly every nearest neighbor is found.", figures,
            found.each(found.found_at_last, run, at_least=0.98), "slightly below 1", form, main, "found",
        ),
        Claim(
            f"beats-binary-early{suffix}", "In the first look-ups the model finds more than binary search.", figures,
            found.each(found.ahead_early(known.BINARY), run, at_least=0.0), "above",
            f"the least lead in the first half of the look-ups, {PAIRED}; {form}", main,
            "more found than by binary search, where it is least",
        ),
    ]  # fmt: skip


def _first_look_ups(run: str, suffix: str, form: str) -> list[Claim]:
    return [
        Claim(
            f"lands-at-the-query{suffix}",
            "The first look-up lands within about 5 of 100 places of where the query is to be expected.",
            "figure of first look-ups, 1D uniform",
            found.each(found.first_read("off the expected place"), run, at_most=0.05), "0.05",
            f"mean distance of ranks, as a share of all points; {form}",
        ),
        Claim(
            f"resembles-interpolation{suffix}", "Look-ups are closer to interpolation search than to binary search.",
            "text on 1D uniform", found.each(found.closer(known.INTERPOLATION, known.BINARY), run, at_least=0.0),
            "resembles",
            f"difference of agreement, look-ups before the last, while searching; {form}",
        ),
    ]  # fmt: skip


def _interpolation(run: str, suffix: str, form: str) -> list[Claim]:
    """Which search it is: ours."""
    main = run == runs.LONGEST
    return [
        Claim(
            f"is-interpolation{suffix}",
            "The model is interpolation search: where a look-up reads a wrong point, it is that of the search more "
            "often than not.",
            "ours", found.is_called(run, known.INTERPOLATION), None,
            "mean agreement before the last look-up, while searching; that wrong reads decide is a rule made after "
            f"numbers of the laptop scale had been seen; {form}",
            main, "of the look-ups read what interpolation search reads",
        ),
        Claim(
            f"reaches-interpolation{suffix}",
            "The model finds as much as interpolation search, which knows the distribution.",
            "ours: not a baseline of the paper",
            found.each(found.ahead_least(known.INTERPOLATION), run, at_least=-0.02), None,
            f"the least lead among all look-ups, {PAIRED}; {form}", main, "more found, where it is least",
        ),
    ]  # fmt: skip


def _hard(run: str, suffix: str, form: str) -> list[Claim]:
    return [
        Claim(
            f"hard-finds{suffix}",
            "On the hard distribution the model finds nearly every nearest neighbor in log2 N look-ups.",
            "text and figures of 1D hard", found.each(found.found_at_last, run, at_least=0.95), "about 1", form,
        ),
        Claim(
            f"hard-is-binary{suffix}", "On the hard distribution the model learns binary search.",
            "text and figures of 1D hard", found.is_called(run, known.BINARY), "binary search",
            f"agreement before the last look-up, while searching; wrong reads decide; {form}",
            run == runs.HARD_PUBLISHED, "of the look-ups read what binary search reads",
        ),
    ]  # fmt: skip


UNIFORM = (
    *(
        claim
        for form in ((runs.PUBLISHED, "-published", AS_PUBLISHED), (runs.EVERY, "-every", EVERY_LOSS))
        for claim in (*_paper_on_a_line(*form), *_first_look_ups(*form))
    ),
    *_paper_on_a_line(runs.LONGEST, "-every-longest", LONGER),
    *_interpolation(runs.EVERY, "-every", EVERY_LOSS),
    *_interpolation(runs.LONGEST, "-every-longest", LONGER),
    Claim(
        "fresh-does-not-sort", "An untrained network has about 9% of the points in place.", "text on 1D uniform",
        found.each(found.sorted_share(known.UNTRAINED), runs.OURS, at_least=0.04, at_most=0.15),
        value(runs.OURS, "untrained", "in place"),
        why="a fresh network's scores are often nearly monotone: how much is in place depends on the seed.",
    ),
)  # fmt: skip
OTHER_POINTS = (
    *_hard(runs.HARD_PUBLISHED, "-published", AS_PUBLISHED),
    *_hard(runs.HARD, "", ONE_NETWORK),
    Claim(
        "hard-first-in-the-middle-published",
        "On the hard distribution the first look-up is always in the middle.",
        "figures of 1D hard", found.each(found.first_read("in the middle"), runs.HARD_PUBLISHED, at_least=0.95), 1.0,
        AS_PUBLISHED,
    ),
    Claim(
        "plane-finds", "In two dimensions the model finds 75% in six look-ups.", "text on 2D uniform, Fig. 7",
        found.each(found.found_at_last, runs.PLANE, points=100, at_least=0.73), value(runs.PLANE),
        "100 points; an order that is folded once",
    ),
    Claim(
        "plane-beats-tree", "In two dimensions the model finds more than a k-d tree.", "text on 2D uniform, Fig. 7",
        found.each(found.ahead_at_last(known.TREE), runs.PLANE, at_least=0.0),
        value(runs.PLANE) - value(runs.PLANE, known.TREE), PAIRED, True,
        "more found than by a k-d tree",
    ),
    Claim(
        "plane-hard-finds", "On hard points in two dimensions the model finds as much as a k-d tree.",
        "text and figures of 2D hard", found.each(found.ahead_at_last(known.TREE), runs.PLANE_HARD, at_least=-0.03),
        None, PAIRED,
    ),
    Claim(
        "plane-hard-is-tree", "On hard points in two dimensions the model recovers a k-d tree.",
        "text and figures of 2D hard", found.is_called(runs.PLANE_HARD, known.TREE), "a k-d tree",
        "agreement before the last look-up, while searching; wrong reads decide. The paper looks at the order",
    ),
    Claim(
        "sphere-finds-unfolded", "In 30 dimensions the model finds 35% in six look-ups.", "Table 1",
        found.each(found.found_at_last, runs.SPHERE, points=100, at_least=0.33), value(runs.SPHERE),
        "a small network, whose order is not folded; 6,000 steps", why=SHORT,
    ),
    Claim(
        "sphere-beats-hash-unfolded", "In 30 dimensions the model finds more than SimHash.", "Table 1",
        found.each(found.ahead_at_last(known.HASH), runs.SPHERE, at_least=0.0),
        value(runs.SPHERE) - value(runs.SPHERE, known.HASH),
        f"{PAIRED}; an order that is not folded", why=SHORT,
    ),
    Claim(
        "sphere-matches-cells-unfolded", "In 30 dimensions the model finds as much as cells of k-means.", "Table 1",
        found.each(found.ahead_at_last(known.CELLS), runs.SPHERE, at_least=-0.02),
        value(runs.SPHERE) - value(runs.SPHERE, known.CELLS),
        f"{PAIRED}; an order that is not folded", why=SHORT,
    ),
    Claim(
        "zipf-beats-binary", "Where queries follow Zipf's law the model finds more than binary search, early.",
        "figure of Zipf queries", found.each(found.ahead_early(known.BINARY), runs.ZIPF, at_least=0.0), "above",
        f"the least lead in the first half, {PAIRED}",
    ),
    Claim(
        "large", "Among 500 points at least half is found in five look-ups.", "ours",
        found.each(found.found_at_last, runs.LARGE, at_least=0.5), None,
        "with pointers instead of a logit for each place; a small network, which also sees Fourier features. The curve "
        "of Fig. 27 seems to end between 0.4 and 0.5",
    ),
)  # fmt: skip
SPACE = (
    *(
        Claim(
            f"space-{slots}", f"With {slots} extra slots the model finds as much as published.", "Table 2",
            found.each(found.found_at_last, runs.space(slots), points=50, at_least=value(runs.space(slots)) - SLACK),
            value(runs.space(slots)),
            f"50 points in 2 look-ups; {AS_PUBLISHED}", why=SHORT,
        )
        for slots in (0, 8, 32, 128)
    ),
    Claim(
        "space-helps", "Extra space helps: with the most slots more is found than with none.", "Table 2",
        found.most_space, value(runs.space(128)) - value(runs.space(0)), "published: 128 slots against none", True,
        "more found",
    ),
)  # fmt: skip
ABLATIONS = (
    Claim(
        "noise-matters", "Without noise in training less is found.", "text on training",
        found.loses(runs.OURS, runs.NOISELESS),
        None, AT_LAST, True, "less found without noise",
    ),
    Claim(
        "adaptive-matters", "Queries that do not see what was read find less.", "text on ablations",
        found.loses(runs.OURS, runs.BLIND), None, AT_LAST,
    ),
    Claim(
        "order-matters", "With an order that is not learned less is found.", "text on ablations",
        found.loses(runs.OURS, runs.FROZEN, found.begins_unsorted), None,
        f"{AT_LAST}; of seeds whose fresh order is not sorted",
    ),
    Claim(
        "permutation-matters",
        "Where a network stores vectors of its own instead of the points in an order, less is found.",
        "text on ablations, by squared error",
        found.if_learned(found.loses(runs.OURS, runs.POINTLESS), f"{runs.OURS}, {runs.POINTLESS}"), None,
        f"{AT_LAST}: what is read from a vector stands for the point nearest to it; at a rate of its own, since it "
        "diverges at that of the others; undecided where training has found nothing",
    ),
)  # fmt: skip
UNSEEN = "pictures of MNIST digits that it was not trained with"
SKETCHES = "text on frequency estimation"
IN_PLACE = value(runs.NUMBERS, quantity="in place")
PICTURES_AND_STREAMS = (
    *(
        Claim(
            f"pictures-find{suffix}", "Among numbers that it sees only as pictures the model finds 97.7%.", "Table 1",
            found.each(found.found_at_last, run, points=50, at_least=value(runs.NUMBERS) - SLACK), value(runs.NUMBERS),
            f"50 of 200 numbers in 7 look-ups; {stored} of each picture; {UNSEEN}",
        )
        for suffix, run, stored in (
            ("", runs.NUMBERS, "one number is stored, as published,"),
            ("-four", f"{runs.NUMBERS}, {runs.FOUR}", "four numbers are stored"),
        )
    ),
    Claim(
        "pictures-beat-hash-mnist",
        "Among numbers that it sees only as pictures the model finds more than a hash that knows the numbers.",
        "Table 1", found.each(found.ahead_at_last(known.RANGES), runs.NUMBERS, at_least=0.0),
        value(runs.NUMBERS) - value(runs.NUMBERS, known.RANGES),
        f"cells of equal ranges, on the same sets and queries; {UNSEEN}", True,
        "more found than by a hash that knows the numbers",
    ),
    Claim(
        "pictures-metric-mnist",
        "What the model makes of a picture rises or falls with the number: it has found the metric.",
        "figure of the learned feature", found.each(found.pictures_in_order, runs.NUMBERS, at_least=0.95), "monotone",
        f"pairs of pictures in the order of their numbers, along the main direction of the features; {UNSEEN}",
    ),
    Claim(
        "pictures-sorted", "Pictures are stored in the order of their numbers.", "text on images",
        found.each(found.sorted_share(), runs.NUMBERS, points=50, at_least=IN_PLACE - SLACK), IN_PLACE,
        "share in place",
    ),
    Claim(
        "stream", "The learned sketch is at least as good as count-min on a stream with random ranks.",
        f"{SKETCHES}, Fig. 5", found.each(found.less_error_than(known.MINIMUM), runs.STREAM, at_least=0.0),
        "matches or beats",
        "less mean absolute error, on the same streams", True, "less error than count-min",
    ),
    Claim(
        "stream-beats-count-sketch", "The learned sketch is at least as good as count sketch.", SKETCHES,
        found.each(found.less_error_than(known.SIGNED), runs.STREAM, at_least=0.0), "recovers or outperforms",
        "less mean absolute error, on the same streams", True, "less error than count sketch", why=SHORT,
    ),
    Claim(
        "stream-pictures-mnist",
        "On a stream of pictures of numbers the learned sketch is better than count-min, which knows the numbers.",
        SKETCHES, found.each(found.less_error_than(known.MINIMUM), runs.HITTERS, at_least=0.0),
        value(runs.HITTERS, known.MINIMUM, "error") - value(runs.HITTERS, quantity="error"),
        f"less mean absolute error, on the same streams; {UNSEEN}",
    ),
    Claim(
        "stream-pictures-error", "On a stream of pictures of numbers the mean error is 0.15.", SKETCHES,
        found.each(found.error(), runs.HITTERS, at_most=value(runs.HITTERS, quantity="error") + SLACK),
        value(runs.HITTERS, quantity="error"),
        "100 numbers, 16 cells, MNIST",
    ),
)  # fmt: skip
CONTROLS = (
    Claim(
        "control-planted", "A model into which binary search is written is called binary search.", "control",
        found.controls_right(CONTROL, fresh=False), None,
        "binary search written into the weights, on two distributions",
        True, "of the planted models are called right",
    ),
    Claim("control-fresh", "Untrained models are given no name.", "control", found.controls_right(CONTROL, fresh=True)),
)  # fmt: skip
CLAIMS = (*UNIFORM, *OTHER_POINTS, *SPACE, *ABLATIONS, *PICTURES_AND_STREAMS, *CONTROLS)

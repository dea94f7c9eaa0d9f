"""Claims about numbers that are seen as pictures, about what decides a look-up in many dimensions, and about orders
that wind through space.
"""

from algoscope.studies.claim import Claim
from algoscope.studies.data_structures.findings import (
    ahead_at_last,
    each,
    error,
    found_at_last,
    gains,
    less_error_than,
    loses,
    pictures_in_order,
    sorted_share,
    two_directions,
)
from algoscope.studies.data_structures.published import value
from algoscope.studies.data_structures.references import MINIMUM, RANGES
from algoscope.studies.data_structures.trainings import FLAT, HITTERS, NUMBERS, PLANE, PROBE, SPHERE, four, mnist

SLACK = 0.02  # points and counts that may be missing to a published number
FORMS = {"": ("8 x 8 digits that ship with the project", False), "-mnist": ("MNIST", True)}


def _pictures(suffix: str, images: str, comparable: bool) -> list[Claim]:
    run, stream = (mnist(NUMBERS), mnist(HITTERS)) if comparable else (NUMBERS, HITTERS)
    known = f"pictures of digits that it was not trained with; {images}"
    return [
        Claim(
            f"pictures-beat-hash{suffix}",
            "Among numbers that it sees only as pictures the model finds more than a hash that knows the numbers.",
            "Table 1",
            each(ahead_at_last(RANGES), run, at_least=0.0),
            value(mnist(NUMBERS)) - value(mnist(NUMBERS), RANGES),
            f"cells of equal ranges, on the same sets and queries; {known}",
            headline=comparable,
            what="more found than by a hash that knows the numbers",
        ),
        Claim(
            f"pictures-metric{suffix}",
            "What the model makes of a picture rises or falls with the number: it has found the metric.",
            "figure of the learned feature",
            each(pictures_in_order, run, at_least=0.95),
            "monotone",
            f"pairs of pictures in the order of their numbers, along the main direction of the features; {known}",
        ),
        Claim(
            f"stream-pictures{suffix}",
            "On a stream of pictures of numbers the learned sketch is better than count-min, which knows the numbers.",
            "text on frequency estimation",
            each(less_error_than(MINIMUM), stream, at_least=0.0),
            value(mnist(HITTERS), MINIMUM, "error") - value(mnist(HITTERS), quantity="error"),
            f"less mean absolute error, on the same streams; {known}",
        ),
    ]


COMPARABLE = (
    *(
        Claim(
            f"pictures-find{suffix}",
            "Among numbers that it sees only as pictures the model finds 97.7%.",
            "Table 1",
            each(found_at_last, run, points=50, at_least=value(mnist(NUMBERS)) - SLACK),
            value(mnist(NUMBERS)),
            f"50 of 200 numbers in 7 look-ups, MNIST; {stored} of each picture",
        )
        for suffix, run, stored in (
            ("", mnist(NUMBERS), "one number is stored, as published,"),
            ("-four", four(mnist(NUMBERS)), "four numbers are stored"),
        )
    ),
    Claim(
        "pictures-four",
        "Where four numbers of each picture are stored instead of one, more is found.",
        "ours",
        gains(four(mnist(NUMBERS)), mnist(NUMBERS)),
        None,
        "found after the last look-up, MNIST",
    ),
    Claim(
        "pictures-sorted",
        "Pictures are stored in the order of their numbers.",
        "text on images",
        each(sorted_share(), mnist(NUMBERS), points=50, at_least=value(mnist(NUMBERS), quantity="in place") - SLACK),
        value(mnist(NUMBERS), quantity="in place"),
        "share in place, MNIST",
    ),
    Claim(
        "stream-pictures-error",
        "On a stream of pictures of numbers the mean error is 0.15.",
        "text on frequency estimation",
        each(error(), mnist(HITTERS), at_most=value(mnist(HITTERS), quantity="error") + SLACK),
        value(mnist(HITTERS), quantity="error"),
        "100 numbers, 16 cells, MNIST",
    ),
    Claim(
        "probe-two-directions",
        "With 8 points in 30 dimensions and one look-up, two directions decide where it goes.",
        "text on the 30D probe",
        each(two_directions, PROBE, points=8, at_least=0.95),
        1.0,
        "share of the variance of the weights of a logistic regression for each place along their first two principal "
        "components; one direction would do, and an order that is folded once has two to begin with",
    ),
)
FOLDS = tuple(
    Claim(
        f"folds-{name}",
        f"An order that cannot be folded finds less {where}.",
        "ours",
        loses(run, FLAT),
        None,
        "found after the last look-up",
    )
    for name, run, where in (
        ("plane", PLANE, "in the plane"),
        ("sphere", SPHERE, "in 30 dimensions"),
        ("probe", PROBE, "among 8 points in 30 dimensions, in one look-up"),
    )
)
SEEN = (*(claim for suffix, form in FORMS.items() for claim in _pictures(suffix, *form)), *COMPARABLE, *FOLDS)

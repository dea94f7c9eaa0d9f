"""What is claimed about uniform points on a line: how they are stored, what is found, and which search that is.

That longer training changes little was asked after its numbers had been seen, and the bound of a point chosen then;
of the longest it was asked before, with the same bound.
"""

from dataclasses import replace

from algoscope.studies.claim import Claim
from algoscope.studies.data_structures.findings import (
    ahead_early,
    ahead_least,
    changes,
    closer,
    each,
    first_read,
    found_at_last,
    is_called,
    learned_to_sort,
    sorted_share,
)
from algoscope.studies.data_structures.forms import FORMS, LONG, LONGER, LONGEST, PAIRED, TRAINED_LONGER
from algoscope.studies.data_structures.published import value
from algoscope.studies.data_structures.references import BINARY, INTERPOLATION
from algoscope.studies.data_structures.trainings import MOST, OURS, WAVES, longer

ASKED_AGAIN = ("sorts", "finds", "beats-binary-early", "is-interpolation", "reaches-interpolation")
ALL = FORMS | LONGER


def _called(run: str) -> str:
    """The form by its name, without the task."""
    if run in (OURS, longer(OURS)):
        return run.replace(OURS, "Counted at the end")
    form = run.removeprefix(f"{OURS}, ")
    return form[0].upper() + form[1:]


def _sorting(run: str, suffix: str, form: str) -> list[Claim]:
    """How uniform points on a line are stored, and what is found of them."""
    main = not suffix
    return [
        Claim(
            f"sorts{suffix}",
            "The model learns to sort: nearly all points are stored where they belong.",
            "text on 1D uniform",
            each(sorted_share(), run, at_least=0.99),
            value(OURS, quantity="in place"),
            form,
            headline=main or run == LONGEST,
            what="of the points are in place",
        ),
        Claim(
            f"sorting-is-learned{suffix}",
            "Training puts more points in place than a fresh network does.",
            "text on 1D uniform",
            each(learned_to_sort, run, at_least=0.01),
            value(OURS, quantity="in place") - value(OURS, "untrained", "in place"),
            f"of seeds whose fresh order is not sorted; {form}",
        ),
        Claim(
            f"finds{suffix}",
            "After the last look-up nearly every nearest neighbor is found.",
            "text and figures of 1D uniform",
            each(found_at_last, run, at_least=0.98),
            "slightly below 1",
            form,
            headline=main,
            what="found",
        ),
        Claim(
            f"beats-binary-early{suffix}",
            "In the first look-ups the model finds more than binary search.",
            "text and figures of 1D uniform",
            each(ahead_early(BINARY), run, at_least=0.0),
            "above",
            f"the least lead in the first half of the look-ups, {PAIRED}; {form}",
            headline=main,
            what="more found than by binary search, where it is least",
        ),
    ]


def _searching(run: str, suffix: str, form: str) -> list[Claim]:
    """Which search it is."""
    main = not suffix or run == LONGEST
    return [
        Claim(
            f"lands-at-the-query{suffix}",
            "The first look-up lands within about 5 of 100 places of where the query is to be expected.",
            "figure of first look-ups, 1D uniform",
            each(first_read("off the expected place"), run, at_most=0.05),
            "0.05",
            f"mean distance of ranks, as a share of all points; {form}",
        ),
        Claim(
            f"resembles-interpolation{suffix}",
            "Look-ups are closer to interpolation search than to binary search.",
            "text on 1D uniform",
            each(closer(INTERPOLATION, BINARY), run, at_least=0.0),
            "resembles",
            f"difference of agreement, look-ups before the last, while searching; {form}",
        ),
        Claim(
            f"is-interpolation{suffix}",
            "The model is interpolation search: at every look-up they read the same point more often than not, also "
            "where it is a wrong one.",
            "ours",
            is_called(run, INTERPOLATION),
            None,
            "mean agreement before the last look-up, while searching; that wrong reads count at every look-up is a "
            f"rule made after numbers of the laptop scale had been seen; {form}",
            headline=main,
            what="of the look-ups read what interpolation search reads",
        ),
        Claim(
            f"reaches-interpolation{suffix}",
            "The model finds as much as interpolation search, which knows the distribution.",
            "ours: not a baseline of the paper",
            each(ahead_least(INTERPOLATION), run, at_least=-0.02),
            None,
            f"the least lead among all look-ups, {PAIRED}; {form}",
            headline=main or run in (WAVES, longer(WAVES)),
            what="more found, where it is least",
        ),
    ]


def _flat(less: str, more: str, suffix: str, how: str) -> Claim:
    return Claim(
        f"flat{suffix}",
        f"Training for {how} changes what is found by a point at most, at any look-up.",
        "ours",
        changes(more, less, at_most=0.01),
        None,
        f"after the look-up at which it changes most, intervals not paired; {ALL[less][1]}",
    )


def _on(run: str) -> list[Claim]:
    """Of runs for longer only what that may change."""
    suffix, form = ALL[run]
    claims = [*_sorting(run, suffix, form), *_searching(run, suffix, form)]
    asked = [claim for claim in claims if run in FORMS or claim.id.removesuffix(suffix) in ASKED_AGAIN]
    return [replace(claim, says=f"{_called(run)}: {claim.says}") for claim in asked]


LINE = (
    *(claim for run in ALL for claim in _on(run)),
    *(
        _flat(run, longer(run), ALL[run][0], "twice as long, at half the rate and in 32 bits,")
        for run in TRAINED_LONGER
    ),
    _flat(LONG, LONGEST, ALL[LONGEST][0], f"{MOST:,} steps instead of twice the usual ones"),
)

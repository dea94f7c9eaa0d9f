"""What is claimed about extra slots, and about as few look-ups without them."""

from algoscope.studies.claim import Claim
from algoscope.studies.data_structures.findings import (
    ahead_at_last,
    each,
    found_at_last,
    gains,
    holds,
    lost_with,
    most_space,
)
from algoscope.studies.data_structures.forms import AS_WAVES, FORMS, PAIRED, and_variants
from algoscope.studies.data_structures.holdings import AHEAD, FRACTION
from algoscope.studies.data_structures.published import value
from algoscope.studies.data_structures.references import BUCKETS, INTERPOLATION
from algoscope.studies.data_structures.trainings import (
    APART,
    FAVORED,
    FIRST,
    HALF,
    KNOWN,
    MOST,
    OURS,
    PUBLISHED,
    SMALL,
    sharp,
    space,
)

READS_A_SLOT = f"; {AS_WAVES}; the first reads a slot"
IN_FAVOR = f"; {AS_WAVES}; slots, written apart, are in favor at first; cooled"

SPACE = (
    *(
        Claim(
            f"space-{slots}{suffix}",
            f"With {slots} extra slots the model finds as much as published.",
            "Table 2",
            each(found_at_last, space(slots, form), points=50, at_least=value(space(slots)) - 0.02),
            value(space(slots)),
            f"50 points in 2 look-ups; {FORMS[PUBLISHED][1]}{told}",
        )
        for form, suffix, told, sizes in (
            ("", "", "", (0, 8, 32, 128)),
            *((*words, (0,)) for words in and_variants(SMALL, "-small", "; a small network")),
            (FIRST, "-read-first", READS_A_SLOT, (8, 32, 128)),
            (APART, "-apart", f"{READS_A_SLOT}, written by a transformer of its own", (8, 32, 128)),
            *((*words, (8,)) for words in and_variants(FAVORED, "-favored", IN_FAVOR)),
            (KNOWN, "-known", f"{READS_A_SLOT}, written apart and known by its token; cooled", (32, 128)),
        )
        for slots in sizes
    ),
    *(
        claim
        for slots in (32, 128)
        for claim in (
            Claim(
                f"buckets-{slots}",
                f"With {slots} extra slots the model finds more than buckets, with as many of them.",
                "ours",
                each(ahead_at_last(BUCKETS), space(slots, KNOWN), at_least=0.0),
                None,
                f"{PAIRED}; slots are known by their tokens",
            ),
            Claim(
                f"slots-hold-ranks-{slots}",
                f"Each of {slots} slots holds a rank, with a fraction: more follows from its own than from the next's.",
                "ours",
                each(holds(AHEAD), space(slots, KNOWN), at_least=0.0),
                None,
                "variance of what slots hold, from set to set, that a line explains of: the rank of the point nearest "
                "to the middle of what asks for a slot, and how far the next is; the null is that of the next slot",
            ),
            Claim(
                f"slots-are-ranks-{slots}",
                f"That is all that {slots} slots hold: with it in their place as much is found.",
                "ours",
                each(lost_with(FRACTION), space(slots, KNOWN), at_most=0.02),
                None,
                "less found with lines of that in the place of what was written; 2 points are allowed",
            ),
        )
    ),
    Claim(
        "space-helps",
        "Extra space helps: with the most slots more is found than with none.",
        "Table 2",
        most_space,
        value(space(128)) - value(space(0)),
        "published: 128 slots against none",
        headline=True,
        what="more found",
    ),
    *(
        Claim(
            f"sharp-sort{suffix}",
            f"With {slots} extra slots more is found if the sort whose gradient training follows blurs half as much.",
            "ours",
            gains(sharp(space(slots, form)), space(slots, form)),
            None,
            f"50 points in 2 look-ups; a softness of 0.05 against 0.1, after {MOST:,} steps; one seed, intervals not "
            f"paired; asked {when}",
            what="more found",
        )
        for suffix, slots, form, when in (
            ("", 0, SMALL, "after the numbers of another such run had been seen"),
            ("-slots", 8, FAVORED, "before the numbers were seen"),
        )
    ),
    Claim(
        "two-lookups",
        "In two look-ups among 50 points the model finds as much as interpolation search.",
        "ours: published are 0.44, which is less than its 0.52",
        each(ahead_at_last(INTERPOLATION), HALF, at_least=-0.02),
        None,
        f"{PAIRED}; {FORMS[OURS][1]}; {AS_WAVES}",
    ),
)

"""The forms of model that claims are about, in words."""

from collections.abc import Iterator

from algoscope.studies.data_structures.trainings import (
    DECAY,
    HARD,
    HARD_PUBLISHED,
    HASTY,
    MOST,
    OURS,
    PUBLISHED,
    WAVES,
    decayed,
    longer,
    sharp,
)

AS_WAVES = "a small network, which sees numbers as waves, too"
SHARPLY, DECAYING = "the sort blurs half as much in training", f"weights decay, by {DECAY:g} times the rate"
FORMS = {  # what the names of their claims end with, and how they are told
    OURS: ("", "one network for all look-ups, any of which may answer"),
    HASTY: ("-hasty", "one network for all look-ups; training counts what any has found after each"),
    WAVES: ("-waves", f"training counts what any look-up has found after each; {AS_WAVES}"),
    PUBLISHED: ("-published", "a network for each look-up, the last of which answers, as published"),
}


def sharpened(run: str, suffix: str, told: str) -> Iterator[tuple[str, str, str]]:
    """A run and those that differ from it in how they sort and whether weights decay, each with suffix and words."""
    yield run, suffix, told
    yield sharp(run), f"{suffix}-sharp", f"{told}; {SHARPLY}"
    yield decayed(sharp(run)), f"{suffix}-decayed", f"{told}; {SHARPLY}; {DECAYING}"


def lasting(run: str) -> tuple[str, str, str]:
    """Trained for longer: sorted sharply, also with decay, and so for the most steps."""
    return sharp(longer(run)), decayed(sharp(longer(run))), decayed(sharp(longer(run, MOST)))


LONGER = {
    longer(run): (f"{FORMS[run][0]}-longer", f"{FORMS[run][1]}; twice the steps, half the rate, in 32 bits")
    for run in (OURS, HASTY, WAVES)
}
LONGER |= {run: (suffix, told) for run, suffix, told in sharpened(longer(HASTY), *LONGER[longer(HASTY)])}
LONGER[lasting(HASTY)[-1]] = "-hasty-longest", LONGER[lasting(HASTY)[1]][1].replace("twice the", f"{MOST:,}")
HARD_FORMS = {HARD: ("", FORMS[OURS][1]), HARD_PUBLISHED: ("-published", FORMS[PUBLISHED][1])}
PAIRED = "on the same sets and queries"

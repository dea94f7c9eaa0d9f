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
    variants,
)

AS_WAVES = "a small network, which sees numbers as waves, too"
SHARPLY = "the sort blurs half as much in training"
DECAYING = f"{SHARPLY}; weights decay, by {DECAY:g} times the rate"
FORMS = {  # what the names of their claims end with, and how they are told
    OURS: ("", "one network for all look-ups, any of which may answer"),
    HASTY: ("-hasty", "one network for all look-ups; training counts what any has found after each"),
    WAVES: ("-waves", f"training counts what any look-up has found after each; {AS_WAVES}"),
    PUBLISHED: ("-published", "a network for each look-up, the last of which answers, as published"),
}


def and_variants(run: str, suffix: str, told: str) -> Iterator[tuple[str, str, str]]:
    """A run and those that differ from it in how they sort and whether weights decay, each with suffix and words."""
    yield run, suffix, told
    for variant, more, says in zip(variants(run), ("-sharp", "-sharp-decayed"), (SHARPLY, DECAYING), strict=True):
        yield variant, suffix + more, f"{told}; {says}"


def _for_longer(run: str, steps: str) -> str:
    return f"{FORMS[run][1]}; {steps} steps, half the rate, in 32 bits"


TRAINED_LONGER = (OURS, HASTY, WAVES)
LONGER = {longer(run): (f"{FORMS[run][0]}-longer", _for_longer(run, "twice the")) for run in TRAINED_LONGER}
LONGER |= {run: (suffix, told) for run, suffix, told in and_variants(longer(HASTY), *LONGER[longer(HASTY)])}
LONG, LONGEST = (decayed(sharp(longer(HASTY, steps))) for steps in (None, MOST))
LONGER[LONGEST] = "-hasty-longest", f"{_for_longer(HASTY, f'{MOST:,}')}; {DECAYING}"
HARD_FORMS = {HARD: ("", FORMS[OURS][1]), HARD_PUBLISHED: ("-published", FORMS[PUBLISHED][1])}
PAIRED = "on the same sets and queries"

"""The forms of model that claims are about, in words."""

from algoscope.studies.data_structures.trainings import HARD, HARD_PUBLISHED, HASTY, OURS, PUBLISHED, WAVES, longer

AS_WAVES = "a small network, which sees numbers as waves, too"
FORMS = {  # what the names of their claims end with, and how they are told
    OURS: ("", "one network for all look-ups, any of which may answer"),
    HASTY: ("-hasty", "one network for all look-ups; training counts what any has found after each"),
    WAVES: ("-waves", f"training counts what any look-up has found after each; {AS_WAVES}"),
    PUBLISHED: ("-published", "a network for each look-up, the last of which answers, as published"),
}
LONGER = {
    longer(run): (f"{FORMS[run][0]}-longer", f"{FORMS[run][1]}; twice the steps, half the rate, in 32 bits")
    for run in (OURS, HASTY, WAVES)
}
HARD_FORMS = {HARD: ("", FORMS[OURS][1]), HARD_PUBLISHED: ("-published", FORMS[PUBLISHED][1])}
PAIRED = "on the same sets and queries"

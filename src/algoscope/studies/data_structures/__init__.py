"""Salemohamed, Charlin, Garg, Sharan and Valiant: networks that discover data structures.

trainings.py says what is trained, measures.py, holdings.py, examples.py and streams.py what is measured of each model,
references.py beside which searches and sketches, controls.py of which models the answer is known; findings.py and
claims.py, with line.py, space.py and seen.py, say what follows, of which forms.py, figures.py and tables.py what is
shown; published/ holds the numbers that were published.
"""

from algoscope.studies.data_structures.claims import CLAIMS
from algoscope.studies.data_structures.figures import CENTER, figures
from algoscope.studies.data_structures.measures import measure
from algoscope.studies.data_structures.tables import tables
from algoscope.studies.data_structures.trainings import RUNS
from algoscope.studies.study import Section, Study

STUDY = Study(
    name="data-structures",
    version=2,
    about="A network stores a set of points in an order of its choice, and looks a few of them up to find the nearest "
    "neighbor of a query; another counts the items of a stream in a few cells. Nobody tells them how. Which data "
    "structures do they find? Each look-up is compared with those of the searches that people wrote.",
    found=(
        "On a line networks sort; trained for what is found after each look-up (in haste), they look first where a "
        "query is to be expected, as interpolation search does.",
        "A small one then comes within 3 points of what that search finds among 100, at every look-up; if it sees "
        "numbers as waves, too, within 2.5, and after twice the steps at half the rate within 1.9 (intervals to 3.5, "
        "2.8 and 2.2). After 100,000 steps, without waves, with a sort that blurs half as much and weights that decay, "
        "it is called interpolation search in three seeds of three, 1.5 to 2.6 points behind it, with 99.8% of the "
        "points or more in place. It finds 96.5% of 500 in five look-ups, where the published curve lies below .5. "
        "Where queries follow Zipf's law it is called that, too. Trained for what is found in the end alone it is far "
        "from it.",
        "On hard points, 31 of them, too, networks find nearly all, but not by binary search; one of which the last "
        "look-up has to answer, as published, reads the middle first, and goes on otherwise.",
        "Among uniform points in the plane they find much more than a k-d tree; in 30 dimensions, with orders that can "
        "be folded, more than cells of k-means.",
        "With 32 and 128 extra slots that are known by their tokens they find more than published and than buckets, "
        "with 8 that are in favor to begin with 58.3 to 58.8% (58.8 published); without slots, where the sort blurs "
        "half as much as usual, more than published (one seed each). Slots hold ranks, with a fraction that says how "
        "far the next point is: with 8 and 32 in most forms nearly that alone, with 128 something else besides.",
        "A sketch is a little better than count-min where ranks are random, which is worse than count sketch, and far "
        "better than both where they are fixed, or seen as pictures.",
        "With an order that is not learned, queries that see no reads, or vectors instead of points, less is found. "
        "That noise in training matters is undecided.",
        "Numbers in pictures of MNIST are found as often as published, 97.7%, if four features of each are stored and "
        "digits to train with are moved (one seed); with one feature, as published, 89%: its metric is in pieces.",
    ),
    runs=RUNS,
    measure=measure,
    learning=True,
    chosen=lambda model: "found" in model,
    claims=CLAIMS,
    figures=figures,
    tables=tables,
    centerpiece=Section(
        "A search, look-up by look-up",
        "Left: how many nearest neighbors have been found after each look-up, by the model and by searches that people "
        "wrote, on the same points. Beside it one such search: the points in the order that the network chose, a query "
        "(dashed), its nearest point (ring), and what each look-up reads. Move the slider to go on, or show another "
        "search on the same points.",
        CENTER,
    ),
)

"""Salemohamed, Charlin, Garg, Sharan and Valiant: networks that discover data structures.

trainings.py has what is trained, measures.py, examples.py, pictures.py and streams.py what is measured of each model,
references.py the names of searches and sketches, controls.py models of which the answer is known; findings.py and
claims.py what follows, figures.py and tables.py what is shown; published/ has the numbers that were published.
"""

from algoscope.studies.data_structures.claims import CLAIMS
from algoscope.studies.data_structures.figures import CENTER, figures
from algoscope.studies.data_structures.measures import measure
from algoscope.studies.data_structures.tables import tables
from algoscope.studies.data_structures.trainings import RUNS
from algoscope.studies.study import Section, Study

STUDY = Study(
    name="data-structures",
    version=3,
    about="A network stores a set of points in an order of its choice, and looks a few of them up to find the nearest "
    "neighbor of a query; another counts the items of a stream in a few cells. Which data structures do they "
    "discover? Each look-up is compared with those of the searches that people wrote.",
    found=(
        "In 1-D, networks learn to sort; with a loss at every look-up, the first one lands where interpolation search "
        "expects the query. After 100,000 steps, with a sharper sort and weight decay, three seeds of three are "
        "classified as interpolation search, 1.5 to 2.6 points behind it. The published form finds 54% in 20,000 of "
        "the published 500,000 steps.",
        "On hard points networks of our form find nearly all, but not by binary search. The published form reads the "
        "middle first, and finds 83%.",
        "Among uniform points in the plane they find much more than a k-d tree. In 30 dimensions an order that is not "
        "folded finds 21% after 6,000 steps, less than published (35%) and than SimHash.",
        "Extra slots help. In the published form, with 8% of the published steps, they help less than published.",
        "A sketch is slightly better than count-min where ranks are random, and worse than count sketch.",
        "Without a learned order, without feedback, or with vectors instead of points, less is found. Whether noise in "
        "training matters is undecided.",
        "Numbers in pictures of MNIST are found as often as published, 97.7%, if four features of each are stored "
        "(one seed); with one feature, as published, 89%.",
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
        "(dashed), its nearest point (ring), and what each look-up reads. Move the slider, or show another "
        "search on the same points.",
        CENTER,
    ),
)

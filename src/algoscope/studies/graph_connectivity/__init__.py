"""Ye, Fu, Jia and Sharan: transformers learn graph connectivity, but only from graphs that they can solve.

plan.py says what is trained, measures.py what is measured of each model, findings.py and claims.py what that says about
the claims, figures.py what is drawn; published/ holds the paper's curves.
"""

from algoscope.studies.graph_connectivity.claims import CLAIMS
from algoscope.studies.graph_connectivity.figures import CENTER, figures
from algoscope.studies.graph_connectivity.measures import measure, measure_checkpoint
from algoscope.studies.graph_connectivity.plan import RUNS
from algoscope.studies.study import Section, Study

STUDY = Study(
    name="graph-connectivity",
    version=2,
    about="A transformer is shown a graph and asked which nodes are connected. A layer can triple how far it sees, so "
    "that a model of L layers can know pairs up to 3^L hops apart: its capacity. The paper says that graphs beyond "
    "capacity teach it to guess by degrees, and that training only on graphs within capacity teaches it the algorithm. "
    "Here that is trained and measured again, and the weights are read.",
    runs=RUNS,
    measure=measure,
    measure_checkpoint=measure_checkpoint,
    claims=CLAIMS,
    figures=figures,
    found=(
        "For one and two layers of the paper's own architecture it is as the paper says: graphs within capacity teach "
        "the algorithm, and its reach is exactly 3 and 9.",
        "A small standard transformer shows the same effect if it is stopped early; trained on, it finds the algorithm "
        "without the limit as well, and knows pairs beyond it.",
        "At the paper's size one seed an arm shows the effect, which decides nothing.",
    ),
    centerpiece=Section(
        "Which of the two the weights hold",
        "The whole model of one layer is a matrix W of 16 rows, four blocks of 8 by 8. Weight on the diagonals joins "
        "what is known about the same node: the algorithm, which never leaves a component. Weight spread over a block "
        "joins everything with everything, by products of degrees: the heuristic. Compare W after training on all "
        "graphs (first figure) with W after training on graphs that it can solve (second), and what both know about "
        "two chains. (Colors end at .5.) The menu chooses the model of the figures further down.",
        CENTER,
    ),
)

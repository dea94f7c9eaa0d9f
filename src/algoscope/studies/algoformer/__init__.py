"""Gao, Zheng et al.: transformers with a loop, and layers before and after it, learn algorithms.

plan.py lists what is trained, measures.py, loops.py and costs.py what is measured, candidates.py which algorithms a
loop may run, references.py what known methods make of the same prompts, controls.py which answers are known;
findings.py and claims.py judge it, figures.py shows it.
"""

from algoscope.studies.algoformer.claims import CLAIMS
from algoscope.studies.algoformer.figures import CENTER, figures, shown, tables
from algoscope.studies.algoformer.measures import measure
from algoscope.studies.algoformer.plan import RUNS
from algoscope.studies.study import Section, Study

STUDY = Study(
    name="algoformer",
    version=3,
    about="A transformer with a loop, layers before it that prepare and layers after it that finish: does that shape "
    "learn algorithms better than a standard or a looped transformer? And which algorithm does its loop run? The paper "
    "argues that it is an iterative one; here it is measured. There is no public code: docs/algoformer.md lists what "
    "we decided where the paper is silent.",
    found=(
        "After the longer training AlgoFormer has half of the looped transformer's error at the last example on a "
        "representation, a fifth on chain of thought and 10% less on AR series. Against a standard transformer of 12 "
        "layers it is ahead on chain of thought, 4% behind on AR series and undecided on a representation.",
        "On a learned representation the loop follows the regularization path: after loops 2 to 6 the closest are 1, "
        "12, 50, 130 and 500 steps of gradient descent, after loops 8 to 12 2,000 to 8,000, statistically tied with "
        "ridge regression with ever less penalty. It works on the representation, not on x.",
        "The match is incomplete: mixing known steps explains more at nearly all loops, so no loop is certain.",
        "On chain of thought, after 20,000 steps, the looped transformer is closest to conjugate gradients, a step a "
        "loop, after loops 4 to 7 in both seeds; then it slows down.",
        "Beyond the loops of training its error rises, less with a larger ΔT, unless each loop is given the prompt and "
        "ends with a norm, which costs all that it is ahead of the looped transformer.",
        "On average over the examples AlgoFormer and the standard transformer are 2 to 8% above the least possible "
        "error after the longer training: none would lower it by more than a tenth.",
    ),
    runs=RUNS,
    measure=measure,
    claims=CLAIMS,
    figures=figures,
    centerpiece=Section(
        "Which algorithm does the loop run?",
        "After each loop of training a linear probe of the state is compared with every step of every known "
        "algorithm, on Φ(x) where the task has a representation: how close the closest step comes, and which step that "
        "is. A line that ends near 1 is not yet that algorithm: others may come as close.",
        CENTER,
    ),
    tables=tables,
    learning=True,
    chosen=shown,
)

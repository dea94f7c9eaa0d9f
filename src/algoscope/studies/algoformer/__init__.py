"""Gao, Zheng et al.: transformers with a loop, and layers before and after it, learn algorithms.

plan.py says what is trained, measures.py, loops.py and costs.py what is measured, candidates.py which algorithms a loop
may run, references.py what known methods make of the same prompts, controls.py which answers are known; findings.py and
claims.py say what follows, figures.py and tables.py what is shown.
"""

from algoscope.studies.algoformer.claims import CLAIMS
from algoscope.studies.algoformer.figures import CENTER, figures, shown
from algoscope.studies.algoformer.measures import measure
from algoscope.studies.algoformer.plan import RUNS
from algoscope.studies.algoformer.tables import tables
from algoscope.studies.study import Section, Study

STUDY = Study(
    name="algoformer",
    version=3,
    about="A transformer with a loop, layers before it that prepare and layers after it that finish: does that shape "
    "learn algorithms better than a standard or a looped transformer? And which algorithm does its loop run? The paper "
    "argues that it is an iterative one; nobody has looked. There is no public code, and fifteen points are open: what "
    "we decided, and what depends on it, is told below.",
    found=(
        "On regression the loop walks along the regularization path, fast at first and then slower, until it arrives; "
        "with longer training it gets further.",
        "On a representation it holds the mean of the targets before the first loop; after loops 2 to 6 what gradient "
        "descent has after 1, 12, 50, 130 and 500 steps, after loops 8 to 12 what it has after 2,000 to 8,000, or, "
        "nearly the same, ridge regression with ever less penalty; then it stops. It works on the representation, not "
        "on x. In steps of Newton a loop is worth about three. In the looped transformer each loop is worth 2.9 times "
        "the one before; that AlgoFormer has one such factor, too, is undecided.",
        "With noise 1 it stops at ridge regression with the right penalty, with noise .1 at two or three times the "
        "right one; on series at five times, and at the right one after longer training.",
        "That is so only nearly: a mixture of known steps explains more at nearly all loops.",
        "On chains of thought, after 20,000 steps, the looped transformer is closest to conjugate gradients, of as "
        "many steps as loops, after loops 4 to 7 in both seeds; then it slows down, and ends at ridge regression.",
        "After the same training AlgoFormer is ahead of a standard transformer of 12 layers on regression with a "
        "representation, a little behind it on series, and on chains of thought ahead in two seeds of three; the "
        "looped one is behind both. With the prompt added in each loop whether it is ahead cannot be told.",
        "After 2.5 to 3.3 times the training it has 5 to 27% less error than the standard one at the last example of "
        "chains (1 to 3% less on average), 3 to 4% more on series, and on a representation 1 to 2% less on average, "
        "where at the last example one seed of three cannot tell the two apart.",
        "After the longer training no further one would lower the errors of AlgoFormer and the standard transformer by "
        "more than a tenth on average over the examples: what the best of all predictors would answer is known, and "
        "they are 0.2 to 9% above its error (the looped transformer 4 to 8%; on chains 14 to 15%, and 2.7 times the "
        "steps took 5%). At the last example, where without noise nothing is left to guess, most errors still fall: on "
        "linear regression to .0028 after 40,000 steps (one seed), where the paper has .001.",
        "Beyond the loops of training its answers decay, unless each loop is given the prompt and ends with a norm, "
        "which costs all that it is ahead of the looped transformer, whose answers stay but for chains, and "
        "in one seed of three for a representation, after longer training.",
    ),
    runs=RUNS,
    measure=measure,
    claims=CLAIMS,
    figures=figures,
    centerpiece=Section(
        "Which algorithm does the loop run?",
        "After each loop of training the best linear read-out of the state is compared with every step of every known "
        "algorithm, on Φ(x) where the task has a representation: how close the closest step comes, and which step that "
        "is. The models written by hand, whose steps are known, and one without training are among those to choose "
        "from. A line that ends near 1 is not yet that algorithm: others may come as close.",
        CENTER,
    ),
    tables=tables,
    learning=True,
    chosen=shown,
)

"""Fu, Chen, Jia and Sharan: transformers learn in-context linear regression like a second-order method.

measures.py says what is measured of each model, findings.py and claims.py what that says about the claims, figures.py
what is drawn; published/ holds the tables that were published in full.
"""

from dataclasses import replace

from algoscope.models import Recurrent, Transformer
from algoscope.studies.higher_order_icl.claims import CLAIMS
from algoscope.studies.higher_order_icl.figures import CENTER, figures
from algoscope.studies.higher_order_icl.findings import HARD, LSTM, MAIN, ONE_HEAD
from algoscope.studies.higher_order_icl.measures import measure
from algoscope.studies.higher_order_icl.tables import tables
from algoscope.studies.study import Section, Study, Training
from algoscope.tasks import LinearRegression
from algoscope.training import LAPTOP, PAPER, Curriculum, Preset, Settings


def trainings(
    preset: Preset,
    lstm: Training,
    seeds: tuple[int, ...],
    widths: tuple[int, ...],
    more: tuple[Training, ...] = (),
    longer: int = 1,
) -> tuple[Training, ...]:
    """The runs of the study, at the size of a preset: the first four with several seeds.

    Networks of one head take `longer` times the steps.
    """
    plain = Training(MAIN, preset.task, preset.model, preset.settings, preset.learning_rate)
    hard = replace(preset.task, covariance="ill-conditioned", rescale=True)
    narrow = replace(plain, settings=replace(preset.settings, steps=longer * preset.settings.steps))
    first = (
        plain,
        replace(plain, name=HARD, task=hard),
        replace(narrow, name=ONE_HEAD, model=replace(preset.model, heads=1)),
        lstm,
    )
    return (
        *(replace(training, seeds=seeds) for training in first),
        replace(plain, name="noise", task=replace(preset.task, noise=0.1)),
        *(replace(narrow, name=f"width {w}", model=replace(preset.model, heads=1, width=w)) for w in widths),
        *more,
    )


SMALL = Preset(
    LinearRegression(dim=2, examples=5),
    Transformer(layers=2, heads=2, width=8),
    Settings(steps=12, batch=8, curriculum=None),
)
STUDY = Study(
    name="higher-order-icl",
    version=4,
    about="Which algorithm do transformers run when they solve linear regression from the examples in their prompt? "
    "The paper says: one of second order, like Newton's, and not gradient descent. Here every figure is measured "
    "again, with intervals, ties, the null and stated conventions.",
    runs={
        "smoke": (
            Training(MAIN, SMALL.task, SMALL.model, SMALL.settings),
            Training(LSTM, SMALL.task, Recurrent(layers=2, width=8), SMALL.settings),
        ),
        "laptop": trainings(
            LAPTOP,
            Training(
                LSTM, LAPTOP.task, Recurrent(layers=3, width=64), replace(LAPTOP.settings, optimizer="adamw"), 3e-3
            ),
            seeds=(0,),
            widths=(16,),
        ),
        "paper": trainings(
            PAPER,
            Training(
                LSTM,
                PAPER.task,
                Recurrent(layers=10, width=256),
                replace(
                    PAPER.settings, optimizer="adamw", precision="tf32", warmup=3000, curriculum=Curriculum(2, 5, 400)
                ),
            ),
            seeds=(0, 1, 2),
            widths=(8, 16, 32, 64),
            longer=3,
            more=(Training("24 layers", PAPER.task, Transformer(layers=24, heads=8, width=256), PAPER.settings),),
        ),
    },
    measure=measure,
    claims=CLAIMS,
    figures=figures,
    tables=tables,
    found=(
        "No layer is one known method and nothing else. The layers close in on least squares step by step.",
        "Newton's matching step grows along a line, by 2 to 2.7 a layer; as steps of gradient descent, each layer is "
        "worth a multiple of the one before.",
        "At the end all methods meet, and which one fits best hangs on where it starts.",
        "An LSTM does something else: it is like online gradient descent, and forgets.",
    ),
    centerpiece=Section(
        "As many steps as each layer is worth",
        "How alike the errors of each layer are to those of each step of Newton's iteration, and of gradient descent; "
        "the best step is outlined. Newton's grows along a line, that of gradient descent by a factor. The last layers "
        "are as close to one as to the other (third figure): both have become least squares.",
        CENTER,
    ),
)

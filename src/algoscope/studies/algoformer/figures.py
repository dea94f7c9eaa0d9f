"""The figures and the table of the study, from its numbers."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import starmap

import altair as alt

from algoscope.report import charts
from algoscope.studies.algoformer import findings, names, references
from algoscope.studies.algoformer.loops import FEATURES, loop_number
from algoscope.studies.algoformer.names import ALGOFORMER, REPRESENTATION, STANDARD, run
from algoscope.studies.claim import Numbers
from algoscope.studies.plans import Plan, Rows, curves, drawn
from algoscope.studies.study import Table, labeled

FLOOR, CEILING = 1e-6, 30.0  # errors are drawn between these
NULL, LEAST = "null: predicts zero", "the least possible"
CENTER = ("loop-similarity", "loop-steps")
UNREAD: Numbers = {"stages": (), "null": (), "closest": {}}  # of a model whose loops the instrument has not read
SHORT = {
    "GradientDescent(rate=best)": "gradient descent, best rate",
    "GradientDescent(rate=safe)": "gradient descent, 1/λ_max",
    "Mean": "mean of y",
    "ConjugateGradients": "conjugate gradients",
    "HeavyBall": "heavy ball",
    "GradientDescentPlusPlus": "GD++",
    "OrdinaryLeastSquares": "least squares",
}
COLORED = (  # neighbors have shades of one color
    "gradient descent, 1/λ_max", "gradient descent, one rate", "Newton", "Chebyshev", "ridge, best λ", "least squares",
    "conjugate gradients", "heavy ball", "gradient descent, best rate", "GD++", "mean of y", NULL,
)  # fmt: skip

STEPPED = ("gradient descent, 1/λ_max", "gradient descent, one rate", "Newton", "conjugate gradients")


def figures(numbers: Numbers) -> dict[str, alt.LayerChart]:
    """By name. Those that show a model only let a model be chosen that has something to show."""
    looping = {name: seeds for name, seeds in numbers.items() if any(map(shown, seeds.values()))}
    return drawn(looping, EACH, {}) | drawn(numbers, {}, ACROSS)


def shown(model: Numbers) -> bool:
    """Whether the instrument has read its loops; what is planted has none."""
    return any(loop_number(stage["stage"]) for stage in model.get("loops", {}).get("stages", ()))


def readable(algorithm: str) -> str:
    """An algorithm as a reader calls it."""
    plain, _, space = algorithm.partition(" on ")
    if plain.startswith("GradientDescent(rate=") and plain not in SHORT:
        plain = f"gradient descent, rate {plain[21:-1]}"
    if plain.startswith("Ridge("):
        plain = f"ridge, λ = {float(plain[12:-1]):g}"
    return SHORT.get(plain, plain) + (f" on {'Φ(x)' if space == 'features' else space}" if space else "")


def family(algorithm: str) -> str:
    """The same without its space, and without numbers that a task chooses."""
    plain = readable(algorithm).partition(" on ")[0]
    return re.sub(r"rate [0-9.e-]+", "one rate", re.sub(r"λ = [0-9.e-]+", "best λ", plain))


def at_home(algorithms: Iterable[str]) -> list[str]:
    """Those on features, if there are any, and the mean, which needs neither features nor x."""
    listed = list(algorithms)
    on_features = [name for name in listed if name.endswith(FEATURES)]
    return [name for name in listed if name in on_features or name == "Mean"] if on_features else listed


def within(value: float) -> float:
    return min(max(value, FLOOR), CEILING)


def _similarity(model: Numbers) -> Rows:
    """How close the closest step of each algorithm is, and how close the null."""
    found = model.get("loops", UNREAD)
    close = {NULL: found["null"], **_families({name: each["similarity"] for name, each in found["closest"].items()})}
    for name, values in close.items():
        for stage, value in zip(found["stages"], values, strict=True):
            if loop_number(stage["stage"]) and value is not None:
                yield {"series": name, "x": loop_number(stage["stage"]), "y": value}


def _families(close: Mapping[str, Sequence[float | None]]) -> dict[str, list[float | None]]:
    """Of algorithms on the same space that differ in a number, at each place the closest."""
    found: dict[str, list[float | None]] = {}
    for name in at_home(close):
        before = found.get(family(name), [None] * len(close[name]))
        pairs = [[value for value in pair if value is not None] for pair in zip(before, close[name], strict=True)]
        found[family(name)] = [max(pair) if pair else None for pair in pairs]
    return found


def _steps(model: Numbers) -> Rows:
    """Which step of some algorithms is the closest; of those on features, if there are any."""
    found = model.get("loops", UNREAD)
    for name in (name for name in at_home(found["closest"]) if family(name) in STEPPED):
        for stage, step in zip(found["stages"], found["closest"][name]["step"], strict=True):
            if loop_number(stage["stage"]) and step:
                yield {"series": family(name), "x": loop_number(stage["stage"]), "y": step}


def _curve(series: str, models: Iterable[Numbers]) -> Rows:
    """By the number of examples: the mean over the seeds, and as its band the range of their intervals."""
    found = list(models)
    for i, t in enumerate(found[0]["t"] if found else ()):
        if t:
            mean = sum(each["error"][i] for each in found) / len(found)
            low, high = min(each["low"][i] for each in found), max(each["high"][i] for each in found)
            yield {"series": series, "x": t, "y": within(mean), "low": within(low), "high": within(high)}


def _by_examples(runs: Mapping[str, str], task: str = "", methods: Iterable[str] = ()) -> Callable[[Numbers], Rows]:
    """Errors of runs by their series, and of methods on a task; nothing where the last run is not on file."""

    def rows(numbers: Numbers) -> Rows:
        known = numbers.get(names.references(task), {}).get("0", {}).get("known", {})
        if list(runs.values())[-1] in numbers:
            for name in methods:
                yield from _curve(name, [known[name]] if name in known else [])
            for series, name in runs.items():
                yield from _curve(series, [model["beside"] for model in numbers.get(name, {}).values()])

    return rows


def _compared(task: str) -> Callable[[Numbers], Rows]:
    """Figure 2: the three models after the longest training that they share, and what is possible."""

    def rows(numbers: Numbers) -> Rows:
        trained = [more for more in names.lengths(STANDARD, task) if run(STANDARD, task, more) in numbers]
        models = {kind: run(kind, task, (trained or [""])[-1]) for kind in names.KINDS}
        yield from _by_examples({LEAST: names.least(task), **models}, task, CLOSED)(numbers)

    return rows


def _by_loop(runs: Mapping[str, str]) -> Callable[[Numbers], Rows]:
    """Figure 3: errors of the first seed by loop."""

    def rows(numbers: Numbers) -> Rows:
        for series, name in runs.items():
            found = numbers.get(name, {}).get("0", {}).get("by_loop", {"loop": ()})
            for i, loop in enumerate(found["loop"]):
                ends = {part: within(found[part][i]) for part in ("low", "high")}
                yield {"series": series, "x": loop, "y": within(found["error"][i]), **ends}

    return rows


def over_least(numbers: Numbers) -> Rows:
    """How far above the least possible error each model is, on average, after training of each length."""
    for task in names.MAIN:
        for kind in names.KINDS:
            for name in (run(kind, task, more) for more in names.lengths(kind, task)):
                for value in findings.over_least(numbers, name, task):
                    steps = next(iter(numbers[name].values()))["config"]["settings"]["steps"]
                    ends = {"low": value.low, "high": value.high}
                    yield {"row": f"{task}, {steps:,} steps", "series": kind, "x": value.value, **ends}


def tables(numbers: Numbers) -> Sequence[Table]:
    rows = []
    for label, model in labeled(numbers).items():
        if "loops" in model and "summary" in model:
            stages = [stage for stage in model["loops"]["stages"] if loop_number(stage["stage"])]
            sure, empty = (sum(stage[kind] for stage in stages) for kind in ("certain", "null"))
            counts = Counter(name for stage in stages for name in dict.fromkeys(pair[0] for pair in stage["agreed"]))
            often = ", ".join(f"{readable(name)} ({count})" for name, count in counts.most_common(3)) or "none"
            rows.append([label, len(stages), empty, sure, often, _tied(stages[-1])])
    table = Table(
        "Which algorithm does the loop run?",
        "Of the loops of training: at how many nothing beats the null, how many are one step of one algorithm for "
        "certain, which algorithms are most often statistically tied with the closest, and what the last may be.",
        ("model", "loops", "nothing", "one step, for certain", "most often among the closest", "last loop"),
        rows,
    )
    return [table] if rows else []


def _tied(stage: Numbers) -> str:
    """The steps that are tied with the closest; a closed form has no steps."""
    found = [readable(name) + (f" {step:,}" if step else "") for name, step in stage["agreed"]]
    more = stage["among"] - len(found)
    return ", ".join(found + ([f"{more} more"] if more else [])) or "nothing is close"


ERROR, EXAMPLES = "normalized error", "examples"
ALGORITHMS = {"legend": "algorithm", "among": COLORED}
FORMS = (references.LEAST_SQUARES, references.RIDGE)
CLOSED = tuple(f"{form}{FEATURES}" for form in FORMS)
METHODS = (references.newton, references.gradient_descent)
SOLVERS = (*(method(k) for method in METHODS for k in references.STEPS), *FORMS)
LONGER = names.lengths(ALGOFORMER, names.linear(0.0))[1:]
OURS = {  # of figure 5
    **{run(ALGOFORMER, more): more for more in (names.window(10, 10), *LONGER)},
    ALGOFORMER: "",
}
DEFAULT, SHALLOW = run(ALGOFORMER, REPRESENTATION), run(STANDARD, REPRESENTATION)
WINDOWS = {
    "20 loops, 15 scored": DEFAULT,
    **{more: f"{DEFAULT}, {more}" for more in starmap(names.window, ((12, 5), (12, 10), (50, 5), (50, 15)))},
}
ADDED = (*map(names.injected, names.OTHER_INJECTIONS), *map(names.normed, names.NORMED_INJECTIONS))
GIVEN = {f"injection {names.INJECTION}": DEFAULT, **{more: f"{DEFAULT}, {more}" for more in ADDED}}
GIVEN[names.LOOPED] = run(names.LOOPED, REPRESENTATION)
LAYERS = {
    "AlgoFormer": DEFAULT,
    "AlgoFormer, 2 layers": f"{DEFAULT}, 2 layers",
    "standard, 12 layers": SHALLOW,
    **{f"standard, {count} layers": f"{SHALLOW}, {count} layers" for count in (3, 14, 22)},
}
HEADS = {"8 heads": DEFAULT, **{f"{count} heads": f"{DEFAULT}, {count} heads" for count in (2, 4, 16)}}
EACH: dict[str, Plan] = {
    "loop-similarity": (
        _similarity,
        curves("loop", "similarity of errors", "How close each algorithm comes, at its best step", **ALGORITHMS),
    ),
    "loop-steps": (_steps, curves("loop", "step", "Which step of it that is", log_y=True, **ALGORITHMS)),
}
ACROSS: dict[str, Plan] = {
    **{
        f"compared-{k}": (
            _compared(task),
            curves(
                EXAMPLES, ERROR, f"Fig. 2: {task}", log_y=True, legend="model", among=(*names.KINDS, LEAST, *CLOSED)
            ),
        )
        for k, task in enumerate((*names.MAIN, names.LOUD))
    },
    "windows": (
        _by_loop(WINDOWS),
        curves("loop", ERROR, "Fig. 3: loops of training", log_x=True, log_y=True, legend="trained with"),
    ),
    "given": (
        _by_loop(GIVEN),
        curves("loop", ERROR, "Fig. 3: what a loop is given", log_x=True, log_y=True, legend="model"),
    ),
    "layers": (_by_examples(LAYERS), curves(EXAMPLES, ERROR, "Fig. 4a: layers", log_y=True, legend="model")),
    "heads": (_by_examples(HEADS), curves(EXAMPLES, ERROR, "Fig. 4b: heads", log_y=True, legend="model")),
    **{
        f"solvers-{k}": (
            _by_examples(
                {series: run(ALGOFORMER, names.linear(noise), more) for series, more in OURS.items()},
                names.linear(noise),
                SOLVERS,
            ),
            curves(EXAMPLES, ERROR, f"Fig. 5: noise {noise:g}", log_y=True, legend="method", among=(*OURS, *SOLVERS)),
        )
        for k, noise in enumerate(names.NOISES)
    },
    "least": (
        over_least,
        lambda rows: charts.dots(
            rows, "error, over the least possible", "Could any training do better? A dot a seed", "model", names.KINDS
        ),
    ),
}

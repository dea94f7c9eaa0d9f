"""The figures of the study, from its numbers."""

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import altair as alt

from algoscope.report import charts
from algoscope.studies.algoformer import findings, names, references
from algoscope.studies.algoformer.loops import FEATURES, loop_number
from algoscope.studies.algoformer.names import ALGOFORMER, REPRESENTATION, run
from algoscope.studies.claim import Numbers
from algoscope.studies.plans import Plan, Rows, curves, drawn

FLOOR, CEILING = 1e-6, 30.0  # errors are drawn between these
NULL, LEAST = "null: predicts zero", "the least possible"
CENTER = ("loop-similarity", "loop-steps")
SHORT = {
    "GradientDescent(rate=best)": "gradient descent, best rate",
    "GradientDescent(rate=safe)": "gradient descent, 1/λ_max",
    "Mean": "mean of y",
    "ConjugateGradients": "conjugate gradients",
    "HeavyBall": "heavy ball",
    "GradientDescentPlusPlus": "GD++",
    "OrdinaryLeastSquares": "least squares",
}
SPACELESS = ("Mean",)
COLORED = (  # neighbors have shades of one color
    "gradient descent, 1/λ_max", "gradient descent, one rate", "Newton", "Chebyshev", "ridge, best λ", "least squares",
    "conjugate gradients", "heavy ball", "gradient descent, best rate", "GD++", "mean of y", NULL,
)  # fmt: skip


def figures(numbers: Numbers) -> dict[str, alt.LayerChart]:
    """By name. Those that show a model only let a model be chosen that has something to show."""
    looping = {name: seeds for name, seeds in numbers.items() if any(map(shown, seeds.values()))}
    return drawn(looping, EACH, {}) | drawn(numbers, {}, ACROSS)


def shown(model: Numbers) -> bool:
    """Whether the instrument has looked at its loops; what is planted has none."""
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
    """Those on features, if there are any, and those of no space."""
    names = list(algorithms)
    on_features = [name for name in names if name.endswith(FEATURES)]
    return [name for name in names if name in on_features or name in SPACELESS] if on_features else names


def within(value: float | None) -> float | None:
    return None if value is None else min(max(value, FLOOR), CEILING)


def _similarity(model: Numbers) -> Rows:
    """How close the closest step of each algorithm is, and how close the null."""
    stages = model.get("loops", {}).get("stages", ())
    for stage, value in zip(stages, model.get("loops", {}).get("null", ()), strict=True):
        if loop_number(stage["stage"]) and value is not None:
            yield {"series": NULL, "x": loop_number(stage["stage"]), "y": value}
    close = {name: found["similarity"] for name, found in model.get("loops", {}).get("closest", {}).items()}
    for name, found in _families(close).items():
        for i, stage in enumerate(model["loops"]["stages"]):
            loop, value = loop_number(stage["stage"]), found[i]
            if loop and value is not None:
                yield {"series": name, "x": loop, "y": value}


def _families(close: Mapping[str, Sequence[float | None]]) -> dict[str, list[float | None]]:
    """Of algorithms on the same space that differ in a number, at each place the closest."""
    found: dict[str, list[float | None]] = {}
    for name in at_home(close):
        called, values = family(name), close[name]
        before = found.get(called, [None] * len(values))
        pairs = [[value for value in pair if value is not None] for pair in zip(before, values, strict=True)]
        found[called] = [max(pair) if pair else None for pair in pairs]
    return found


def _steps(model: Numbers) -> Rows:
    """Which step of each algorithm is the closest; of those on features, if there are any."""
    for name in at_home(model.get("loops", {}).get("laws", ())):
        found = model["loops"]["closest"][name]
        for stage, step in zip(model["loops"]["stages"], found["step"], strict=True):
            loop = loop_number(stage["stage"])
            if loop and step:
                yield {"series": family(name), "x": loop, "y": step}


def _beyond(model: Numbers) -> Rows:
    """How much of a loop is left unexplained by its closest step, and explained by a mixture."""
    for stage in model.get("loops", {}).get("stages", ()):
        loop, (share, low, high) = loop_number(stage["stage"]), stage["beyond"]
        if loop and share is not None:
            yield {"series": "explained by other steps", "x": loop, "y": share, "low": low, "high": high}


def _answers(model: Numbers) -> Rows:
    """Beside the null and, among the algorithms, the mean of y: what is close to these has learned nothing."""
    found = model.get("answers", {})
    for name, values in ({**_families(found["similarity"]), NULL: found["null"]} if found else {}).items():
        for loop, value in zip(found["loop"], values, strict=True):
            if value is not None:
                yield {"series": name, "x": loop, "y": value}


def _errors_by_loop(model: Numbers) -> Rows:
    yield from _loops("last number of examples", model)


def _loops(series: str, model: Numbers) -> Rows:
    found = model.get("by_loop")
    if found:
        for i, loop in enumerate(found["loop"]):
            numbers = {"y": found["error"][i], "low": found["low"][i], "high": found["high"][i]}
            yield {"series": series, "x": loop, **{name: within(value) for name, value in numbers.items()}}


def _curve(series: str, found: Mapping[str, Any]) -> Rows:
    for t, value, low, high in zip(*(found[part] for part in ("t", "error", "low", "high")), strict=True):
        if t:
            yield {"series": series, "x": t, "y": within(value), "low": within(low), "high": within(high)}


def _over_seeds(series: str, models: Iterable[Numbers], part: str = "errors") -> Rows:
    """The mean over the seeds, and as its band the range of their intervals."""
    found = [model[part] for model in models]
    for i, t in enumerate(found[0]["t"] if found else ()):
        if t:
            mean = sum(each["error"][i] for each in found) / len(found)
            ends = {"low": min(each["low"][i] for each in found), "high": max(each["high"][i] for each in found)}
            yield {"series": series, "x": t, "y": within(mean), **{end: within(value) for end, value in ends.items()}}


def _known(numbers: Numbers, task: str, chosen: Callable[[str], bool]) -> Rows:
    for name, found in numbers.get(names.references(task), {}).get("0", {}).get("known", {}).items():
        if chosen(name):
            yield from _curve(name, found)


def _framed(rows: Iterable[dict[str, Any]], kinds: Iterable[str]) -> Rows:
    """The lines of known methods break where these are far better or worse than every model."""
    found, own = list(rows), set(kinds)
    errors = [row["y"] for row in found if row["series"] in own]
    low, high = (0.3 * min(errors), 3 * max(errors)) if errors else (FLOOR, CEILING)
    for row in found:
        inside = low <= row["y"] <= high
        ends = {part: min(max(row[part], low), high) if inside else None for part in ("low", "high")}
        yield row | {"y": row["y"] if inside else None, **ends}


def _compared(task: str, more: str = "") -> Callable[[Numbers], Rows]:
    """Figure 2: the three models, and what least squares, ridge regression and the best of all predictors make of the
    same prompts.
    """

    def rows(numbers: Numbers) -> Rows:
        own = {kind: run(kind, task, more) for kind in names.KINDS}
        kinds = {kind: numbers[name].values() for kind, name in own.items() if name in numbers}
        for kind, models in kinds.items():
            yield from _over_seeds(kind, models, "beside")
        if kinds and task == names.CHAINS:  # elsewhere it is one of the closed forms
            yield from _over_seeds(LEAST, numbers.get(names.least(task), {}).values(), "beside")
        if kinds:
            closed = (references.LEAST_SQUARES, references.RIDGE)
            yield from _known(numbers, task, lambda name: name.startswith(closed))

    return lambda numbers: _framed(rows(numbers), names.KINDS)


MORE_SOLVERS = (names.window(10, 10), *names.lengths(ALGOFORMER, names.linear(0.0))[1:])


def _solvers(noise: float) -> Callable[[Numbers], Rows]:
    """Figure 5, with what it left out."""

    def rows(numbers: Numbers) -> Rows:
        task = names.linear(noise)
        if run(ALGOFORMER, task) in numbers:
            yield from _known(numbers, task, lambda name: True)
            for more in ("", *MORE_SOLVERS):  # above what it is compared with
                if found := numbers.get(run(ALGOFORMER, task, more)):
                    yield from _over_seeds(run(ALGOFORMER, more) if more else ALGOFORMER, found.values(), "beside")

    return lambda numbers: _framed(rows(numbers), [ALGOFORMER])


def _windows(numbers: Numbers) -> Rows:
    """Figure 3."""
    default = run(ALGOFORMER, REPRESENTATION)
    for name, seeds in numbers.items():
        if name == default or (name.startswith(default) and name.endswith("scored")):
            model = seeds.get("0", {})
            told = (
                name.removeprefix(f"{default}, ") if name != default else f"{model.get('trained')} loops, the default"
            )
            yield from _loops(told, model)


def _given(numbers: Numbers) -> Rows:
    """Figure 3 again: whether it is what a loop is given, or a norm, that lets loops go on beyond training."""
    runs = {f"injection {names.INJECTION}": run(ALGOFORMER, REPRESENTATION)}
    more = (*map(names.injected, names.OTHER_INJECTIONS), *map(names.normed, names.NORMED_INJECTIONS))
    runs |= {told: run(ALGOFORMER, REPRESENTATION, told) for told in more}
    runs[names.LOOPED] = run(names.LOOPED, REPRESENTATION)
    for told, name in runs.items():
        yield from _loops(told, numbers.get(name, {}).get("0", {}))


def _sizes(ending: str) -> Callable[[Numbers], Rows]:
    """Figure 4."""

    def rows(numbers: Numbers) -> Rows:
        found = [name for name in numbers if name.split(", ")[-1].rstrip("s").endswith(ending)]
        defaults = [run(kind, REPRESENTATION) for kind in names.KINDS if kind != names.LOOPED]
        for name in (*defaults, *found) if found else ():
            if name in numbers and "0" in numbers[name]:
                told = name.replace(f", {REPRESENTATION}", "") + (", default" if name in defaults else "")
                yield from _over_seeds(told, [numbers[name]["0"]])

    return rows


def _injections(numbers: Numbers) -> Rows:
    runs = {names.INJECTION: run(ALGOFORMER, REPRESENTATION)}
    runs |= {each: run(ALGOFORMER, REPRESENTATION, names.injected(each)) for each in names.OTHER_INJECTIONS}
    found = {injection: numbers[name]["0"] for injection, name in runs.items() if "0" in numbers.get(name, {})}
    for injection, model in found.items() if len(found) > 1 else ():
        yield from _over_seeds(f"injection {injection}", [model])


SHORTER = frozenset(run(kind, task) for kind in names.KINDS for task in names.TASKS)
LONGER = frozenset(
    run(kind, task, more) for kind in names.KINDS for task in names.LONGER for more in names.lengths(kind, task)[1:]
)


def _learning(shown: Callable[[str], bool]) -> Callable[[Numbers], Rows]:
    """How the error of the first seed fell."""

    def rows(numbers: Numbers) -> Rows:
        for name, seeds in numbers.items():
            found = next(iter(seeds.values())).get("learning") if shown(name) else None
            for step, error in zip(found["step"], found["error"], strict=True) if found else ():
                if error is not None:
                    yield {"series": name, "x": step, "y": within(error)}

    return rows


def lengths(view: str) -> Callable[[Numbers], Rows]:
    """The error after training of each length: of all seeds that were trained for each, and as a band their range."""

    def rows(numbers: Numbers) -> Rows:
        for task, kind in ((task, kind) for task in names.LONGER for kind in names.KINDS):
            runs = [run(kind, task, more) for more in names.lengths(kind, task)]
            trained = [numbers[name] for name in runs if name in numbers]
            seeds = [seed for seed in trained[0] if all(seed in each for each in trained)] if len(trained) > 1 else []
            for models in ([each[seed] for seed in seeds] for each in trained if seeds):
                errors = [model["summary"][view]["error"] for model in models]
                band = {"low": min(errors), "high": max(errors)}
                steps = models[0]["config"]["settings"]["steps"]
                yield {"series": run(kind, task), "x": steps, "y": sum(errors) / len(errors), **band}

    return rows


def over_least(numbers: Numbers) -> Rows:
    """How far above the least possible error each model is, on average, after training of each length."""
    for task, kind in itertools.product(names.LONGER, names.KINDS):
        for name in (run(kind, task, more) for more in names.lengths(kind, task)):
            for value in findings.over_least(numbers, name, task):
                steps = next(iter(numbers[name].values()))["config"]["settings"]["steps"]
                ends = {"low": value.low, "high": value.high}
                yield {"row": f"{task}, {steps:,} steps", "series": kind, "x": value.value, **ends}


ERROR, EXAMPLES, LEARNED = "normalized error", "examples", "error at the last position in use"
ALGORITHMS = {"legend": "algorithm", "among": COLORED}
CLOSED = tuple(
    f"{form} {space}"
    for space in (references.ON_FEATURES, references.ON_INPUTS, f"on {references.AFFINE}")
    for form in (references.LEAST_SQUARES, references.RIDGE)
)
MODELS = {"legend": "model", "among": (*names.KINDS, LEAST, *CLOSED)}
STEPPED = [method(k) for method in (references.newton, references.descent, references.safe) for k in references.STEPS]
METHODS = {
    "legend": "method",
    "among": (
        *(ALGOFORMER, *(run(ALGOFORMER, more) for more in MORE_SOLVERS)),
        *(references.TUNED, *STEPPED, references.RIDGE, references.LEAST_SQUARES),
    ),
}
EACH: dict[str, Plan] = {
    "loop-similarity": (
        _similarity,
        curves("loop", "similarity of errors", "How close each algorithm comes, at its best step", **ALGORITHMS),
    ),
    "loop-steps": (
        _steps,
        curves("loop", "step", "Which step of it that is", log_y=True, **ALGORITHMS),
    ),
    "loop-errors": (
        _errors_by_loop,
        curves("loop", ERROR, "Error by loop, beyond training", log_x=True, log_y=True, legend=""),
    ),
    "loop-answers": (
        _answers,
        curves("loop", "similarity of errors", "Its own answers, beyond training", log_x=True, **ALGORITHMS),
    ),
    "loop-beyond": (
        _beyond,
        curves("loop", "share", "Of what the closest step misses, other steps explain", legend=""),
    ),
}
ACROSS: dict[str, Plan] = {
    **{
        f"compared-{k}": (_compared(task), curves(EXAMPLES, ERROR, f"Fig. 2: {task}", log_y=True, **MODELS))
        for k, task in enumerate((*names.MAIN, names.LOUD))
    },
    **{
        f"compared-longer-{k}": (
            _compared(task, names.longer(task)),
            curves(EXAMPLES, ERROR, f"Fig. 2: {task}, after {names.longer(task)}", log_y=True, **MODELS),
        )
        for k, task in enumerate(names.MAIN)
    },
    **{
        f"solvers-{k}": (
            _solvers(noise),
            curves(EXAMPLES, ERROR, f"Fig. 5: {names.linear(noise)}", log_y=True, **METHODS),
        )
        for k, noise in enumerate(names.NOISES)
    },
    "windows": (
        _windows,
        curves(
            "loop", ERROR, "Fig. 3: loops and scored loops of training", log_x=True, log_y=True, legend="trained with"
        ),
    ),
    "given": (
        _given,
        curves("loop", ERROR, "Beyond training: what a loop is given", log_x=True, log_y=True, legend="model"),
    ),
    "layers": (_sizes("layer"), curves(EXAMPLES, ERROR, "Fig. 4a: layers", log_y=True, legend="model")),
    "heads": (_sizes("head"), curves(EXAMPLES, ERROR, "Fig. 4b: heads", log_y=True, legend="model")),
    "injections": (_injections, curves(EXAMPLES, ERROR, "What a loop is given", log_y=True, legend="AlgoFormer")),
    **{
        f"lengths-{view}": (
            lengths(view),
            curves(
                "steps of training",
                f"{ERROR}, {told}",
                "Was training long enough?",
                log_x=True,
                log_y=True,
                legend="model and task",
            ),
        )
        for view, told in names.VIEWS.items()
    },
    "least": (
        over_least,
        lambda rows: charts.dots(
            rows, "error, over the least possible", "Could any training do better? A dot a seed", "model", names.KINDS
        ),
    ),
    "learning": (_learning(SHORTER.__contains__), curves("step", LEARNED, "Learning", log_y=True, legend="run")),
    "learning-longer": (
        _learning(LONGER.__contains__),
        curves("step", LEARNED, "Learning, longer", log_y=True, legend="run"),
    ),
    "learning-sweeps": (
        _learning(lambda name: name not in SHORTER | LONGER),
        curves("step", LEARNED, "Learning, sweeps", log_y=True, legend="run"),
    ),
}

"""Tables for the page: which algorithm each loop runs, the controls, the costs, and what our decisions change."""

from collections import Counter
from collections.abc import Sequence

from algoscope.studies.algoformer import names
from algoscope.studies.algoformer.figures import readable
from algoscope.studies.algoformer.loops import loop_number
from algoscope.studies.algoformer.names import ALGOFORMER, REPRESENTATION, run
from algoscope.studies.claim import Numbers
from algoscope.studies.study import Table, labeled


def tables(numbers: Numbers) -> Sequence[Table]:
    made = (
        _verdicts(numbers),
        _ends(numbers),
        _controls(numbers),
        _costs(numbers),
        _shares(numbers),
        _decisions(numbers),
    )
    return [each for each in made if each.rows]


def _verdicts(numbers: Numbers) -> Table:
    rows = []
    for label, model in labeled(numbers).items():
        if "loops" in model and "summary" in model:
            stages = [stage for stage in model["loops"]["stages"] if loop_number(stage["stage"])]
            sure = sum(stage["certain"] for stage in stages)
            empty = sum(stage["null"] for stage in stages)
            counts = Counter(name for stage in stages for name in dict.fromkeys(pair[0] for pair in stage["agreed"]))
            often = ", ".join(f"{readable(name)} ({count})" for name, count in counts.most_common(3)) or "none"
            rows.append([label, len(stages), empty, sure, often, _laws(model), _held(stages[-1])])
    return Table(
        "Which algorithm does the loop run?",
        "Of the loops of training: at how many nothing beats the null, how many are one step of one algorithm for "
        "certain, which algorithms are most often among those that cannot be told from the closest, by what laws their "
        "steps grow until they grow no more, over how many of the loops that were looked at, and what the last may be.",
        ("model", "loops", "nothing", "one step, for certain", "most often among the closest", "laws", "last loop"),
        rows,
    )


def _held(stage: Numbers) -> str:
    """What a stage may be: the steps that cannot be told from the closest, by algorithm; a closed form has no steps."""
    steps: dict[str, list[str]] = {}
    for name, step in stage["agreed"]:
        steps.setdefault(readable(name), []).extend([f"{step:,}"] if step else [])
    told = [f"{name}: {', '.join(each)}" if each else name for name, each in steps.items()]
    more = stage["among"] - len(stage["agreed"])
    return "; ".join(told + ([f"{more} more"] if more else [])) or "nothing is close"


def _laws(model: Numbers) -> str:
    told = []
    for name, law in model["loops"]["laws"].items():
        if law["law"] in ("linear", "exponential") and law["growth"] is not None:
            sign = "+" if law["law"] == "linear" else "×"
            ends = f"({law['low']:.2g} – {law['high']:.2g}; {law['loops']} loops)"
            told.append(f"{readable(name)} {sign}{law['growth']:.2g} {ends}")
    return "; ".join(told) or "none is decided"


def _ends(numbers: Numbers) -> Table:
    rows = []
    for label, model in labeled(numbers).items():
        for row in model.get("fixed_point", ()):
            told = row["to"] + (" (the nearest)" if row["nearest"] else "")
            rows.append([label, row["loop"], told, *(_interval(row[view]) for view in ("mean", "last"))])
    return Table(
        "Where the loop ends",
        "Squared distance of its own answers from closed forms on the features, over E[y²]: least squares, ridge "
        "regression with the right λ where there is noise, the nearest of all, and the nearest but for least squares.",
        ("model", "loops", "distance from", "mean over examples", "at the last"),
        rows,
    )


def _interval(numbers: Sequence[float]) -> str:
    return f"{numbers[0]:.3g} ({max(numbers[1], 0):.3g} – {numbers[2]:.3g})"


def _controls(numbers: Numbers) -> Table:
    rows = []
    for label, model in labeled(numbers).items():
        if "named" in model:
            found = model["named"]
            planted = ", ".join(f"{stage}: {name} {step}" for stage, (name, step) in model["expected"].items())
            kept, alone = (f"{found[part]} of {found['expected']}" for part in ("kept", "named"))
            rows.append([label, planted or "nothing", kept, alone, found["alarms"] + found["wrong"]])
    return Table(
        "Controls",
        "AlgoFormers written by hand from the paper's theorems, and steps planted on the prompts of the study, both "
        "among all that loops of models may be: at how many of the stages that hold a step the instrument keeps it, at "
        "how many it keeps it alone, and at how many it is sure of another. One that was never trained is closest to "
        "the mean of y, as trained ones are before their loops: attention with random weights takes it.",
        ("model", "what its stages hold", "kept", "alone", "false alarms"),
        rows,
    )


def _costs(numbers: Numbers) -> Table:
    found = numbers.get(names.COSTS, {}).get("0", {})
    rows = [
        [row["model"], row["parameters"], *(f"{row[part] / 1e9:.3g}" for part in ("training_flops", "inference_flops")),
         *(f"{row[part]:.3g}" for part in ("training_ms", "inference_ms")), _or_blank(row["memory_gib"])]
        for row in found.get("costs", ())
    ]  # fmt: skip
    told = (
        f"On {found.get('device')}, {found.get('batch')} prompts at a time. Operations are those of matrix products. "
        "Training is what the engine does of it (on a GPU compiled, in 16 bits, with one launch a step), inference the "
        "network as it is written, in 32 bits: their times do not compare."
    )
    columns = ("model", "parameters", "GFLOP, training", "GFLOP, inference", "ms, training", "ms, inference")
    columns += ("GiB, training",)
    return Table("What a step costs (Section 5.6)", told, columns, rows)


def _or_blank(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _shares(numbers: Numbers) -> Table:
    """Of AlgoFormer's costs, what is outside of the loops."""
    rows = []
    for row in numbers.get(names.COSTS, {}).get("0", {}).get("costs", ()):
        if "time_shares" in row:
            same, many = row["time_shares"].values()
            rows += [
                ["training", f"{row['training_share']:.1%}", ""],
                ["inference, as many loops", f"{row['inference_share_same']:.1%}", f"{same:.1%}"],
                ["inference, 200 loops", f"{row['inference_share_long']:.1%}", f"{many:.1%}"],
            ]
    told = "Pre, post, read-in and read-out, of all that AlgoFormer computes. In training, post answers after each "
    columns = ("in", "share of operations", "share of measured time")
    return Table("The share of pre and post", told + "scored loop: equation 3 needs it.", columns, rows)


def _last(numbers: Numbers, name: str) -> str:
    found = [model["summary"]["last"]["error"] for model in numbers.get(name, {}).values()]
    return ", ".join(f"{error:.3g}" for error in found) if found else "not run"


def _after(numbers: Numbers, name: str) -> str:
    """How the error changes with twice the loops of training."""
    found = [model["by_loop"]["beyond"][names.TWICE]["last"]["ratio"] for model in numbers.get(name, {}).values()]
    return f" (×{', ×'.join(f'{ratio:.2g}' for ratio in found)})" if found else ""


def _decisions(numbers: Numbers) -> Table:
    """The fifteen points that the paper leaves open (docs/algoformer.md), and what follows from ours."""
    default, series = run(ALGOFORMER, REPRESENTATION), [run(ALGOFORMER, task) for task in (names.SERIES, names.LOUD)]
    runs = {each: run(ALGOFORMER, REPRESENTATION, names.injected(each)) for each in names.OTHER_INJECTIONS}
    runs = {names.INJECTION: default, **runs}
    norms = [run(ALGOFORMER, REPRESENTATION, names.normed(each)) for each in names.NORMED_INJECTIONS]
    norms = [f"{_last(numbers, name)}{_after(numbers, name)}" for name in norms]
    injected = [f"{each} {_last(numbers, name)}{_after(numbers, name)}" for each, name in runs.items()]
    costs = numbers.get(names.COSTS, {}).get("0", {}).get("costs", ())
    sizes = ", ".join(f"{row['model']} {row['parameters']:,}" for row in costs)
    rows = [
        [1, "what a loop is given", f"injection {names.INJECTION}",
         f"error at the last (with twice the loops): {'; '.join(injected)}"],
        [2, "positions and last norm", "once each; in Looped in every loop",
         f"with a norm in every loop: {norms[0]}; with the prompt as well: {norms[1]}"],
        [3, "which loops are scored", "the last ΔT, from T − ΔT + 1 to T", "Fig. 3 varies ΔT"],
        [4, "post and gradients", "post after every scored loop, gradients through all", "see the costs of training"],
        [5, "batch, clipping, curricula", "those of the project, alike for all", "the same for all models"],
        [6, "heads and layers", "8 heads; 1 and 2 layers", "Fig. 4"],
        [7, "Φ and A", "no biases, slope .01, weights that keep the scale", "not varied"],
        [8, "noise of the series", "1 as in the text, and .1",
         f"error at the last: {_last(numbers, series[0])} at .1; {_last(numbers, series[1])} at 1"],
        [9, "chains of thought", "all states count alike, given in testing too", "not varied"],
        [10, "the fair reference with noise", "ridge regression with the right λ", "Fig. 5 and the claims about noise"],
        [11, "Newton's start", "1/‖SSᵀ‖, inside the open interval", "not varied"],
        [12, "unit of errors", "E[y²]", "the paper's Fig. 5 is d times as large"],
        [13, "parameters", "not matched, as in the paper's figures", sizes or "not run"],
        [14, "translation", "not attempted", "no tokenizer, lengths or decoding are stated"],
        [15, "classification", "not attempted", "no splits or lengths are stated"],
    ]  # fmt: skip
    return Table(
        "Fifteen points that the paper leaves open",
        "What we do about each, and what follows where it was measured. The reasons are in docs/algoformer.md.",
        ("", "point", "decision", "consequence"),
        rows if default in numbers else [],
    )

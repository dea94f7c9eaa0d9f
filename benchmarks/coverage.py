"""How often the intervals that pages show hold the truth, where 95% is promised.

python -m benchmarks.coverage [--kind TEXT]   writes results/controls/coverage.json, or prints a part of it; 7 minutes

Each setting draws many data sets of n prompts from one of the populations of populations.py, of which the truth is
known. What is counted is how often the project's own interval of a data set holds that truth. Populations whose squares
are dominated by rare prompts are marked as heavy: a sample that misses these cannot know, whatever the method.
"""

import argparse
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch

from algoscope import algorithms as known
from algoscope import files, runs
from algoscope.matching import Agreement
from algoscope.matching.lookups import WrongReads
from algoscope.matching.measures import ErrorSimilarity, PredictionDistance, UnexplainedVariance, WeightSimilarity
from algoscope.progress import Bar
from algoscope.randomness import stream
from benchmarks import populations as of
from benchmarks.populations import Simulate

RESULT = Path("results/controls/coverage.json")
SIZES = (20, 100, 400, 1000)
TOGETHER = 100  # data sets that are resampled by the same draws
PROMISED, WANTED = 0.95, (0.93, 0.97)


class Setting(NamedTuple):
    """One kind of interval on one kind of data."""

    kind: str
    data: str
    simulate: Simulate
    sets: int = 2000
    sizes: tuple[int, ...] = SIZES
    heavy: bool = False
    together: int = TOGETHER


def similarities() -> Iterator[Setting]:
    errors, newton, gradient = ErrorSimilarity(), known.Newton([3]), known.GradientDescent([5])
    later = torch.arange(13) >= 1
    kind = "cosine of errors, mean over prompts"
    yield Setting(kind, "Newton, gradient descent", of.similarity(errors, *of.methods(newton, gradient), later))
    rare = (known.ConjugateGradients([3]), known.Newton([6]))
    yield Setting(kind, "conjugate gradients, Newton", of.similarity(errors, *of.methods(*rare), later))
    kind = "cosine of errors at one position"
    for cosine, spread in ((0.8, 0.0), (0.99, 0.0), (0.8, 0.5), (0.8, 1.0)):
        data = f"cosine {cosine}, Gaussian" + (f", lognormal sizes, σ = {spread}" if spread else "")
        found = of.similarity(errors, *of.residuals(cosine, spread), of.place(0, 1))
        yield Setting(kind, data, found, heavy=spread == 1)
    found = of.similarity(errors, *of.methods(newton, gradient), of.place(5))
    yield Setting(kind, "Newton, gradient descent, t = 5", found)
    yield Setting(kind, "conjugate gradients, Newton, t = 10", of.similarity(errors, *of.methods(*rare), of.place(10)))
    close = of.similarity(errors, *of.methods(*rare), of.place(2))
    yield Setting(kind, "the same, t = 2: alike but on rare prompts", close, heavy=True)
    kind, distance = "distance", PredictionDistance()
    yield Setting(kind, "Newton, gradient descent", of.similarity(distance, *of.methods(newton, gradient), later))
    found = of.similarity(distance, *of.methods(newton, gradient), of.place(5))
    yield Setting(kind, "Newton, gradient descent, t = 5", found)
    exact = of.similarity(distance, *of.methods(gradient, known.OrdinaryLeastSquares()), later)
    yield Setting(kind, "least squares with noise, t = dim among all", exact, heavy=True)
    kind, every = "agreement of labels", torch.ones(10, dtype=torch.bool)
    for chance, spread in ((0.8, 1.0), (0.99, 1.0), (0.9995, 0.0)):
        data = f"ten labels a prompt, each right at {chance}" + (", prompts differ" if spread else "")
        yield Setting(kind, data, of.similarity(Agreement(), *of.labels(chance, spread), every))
    kind, queries = "agreement of wrong reads", torch.ones(3, dtype=torch.bool)
    for one, other in ((1, 1), (3, 3)):
        data = f"interpolation search {one}, binary search {other}"
        yield Setting(kind, data, of.similarity(WrongReads(), *of.lookups(one, other), queries))
    kind = "unexplained variance"
    for spread in (0.0, 0.5):
        data = "ten points a prompt, Gaussian" + (f", lognormal sizes, σ = {spread}" if spread else "")
        yield Setting(kind, data, of.similarity(UnexplainedVariance(), *of.residuals(0.8, spread, 10), every))
    weights = of.similarity(WeightSimilarity(), *of.methods(newton, gradient), later)
    yield Setting("cosine of weights", "Newton, gradient descent", weights)


def misfits() -> Iterator[Setting]:
    few: dict[str, Any] = {"sets": 1000, "together": 1000}
    for planted in (0.0, 0.2):
        data = f"mixture of size {planted}, noise of lognormal sizes"
        yield Setting("gain of a mixture", data, of.gain(planted), **few)
        yield Setting("systematic misfit", data, of.systematic(planted), **few)
    for slope, sizes in ((0.0, 0.0), (0.3, 0.0), (0.3, 0.5)):
        data = f"slopes of size {slope}" + (f", changes of lognormal sizes, σ = {sizes}" if sizes else "")
        yield Setting("step spread", data, of.spreads(slope, sizes), **few, heavy=sizes > 0)


def laws() -> Iterator[Setting]:
    few: dict[str, Any] = {"sets": 400, "sizes": SIZES[1:3]}
    yield Setting("growth of a rate law", "steps 2, 4, 8, 16, 32, noise", of.growth([2, 4, 8, 16, 32], 0.05), **few)
    yield Setting("growth of a rate law", "steps 3, 6, …, 18, noise", of.growth(list(range(3, 21, 3)), 0.2), **few)


def numbers() -> Iterator[Setting]:
    some_sizes: dict[str, Any] = {"sizes": (400, 1000)}
    yield Setting("mean", "squared errors, Gaussian", of.mean(of.squares(0.0), 1.0))
    yield Setting("mean", "squared errors, lognormal sizes, σ = 0.5", of.mean(of.squares(0.5), math.exp(0.125)))
    yield Setting("mean", "squared errors, lognormal sizes, σ = 1", of.mean(of.squares(1.0), math.exp(0.5)), heavy=True)
    for chance, answers, spread in ((0.7, 1, 0.0), (0.9, 10, 1.0), (0.99, 1, 0.0), (0.999, 10, 0.0)):
        yield Setting("mean of shares", f"{answers} answers, right at {chance}", of.bounded(chance, answers, spread))
    yield Setting("ratio of means", "squared errors of two models", of.ratio(0.0, 0.5))
    yield Setting("ratio of means", "of lognormal sizes, σ = 1, that both share", of.ratio(0.0, 1.0))
    yield Setting("ratio over 20 parts", "two models", of.parts("two models"), **some_sizes)
    yield Setting("ratio of ratios over 20 parts", "rises of two models", of.parts("rises"), **some_sizes)
    yield Setting("mean over streams and hashes", "50 hash functions", of.hashed, sets=1000)
    for chance in (0.5, 0.9, 0.99, 0.99825):
        yield Setting("Wilson's share", f"at {chance}", of.shares(chance))
    yield Setting("rate over stages of models", "six stages, at 0.9", of.stages(0.9, 1.0), sets=500)
    yield Setting("rate over stages of models", "six stages, at 0.99", of.stages(0.99, 0.0), sets=500)
    yield Setting("rate over models", "at 0.05", of.alarms)
    yield Setting("effect of a patch", "0.7 recovered, Gaussian", of.patched(0.0))
    yield Setting("effect of a patch", "0.7 recovered, lognormal sizes, σ = 0.5", of.patched(0.5))
    yield Setting("labels changed by a patch", "at 0.01", of.flipped, sets=1000)


def measured(setting: Setting, n: int) -> dict[str, Any]:
    """The share of the data sets whose interval holds the truth, and how many lie below and above it."""
    generator, left, parts = stream(f"coverage: {setting.kind}, {setting.data}, {n}", 0), setting.sets, []
    while left > 0:
        low, high, truth = setting.simulate(n, min(setting.together, left), generator)
        parts.append(torch.stack([low, high, torch.as_tensor(truth).expand(len(low))]))
        left -= setting.together
    low, high, truth = torch.cat(parts, 1)
    held = float(((low <= truth) & (truth <= high)).double().mean())
    return {
        "kind": setting.kind,
        "data": setting.data,
        "n": n,
        "sets": setting.sets,
        "coverage": held,
        "error": (held * (1 - held) / setting.sets) ** 0.5,
        "below": float((high < truth).double().mean()),
        "above": float((low > truth).double().mean()),
        "width": float((high - low).median()),
        "heavy": setting.heavy,
    }


def line(rows: list[dict[str, Any]]) -> str:
    """One setting, at all sizes."""
    cells = "  ".join(f"{row['n']}: {row['coverage']:.3f} ({row['width']:.3g})" for row in rows)
    return f"{rows[0]['kind']}: {rows[0]['data']}{' [heavy]' if rows[0]['heavy'] else ''}\n    {cells}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", default="", help="only settings whose kind holds this text; writes nothing")
    options = parser.parse_args()
    torch.set_num_threads(1)
    settings = [each for part in (similarities, misfits, laws, numbers) for each in part()]
    settings = [each for each in settings if options.kind in each.kind]
    bar, rows = Bar(len(settings), unit="settings"), []
    for k, setting in enumerate(settings):
        start = time.time()
        rows.append([measured(setting, n) for n in setting.sizes])
        print(line(rows[-1]), f"{time.time() - start:.0f} s", flush=True)
        bar.show(k + 1)
    if not options.kind:
        about = {"promised": PROMISED, "wanted": WANTED, "provenance": runs.provenance(torch.device("cpu"))}
        files.write_json(RESULT, {**about, "rows": [row for part in rows for row in part]}, indent=1)


if __name__ == "__main__":
    main()

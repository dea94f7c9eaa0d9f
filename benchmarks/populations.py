"""Data sets of which the truth is known, and the intervals that the project gives them: what coverage.py counts.

Some are drawn from a large pool of prompts, so that the truth is what the same function says of the whole pool; of
others a formula tells it.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from algoscope import algorithms as known
from algoscope.contracts import Measure
from algoscope.controls.scoring import of_models, share
from algoscope.matching import Match, compare, rate_law
from algoscope.matching.calibration import blocks
from algoscope.matching.mixtures import Mixture, step_spread
from algoscope.matching.statistics import Estimate, bounded_means, means, ratios, wilson
from algoscope.randomness import stream
from algoscope.reading.patching import PatchEffect
from algoscope.studies.algoformer import findings
from algoscope.studies.algoformer.measures import part_means
from algoscope.studies.data_structures import streams
from algoscope.tasks import LinearRegression, UniformSearch
from algoscope.trace import Prompts, Trace

POOL = 20_000
Ends = tuple[Tensor, Tensor, Tensor | float]  # low, high and truth of each data set
Simulate = Callable[[int, int, torch.Generator], Ends]  # of some data sets of n prompts


def normal(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def ends_of(found: list[Estimate]) -> tuple[Tensor, Tensor]:
    numbers = torch.tensor([each[1:3] for each in found], dtype=torch.float64)
    return numbers[:, 0], numbers[:, 1]


def some(trace: Trace, chosen: Tensor) -> Trace:
    """A trace on some of its prompts."""
    whole = trace.prompts
    prompts = Prompts(whole.x[chosen], whole.y[chosen], whole.noise, whole.power)
    weights = None if trace.weights is None else trace.weights[:, chosen]
    return Trace(trace.name, trace.values[:, chosen], trace.stages, prompts, weights)


def similarity(measure: Measure, a: Trace, b: Trace, at: Tensor) -> Simulate:
    """Of two stages, as a `Match` makes its interval: the data sets take the place of steps."""
    truth = float(measure.per_sequence(a, b, at).mean())

    def simulate(n: int, sets: int, generator: torch.Generator) -> Ends:
        values, below = [], []
        for _ in range(sets):
            chosen = torch.randint(POOL, (n,), generator=generator)
            parts = some(a, chosen), some(b, chosen)
            values.append(measure.per_sequence(*parts, at)[:, :, 0])
            below.append(measure.below(*parts, at))
        seed, null = int(torch.randint(2**31, (1,), generator=generator)), torch.zeros(n, 1, 1, dtype=torch.float64)
        lower = None if below[0] is None else torch.cat(below, 2)
        found = Match("a", "b", (0,), tuple(range(sets)), measure, "all", 1, torch.stack(values, 2), null, 0.95, 1000,
                      seed, lower)  # fmt: skip
        return found.low[0], found.high[0], truth

    return simulate


def residuals(cosine: float, spread: float, length: int = 1) -> tuple[Trace, Trace]:
    """Two stages whose residuals have a known cosine and, prompt by prompt, a lognormal size."""
    generator = stream("coverage: residuals", 0)
    shape, size = (POOL, length), (spread * normal(generator, POOL, 1)).exp()
    first, second = normal(generator, *shape), normal(generator, *shape)
    prompts = Prompts(torch.ones(*shape, 1, dtype=torch.float64), normal(generator, *shape), power=1.0)
    off = (first, cosine * first + (1 - cosine**2) ** 0.5 * second)
    a, b = (Trace(name, (prompts.y + size * each)[None], (0,), prompts) for name, each in zip("ab", off, strict=True))
    return a, b


def methods(one: known.Algorithm, other: known.Algorithm, noise: float = 0.3) -> tuple[Trace, Trace]:
    """Two known steps on the same prompts of a regression in five dimensions."""
    prompts = LinearRegression(dim=5, examples=12, noise=noise).sample(POOL, seed=0)
    return one.trace(prompts), other.trace(prompts)


def place(t: int, positions: int = 13) -> Tensor:
    return torch.arange(positions) == t


def labels(chance: float, spread: float) -> tuple[Trace, Trace]:
    """Ten labels a prompt, and a stage that has each right with a chance that differs between prompts."""
    generator = stream("coverage: labels", 0)
    y = (torch.rand(POOL, 10, generator=generator) < 0.5).double()
    logit = math.log(chance / (1 - chance)) + spread * normal(generator, POOL, 1)
    wrong = torch.rand(POOL, 10, generator=generator, dtype=torch.float64) > logit.sigmoid()
    prompts = Prompts(torch.ones(POOL, 10, 1), y)
    return Trace("a", torch.where(wrong, 1 - y, y)[None], (0,), prompts), Trace("b", y[None], (0,), prompts)


def lookups(one: int, other: int) -> tuple[Trace, Trace]:
    prompts = UniformSearch(size=31, queries=3).sample(POOL, seed=0)
    a, b = known.InterpolationSearch(4).trace(prompts), known.BinarySearch(4).trace(prompts)
    return a.select([one]), b.select([other])


def regression(n: int, planted: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Six features on eight rows a prompt, and a misfit that holds some of the first two."""
    features = normal(generator, n, 8, 6) + normal(generator, n, 1, 6)
    sizes = (0.5 * normal(generator, n, 1)).exp()
    return features, planted * (features[..., 0] - features[..., 1]) + sizes * normal(generator, n, 8)


def mixed(n: int, planted: float, generator: torch.Generator) -> tuple[Estimate, Estimate]:
    """In units of the square of one feature, of which the misfit is a small part."""
    features, misfit = regression(n, planted, generator)
    mixture, apart = Mixture(lambda: iter([(slice(None), features)]), blocks(n)), 16.0 * n
    return mixture.adds(misfit, 10 * apart, apart, 0.95, 1000, seed=0)


def gain(planted: float) -> Simulate:
    """The gain of mixtures that are fitted to so many prompts is known from their mean over all data sets."""

    def simulate(n: int, sets: int, generator: torch.Generator) -> Ends:
        found = [mixed(n, planted, generator)[0] for _ in range(sets)]
        return *ends_of(found), sum(each.value for each in found) / sets

    return simulate


def systematic(planted: float) -> Simulate:
    truth = mixed(POOL, planted, stream("coverage: systematic", 0))[1].value if planted else 0.0

    def simulate(n: int, sets: int, generator: torch.Generator) -> Ends:
        return *ends_of([mixed(n, planted, generator)[1] for _ in range(sets)]), truth

    return simulate


def spreads(slope: float, sizes: float) -> Simulate:
    def simulate(n: int, sets: int, generator: torch.Generator) -> Ends:
        found = []
        for _ in range(sets):
            change = normal(generator, n, 12) * (sizes * normal(generator, n, 1)).exp()
            misfit = slope * normal(generator, n, 1) * change + 0.5 * normal(generator, n, 12)
            found.append(step_spread(misfit, change, 0.95, 1000, seed=0))
        return *ends_of(found), slope**2

    return simulate


def growth(held: list[int], noise: float) -> Simulate:
    task = LinearRegression(dim=5, examples=10)
    pool, listed = task.sample(4000, seed=0), (*range(1, 9), 10, 12, 16, 20, 24, 32, 48, 64, 96, 128)
    values = known.GradientDescent(held).trace(pool).values
    values = values + noise * task.power**0.5 * normal(stream("coverage: law", 0), *values.shape)
    model = Trace("model", values, tuple(range(len(held))), pool)
    whole = compare(model, known.GradientDescent(listed).trace(pool), resamples=400)
    truth = rate_law(whole).growth

    def simulate(n: int, sets: int, generator: torch.Generator) -> Ends:
        found = []
        for seed in range(sets):
            chosen = torch.randint(4000, (n,), generator=generator)
            parts = whole.per_sequence[chosen], whole.null_per_sequence[chosen]
            law = rate_law(replace(whole, per_sequence=parts[0], null_per_sequence=parts[1], seed=seed))
            found.append(Estimate(law.growth, law.low, law.high, n))
        return *ends_of(found), truth

    return simulate


def squares(spread: float) -> Callable[[int, int, torch.Generator], Tensor]:
    """Squared errors, whose size differs between prompts."""
    return lambda n, sets, g: normal(g, n, sets).square() * (spread * normal(g, n, sets)).exp()


def mean(draw: Callable[[int, int, torch.Generator], Tensor], truth: float) -> Simulate:
    return lambda n, sets, generator: (*ends_of(means(draw(n, sets, generator))), truth)


def bounded(chance: float, answers: int, spread: float) -> Simulate:
    """Shares of right answers; the truth is an integral over prompts."""
    logit = math.log(chance / (1 - chance))
    grid = torch.linspace(-8, 8, 4001, dtype=torch.float64)
    truth = float(((logit + spread * grid).sigmoid() * (-grid.square() / 2).exp()).sum() / (-(grid**2) / 2).exp().sum())

    def simulate(n: int, sets: int, generator: torch.Generator) -> Ends:
        right = (logit + spread * normal(generator, n, sets)).sigmoid()
        drawn = torch.rand(answers, n, sets, generator=generator, dtype=torch.float64) < right
        return *ends_of(bounded_means(drawn.double().mean(0))), truth

    return simulate


def ratio(spread: float, shared: float) -> Simulate:
    """Errors of one model over those of another, whose sizes prompts share; the truth is 2."""

    def simulate(n: int, sets: int, generator: torch.Generator) -> Ends:
        size, own = (shared * normal(generator, n, sets)).exp(), squares(spread)
        above, below = 2 * size * own(n, sets, generator), size * own(n, sets, generator)
        return *ends_of(ratios(above, below)), 2.0

    return simulate


def parts(kind: str) -> Simulate:
    """Two models, or rises of two, over parts of the prompts, as claims compare them."""

    def simulate(n: int, sets: int, generator: torch.Generator) -> Ends:
        found = []
        for _ in range(sets):
            size = normal(generator, n, 1).exp()
            a, b, c, d = ((f * size * squares(0.0)(n, 1, generator)) for f in (2, 1, 1, 1))
            cut = [part_means(each) for each in (a, b, c, d)]
            if kind == "two models":
                one, other = ({"summary": {"last": {"parts": each, "n": n}}} for each in cut[:2])
                found.append(findings.paired(one, other, "last"))
            else:
                rises = [{"parts": p, "parts_trained": q, "n": n} for p, q in (cut[:2], cut[2:])]
                found.append(findings.over(*rises))
        return *ends_of(found), 2.0

    return simulate


def hashed(n: int, sets: int, generator: torch.Generator) -> Ends:
    """Streams, and the hash functions of a sketch, which both make its error vary."""
    found = []
    for _ in range(sets):
        by_stream, by_hash = normal(generator, n, 1).exp(), 0.3 * normal(generator, streams.SEEDS, 1)
        each = by_stream + by_hash.mean() + 0.5 * normal(generator, n, 1) / streams.SEEDS**0.5
        noise = 0.5 * normal(generator, streams.SEEDS, 1) / n**0.5
        row = streams._described(each, by_stream.mean() + by_hash + noise)
        found.append(Estimate(row["value"], row["low"], row["high"], n))
    return *ends_of(found), math.exp(0.5)


def shares(chance: float) -> Simulate:
    def simulate(n: int, sets: int, generator: torch.Generator) -> Ends:
        drawn = (torch.rand(sets, n, generator=generator) < chance).double().mean(1).tolist()
        return *ends_of([Estimate(each, *wilson(each, n), n) for each in drawn]), chance

    return simulate


def stages(chance: float, spread: float) -> Simulate:
    """Six stages a model, whose chances differ between models: the rates of the controls."""
    logit = math.log(chance / (1 - chance))
    truth = float((logit + spread * normal(stream("coverage: stages", 0), 2_000_000)).sigmoid().mean())

    def simulate(n: int, sets: int, generator: torch.Generator) -> Ends:
        found = []
        for seed in range(sets):
            right = (logit + spread * normal(generator, n, 1)).sigmoid()
            row = share((torch.rand(n, 6, generator=generator) < right).tolist(), seed)
            found.append(Estimate(row["rate"], row["low"], row["high"], n))
        return *ends_of(found), truth

    return simulate


def alarms(n: int, sets: int, generator: torch.Generator) -> Ends:
    hits = torch.rand(sets, n, generator=generator) < 0.05
    rows = [of_models(row) for row in hits.tolist()]
    return *ends_of([Estimate(row["rate"], row["low"], row["high"], n) for row in rows]), 0.05


def patched(spread: float) -> Simulate:
    """A patch that carries over 0.7 of the difference, with noise."""

    def simulate(n: int, sets: int, generator: torch.Generator) -> Ends:
        found = []
        for _ in range(sets):
            before = normal(generator, n, 3)
            whole = normal(generator, n, 3) * (spread * normal(generator, n, 1)).exp()
            after = before + (0.7 + 0.2 * normal(generator, n, 1)) * whole + 0.3 * normal(generator, n, 3)
            effect = PatchEffect("stage", (0, 1, 2), before, after, before + whole, "number")
            found.append(effect.recovered())
        return *ends_of(found), 0.7

    return simulate


def flipped(n: int, sets: int, generator: torch.Generator) -> Ends:
    """Labels that a patch hardly ever changes."""
    found, zeros = [], torch.zeros(n, 4)
    for _ in range(sets):
        after = (torch.rand(n, 4, generator=generator) < 0.01).double() - 0.5
        found.append(PatchEffect("stage", (0,), zeros - 0.5, after, zeros, "chance").changed())
    return *ends_of(found), 0.01

"""The rate law: how the matching step of b grows with the stage of a.

A law is a path through the similarity matrix, from some step at the first informative stage to some step at the last,
straight or by equal factors. Both have the same two free ends and differ only in the way between, so neither wins by
being more flexible. What a path *loses* is the similarity between it and the best step at each stage; between the
steps that b has, similarity is interpolated smoothly. A match is called linear or exponential when, in the bootstrap,

1. the other path loses at least `TIMES` as much, and
2. the better one recovers at least `RECOVERED` of what one constant step loses.

Late steps of an iteration are much alike, so a path can go far beyond the best of them and lose next to nothing. Hence
two conditions on its steps:

3. it does not end with b's last step, which may be what stopped it, and
4. it recovers at least `RECOVERED` of the variance of the best steps over the stages (of their logarithms, for equal
   factors). That is not asked of a path which at no stage can be told from the best step, to within b's next one.

It is called constant when the evidence rules out a change of a whole step over all the stages. Otherwise it is
undecided; but where 1 and 2 hold, the other path is denied, whatever the steps of the better one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from algoscope.matching.bootstrap import percentiles, resampling
from algoscope.matching.compare import Match
from algoscope.trace import Stage

Law: TypeAlias = Literal["constant", "linear", "exponential", "undecided"]
FEWEST = 3  # stages: two always lie on every path
TIMES = 2.0
RECOVERED = 0.9
NEARLY = 0.9  # of the last step: a path that comes so far, and nearer to it than to the step before, ends with it
COARSE, FINE, PASSES = 33, 7, 5  # candidates for each end of a path: over all steps, then closer and closer to the best
MOST = 64  # steps of b that are used; more, evenly chosen on a logarithmic scale, would not say more
DENSE = 300  # points at which the interpolated similarity is kept


@dataclass(frozen=True)
class RateLaw:
    """How the matching step grows with the stage (with its label where all labels are numbers, else with its rank).

    `path` is the better of the two paths, "linear" or "exponential", whatever the law. `start` is its step at the
    first stage used and `growth` its number of steps per stage, or factor per stage, with the interval `low`, `high`:
    the bootstrap's, widened by how much the growth changes when every other step of b is left out. `lost` is the mean
    similarity per stage that each path loses, and `recovered` what the better one recovers of the loss of one
    constant step. `used` are the stages it rests on: those that beat the null and are not yet at b's last step,
    beyond which nothing can be seen. `denied` is the path that the match is known not to follow, if there is one, also
    where the better one is not certain.
    """

    law: Law
    reason: str
    used: tuple[object, ...]
    path: Literal["linear", "exponential"] = "linear"
    start: float = float("nan")
    growth: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    recovered: float = float("nan")
    lost: Mapping[str, float] = field(default_factory=dict)
    denied: Literal["linear", "exponential"] | None = None

    def step(self, stages: float) -> float:
        """The step that the path gives so many stages after the first one used."""
        return self.start * self.growth**stages if self.path == "exponential" else self.start + self.growth * stages


def rate_law(match: Match) -> RateLaw:
    """Decides between "constant", "linear", "exponential" and "undecided"; the module's text states the criterion."""
    numbered = sorted((step, j) for j, step in enumerate(match.steps) if isinstance(step, int))
    last = numbered[-1][0] if numbered else None
    rows = [i for i in range(len(match.stages)) if not match.none[i] and last not in match.ties[i]]
    used = tuple(match.stages[i] for i in rows)
    columns = [(k, j) for k, j in numbered if _comparable(match, rows, j)]
    if len(rows) < FEWEST or len(columns) < FEWEST:
        have = f"has {len(rows)} and {len(columns)}"
        return RateLaw("undecided", f"needs {FEWEST} stages before saturation and {FEWEST} steps, {have}", used)
    steps, order = (torch.tensor(part) for part in zip(*_thinned(columns), strict=True))
    closeness = match.sign * match.per_sequence[:, rows][:, :, order]
    draws = resampling(closeness.shape[0], match.resamples, match.seed)
    matrices = torch.cat([closeness.mean(0)[None], (draws @ closeness.flatten(1)).unflatten(1, closeness.shape[1:])])
    labels = [label for label in used if isinstance(label, int)]
    stages = torch.tensor(labels if len(labels) == len(used) else rows, dtype=torch.float64)
    search = _Search(matrices, steps.double(), stages)
    law = _decide(search, match.confidence, used)
    if law.law not in ("linear", "exponential"):
        return law
    if stopped(law, float(stages[-1] - stages[0]), [step for step, _ in columns]):
        return replace(law, law="undecided", reason="the path ends with the list of steps, which may have stopped it")
    way = torch.tensor([law.step(passed) for passed in (stages - stages[0]).tolist()], dtype=torch.float64)
    followed = _followed(way, search, law.path == "exponential")
    if followed < RECOVERED and not _among(way, [match.ties[i] for i in rows], [step for step, _ in numbered]):
        reason = f"the path leaves the best steps where that costs little: it recovers {followed:.0%} of their variance"
        return replace(law, law="undecided", reason=reason)
    return law


def stopped(law: RateLaw, span: float, steps: Sequence[int]) -> bool:
    """Whether a law's path, over so many stages, comes to the last of the steps, which may then have stopped it.

    The steps are in order. Where they are close to each other a path may well end at the one before the last.
    """
    if len(steps) < 2:
        return False
    furthest = max(law.start, law.step(span))
    return furthest >= NEARLY * steps[-1] and steps[-1] - furthest < furthest - steps[-2]


def _followed(way: Float[Tensor, "stages"], search: "_Search", factors: bool) -> float:
    """The share that a path recovers of the variance of the best steps, interpolated, over the stages."""
    best = search.places[search.dense[0].argmax(1)]
    best, way = (best, way.log1p()) if factors else (best.expm1(), way)
    missed = (way - best).square().sum() / (best - best.mean()).square().sum().clamp(min=1e-300)
    return max(0.0, 1 - float(missed))


def _among(way: Float[Tensor, "stages"], ties: Sequence[Sequence[Stage]], listed: Sequence[int]) -> bool:
    """Whether a path is at every stage between the step before those that are tied there and the step after them."""
    padded = [-math.inf, *listed, math.inf]
    for step, tied in zip(way.tolist(), ties, strict=True):
        at = [k for k, other in enumerate(padded) if other in tied]
        if not at or not padded[at[0] - 1] <= step <= padded[at[-1] + 1]:
            return False
    return True


def _comparable(match: Match, rows: list[int], j: int) -> bool:
    """Whether a step of b is one that stages may be at: finite, and not the null itself.

    A step that predicts nothing yet, as gradient descent's first, is far from all others, however small a step is: a
    smooth curve through it and them would rise above them all in between.
    """
    nulls = match.null_per_sequence[:, rows]
    values, null = match.per_sequence[:, rows, j], nulls[..., min(j, nulls.shape[2] - 1)]
    return bool(values.isfinite().all()) and not torch.allclose(values, null, rtol=0.0, atol=1e-9)


def _thinned(columns: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """At most `MOST` of the (step, column) pairs, spread evenly over the logarithm of the step."""
    if len(columns) <= MOST:
        return columns
    places = torch.log1p(torch.tensor([step for step, _ in columns], dtype=torch.float64))
    wanted = torch.linspace(float(places[0]), float(places[-1]), MOST, dtype=torch.float64)
    return [columns[i] for i in sorted(set((places[None] - wanted[:, None]).abs().argmin(1).tolist()))]


def _decide(search: "_Search", confidence: float, used: tuple) -> RateLaw:
    paths = {law: search.best(law) for law in ("constant", "linear", "exponential")}
    lost = {law: search.dense.amax(2).mean(1) - path.kept for law, path in paths.items()}
    better, other = sorted(("linear", "exponential"), key=lambda law: float(lost[law][0]))
    low, high = _growth(search, paths, better, confidence)
    span = float(search.stages[-1] - search.stages[0])
    still = max(abs(end) * span for end in _growth(search, paths, "linear", confidence)) < 1  # less than a step in all
    recovered = float(1 - lost[better][0] / lost["constant"][0].clamp(min=1e-300))
    margin = float(percentiles((lost[other] - TIMES * lost[better])[1:], confidence)[0])
    laws: dict[str, tuple[Law, str]] = {
        "linear": ("linear", "a straight path follows the best steps, one of equal factors does not"),
        "exponential": ("exponential", "a path of equal factors follows the best steps, a straight one does not"),
    }
    law, reason = laws[better]
    if still:
        law, reason = "constant", "the evidence rules out a change of a whole step over all the stages"
    elif recovered < RECOVERED:
        law, reason = "undecided", f"no path follows the best steps: the better one recovers {recovered:.0%}"
    elif margin <= 0:
        law, reason = "undecided", "a straight path and one of equal factors follow the best steps about equally well"
    path, growth = paths[better], float(paths[better].growth[0])
    sample = {name: float(loss[0]) for name, loss in lost.items()}
    shape, rest = ("linear", "exponential") if better == "linear" else ("exponential", "linear")
    denied = rest if law == shape else None
    return RateLaw(law, reason, used, shape, float(path.start[0]), growth, low, high, recovered, sample, denied)


def _growth(search: "_Search", paths: Mapping[str, "_Path"], law: str, confidence: float) -> tuple[float, float]:
    """The interval of the growth: the bootstrap's, widened by what leaving out every other step changes."""
    growth = paths[law].growth
    low, high = (float(end) for end in percentiles(growth[1:], confidence))
    sparse = _Search(search.matrices[:1, :, ::2], search.steps[::2], search.stages).best(law).growth
    change = abs(float(sparse[0] - growth[0])) if len(search.steps) >= 2 * FEWEST else 0.0
    return min(low, float(growth[0])) - change, max(high, float(growth[0])) + change


@dataclass(frozen=True, eq=False)
class _Path:
    kept: Float[Tensor, "draws"]  # mean similarity along the best path of each draw
    start: Float[Tensor, "draws"]
    growth: Float[Tensor, "draws"]


class _Search:
    """Looks for the path that keeps most similarity, in every draw; the first draw is the sample itself.

    A place is log(1 + step): on that scale similarity is smooth for sparse steps too, and it is where ends are looked
    for.
    """

    def __init__(self, matrices: Float[Tensor, "draws stages steps"], steps: Tensor, stages: Tensor) -> None:
        self.matrices, self.steps, self.stages = matrices, steps, stages
        places = torch.log1p(steps)
        self.first, self.last = float(places[0]), float(places[-1])
        self.places = torch.linspace(self.first, self.last, DENSE, dtype=torch.float64)
        self.dense = matrices @ spline(places, self.places).mT
        self.rough = self.dense.float()  # half the work, where one of few places is chosen

    def best(self, law: str) -> _Path:
        """The ends are found among `COARSE` places each, then in `PASSES` passes closer to the best of each draw."""
        around = torch.linspace(self.first, self.last, COARSE, dtype=torch.float64)
        ends = self._closest(_pairs(around, law)[None], law)
        reach = float(around[1] - around[0])
        for _ in range(PASSES):
            near = _pairs(torch.linspace(-reach, reach, FINE, dtype=torch.float64), law)
            ends = self._closest((ends[:, None] + near).clamp(self.first, self.last), law)
            reach *= 2 / (FINE - 1)
        start, stop = torch.expm1(ends).unbind(-1)
        span = float(self.stages[-1] - self.stages[0])
        growth = (stop / start.clamp(min=1e-9)) ** (1 / span) if law == "exponential" else (stop - start) / span
        return _Path(self._kept(ends[:, None], law)[:, 0], start, growth)

    def _closest(self, ends: Float[Tensor, "draws_or_1 paths 2"], law: str) -> Float[Tensor, "draws 2"]:
        best = self._kept(ends, law).argmax(dim=1)
        return ends.expand(len(best), -1, -1)[torch.arange(len(best)), best]

    def _kept(self, ends: Float[Tensor, "draws_or_1 paths 2"], law: str) -> Float[Tensor, "draws paths"]:
        """Mean similarity along each path, in each draw."""
        start, stop = torch.expm1(ends).unbind(-1)
        way = (self.stages - self.stages[0]) / (self.stages[-1] - self.stages[0])
        total = torch.zeros(())
        for i, share in enumerate(way.tolist()):
            factors = start.clamp(min=1e-9) ** (1 - share) * stop.clamp(min=1e-9) ** share
            place = torch.log1p(factors if law == "exponential" else start + (stop - start) * share)
            column = (place - self.first) / (self.last - self.first) * (DENSE - 1)
            column = column.clamp(0, DENSE - 1)
            middle = column.round().long().clamp(1, DENSE - 2)
            low, here, high = (self._at(i, middle + k) for k in (-1, 0, 1))
            f = (column - middle).to(here)
            sides = low * (f * (f - 1) / 2) + high * (f * (f + 1) / 2)  # the parabola through three neighbors
            total = total + here * (1 - f.square()) + sides
        return total / len(way)

    def _at(self, i: int, places: Int[Tensor, "draws_or_1 paths"]) -> Float[Tensor, "draws paths"]:
        """The similarity of a stage at some places, which all draws may have in common."""
        if len(places) == 1 < len(self.dense):
            return self.rough[:, i, places[0]]
        return self.dense[:, i].gather(1, places.expand(len(self.dense), -1))


def _pairs(places: Tensor, law: str) -> Float[Tensor, "pairs 2"]:
    return places[:, None].expand(-1, 2) if law == "constant" else torch.cartesian_prod(places, places)


def spline(nodes: Float[Tensor, "nodes"], points: Float[Tensor, "points"]) -> Float[Tensor, "points nodes"]:
    """The matrix that takes values at the nodes to the natural cubic spline through them, at the points."""
    count, width = len(nodes), nodes.diff()
    system, right = torch.eye(count, dtype=nodes.dtype), torch.zeros(count, count, dtype=nodes.dtype)
    for k in range(1, count - 1):  # continuity of the first derivative at node k, for the second derivatives
        system[k, k - 1 : k + 2] = torch.stack([width[k - 1] / 6, (width[k - 1] + width[k]) / 3, width[k] / 6])
        right[k, k - 1 : k + 2] = torch.stack([1 / width[k - 1], -1 / width[k - 1] - 1 / width[k], 1 / width[k]])
    curvature = torch.linalg.solve(system, right)
    left = (torch.searchsorted(nodes, points.contiguous(), right=True) - 1).clamp(0, count - 2)
    h, identity = width[left, None], torch.eye(count, dtype=nodes.dtype)
    a, b = (nodes[left + 1] - points)[:, None] / h, (points - nodes[left])[:, None] / h
    bent = (a**3 - a) * curvature[left] + (b**3 - b) * curvature[left + 1]
    return a * identity[left] + b * identity[left + 1] + bent * h**2 / 6

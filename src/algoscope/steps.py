"""What known algorithms compute, step by step, on the prompts of a comparison: made and handed on a chunk at a time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from algoscope.algorithms.least_squares import without_weights
from algoscope.contracts import Algorithm, Task
from algoscope.matching.calibration import blocks
from algoscope.matching.mixtures import Mixture
from algoscope.reading.probe import CHUNK, chunks
from algoscope.trace import Prompts, Stage, Trace

KEPT = 1000  # prompts whose steps are kept; of more they are made again, which bounds the memory
LARGEST = 1e6  # a step whose values are larger than this, in units of the targets', has diverged
CONVERGED = 1e-4  # normalized squared distance from a closed form at which a step counts as that: 1% of the targets
RARE = 0.01  # share of prompts that may be farther
DIFFERING = 0.01  # share of labels that may differ, likewise
EXPECTED = 2.0  # times the mean square of the targets: a step may have, before its position counts less
EQUAL = 1e-20  # normalized squared distance of steps that are the same
Pair = tuple[str, Stage]  # an algorithm and one of its steps
Columns = Shaped[Tensor, "batch points steps targets"]


class Steps:
    """Every step of the algorithms on the prompts that are compared, at the positions `at`.

    First come the steps of the algorithms that are `compared`, whose names are `pairs`; those of the `others` only take
    part in mixtures, as do those of `span`, with a gain of their own at every position. `names` says which steps go by
    the name of a closed form that they have become, and `equal` which labels are those of an earlier step. `errors` are
    normalized errors by position, where answers are numbers.
    """

    def __init__(
        self,
        task: Task,
        compared: Sequence[Algorithm],
        others: Sequence[Algorithm],
        span: Sequence[Algorithm],
        sample: Prompts,
        at: Bool[Tensor, "positions"],
        done: Callable[[int], None],
    ) -> None:
        self.task, self.sample, self.at = task, sample, at
        self.compared, self.others, self.span = list(compared), list(others), list(span)
        one = replace(sample, x=sample.x[:1], y=sample.y[:1])
        self.algorithms = {algorithm.name: algorithm.trace(one).stages for algorithm in self.compared}
        self.pairs: list[Pair] = [(name, step) for name, stages in self.algorithms.items() for step in stages]
        self.methods = {algorithm.name: algorithm.method for algorithm in self.compared}
        first = next(chunks(sample, 2))
        self.mixed = len(self.pairs) + sum(len(each.trace(first).stages) for each in self.others)
        self._same_as: dict[int, Tensor] = {}
        largest, squares, kept, room = [], torch.zeros(()), [], KEPT
        for chunk, own in self._made():
            largest.append(own.abs().amax((0, 1, 3)))
            mine = own[:, :, : len(self.pairs)].double()
            squares = squares + (mine - chunk.target_columns[:, :, None].cpu()).square().sum((0, 3))
            kept, room = [*kept, own[:room]] if room else kept, max(room - chunk.batch, 0)
            done(chunk.batch)
        self.usable = torch.stack(largest).amax(0) <= LARGEST * task.power**0.5  # those that diverge are left out
        self.kept: Columns = self._usable(torch.cat(kept))
        forms = [k for k, (name, _) in enumerate(self.pairs) if name in self._forms]
        self.names = self._names(self._apart(forms), forms)
        self.equal = self._equal() if task.labels else {}
        unit = sample.batch * sample.target_columns.shape[2] * sample.normalizer()
        self.errors = {} if task.labels else self._by_algorithm((squares / unit).mT)

    def chunks(self, size: int = CHUNK) -> Iterator[tuple[Prompts, Columns]]:
        """Prompts and every step on them; those that diverge on any prompt are zero."""
        start = 0
        for chunk in chunks(self.sample, size):
            stop = start + chunk.batch
            yield chunk, self.kept[start:stop] if stop <= len(self.kept) else self._usable(self._on(chunk))
            start = stop

    def traces(self) -> dict[str, Trace]:
        """Of the algorithms that are compared: for tasks whose prompts are small."""
        columns = torch.cat([own for _, own in self.chunks()]).movedim(2, 0)[: len(self.pairs)]
        columns = columns if columns.shape[-1] > 1 else columns[..., 0]
        parts = columns.split([len(stages) for stages in self.algorithms.values()])
        pairs = zip(self.algorithms.items(), parts, strict=True)
        return {name: Trace(name, part, stages, self.sample) for (name, stages), part in pairs}

    @cached_property
    def position_weights(self) -> Float[Tensor, "positions"]:
        """How much a position counts where squares are compared: less where a closed form is far larger than targets.

        With noise, least squares has no finite variance where there are about as many examples as dimensions, so that
        a few prompts would decide. Elsewhere all positions count alike.
        """
        forms = [k for k, (name, _) in enumerate(self.pairs) if name in self._forms]
        if self.task.labels or not forms:
            return torch.ones(self.sample.positions, dtype=torch.float64)
        squares = self.kept[:, :, forms].square().mean((0, 3)).amax(-1) / self.sample.normalizer()
        return (EXPECTED / squares.clamp(min=EXPECTED)).square()

    @cached_property
    def weights(self) -> Float[Tensor, "positions"]:
        """The same, and zero where nothing is compared."""
        return self.position_weights * self.at

    def rows(self, values: Columns) -> Float[Tensor, "batch rows columns"]:
        """At the positions that are compared, by the root of their weights, all of a prompt in one column."""
        at = self.weights > 0
        return (values[:, at] * self.weights[at].sqrt()[:, None, None]).movedim(2, 3).flatten(1, 2)

    def features(
        self, brought: Callable[[slice], Columns]
    ) -> Iterator[tuple[slice, Float[Tensor, "part rows features"]]]:
        """What mixtures are made of: all steps as they are `brought` to a stage, and what spans the rest, at each
        position by itself.
        """
        at = self.weights > 0
        alone = torch.eye(int(at.sum()), dtype=torch.float64)
        for start in range(0, len(self.kept), CHUNK):
            part = slice(start, min(start + CHUNK, len(self.kept)))
            rows = self.rows(brought(part)[:, :, : self.mixed])
            span = self.kept[part, at, self.mixed :] * self.weights[at].sqrt()[:, None, None]
            if span.shape[2]:
                apart = torch.einsum("btcm,tp->btmpc", span, alone).flatten(3).flatten(1, 2)
                rows = torch.cat([rows, apart], -1)
            yield part, rows

    @cached_property
    def mixture(self) -> Mixture:
        """Of the steps as they are."""
        features = list(self.features(lambda part: self.kept[part]))
        return Mixture(lambda: iter(features), blocks(len(self.kept)))

    def same_as(self, k: int) -> dict[Pair, Pair]:
        """Steps that are the same as step k, and which of them names all: that of the list which comes first.

        Labels are the same where they are equal, numbers where they differ by less than 1%.
        """
        if self.task.labels:
            return self.equal
        same = self._same(k).tolist()
        alike = [self.names.get(pair, pair) for j, pair in enumerate(self.pairs) if j == k or same[j]]
        own = self.names.get(self.pairs[k])
        first = own or next((pair for pair in alike if pair[0] in self._forms), alike[0])
        return {pair: first for pair in alike if pair != first}

    def rivals(self, k: int) -> list[int]:
        """The steps that are not the same as step k."""
        pair = self.pairs[k]
        if not self.task.labels:
            same, usable = self._same(k).tolist(), self.usable.tolist()
            return [j for j in range(len(self.pairs)) if j != k and not same[j] and usable[j]]
        first = self.equal.get(pair, pair)
        return [j for j, other in enumerate(self.pairs) if self.equal.get(other, other) != first]

    def known(self, algorithms: Sequence[Algorithm], prompts: Prompts) -> dict[str, Tensor]:
        """What some algorithms compute on the first prompts, if that is what these are; otherwise nothing."""
        if prompts.batch > len(self.kept) or not first(self.sample, prompts.batch).same_as(prompts):
            return {}
        if any(each.name not in self.algorithms for each in algorithms):
            return {}
        columns = self.kept[: prompts.batch].movedim(2, 0).reshape(-1, *prompts.y.shape)
        return {each.name: columns[list(self.places(each.name))] for each in algorithms}

    def of_other_methods(self, k: int, among: Sequence[int]) -> list[int]:
        """Of some steps, those of a method that is not that of step k."""
        return [j for j in among if self.methods[self.pairs[j][0]] != self.methods[self.pairs[k][0]]]

    def places(self, name: str) -> range:
        """Where the steps of an algorithm are among all."""
        first = next(k for k, (own, _) in enumerate(self.pairs) if own == name)
        return range(first, first + len(self.algorithms[name]))

    def neighbors(self, k: int) -> tuple[int, int] | None:
        """The steps before and after step k, of the same algorithm, that are not the same as it."""
        same = [False] * len(self.pairs) if self.task.labels else self._same(k).tolist()
        others = [j for j in self.places(self.pairs[k][0]) if not same[j] and bool(self.usable[j])]
        before, after = [j for j in others if j < k], [j for j in others if j > k]
        return (max(before, default=k), min(after, default=k)) if before or after else None

    def _same(self, k: int) -> Bool[Tensor, "steps"]:
        """Which numbers are nearer to those of step k than 1% of their size, up to a factor at each position, but for
        the few prompts on which they differ most.
        """
        if k not in self._same_as:
            columns = self.kept[:, self.at, : len(self.pairs)]
            own = columns[:, :, k, None]
            squares = columns.square().sum((0, 3), keepdim=True)
            factors = (own * columns).sum((0, 3), keepdim=True) / squares.clamp(min=1e-300)
            off = (own - factors * columns).square().sum(3)
            each = torch.einsum("btc,t->bc", off, self.position_weights[self.at])
            size = torch.einsum("btcm,t->", own.square(), self.position_weights[self.at])
            kept = len(each) - int(RARE * len(each))
            self._same_as[k] = (each.sort(0).values[:kept].sum(0) <= CONVERGED * size) & (size > 0)
        return self._same_as[k]

    @property
    def closed_forms(self) -> list[Algorithm]:
        """Those that are known for the task, whether they are compared or not."""
        return [each for each in (*self.compared, *self.others) if each.closed_form]

    @property
    def _forms(self) -> set[str]:
        return {each.name for each in self.compared if each.closed_form}

    def _made(self) -> Iterator[tuple[Prompts, Columns]]:
        for chunk in chunks(self.sample):
            yield chunk, self._on(chunk)

    def _on(self, chunk: Prompts) -> Columns:
        with without_weights():
            values = torch.cat([each.trace(chunk).values for each in (*self.compared, *self.others, *self.span)])
        own = values.reshape(-1, *chunk.target_columns.shape).movedim(0, 2).cpu()
        return own.to(torch.int32) if self.task.labels else own  # labels take less room as whole numbers

    def _usable(self, own: Columns) -> Columns:
        return own if self.task.labels else torch.where(self.usable[:, None], own, 0.0)

    def _apart(self, against: Sequence[int]) -> Float[Tensor, "steps against"]:
        """How far steps are from some: the share of labels that differ, or the normalized squared distance.

        The few prompts on which two numbers differ most are left out: where a problem is nearly singular, an iteration
        that has solved all others is still far from the solution.
        """
        own, count = self.kept[:, self.at, : len(self.pairs)], len(self.pairs)
        weights = self.position_weights[self.at]
        weights = weights / weights.sum() / (1.0 if self.task.labels else self.sample.normalizer())
        found = torch.zeros(count, len(against), dtype=torch.float64)
        for i, k in enumerate(against):
            off = own - own[:, :, k, None]
            off = (off != 0).double() if self.task.labels else off.square()
            each = torch.einsum("btcm,t->bc", off, weights) / off.shape[3]
            kept = len(each) if self.task.labels else len(each) - int(RARE * len(each))
            found[:, i] = each.sort(0).values[:kept].mean(0)
        return found

    def _names(self, apart: Float[Tensor, "steps forms"], closed: Sequence[int]) -> dict[Pair, Pair]:
        """The steps that have become a closed form, and which.

        A step has become the nearest of the closed forms that all later steps are as well: a method that passes by a
        ridge regression has not become it, and a heuristic of a single step becomes nothing.
        """
        found: dict[Pair, Pair] = {}
        bound = DIFFERING if self.task.labels else CONVERGED
        for name, off in self._by_algorithm(apart).items():
            if name in self._forms or not closed or len(off) == 1:
                continue
            off = off.mT
            stays = (off <= bound).flip(1).long().cumprod(1).flip(1).bool()
            nearest = torch.where(stays, off, torch.inf).argmin(0).tolist()
            for step, form, one_of_them in zip(self.algorithms[name], nearest, stays.any(0).tolist(), strict=True):
                if one_of_them:
                    found[name, step] = self.pairs[closed[form]]
        return found

    def _equal(self) -> dict[Pair, Pair]:
        """Of steps with equal labels, all but the first, and which that is."""
        found, apart = dict[Pair, Pair](), self._apart(range(len(self.pairs)))
        for i, pair in enumerate(self.pairs):
            first = (k for k in range(i) if float(apart[i, k]) <= EQUAL)
            earlier = next((self.pairs[k] for k in first if self.pairs[k] not in {**found, **self.names}), None)
            if earlier is not None and pair not in self.names:
                found[pair] = earlier
        return found

    def _by_algorithm(self, rows: Float[Tensor, "steps *rest"]) -> Mapping[str, Tensor]:
        parts = rows.split([len(stages) for stages in self.algorithms.values()])
        return dict(zip(self.algorithms, parts, strict=True))


def first(prompts: Prompts, count: int) -> Prompts:
    """So many of them."""
    return replace(prompts, x=prompts.x[:count], y=prompts.y[:count])


def run(algorithms: Sequence[Algorithm], prompts: Prompts) -> dict[str, Shaped[Tensor, "steps batch points *target"]]:
    """What some algorithms compute, by name; all of them on a few prompts at a time, which they share the work on."""
    parts: dict[str, list[Tensor]] = {each.name: [] for each in algorithms}
    with without_weights():
        for chunk in chunks(prompts):
            for each in algorithms:
                parts[each.name].append(each.trace(chunk).values)
    return {name: torch.cat(own, 1) for name, own in parts.items()}

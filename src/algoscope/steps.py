"""What known algorithms compute, step by step, on the prompts of a comparison: made and handed on a chunk at a time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from algoscope.contracts import Algorithm, Task
from algoscope.reading.probe import CHUNK, chunks
from algoscope.trace import Prompts, Stage, Trace

KEPT = 1000  # prompts whose steps are kept for the next model; of more they are made again, which bounds the memory
LARGEST = 1e6  # a step whose values are larger than this, in units of the targets', has diverged
CONVERGED = 1e-4  # normalized squared distance from a closed form at which a step counts as that: 1% of the targets
DIFFERING = 0.01  # share of labels that may differ, likewise
EQUAL = 1e-20  # normalized squared distance of steps that are the same
Pair = tuple[str, Stage]  # an algorithm and one of its steps
Columns = Shaped[Tensor, "batch points steps targets"]


@dataclass(frozen=True)
class Prompted:
    """The prompts on which probes are fitted, those on which stages are compared, and at which positions."""

    fitting: Prompts
    sample: Prompts
    at: Bool[Tensor, "positions"]


class Steps:
    """Every step of the algorithms on the prompts that probes are fitted to (part 0) and that are compared (part 1).

    First come the steps of the algorithms that are `compared`, whose names are `pairs`; those of the `others` only take
    part in mixtures. `names` says which steps go by the name of a closed form that they have become, and `equal` which
    are the same as an earlier one. `errors` are normalized errors by position, where answers are numbers.
    """

    def __init__(
        self,
        task: Task,
        compared: Sequence[Algorithm],
        others: Sequence[Algorithm],
        prompted: Prompted,
        up_to_a_factor: bool,
        done: Callable[[int], None],
    ) -> None:
        self.task, self.compared, self.others, self.prompted = task, list(compared), list(others), prompted
        one = replace(prompted.sample, x=prompted.sample.x[:1], y=prompted.sample.y[:1])
        self.algorithms = {algorithm.name: algorithm.trace(one).stages for algorithm in self.compared}
        self.pairs: list[Pair] = [(name, step) for name, stages in self.algorithms.items() for step in stages]
        self.kept: dict[int, Columns] = {}
        forms = [k for k, (name, _) in enumerate(self.pairs) if name in self._forms]
        against = forms if up_to_a_factor else list(range(len(self.pairs)))
        largest, apart, squares = [], torch.zeros(()), torch.zeros(())
        for part in (0, 1):
            for chunk, own in self._made(part):
                largest.append(own.abs().amax((0, 1, 3)))
                if part == 1:
                    own = own[:, :, : len(self.pairs)].double()
                    apart = apart + self._apart(own[:, prompted.at], against) * chunk.batch
                    squares = squares + (own - chunk.target_columns[:, :, None]).square().sum((0, 3))
                done(chunk.batch)
        self.usable = torch.stack(largest).amax(0) <= LARGEST * task.power**0.5  # those that diverge are left out
        apart = apart / prompted.sample.batch
        self.names = self._names(apart[:, [against.index(k) for k in forms]], forms)
        self.equal = {} if up_to_a_factor else self._equal(apart)
        unit = prompted.sample.batch * prompted.sample.target_columns.shape[2] * prompted.sample.normalizer()
        self.errors = {} if task.labels else self._by_algorithm((squares / unit).mT)

    def chunks(self, part: int, size: int = CHUNK) -> Iterator[tuple[Prompts, Columns]]:
        """Prompts and every step on them; those that diverge on any prompt are zero."""
        for chunk, own in self._made(part, size):
            yield chunk, own if self.task.labels else torch.where(self.usable[:, None], own, 0.0)

    def whole(self, part: int) -> Shaped[Tensor, "steps batch points *target"]:
        """All at once, in the order of a trace: for tasks whose prompts are small."""
        columns = torch.cat([own for _, own in self.chunks(part)]).movedim(2, 0)
        return columns if columns.shape[-1] > 1 else columns[..., 0]

    def traces(self) -> dict[str, Trace]:
        """Of the algorithms that are compared, on the prompts that are compared."""
        own = self.whole(1)[: len(self.pairs)].split([len(stages) for stages in self.algorithms.values()])
        pairs = zip(self.algorithms.items(), own, strict=True)
        return {name: Trace(name, part, stages, self.prompted.sample) for (name, stages), part in pairs}

    @property
    def _forms(self) -> set[str]:
        return {each.name for each in self.compared if each.closed_form}

    def _made(self, part: int, size: int = CHUNK) -> Iterator[tuple[Prompts, Columns]]:
        prompts, start, made = (self.prompted.fitting, self.prompted.sample)[part], 0, []
        for chunk in chunks(prompts, size):
            if part in self.kept:
                made, start = [self.kept[part][start : start + chunk.batch]], start + chunk.batch
            else:
                values = torch.cat([each.trace(chunk).values for each in (*self.compared, *self.others)])
                own = values.reshape(-1, *chunk.target_columns.shape).movedim(0, 2)
                own = own.to(torch.int32) if self.task.labels else own  # labels take less room as whole numbers
                made = [*made, own] if prompts.batch <= KEPT else [own]
            yield chunk, made[-1]
        if part not in self.kept and prompts.batch <= KEPT:
            self.kept[part] = torch.cat(made)

    def _apart(
        self, own: Float[Tensor, "batch points steps targets"], against: Sequence[int]
    ) -> Float[Tensor, "steps against"]:
        """How far steps are from some: the share of labels that differ, or the normalized squared distance."""
        rows, unit = own.movedim(2, 0).flatten(1), self.prompted.sample.normalizer()
        if self.task.labels:
            off = [(rows != rows[k]).double().mean(1) for k in against]
        else:
            off = [(rows - rows[k]).square().mean(1) / unit for k in against]
        return torch.stack(off, 1) if off else rows.new_zeros(len(rows), 0)

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

    def _equal(self, apart: Float[Tensor, "steps steps"]) -> dict[Pair, Pair]:
        """Of steps with equal answers, all but the first, and which that is.

        By errors, steps that are equal up to a factor are tied as well, so there it would be half of the truth.
        """
        found: dict[Pair, Pair] = {}
        for i, pair in enumerate(self.pairs):
            first = (k for k in range(i) if float(apart[i, k]) <= EQUAL)
            earlier = next((self.pairs[k] for k in first if self.pairs[k] not in {**found, **self.names}), None)
            if earlier is not None and pair not in self.names:
                found[pair] = earlier
        return found

    def _by_algorithm(self, rows: Float[Tensor, "steps *rest"]) -> Mapping[str, Tensor]:
        parts = rows.split([len(stages) for stages in self.algorithms.values()])
        return dict(zip(self.algorithms, parts, strict=True))

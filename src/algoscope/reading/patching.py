"""Activation patching: what becomes of the answers when a state is taken from other prompts (Vig et al. 2020).

Reading tells what a stage holds; only an intervention tells whether what follows uses it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Shaped
from torch import Tensor, nn

from algoscope import arguments
from algoscope.contracts import Task
from algoscope.matching.statistics import Estimate, bounded_means, ratios
from algoscope.reading.predict import answers_of
from algoscope.reading.probe import CHUNK, check_prompts
from algoscope.reading.wrapped import Wrapped, wrap
from algoscope.trace import Prompts


@dataclass(frozen=True, eq=False)
class PatchEffect:
    """The answers `before` a patch, `after` it, and to the prompts that the state was taken from, the `source`.

    Where answers are labels they are logits. `positions` are the points whose tokens were patched.
    """

    stage: str
    positions: tuple[int, ...]
    before: Shaped[Tensor, "batch points *answer"]
    after: Shaped[Tensor, "batch points *answer"]
    source: Shaped[Tensor, "batch points *answer"]
    answer: Literal["number", "chance", "choice"]

    def __repr__(self) -> str:
        value, low, high, n = self.recovered()
        share = f"{value:.2f} ({low:.2f} to {high:.2f}) of the source's answers recovered"
        return f"PatchEffect({self.stage}, {len(self.positions)} positions, {share}, {n} prompts)"

    def recovered(self, positions: Sequence[int] | None = None, confidence: float = 0.95) -> Estimate:
        """How far the answers move to those of the source: 1 where the state decides them, 0 where nothing reads it.

        It is the regression of the change on the whole difference; at some positions, by default those patched.
        """
        at = list(self.positions if positions is None else positions)
        change, whole = ((part - self.before)[:, at].flatten(1).double() for part in (self.after, self.source))
        if not bool(whole.any()):
            raise ValueError("the answers to prompts and source are equal at these positions: nothing can be recovered")
        sums = (change * whole).sum(1, keepdim=True), whole.square().sum(1, keepdim=True)
        return ratios(*sums, confidence)[0]

    def changed(self, among: Tensor | None = None, confidence: float = 0.95) -> Estimate:
        """Of labels the share that changes, and of numbers the mean squared change relative to the whole difference.

        `among` says which answers [points, ...] count; by default all at positions that were not patched.
        """
        before, after = (self._labels(part) for part in (self.before, self.after))
        if among is None:
            among = torch.ones(before.shape[1:], dtype=torch.bool)
            among[list(self.positions)] = False
        if not bool(among.any()):
            raise ValueError("among must hold some answer: every position was patched")
        if self.answer != "number":
            changed = (after != before)[:, among].double().mean(1, keepdim=True)
            return bounded_means(changed, confidence=confidence)[0]
        squares = [
            (part - self.before)[:, among].double().square().sum(1, keepdim=True) for part in (self.after, self.source)
        ]
        return ratios(squares[0], squares[1], confidence)[0]

    def _labels(self, answers: Tensor) -> Tensor:
        """Of chances 1 where the logit is positive, of choices the option with the largest; numbers as they are."""
        return answers > 0 if self.answer == "chance" else answers.argmax(-1) if self.answer == "choice" else answers


@torch.no_grad()
def patch(
    model: nn.Module | Wrapped,
    task: Task,
    prompts: Prompts,
    stage: str,
    source: Prompts,
    positions: int | Sequence[int] | None = None,
) -> PatchEffect:
    """Activation patching: after a stage, the states of some tokens become those that they are on other prompts.

    `stage` is one of the model's, `source` are as many prompts of the task, and `positions` the points whose answering
    tokens are patched, by default all tokens. `model` is as in `wrap`, but no function. A patch that changes no state
    is an error.
    """
    found = wrap(model, [stage])
    for part in (prompts, source):
        check_prompts(part, task)
    if source.batch != prompts.batch:
        raise ValueError(f"source must be as many prompts, {prompts.batch}, got {source.batch}")
    chosen = _positions(positions, task)
    tokens = list(range(task.length)) if positions is None else [task.answering[position] for position in chosen]
    like, parts, touched = torch.empty(0, dtype=found.dtype, device=found.device), [], False
    for start in range(0, prompts.batch, CHUNK):
        own, other = (
            Prompts(p.x[start : start + CHUNK], p.y[start : start + CHUNK], p.noise, p.power) for p in (prompts, source)
        )
        theirs = found.run(task.encode(other.x, other.y).to(like.device, like.dtype), [stage])[1][stage]
        if theirs.ndim != 3 or theirs.shape[:2] != (other.batch, task.length):
            raise ValueError(f"stage must be one whose states are those of tokens; {stage!r} has {list(theirs.shape)}")

        def plant(state: Tensor, theirs: Tensor = theirs) -> Tensor:
            nonlocal touched
            changed = state.clone()
            changed[:, tokens] = theirs[:, tokens]
            touched = touched or not torch.equal(changed, state)
            return changed

        ways = ((own, {}), (own, {stage: plant}), (other, {}))
        parts.append([answers_of(found.run, task, part, like, edits).cpu() for part, edits in ways])
    if not touched:
        raise ValueError(f"the patch changes no state: after {stage!r} prompts and source are the same at {chosen}")
    before, after, theirs = (torch.cat(part) for part in zip(*parts, strict=True))
    return PatchEffect(stage, chosen, before, after, theirs, task.answer)


def _positions(given: int | Sequence[int] | None, task: Task) -> tuple[int, ...]:
    chosen = range(task.positions) if given is None else [given] if isinstance(given, int) else list(given)
    for position in chosen:
        arguments.integer("positions", position, 0, task.positions - 1)
    if not chosen:
        raise ValueError("positions must name at least one point whose token is patched")
    return tuple(chosen)

"""By how much a procedure breaks a law: it answers the changed prompts, and the law compares its answers."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor

from algoscope import arguments
from algoscope.contracts import Answers, Change, Symmetry
from algoscope.randomness import stream
from algoscope.trace import Prompts

Answer = Callable[[Prompts], Answers]  # of an algorithm: lambda prompts: algorithm.trace(prompts).values


def changed(symmetry: Symmetry, prompts: Prompts, seed: int = 0) -> Change:
    """What the symmetry makes of the prompts; a seed names the same change on every device."""
    arguments.integer("seed", seed, 0)
    return symmetry.change(prompts, stream(f"change of prompts, {type(symmetry).__name__}", seed))


def defects(answer: Answer, symmetry: Symmetry, prompts: Prompts, seed: int = 0) -> Float[Tensor, "stages batch *rest"]:
    """The defect of each stage on each prompt, at those positions that the law is about; zero where it is kept."""
    change = changed(symmetry, prompts, seed)
    return change.defect([answer(each) for each in change.prompts])


def relative_defect(answer: Answer, symmetry: Symmetry, prompts: Prompts, seed: int = 0) -> Float[Tensor, "stages"]:
    """The same over all prompts, in units of the answers; of labels, the share that breaks the law."""
    change = changed(symmetry, prompts, seed)
    return change.relative_defect([answer(each) for each in change.prompts])

"""Changes that separate methods which keep all other laws: those that treat the eigen-directions of XᵀX one by one."""

from dataclasses import dataclass, replace

import torch

from algoscope import randomness
from algoscope.contracts import Change, Symmetry
from algoscope.symmetries.regression import at_last, examples, unchanged, with_examples
from algoscope.trace import Prompts


@dataclass(frozen=True)
class ExchangeSpectrum(Symmetry):
    """All singular values of the examples but one are replaced, and the query asks along the direction of that one.

    X = U diag(σ) Vᵀ. The query is v with the length of the query of the prompt; each other σ becomes a random one
    between σ/2 and σ, so that no rate that was small enough becomes too large. Targets are changed as X w is, with w of
    least squares. v belongs to the σ a quarter from the top, where rates and starts chosen by the spectrum show most.

    The answer stays where a method treats directions alike whatever the others are: gradient descent at a fixed rate,
    ridge and least squares. A rate or a start that is chosen by the spectrum changes it.
    """

    in_distribution = False

    def change(self, prompts: Prompts, generator: torch.Generator) -> Change:
        x, y = (part.double() for part in examples(prompts))
        left, values, right = torch.linalg.svd(x, full_matrices=False)
        rank = values.shape[1]
        if not rank:  # without examples there is nothing to exchange
            return Change((prompts, prompts), at_last(unchanged))
        kept = min(max(rank // 4, 1), rank - 1)  # not the largest, which decides many rates
        shrink = 1 - randomness.uniform([generator], *values.shape, dtype=torch.float64).to(x) / 2
        shrink[:, kept] = 1
        change = (shrink - 1)[..., None]
        query = right[:, kept] * prompts.x[:, -1:].double().norm(dim=-1)
        asked = replace(prompts, x=torch.cat((prompts.x[:, :-1], query[:, None].to(prompts.x)), 1))
        exchanged = x + left @ (change * (values[..., None] * right)), y + left @ (change * (left.mT @ y))
        return Change((asked, with_examples(asked, *(part.to(prompts.x) for part in exchanged))), at_last(unchanged))

"""Lemma 1."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from algoscope.constructions import sum_of_tokens


@settings(max_examples=20, deadline=None)
@given(dim=st.integers(1, 6), length=st.integers(1, 20), seed=st.integers(0, 10**6))
def test_every_token_answers_with_the_sum(dim, length, seed):
    tokens = torch.randn(2, length, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    with torch.no_grad():
        found = sum_of_tokens(dim, length)(tokens)
    torch.testing.assert_close(found, tokens.sum(1, keepdim=True).expand_as(tokens), rtol=1e-12, atol=1e-12)

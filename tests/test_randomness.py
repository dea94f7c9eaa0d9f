import numpy as np
import torch

from algoscope.randomness import stream


def test_one_seed_gives_unrelated_numbers_to_different_purposes():
    a, b = (torch.randn(100_000, generator=stream(purpose, 0)).numpy() for purpose in ("prompts", "start"))
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.02
    assert abs(np.corrcoef(a**2, b**2)[0, 1]) < 0.02


def test_a_stream_depends_on_its_seed_and_purpose_alone():
    a, b, c = (torch.rand(4, generator=stream("prompts", seed)) for seed in (3, 3, 4))
    assert torch.equal(a, b)
    assert not torch.equal(a, c)

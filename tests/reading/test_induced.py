"""Induced weights against projections."""

import torch

from algoscope.reading.induced import outside_span
from algoscope.tasks import LinearRegression

TASK = LinearRegression(dim=4, examples=10)
PROMPTS = TASK.sample(60, seed=0)


def test_what_lies_outside_the_span_is_measured():
    seen = PROMPTS.x[:, :2].mT  # [batch, dim, 2]
    inside = (seen @ torch.randn(60, 2, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64))[..., 0]
    q, _ = torch.linalg.qr(seen)
    random = torch.randn(60, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    across = random - (q @ (q.mT @ random[..., None]))[..., 0]
    shares = outside_span(torch.stack([inside, across, random]), PROMPTS, 2)
    torch.testing.assert_close(shares[:, 0], torch.zeros(60, dtype=torch.float64), atol=1e-12, rtol=0)
    torch.testing.assert_close(shares[:, 1], torch.ones(60, dtype=torch.float64))
    torch.testing.assert_close(shares[:, 2], across.square().sum(1) / random.square().sum(1))

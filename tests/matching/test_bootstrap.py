"""Tests over many cells at once, on numbers of which the truth is known."""

import torch

from algoscope.matching.bootstrap import larger_than_zero, resampling


def test_a_cell_of_one_sequence_does_not_hide_the_others():
    generator = torch.Generator().manual_seed(0)
    clear = 0.4 + 0.1 * torch.randn(1000, generator=generator, dtype=torch.float64)  # 126 standard errors
    outlier = torch.zeros(1000, dtype=torch.float64)
    outlier[3] = 50.0
    draws = resampling(1000, 400, 0)
    found = larger_than_zero(torch.stack([clear, outlier, 0.4 - clear], dim=1), draws, 0.95, 1e-9)
    assert found.tolist() == [True, False, False]
    assert not larger_than_zero(outlier[:, None], draws, 0.95, 1e-9).item()


def test_of_many_cells_without_a_mean_one_is_found_as_rarely_as_promised():
    generator, draws = torch.Generator().manual_seed(1), resampling(80, 300, 0)
    alarms = 0
    for _ in range(300):
        values = torch.randn(80, 12, generator=generator, dtype=torch.float64).pow(3)  # heavy tails
        alarms += bool(larger_than_zero(values, draws, 0.95, 1e-9).any())
    assert alarms / 300 < 0.025 + 3 * (0.025 * 0.975 / 300) ** 0.5

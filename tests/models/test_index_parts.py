"""Scores, and how they are folded."""

import numpy as np
import pytest
import torch
from scipy import stats

from algoscope.models.index_parts import Score, folded


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_folds_make_a_gray_code_of_signs():
    """Cells that follow each other in the order differ in one sign, and points run through each cell without a jump."""
    signs = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * 3)
    first = torch.linspace(-3, 3, 41)
    numbers = torch.cat([torch.stack([first, *(s.expand(41) for s in 10 * cell)], -1) for cell in signs]).double()
    scores = Score()(numbers)
    cells = scores.view(8, 41)
    order = cells.mean(1).argsort()
    assert (signs[order].diff(dim=0) != 0).sum(1).tolist() == [1] * 7
    runs = cells[order]
    assert bool((runs.amax(1)[:-1] <= runs.amin(1)[1:] + 1e-9).all())
    assert all(bool((run.diff() > 0).all() or (run.diff() < 0).all()) for run in runs)
    turns = [bool(run[0] < run[-1]) for run in runs]
    assert turns == [turns[0], not turns[0]] * 4  # each cell is run through the other way round


def wound(points: list[int], numbers: np.ndarray) -> list[int]:
    """The judge of folded orders: lower half, then the upper one the other way round."""
    ranked = sorted(points, key=lambda point: numbers[point, -1])
    if numbers.shape[1] == 1:
        return ranked
    half = len(ranked) // 2
    lower, upper = (wound(part, numbers[:, :-1]) for part in (ranked[:half], ranked[half:]))
    return lower + upper[::-1]


@pytest.mark.parametrize("count", [1, 2, 7, 8, 50])
@pytest.mark.parametrize("folds", [1, 2, 3])
def test_a_fold_halves_every_part_of_the_set(count, folds):
    """Wherever it lies. Numbers are far apart here: one next to the middle is also next to the fold."""
    numbers = np.random.default_rng(count).permuted(np.arange(float(count))[:, None].repeat(1 + folds, 1), axis=0)
    scores = folded(torch.tensor(np.column_stack([numbers[:, 0] / 50, numbers[:, 1:]]) - 100.0 * np.arange(1 + folds)))
    assert scores.argsort().tolist() == wound(list(range(count)), numbers)


@pytest.mark.parametrize("folds", [0, 2])
def test_scores_do_not_depend_on_where_numbers_lie_nor_on_how_far_apart_they_are(folds):
    """Without folds they are the numbers themselves, standardized as scipy does."""
    numbers = torch.randn(3, 9, 1 + folds, dtype=torch.float64)
    torch.testing.assert_close(Score()(1000 * numbers - 7), Score()(numbers), rtol=1e-4, atol=1e-5)
    if not folds:
        judge = np.asarray(stats.zscore(numbers[..., 0].numpy(), axis=-1))
        np.testing.assert_allclose(Score()(numbers).numpy(), judge, atol=1e-5)


@pytest.mark.parametrize("folds", [0, 2])
def test_points_that_are_all_the_same_have_finite_scores_and_gradients(folds):
    numbers = torch.full((1, 4, 1 + folds), 0.3, requires_grad=True)
    scores = Score()(numbers)
    scores.sum().backward()
    assert scores.detach().unique().numel() == 1
    assert numbers.grad is not None
    assert bool(numbers.grad.isfinite().all())

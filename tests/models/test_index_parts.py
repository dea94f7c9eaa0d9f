"""The parts of an index against their formulas: scores and folds, sorting, look-ups, and what networks see."""

import numpy as np
import pytest
import torch
from scipy import special, stats

from algoscope.models.index_parts import Look, Score, Sort, by_point, compared, folded, fourier_features, sorted_by


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


@pytest.mark.parametrize("points", [1, 2, 9])
def test_sorting_keeps_the_points_as_they_are_and_has_a_gradient(points):
    scores = torch.randn(3, points, generator=generator(), dtype=torch.float64).requires_grad_()
    values = torch.randn(3, points, 2, generator=generator(1), dtype=torch.float64)
    order, soft = Sort(0.5)(scores, True)
    assert torch.equal(order, scores.argsort(-1))
    stored = sorted_by(values, order, soft)
    assert torch.equal(stored.detach(), values.gather(1, order[..., None].expand(-1, -1, 2)))
    assert torch.equal(stored.detach(), sorted_by(values, *Sort(0.5)(scores, False)))
    stored[:, 0].sum().backward()
    assert scores.grad is not None
    assert bool(scores.grad.any()) == (points > 1)


def test_the_soft_sort_is_the_softmax_of_distances_and_hardens():
    scores = torch.randn(4, 6, generator=generator(), dtype=torch.float64)
    order, soft = Sort(0.3)(scores, True)
    ranked = np.sort(scores.numpy())
    expected = special.softmax(-np.abs(ranked[:, :, None] - scores.numpy()[:, None, :]) / 0.3, axis=-1)
    np.testing.assert_allclose(soft, expected, rtol=1e-12)
    hard = torch.nn.functional.one_hot(order, 6).double()
    torch.testing.assert_close(Sort(1e-6)(scores, True)[1], hard)


def test_weights_of_places_become_weights_of_points():
    scores = torch.randn(5, 7, generator=generator(), dtype=torch.float64)
    order, soft = Sort(0.1)(scores, True)
    weights = torch.randn(5, 3, 9, generator=generator(1), dtype=torch.float64).log_softmax(-1)  # and of two slots
    found = by_point(weights, order.argsort(-1), soft)
    for b in range(5):
        for place, point in enumerate(order[b].tolist()):
            assert torch.equal(found[b, :, point], weights[b, :, place])
    assert torch.equal(found[..., 7:], weights[..., 7:])


def test_noisy_look_ups_are_samples_of_the_softmax():
    """The place with the most weight is drawn with the chances of the softmax, whatever the temperature (Gumbel)."""
    logits = torch.tensor([0.0, 1.0, -1.0, 2.0], dtype=torch.float64).expand(40_000, 1, 4)
    noise = torch.rand(40_000, 1, 4, generator=generator(), dtype=torch.float64)
    stored = torch.randn(40_000, 4, 2, generator=generator(1), dtype=torch.float64)
    weights, values = Look(2.0, True)(logits, stored, noise)
    torch.testing.assert_close(values, weights.exp() @ stored)
    shares = torch.bincount(weights.argmax(-1).flatten(), minlength=4).double() / 40_000
    torch.testing.assert_close(shares, logits[0, 0].softmax(-1), rtol=0, atol=0.01)
    plain, _ = Look(2.0, False)(logits, stored, noise)
    torch.testing.assert_close(plain, (logits / 2).log_softmax(-1))


def test_hard_look_ups_read_exactly_what_is_stored():
    logits = torch.randn(6, 2, 5, generator=generator())
    stored = torch.randn(6, 5, 3, generator=generator(1))
    weights, values = Look(2.0, True)(logits, stored, None)
    assert torch.equal(weights.exp(), torch.nn.functional.one_hot(logits.argmax(-1), 5).float())
    assert torch.equal(values, stored.gather(1, logits.argmax(-1)[..., None].expand(-1, -1, 3)))


def test_fourier_features_are_sines_and_cosines_of_octaves():
    numbers = torch.rand(4, 3, 2, generator=generator(), dtype=torch.float64) * 2 - 1
    seen = fourier_features(numbers, 3).numpy()
    np.testing.assert_array_equal(seen[..., :2], numbers)
    turns = np.exp(1j * np.pi * np.multiply.outer(2.0 ** np.arange(3), numbers.numpy()))  # [octave, ..., coordinate]
    waves = np.stack([np.imag(turns), np.real(turns)], 1)  # [octave, sine or cosine, ..., coordinate]
    np.testing.assert_allclose(seen[..., 2:], np.moveaxis(waves, (0, 1), (2, 3)).reshape(4, 3, 12), atol=1e-12)
    assert torch.equal(fourier_features(numbers, 0), numbers)


def test_the_extremes_of_the_noise_are_finite():
    logits, stored = torch.zeros(1, 1, 3), torch.ones(1, 3, 1)
    for extreme in (0.0, 1 - 2**-24, 1.0):
        weights, values = Look(2.0, True)(logits, stored, torch.full((1, 1, 3), extreme))
        assert bool(weights.isfinite().all())
        assert float(values) == pytest.approx(1.0)


def test_comparisons_tell_sides_and_distances_of_all_sizes():
    apart = torch.tensor([-2.0, -0.01, 0.0, 1e-4, 1.0])
    seen = compared(torch.zeros(5), apart)
    assert seen.sign().tolist() == apart.sign().tolist()
    assert bool((seen.diff() > 0).all())
    assert float(seen[-1]) == pytest.approx(1.0)

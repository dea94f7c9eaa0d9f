"""Changes and their defects, computed by hand with numpy on tiny prompts."""

import numpy as np
import pytest
import torch

import algoscope as ag
from algoscope.symmetries import (
    AddQueries,
    AddTargets,
    ExchangeSpectrum,
    FlipExamples,
    FreshValues,
    MixExamples,
    PermuteExamples,
    RedrawOutsideComponent,
    RelabelNodes,
    RotateInputs,
    ScaleInputs,
    changed,
    defects,
)
from algoscope.tasks import Connectivity, LinearRegression, UniformSearch
from algoscope.trace import Prompts

PROMPTS = LinearRegression(dim=2, examples=4).sample(2, seed=0)


def arrays(symmetry: ag.Symmetry, prompts: Prompts = PROMPTS) -> list[tuple[np.ndarray, np.ndarray]]:
    """x and y of the second of the prompts, in each version."""
    return [(each.x[1].numpy(), each.y[1].numpy()) for each in changed(symmetry, prompts).prompts]


def least_squares(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The answer at the last position."""
    return x[-1] @ np.linalg.lstsq(x[:-1], y[:-1], rcond=None)[0]


def test_targets_are_added():
    (x, y), (same, other), (also, total) = arrays(AddTargets())
    assert np.array_equal(x, same)
    assert np.array_equal(x, also)
    np.testing.assert_allclose(total, (y + other) / np.sqrt(2))
    weights = np.linalg.lstsq(x, other, rcond=None)[0]
    np.testing.assert_allclose(x @ weights, other)  # without noise they are linear in x
    assert np.linalg.norm(other - y) > 0.1


def test_queries_are_added():
    (x, y), (second, same), (third, _) = arrays(AddQueries())
    assert np.array_equal(y, same)
    assert np.array_equal(x[:-1], second[:-1])
    np.testing.assert_allclose(third[-1], (x[-1] + second[-1]) / np.sqrt(2))


def test_examples_are_permuted_mixed_and_flipped():
    for symmetry in (PermuteExamples(), MixExamples(), FlipExamples()):
        (x, y), (other_x, other_y) = arrays(symmetry)
        assert not np.allclose(x, other_x)
        assert np.array_equal(x[-1], other_x[-1])
        assert y[-1] == other_y[-1]
        before, after = (np.column_stack(pair)[:-1] for pair in ((x, y), (other_x, other_y)))
        np.testing.assert_allclose(after.T @ after, before.T @ before)
        np.testing.assert_allclose(least_squares(other_x, other_y), least_squares(x, y))
        if isinstance(symmetry, PermuteExamples):
            np.testing.assert_allclose(np.sort(after, 0), np.sort(before, 0))
        if isinstance(symmetry, FlipExamples):
            signs = after[:, :1] / before[:, :1]
            assert set(np.round(signs.ravel(), 12)) <= {-1.0, 1.0}
            np.testing.assert_allclose(after, signs * before)


def test_inputs_are_rotated_and_scaled():
    (x, y), (turned, same) = arrays(RotateInputs())
    np.testing.assert_allclose(turned @ turned.T, x @ x.T)
    assert not np.allclose(turned, x)
    assert np.array_equal(y, same)
    scaled = changed(ScaleInputs(3.0), ag.Prompts(PROMPTS.x, PROMPTS.y, 0.5, 2.0)).prompts[1]
    assert torch.equal(scaled.x, 3 * PROMPTS.x)
    assert torch.equal(scaled.y, 3 * PROMPTS.y)
    assert (scaled.noise, scaled.power) == (1.5, 18.0)


def test_a_spectrum_is_exchanged():
    prompts = LinearRegression(dim=3, examples=5, noise=0.4).sample(2, seed=0)
    x, y = prompts.x[1, :-1].numpy(), prompts.y[1, :-1].numpy()
    left, values, right = np.linalg.svd(x, full_matrices=False)
    (asked, same), (other, targets) = arrays(ExchangeSpectrum(), prompts)
    assert np.array_equal(asked[:-1], x)
    assert np.array_equal(same[:-1], y)
    for query in (asked[-1], other[-1]):
        wanted = [0.0, float(prompts.x[1, -1].norm()), 0.0]
        np.testing.assert_allclose(np.abs(right @ query), wanted, atol=1e-12)
    ratios = np.diag(left.T @ other[:-1] @ right.T) / values
    np.testing.assert_allclose(left @ np.diag(ratios * values) @ right, other[:-1], atol=1e-12)
    assert ratios[1] == pytest.approx(1)
    assert np.all((ratios >= 0.5 - 1e-9) & (ratios <= 1 + 1e-9))
    np.testing.assert_allclose(np.delete(ratios, 1) < 0.999, True)
    np.testing.assert_allclose(left.T @ targets[:-1], ratios * (left.T @ y))  # X w, with the same w
    np.testing.assert_allclose(least_squares(other, targets), least_squares(asked, same))


def test_defects_of_given_answers():
    first, second, third = (torch.full((1, 2, 5), value, dtype=torch.float64) for value in (1.0, 3.0, 5.0))
    change = changed(AddTargets(), PROMPTS)
    np.testing.assert_allclose(change.defect([first, second, third]), 5 - 4 / np.sqrt(2))
    relative = (5 - 4 / np.sqrt(2)) / np.sqrt((25 + 8) / 2)
    np.testing.assert_allclose(change.relative_defect([first, second, third]), [relative])
    assert changed(AddQueries(), PROMPTS).defect([first, second, third]).shape == (1, 2, 1)
    assert float(changed(ScaleInputs(2.0), PROMPTS).relative_defect([0 * first, 0 * first])) == 0


def test_fresh_values_keep_the_order_and_equal_values():
    x = torch.tensor([[4.0, 9.0, 2.0, 7.0, 2.0]], dtype=torch.float64)[..., None]
    prompts = Prompts(x, torch.tensor([[2.0]], dtype=torch.float64))  # four points; the query is the third
    fresh = changed(FreshValues(0.0, 9.0, whole=True), prompts).prompts[1]
    values = fresh.x[0, :, 0]
    assert values.argsort(stable=True).tolist() == [2, 4, 0, 3, 1]
    assert values[2] == values[4]
    assert len(values.unique()) == 4
    assert bool(((values == values.round()) & (values >= 0) & (values <= 9)).all())
    assert fresh.y.tolist() == [[2.0]]
    change, reads = changed(FreshValues(), prompts), torch.zeros(4, 1, 1, dtype=torch.float64)
    assert change.defect([reads, reads + 1])[:, 0, 0].tolist() == [1, 1, 0, 0]  # two look-ups are sure of four points
    assert change.relative_defect([reads, reads]).tolist() == [0] * 4


def test_nodes_are_relabeled_and_the_rest_of_a_graph_is_redrawn():
    prompts = Connectivity(nodes=6, chance=0.3).sample(32, seed=0)
    change = changed(RelabelNodes(), prompts)
    numbers = torch.arange(36, dtype=torch.float64).reshape(1, 1, 6, 6).expand(1, 32, 6, 6)
    _, expected = change.law([numbers, numbers])
    for b in range(32):
        order = (expected[0, b].diagonal() / 7).long().numpy()  # entry (i, i) is 7 i
        np.testing.assert_array_equal(change.prompts[1].x[b], prompts.x[b].numpy()[np.ix_(order, order)])
        np.testing.assert_array_equal(change.prompts[1].y[b], prompts.y[b].numpy()[np.ix_(order, order)])
    change = changed(RedrawOutsideComponent(0.3), prompts)
    other = change.prompts[1]
    found, expected = change.law([prompts.y[None], other.y[None]])
    assert torch.equal(found, expected)
    assert bool((other.x != prompts.x).any())
    for b in range(32):  # some component has stayed with all its edges
        kept = [row.bool() for row in prompts.y[b] if torch.equal(other.x[b][row.bool()], prompts.x[b][row.bool()])]
        assert kept


def test_single_nodes_single_points_and_single_numbers_are_welcome():
    for task in (
        Connectivity(nodes=1),
        UniformSearch(size=1),
        LinearRegression(dim=1, examples=0),
        LinearRegression(dim=1, examples=1, targets=2),
    ):
        for symmetry in task.symmetries:
            ag.testing.check_symmetry(symmetry, task)


@pytest.mark.parametrize("symmetry", LinearRegression(dim=3, examples=5).symmetries, ids=lambda each: each.name)
def test_single_precision_gives_the_same_change(symmetry):
    task = LinearRegression(dim=3, examples=5)
    single, double = (changed(symmetry, task.sample(4, 0, dtype=dtype)) for dtype in (torch.float32, torch.float64))
    for a, b in zip(single.prompts, double.prompts, strict=True):
        assert a.x.dtype == a.y.dtype == torch.float32
        torch.testing.assert_close(a.x.double().abs(), b.x.abs(), rtol=1e-4, atol=1e-5)  # the sign of v is free


def test_a_seed_names_a_change():
    for task in (LinearRegression(dim=3, examples=5), UniformSearch(size=5), Connectivity(nodes=6)):
        for symmetry in task.symmetries:
            prompts = task.sample(8, seed=0)
            first, again, other = (changed(symmetry, prompts, seed).prompts[1] for seed in (0, 0, 1))
            assert first.same_as(again)
            assert first.same_as(other) == isinstance(symmetry, ScaleInputs)


@pytest.mark.usefixtures("as_users_run_it")
def test_what_cannot_be_changed_is_named():
    with pytest.raises(ValueError, match="prompts must be those of a search among points with one coordinate"):
        changed(FreshValues(), UniformSearch(size=3, dim=2).sample(1, 0))
    with pytest.raises(ValueError, match="prompts must ask about every point"):
        changed(MixExamples(), UniformSearch(size=3).sample(1, 0))
    with pytest.raises(ValueError, match="low must be less than high"):
        FreshValues(1.0, 1.0)
    with pytest.raises(ValueError, match="factor must be a finite number > 0"):
        ScaleInputs(0.0)
    with pytest.raises(ValueError, match="chance must be a finite number"):
        RedrawOutsideComponent(-0.1)
    with pytest.raises(ValueError, match="seed must be an integer >= 0"):
        defects(lambda prompts: prompts.y[None], AddTargets(), PROMPTS, seed=-1)

"""Which directions decide a look-up: regressions against scikit-learn, subspaces against planted ones."""

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

from algoscope.reading import subspace
from algoscope.reading.subspace import logistic


def sphere(count: int, dim: int = 30) -> torch.Tensor:
    drawn = torch.randn(count, dim, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return drawn / drawn.norm(dim=1, keepdim=True)


def sectors(queries: torch.Tensor, plane: torch.Tensor) -> torch.Tensor:
    """Eight parts of a plane, by the angle."""
    x, y = (queries @ plane).unbind(1)
    return ((torch.atan2(y, x) + torch.pi) / (2 * torch.pi) * 8).floor().long().clamp(max=7)


def test_regressions_are_those_of_scikit_learn():
    queries = sphere(400, 5)
    chosen = queries[:, 0] + 0.3 * queries[:, 2] > 0.4
    theirs = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(queries.numpy(), chosen.numpy())
    np.testing.assert_allclose(logistic(queries, chosen).numpy(), theirs.coef_[0], atol=1e-5)


def test_a_plane_that_decides_is_found():
    queries = sphere(4000)
    plane = torch.linalg.qr(torch.randn(30, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)).Q
    found = subspace(queries, sectors(queries, plane))
    assert float(found.shares[:2].sum()) > 0.97
    inside = (found.axes[:2] @ plane).square().sum(1)  # 1 for a direction of the plane
    assert float(inside.min()) > 0.97
    pca = PCA().fit(found.weights.numpy())
    np.testing.assert_allclose(found.shares.numpy()[:7], pca.explained_variance_ratio_[:7], atol=1e-9)


def test_eight_directions_of_their_own_fill_seven_dimensions():
    queries = sphere(4000)
    found = subspace(queries, (queries @ sphere(8).mT).argmax(1))
    assert float(found.shares[:2].sum()) < 0.5
    assert float(found.shares[:7].sum()) == pytest.approx(1.0)


@pytest.mark.usefixtures("as_users_run_it")
def test_what_says_nothing_is_named():
    with pytest.raises(ValueError, match="places must differ"):
        subspace(sphere(5), torch.zeros(5).long())
    with pytest.raises(ValueError, match="as many, and not none; got 5 and 4"):
        subspace(sphere(5), torch.zeros(4).long())

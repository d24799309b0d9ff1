"""Covariances of items."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

from heedful.inference.gp.kernels import kernel_for

X = np.random.default_rng(0).normal(size=(9, 3)) * [1.0, 50.0, 0.01] + 7.0


def test_the_kernel_is_that_of_the_paper() -> None:
    """exp(-d^2 / (2 l^2)) over standardised features, l the median distance: [H12] section 6.1."""
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    d = pdist(Z)
    np.testing.assert_allclose(kernel_for(X).over(X), np.exp(-0.5 * (squareform(d) / np.median(d)) ** 2), atol=1e-12)
    np.testing.assert_allclose(kernel_for(X, 2.0, 3.0).over(X), 9.0 * np.exp(-0.125 * squareform(d) ** 2), atol=1e-12)


def test_units_do_not_matter_and_a_constant_says_nothing() -> None:
    K = kernel_for(X).over(X)
    scaled = X * [3.0, 0.1, 1e6] - 5.0
    np.testing.assert_allclose(kernel_for(scaled).over(scaled), K, atol=1e-9)
    more = np.column_stack([X, np.full(9, 0.1)])
    np.testing.assert_allclose(kernel_for(more).over(more), K, atol=1e-12)


def test_each_feature_its_own_lengthscale() -> None:
    """A feature with a huge one says nothing."""
    K = kernel_for(X, [1.0, 2.0, 1e9]).over(X)
    np.testing.assert_allclose(K, kernel_for(X[:, :2], [1.0, 2.0]).over(X[:, :2]), atol=1e-12)


def test_new_items_have_the_scale_of_the_old() -> None:
    kernel = kernel_for(X)
    both = kernel.over(np.vstack([X, X[:2] + 0.01]))
    np.testing.assert_allclose(both[:9, 9:], kernel.between(X, X[:2] + 0.01))
    np.testing.assert_allclose(both[:9, :9], kernel.over(X))


def test_identical_items_and_none() -> None:
    twice = np.vstack([X, X[:1]])
    K = kernel_for(twice).over(twice)
    assert K[0, 9] == 1.0
    np.testing.assert_array_equal(K[0], K[9])
    same = np.ones((4, 2))
    np.testing.assert_array_equal(kernel_for(same).over(same), 1.0)


def test_items_without_features_are_each_for_itself() -> None:
    none = np.empty((4, 0))
    kernel = kernel_for(none, amplitude=2.0)
    np.testing.assert_array_equal(kernel.over(none), 4.0 * np.eye(4))
    np.testing.assert_array_equal(kernel.between(none, none[:2]), np.zeros((4, 2)))


@pytest.mark.parametrize(
    "given",
    [{"lengthscale": "mean"}, {"lengthscale": 0.0}, {"lengthscale": [1.0, 2.0]}, {"lengthscale": [1.0, 2.0, np.nan]}],
)
def test_bad_lengthscales_are_refused_by_name(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="lengthscale: expected"):
        kernel_for(X, **given)
    with pytest.raises(ValueError, match="amplitude: expected"):
        kernel_for(X, amplitude=-1.0)


def test_the_half_that_is_worked_out_is_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """In blocks of rows, bit for bit; also of items that were looked at before, and of none."""
    for n in (1, 2, 9, 40):
        Z = np.random.default_rng(n).normal(size=(n, 3))
        for block in (1, 50, 1 << 14):
            monkeypatch.setattr("heedful.inference.gp.kernels._BLOCK", block)
            of = kernel_for(Z)
            np.testing.assert_array_equal(of.over(Z), of.between(Z, Z))
            assert of.over(Z[:0]).shape == (0, 0)
            assert n < 3 or of.lengthscale[0] == pytest.approx(np.median(pdist(Z / Z.std(axis=0))))

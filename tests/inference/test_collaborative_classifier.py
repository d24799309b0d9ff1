"""The plain Gaussian process classifier of [H12] section 4, and the toy of its Figure 1."""

from __future__ import annotations

import numpy as np
import pytest
from crowded import covariance

from heedful.inference.collaborative.classifier import fit_labels
from heedful.inference.gp.acquisition import bald, mes
from naive_collaborative import classifier_sites


def test_labels_are_the_textbook() -> None:
    rng = np.random.default_rng(0)
    X, other = rng.normal(size=(9, 1)), rng.normal(size=(4, 1))
    y = np.where(rng.random(9) < 0.5, 1.0, -1.0)
    K = covariance(np.concatenate([X, other]), 0.7, 1.5)
    own, across = K[:9, :9], K[9:, :9]
    t, n = classifier_sites(own, np.zeros(9), y.tolist())
    hold = np.linalg.inv(own + np.diag(1.0 / t))
    got = fit_labels(own, y)
    mean, var = got.predict(across, np.full(4, 2.25))
    np.testing.assert_allclose(mean, across @ hold @ (n / t), atol=1e-7)
    np.testing.assert_allclose(var, 2.25 - np.diag(across @ hold @ across.T), atol=1e-7)
    np.testing.assert_allclose(got.predict(own, np.full(9, 2.25))[0], got.posterior.mean, atol=1e-7)


def test_turning_labels_round() -> None:
    K = covariance(np.arange(4.0)[:, None])
    y = np.array([1, 1, -1, 1])
    across = K[:2]
    one, turned = fit_labels(K, y), fit_labels(K, -y)
    np.testing.assert_allclose(one.predict(across, np.ones(2))[0], -turned.predict(across, np.ones(2))[0])
    assert one.log_evidence == pytest.approx(turned.log_evidence, abs=1e-9)


def test_bald_asks_where_it_does_not_know_and_mes_where_nobody_can() -> None:
    """[H12] Figure 1: labels that contradict one another in the middle, none on the right."""
    x = np.concatenate([np.full(5, -3.0), np.full(40, 0.0), np.full(5, 3.0)])
    y = np.concatenate([np.ones(5), np.tile([1.0, -1.0], 20), -np.ones(5)])
    grid = np.linspace(-3.5, 9.0, 126)
    K = covariance(np.concatenate([x, grid])[:, None], 1.0, 2.0)
    got = fit_labels(K[:50, :50], y)
    mean, var = got.predict(K[50:, :50], np.full(126, 4.0))
    seen = np.abs(grid) < 0.15
    by_mes, by_bald = mes(mean, var), bald(mean, var)
    assert by_mes[seen].max() > 0.99
    assert by_bald[seen].max() < 0.1
    assert grid[by_bald.argmax()] > 5.0


def test_refusals() -> None:
    with pytest.raises(ValueError, match="y: expected 2 labels, each -1 or 1"):
        fit_labels(np.eye(2), [0, 1])

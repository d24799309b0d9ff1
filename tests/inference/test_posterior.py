"""What a Gaussian of utilities says of choices."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from heedful.inference.gp.posterior import Posterior, product


def some(n: int = 5) -> Posterior:
    rng = np.random.default_rng(0)
    A = rng.normal(size=(n, n))
    return Posterior(rng.normal(size=n), A @ A.T / n)


def test_probabilities_are_those_of_draws() -> None:
    posterior = some()
    f = posterior.draws(400_000, 1)
    np.testing.assert_allclose(f.mean(axis=0), posterior.mean, atol=0.01)
    np.testing.assert_allclose(np.cov(f.T), posterior.cov, atol=0.02)
    assert posterior.better(0, 3) == pytest.approx((f[:, 0] > f[:, 3]).mean(), abs=0.005)
    assert posterior.beats(0, 3) == pytest.approx(norm.cdf(f[:, 0] - f[:, 3]).mean(), abs=0.005)
    centred = f - f.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(posterior.sd(), centred.std(axis=0), atol=0.01)


def test_two_items_in_closed_form() -> None:
    posterior = Posterior(np.array([1.0, 0.0]), np.array([[2.0, 0.5], [0.5, 1.0]]))
    assert posterior.gap(0, 1) == (1.0, 2.0)
    assert posterior.beats(0, 1) == pytest.approx(norm.cdf(1 / np.sqrt(3)))
    assert posterior.better(0, 1) == pytest.approx(norm.cdf(1 / np.sqrt(2)))


def test_a_ranking_is_by_mean_ties_to_the_lowest_number() -> None:
    assert Posterior(np.array([0.0, 1.0, 0.0, 1.0]), np.eye(4)).ranking().tolist() == [1, 3, 0, 2]


def test_items_that_are_the_same_share() -> None:
    sure = Posterior(np.zeros(4), np.zeros((4, 4)))
    assert (sure.beats(0, 1), sure.better(0, 1)) == (0.5, 0.5)
    np.testing.assert_allclose(Posterior(np.zeros(3), np.ones((3, 3))).sd(), 0.0, atol=1e-12)


@pytest.mark.parametrize("rank", [0, 3, 6])
def test_draws_of_items_that_hang_together_and_of_others(rank: int) -> None:
    """Six items with a covariance of any rank, two of them the same; the others each for itself, one known for sure."""
    rng = np.random.default_rng(rank)
    cov, some_of = np.diag([2.0, 0.0, 1.0, 0.5, 3.0, 1.0, 0.2, 1.0, 1.0]), np.array([8, 2, 5, 0, 6, 3])
    A = rng.normal(size=(6, rank))
    A[4] = A[3]
    cov[np.ix_(some_of, some_of)] = A @ A.T
    posterior = Posterior(np.arange(9.0), cov)
    f = posterior.draws(200_000, 3)
    np.testing.assert_allclose(f.mean(axis=0), posterior.mean, atol=0.03)
    np.testing.assert_allclose(np.cov(f.T), cov, atol=0.08)
    np.testing.assert_allclose(f[:, 6] - 6.0, f[:, 0], atol=1e-6)
    assert (f[:, 1] == 1.0).all()
    np.testing.assert_array_equal(f, posterior.draws(200_000, 3))


@pytest.mark.parametrize("small", [1, 50, 700, 1 << 18])
def test_a_product_in_parts(monkeypatch: pytest.MonkeyPatch, small: int) -> None:
    monkeypatch.setattr("heedful.inference.gp.posterior._SMALL", small)
    rng = np.random.default_rng(0)
    for h, q, n in ((1, 1, 1), (3, 5, 40), (7, 2, 13), (4, 3, 0), (2, 0, 5)):
        a, b = rng.normal(size=(h, q)), rng.normal(size=(n + 1, q))[1:]
        np.testing.assert_allclose(product(a, b), a @ b.T, atol=1e-12)

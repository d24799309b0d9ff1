"""Everybody's utilities kept over the items that they met: the same numbers as over all items."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from heedful.inference.gp import hierarchical
from heedful.inference.gp.hierarchical import fit
from heedful.inference.gp.per_user_ep import PerUserPosteriors
from heedful.inference.gp.response_noise import NoisePrior
from heedful.inference.pairwise import PairRows, concatenate, order_rows, pair_rows
from one_person import infer

Array = npt.NDArray[np.float64]


def kernel(n: int, features: bool) -> Array:
    X = np.random.default_rng(0).normal(size=(n, 2))
    return np.exp(-0.25 * np.square(X[:, None] - X).sum(axis=2)) if features else np.eye(n)


@pytest.mark.parametrize("features", [False, True])
@pytest.mark.parametrize(("nu0", "learns"), [(None, False), (0.0, False), (3.0, True)])
def test_what_was_met_is_enough(
    features: bool, nu0: float | None, learns: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """40 items, 30 of which somebody met, up to 18 each: the same population, people, evidence, noise."""
    rng = np.random.default_rng(1)
    K = kernel(40, features)
    rows = ordered(9, 30, rng)
    noise = NoisePrior() if learns else None
    few = fit(K, 9, rows, nu0=nu0, kappa0=1.0, width=0.3, noise=noise, steps=12, tolerance=1e-6)
    monkeypatch.setattr(hierarchical, "SMALL", 10**6)
    all_of = fit(K, 9, rows, nu0=nu0, kappa0=1.0, width=0.3, noise=noise, steps=12, tolerance=1e-6)
    assert isinstance(few.people, PerUserPosteriors)
    assert not isinstance(all_of.people, PerUserPosteriors)
    # Rates and widths are halved down to 1e-8, and the kernel of features is close to singular
    near = 1e-6 if learns or features else 1e-9
    np.testing.assert_allclose(few.population.mean, all_of.population.mean, rtol=near, atol=near)
    np.testing.assert_allclose(few.population.cov, all_of.population.cov, rtol=near, atol=near)
    np.testing.assert_allclose(few.trace, all_of.trace, atol=1e-6)
    np.testing.assert_allclose(few.people.mean, all_of.people.mean, atol=1e-4)
    np.testing.assert_allclose(few.people.cov, all_of.people.cov, atol=1e-4)
    for a, b in zip(few.noise, all_of.noise):
        np.testing.assert_allclose(a, b, atol=1e-6)


def ordered(users: int, met: int, rng: np.random.Generator) -> PairRows:
    """Answers of several kinds about the first `met` items, people's mixed up; the last says nothing."""
    parts = []
    for u in range(users - 1):
        pairs = np.array([rng.choice(met, 2, replace=False) for _ in range(4 + u % 5)])
        parts += [pair_rows(pair, None, tie, u) for pair, tie in zip(pairs, rng.random(len(pairs)) < 0.1)]
    parts += [order_rows([1, 5, 3], user=0), order_rows([2, [7, 9, 4]], user=2)]
    return concatenate([parts[i] for i in rng.permutation(len(parts))])


def test_of_each_person_it_is_inference_with_that_prior() -> None:
    K = kernel(40, True)
    rows = ordered(6, 30, np.random.default_rng(2))
    got = fit(K, 6, rows, width=0.3, kappa0=1.0)
    for user in range(6):
        mine = rows.user == user
        own = PairRows(*(column[mine] for column in rows))
        wanted = infer(got.population.cov, got.population.mean, own, width=0.3)
        posterior = got.people.of(user)
        np.testing.assert_allclose(posterior.mean, wanted.posterior.mean, atol=1e-4)
        np.testing.assert_allclose(posterior.cov, wanted.posterior.cov, atol=1e-4)
        assert got.people.log_evidence[user] == pytest.approx(wanted.log_evidence, abs=1e-4)
    np.testing.assert_allclose(got.people.of(5).cov, got.population.cov)

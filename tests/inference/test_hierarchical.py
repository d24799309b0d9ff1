"""Many people: EM against one person after the other in pair space, new people, new items, odd people."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from heedful.inference.gp import hierarchical as module
from heedful.inference.gp.ep import infer_users
from heedful.inference.gp.hierarchical import Population, add_items, extend_population, fit, maximise_population
from heedful.inference.gp.kernels import kernel_for
from heedful.inference.pairwise import PairRows, concatenate, pair_rows
from naive_preferences import hierarchical
from one_person import infer

Array = npt.NDArray[np.float64]


def kernel(n: int, seed: int = 0) -> Array:
    X = np.random.default_rng(seed).normal(size=(n, 2))
    return kernel_for(X).over(X) + 0.05 * np.eye(n)


def crowd(users: int, n: int, each: int, seed: int, noise: float = 1.0) -> tuple[PairRows, Array, Population]:
    """Answers of people whose utilities are drawn from a population with a mean and two directions of taste."""
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(n, 2))
    population = Population(2.0 * rng.normal(size=n), 2.0 * B @ B.T + 0.2 * np.eye(n))
    f = rng.multivariate_normal(population.mean, population.cov, users)
    rows = []
    for u in range(users):
        pairs = np.array([rng.choice(n, 2, replace=False) for _ in range(each)])
        gap = f[u, pairs[:, 0]] - f[u, pairs[:, 1]] + noise * rng.normal(size=each)
        rows.append(pair_rows(np.where(gap[:, None] > 0, pairs, pairs[:, ::-1]), user=u))
    return concatenate(rows), f, population


def people_of(rows: PairRows, users: int) -> list[Any]:
    return [rows.pairs[rows.user == u].tolist() for u in range(users)]


@pytest.mark.parametrize("nu0", [0.0, 2.0])
def test_one_step_of_em_is_the_naive_one(nu0: float) -> None:
    """E and M step together, of everybody at once, as one after the other in pair space: to 1e-8."""
    rows, _, _ = crowd(4, 4, 6, 0)
    K = kernel(4)
    m, S, evidence = hierarchical(K, people_of(rows, 4), nu0, 1)
    people = infer_users(K, np.zeros(4), 4, rows, tolerance=1e-13)
    got_m, got_S = maximise_population(K, people, nu0)
    np.testing.assert_allclose(got_m, m, atol=1e-8)
    np.testing.assert_allclose(got_S, S, atol=1e-8)
    assert people.log_evidence.sum() == pytest.approx(evidence, abs=1e-8)


@pytest.mark.slow
def test_the_fit_ends_where_plain_em_ends() -> None:
    """One sweep a step, and longer steps, but the same maximum a posteriori."""
    rows, _, _ = crowd(5, 4, 6, 1)
    K = kernel(4)
    m, S, evidence = hierarchical(K, people_of(rows, 5), 4.0, 60)
    got = fit(K, 5, rows, nu0=4.0, steps=500, tolerance=1e-6)
    np.testing.assert_allclose(got.population.mean, m, atol=2e-3)
    np.testing.assert_allclose(got.population.cov, S, atol=2e-3)
    assert got.trace[-1] == pytest.approx(evidence, abs=1e-2)
    assert got.moved < 1e-6
    assert len(got.trace) < 61


def test_m_and_s_are_those_of_the_formula() -> None:
    """m = mean of the means; S = (nu0 K + sum (Sigma_u + d d')) / (U + nu0); with kappa0 indifferent people, too."""
    K, (rows, _, _) = kernel(5), crowd(3, 5, 8, 2)
    people = infer_users(K, np.zeros(5), 3, rows)
    m, S = maximise_population(K, people, 7.0, 2.0)
    by_hand = 7.0 * K
    total = people.mean[0] + people.mean[1] + people.mean[2]
    np.testing.assert_allclose(m, total / 5.0)
    for u in range(3):
        by_hand = by_hand + people.cov[u] + np.outer(people.mean[u] - m, people.mean[u] - m)
    np.testing.assert_allclose(S, (by_hand + 2.0 * np.outer(m, m)) / 10.0)


def test_longer_steps_change_the_way_and_not_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, _, _ = crowd(60, 8, 15, 3)
    quick = fit(np.eye(8), 60, rows, tolerance=1e-4, steps=1000)
    monkeypatch.setattr(module, "FAR", 1.0)
    plain = fit(np.eye(8), 60, rows, tolerance=1e-4, steps=1000)
    assert len(quick.trace) < 0.7 * len(plain.trace)
    assert quick.trace[-1] == pytest.approx(plain.trace[-1], abs=0.2)
    np.testing.assert_allclose(quick.population.mean, plain.population.mean, atol=0.05)
    assert np.diff(plain.trace)[3:].min() > -0.01  # EM climbs, once the sites have settled


def test_the_population_is_found_and_helps_somebody_new() -> None:
    """300 people with 25 answers each: what they have in common; then 5 answers of each of 100 who are new."""
    rows, _, truth = crowd(400, 8, 25, 4)
    known = PairRows(*(column[rows.user < 300] for column in rows))
    got = fit(np.eye(8), 300, known, nu0=0.0, steps=60).population
    centred = np.eye(8) - 1.0 / 8
    a, b = centred @ got.mean, centred @ truth.mean
    assert np.corrcoef(a, b)[0, 1] > 0.97
    gap_a, gap_b = (centred @ S @ centred for S in (got.cov, truth.cov))
    assert np.corrcoef(gap_a.ravel(), gap_b.ravel())[0, 1] > 0.95
    right = {"alone": 0, "population": 0}
    for u in range(300, 400):
        own = rows.pairs[rows.user == u]
        for name, (mean, K) in {"alone": (np.zeros(8), np.eye(8)), "population": got}.items():
            posterior = infer(K, mean, own[:5]).posterior
            right[name] += int((posterior.beats(own[5:, 0], own[5:, 1]) > 0.5).sum())
    assert right["population"] > right["alone"] + 100  # of 2,000


def test_who_said_nothing_is_like_the_population() -> None:
    rows, _, _ = crowd(6, 5, 8, 5)
    got = fit(np.eye(5), 7, rows)
    np.testing.assert_allclose(got.people.mean[6], got.population.mean, atol=1e-10)
    np.testing.assert_allclose(got.people.cov[6], got.population.cov, atol=1e-10)


def test_going_on_from_an_earlier_fit() -> None:
    rows, _, _ = crowd(40, 6, 10, 6)
    first = fit(np.eye(6), 40, rows, tolerance=1e-4, steps=500)
    again = fit(np.eye(6), 40, rows, start=first.population, sites=first.people.sites, tolerance=1e-3)
    assert len(again.trace) <= 3
    np.testing.assert_allclose(again.population.mean, first.population.mean, atol=1e-2)


def test_permuting_items_and_people_changes_nothing() -> None:
    rows, _, _ = crowd(10, 6, 8, 7)
    K = kernel(6)
    order, people = np.random.default_rng(0).permutation(6), np.random.default_rng(1).permutation(10)
    moved = rows._replace(pairs=np.argsort(order)[rows.pairs], user=np.argsort(people)[rows.user])
    a, b = fit(K, 10, rows), fit(K[np.ix_(order, order)], 10, moved)
    np.testing.assert_allclose(a.population.mean[order], b.population.mean, atol=1e-6)
    np.testing.assert_allclose(a.population.cov[np.ix_(order, order)], b.population.cov, atol=1e-6)
    np.testing.assert_allclose(a.people.mean[people][:, order], b.people.mean, atol=1e-5)


@pytest.mark.parametrize("kappa0", [0.0, 1.0])
@pytest.mark.parametrize("nu0", [0.0, None])
def test_odd_people_leave_the_fit_finite(nu0: float | None, kappa0: float) -> None:
    """One who always takes the left, one who contradicts themselves, one who always answers the same; an item that is
    never shown, and two that are the same."""
    rng = np.random.default_rng(8)
    K = np.eye(6)
    K[0, 1] = K[1, 0] = 1.0
    left = np.array([rng.choice(5, 2, replace=False) for _ in range(30)])
    rows = concatenate(
        [pair_rows(left, user=0), pair_rows([(2, 3), (3, 2)], 50, user=1), pair_rows([(4, 2)] * 100 + [(0, 1)], user=2)]
    )
    got = fit(K, 3, rows, nu0=nu0, kappa0=kappa0, steps=100)
    for part in (*got.population, got.people.mean, got.people.cov, got.trace):
        assert np.isfinite(part).all()
    assert got.people.of(1).beats(2, 3) == pytest.approx(0.5, abs=0.02)
    assert got.people.of(2).beats(4, 2) > 0.9
    if nu0 is None:
        assert np.abs(got.population.mean).max() < 5.0


def test_people_of_one_mind_are_pulled_back_by_kappa0() -> None:
    """Everybody answers alike: the likelihood of m grows for ever, as indifferent people make it stop."""
    rows = pair_rows([(0, 1)] * 40, user=np.repeat(np.arange(4), 10))
    free = fit(np.eye(2), 4, rows, steps=300, tolerance=1e-4)
    held = fit(np.eye(2), 4, rows, steps=300, tolerance=1e-4, kappa0=1.0)
    assert held.moved < 1e-4
    assert np.abs(held.population.mean).max() < np.abs(free.population.mean).max()


def test_nobody_and_nothing() -> None:
    got = fit(np.eye(3), 0, pair_rows(np.empty((0, 2))))
    np.testing.assert_allclose(got.population.mean, 0.0)
    np.testing.assert_allclose(got.population.cov, np.eye(3))
    assert got.trace[-1] == 0.0


def test_new_items_are_as_the_kernel_has_them() -> None:
    """With S = K, the kernel of all; an item like a known one is as that one; without features, each for itself."""
    K = kernel(6)
    got = add_items(Population(np.zeros(4), K[:4, :4]), K[:4, :4], K[:4, 4:], K[4:, 4:])
    np.testing.assert_allclose(got.cov, K, atol=1e-10)
    own = np.array([[1.0, 0.3], [0.3, 2.0]])
    population = Population(np.array([3.0, -1.0]), own)
    twin = add_items(population, np.eye(2), np.eye(2)[:, :1], np.eye(1))
    np.testing.assert_allclose(twin.mean, [3.0, -1.0, 3.0])
    np.testing.assert_allclose(twin.cov, own[np.ix_([0, 1, 0], [0, 1, 0])])
    alone = add_items(population, np.eye(2), np.zeros((2, 1)), np.eye(1))
    np.testing.assert_allclose(alone.mean, [3.0, -1.0, 0.0])
    np.testing.assert_allclose(alone.cov[2], [0.0, 0.0, 1.0])


@pytest.mark.parametrize("features", [True, False])
def test_those_that_nobody_met_are_like_new_ones(features: bool) -> None:
    """In their places among the others, as `add_items` puts them behind."""
    K = kernel(9) if features else 2.0 * np.eye(9)
    rng = np.random.default_rng(3)
    met, rest = np.array([1, 4, 5, 8]), np.array([0, 2, 3, 6, 7])
    A = rng.normal(size=(4, 4))
    some = Population(rng.normal(size=4), K[np.ix_(met, met)] + 0.3 * (A @ A.T))
    got = extend_population(some, K, met)
    wanted = add_items(some, K[np.ix_(met, met)], K[np.ix_(met, rest)], K[np.ix_(rest, rest)])
    order = np.concatenate([met, rest])
    np.testing.assert_allclose(got.mean[order], wanted.mean, atol=1e-9)
    np.testing.assert_allclose(got.cov[np.ix_(order, order)], wanted.cov, atol=1e-9)
    np.testing.assert_array_equal(got.cov, got.cov.T)


def test_steps_do_not_end_on_a_plateau() -> None:
    """What people like is the opposite of what the kernel has it: steps are short at first, and evidence rises."""
    n, users, each = 6, 60, 12
    rng = np.random.default_rng(0)
    K = kernel_for(np.arange(n, dtype=np.float64)[:, None], 0.9).over(np.arange(n, dtype=np.float64)[:, None])
    f = np.array([0.0, 3.0] * 3) + 0.7 * rng.normal(size=(users, n))
    told = []
    for u in range(users):
        pairs = np.array([rng.choice(n, 2, replace=False) for _ in range(each)])
        gap = f[u, pairs[:, 0]] - f[u, pairs[:, 1]] + rng.normal(size=each)
        told.append(pair_rows(np.where(gap[:, None] > 0, pairs, pairs[:, ::-1]), user=u))
    got = fit(K, users, concatenate(told), steps=100)
    assert len(got.trace) <= 100
    assert got.trace[-2] - got.trace[-3] < 1e-3 * users * each
    assert got.trace[-1] > got.trace[0] + 100.0

"""What CP is compared with: everybody alone, the published EM of BI over pairs, one Gaussian process over all."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from crowded import covariance, crowded, error, queries, triples

from heedful.inference.collaborative.baselines import fit_birlutiu, fit_single
from heedful.inference.collaborative.joint_gp import MOST, Scales, evidence, fit_joint, tune_joint
from heedful.inference.pairwise import pair_rows, take_rows
from naive_collaborative import birlutiu
from naive_preferences import ep_over_pairs, predict_pair
from one_person import infer

Array = npt.NDArray[np.float64]


def own(world: Any, user: int) -> list[Any]:
    return [(i, j) for u, i, j in triples(world.rows) if u == user]


def test_alone_is_one_after_the_other() -> None:
    world = crowded(5, 6, 9)
    got = fit_single(world.K, 5, world.rows)
    total = 0.0
    for u in range(5):
        one = infer(world.K, np.zeros(6), np.array(own(world, u)))
        np.testing.assert_allclose(got.posterior(u).mean, one.posterior.mean, atol=1e-6)
        total += one.log_evidence
    assert got.log_evidence == pytest.approx(total, abs=1e-6)
    u, a, b = queries(5, 6)
    np.testing.assert_allclose(got.predict_proba(u, a, b), [got.posterior(x).beats(i, j) for x, i, j in zip(u, a, b)])
    np.testing.assert_allclose(got.gap(u, a, b)[1], [got.posterior(x).gap(i, j)[1] for x, i, j in zip(u, a, b)])


@pytest.mark.parametrize("steps", [1, 3])
def test_published_em_over_items_is_that_over_pairs(steps: int) -> None:
    """Birlutiu et al. 2010: means and variances of all differences, everybody's, after as many steps: to 1e-8."""
    world = crowded(5, 4, 5, seed=1)
    check_mean, check_cov = birlutiu(world.K, [own(world, u) for u in range(5)], steps)
    got = fit_birlutiu(world.K, 5, world.rows, steps=steps, tolerance=0.0)
    assert got.cycles == steps
    a, b = np.triu_indices(4, 1)
    for u in range(5):
        mean, var = got.gap(np.full(6, u), a, b)
        np.testing.assert_allclose(mean, check_mean[u], atol=1e-8)
        np.testing.assert_allclose(var, np.diag(check_cov[u]), atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "each", "still"), [(8, 10, 0.3), (62, 20, 0.9)])
def test_published_em_stops_when_nothing_moves(n: int, each: int, still: float) -> None:
    world = crowded(20, n, each)
    got = fit_birlutiu(world.K, 20, world.rows, steps=500, tolerance=still)
    assert got.moved < still
    assert 1 < got.cycles < 500
    before = fit_birlutiu(world.K, 20, world.rows, steps=got.cycles - 1, tolerance=still)
    assert before.moved >= still


@pytest.mark.slow
def test_people_together_are_better_than_alone() -> None:
    world = crowded(100, 10, 20, amplitude=1.5)
    alone = error(fit_single(world.K, 100, world.rows), world.f)
    assert error(fit_birlutiu(world.K, 100, world.rows), world.f) < alone - 0.03


# ---------------------------------------------------------------------------- BO


def people_and_items(users: int, n: int, each: int, seed: int = 0) -> Any:
    """Choices by a draw of f(u, i) ~ GP(0, K_users (x) K_items): of items the first feature alone matters."""
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(n, 2)), rng.normal(size=(users, 1))
    K_items, K_users = covariance(X[:, :1], 0.7, 2.0), covariance(Z)
    f = rng.multivariate_normal(np.zeros(users * n), np.kron(K_users, K_items)).reshape(users, n)
    user = np.repeat(np.arange(users), each)
    a = rng.integers(n, size=user.size)
    b = (a + rng.integers(1, n, size=user.size)) % n
    won = f[user, a] - f[user, b] + rng.normal(size=user.size) > 0.0
    pairs = np.where(won[:, None], np.stack([a, b], axis=1), np.stack([b, a], axis=1))
    return X, Z, K_items, K_users, pair_rows(pairs, user=user), f


def test_one_process_is_the_textbook_over_all_pairs() -> None:
    """Bonilla et al. 2010 by EP: a pair is of one person, its covariance k_users times k_pref."""
    _, _, K_items, K_users, rows, _ = people_and_items(3, 4, 4)
    K_users = K_users + 0.1 * np.eye(3)
    k = np.kron(K_users, K_items)
    pairs = [(u * 4 + i, u * 4 + j) for u, i, j in triples(rows)]
    tau, nu, log_z, _, _ = ep_over_pairs(k, np.zeros(12), pairs)
    got = fit_joint(K_items, K_users, rows, tolerance=1e-12)
    assert got.log_evidence == pytest.approx(log_z, abs=1e-8)
    for u, i, j in ((0, 1, 2), (2, 3, 0)):
        wanted = predict_pair(k, np.zeros(12), pairs, tau, nu, (u * 4 + i, u * 4 + j))
        assert got.predict_proba(u, i, j) == pytest.approx(wanted, abs=1e-8)
        assert got.posterior(u).beats(i, j) == pytest.approx(wanted, abs=1e-8)
    assert got.sites.moved <= 1e-12 < got.sites.sweeps


def test_one_process_is_inference_over_people_times_items() -> None:
    """In blocks it ends where EP over all people times items at once does; also from earlier sites, of people who say
    nothing, of answers given twice, of a ranking, and where people or items are the same."""
    _, _, K_items, K_users, rows, _ = people_and_items(6, 5, 7)
    K_users[1] = K_users[0]
    K_users[:, 1] = K_users[:, 0]
    K_items[:, 4], K_items[4] = K_items[:, 3], K_items[3, [0, 1, 2, 3, 3]]
    some = rows.user != 2
    rows = pair_rows(rows.pairs[some], np.arange(some.sum()) % 2 + 1.0, user=rows.user[some])
    group = np.where((rows.user == 3) & (rows.times == 1.0), 0, -1)
    rows = rows._replace(group=group)
    flat = rows._replace(pairs=rows.user[:, None] * 5 + rows.pairs, user=np.zeros(rows.size, np.int64))
    wanted = infer(np.kron(K_users, K_items), np.zeros(30), flat, tolerance=1e-11)
    got = fit_joint(K_items, K_users, rows, tolerance=1e-11)
    again = fit_joint(K_items, K_users, rows, sites=got.sites, tolerance=1e-8)
    assert again.sites.sweeps == 1
    for one in (got, again):
        assert one.log_evidence == pytest.approx(wanted.log_evidence, abs=1e-7)
        for u in range(6):
            own = slice(5 * u, 5 * u + 5)
            np.testing.assert_allclose(one.posterior(u).mean, wanted.posterior.mean[own], atol=1e-7)
            np.testing.assert_allclose(one.posterior(u).cov, wanted.posterior.cov[own, own], atol=1e-7)
        mean, var = one.gap(3, np.array([0, 2]), np.array([4, 1]))
        np.testing.assert_allclose((mean, var), wanted.posterior.gap([15, 17], [19, 16]), atol=1e-7)


def test_one_process_without_answers_is_its_prior() -> None:
    _, _, K_items, K_users, rows, _ = people_and_items(3, 4, 4)
    got = fit_joint(K_items, K_users, take_rows(rows, rows.user < 0))
    np.testing.assert_allclose(got.posterior(1).cov, K_users[1, 1] * K_items, atol=1e-9)
    assert got.log_evidence == pytest.approx(0.0, abs=1e-9)
    assert (got.sites.sweeps, got.sites.moved) == (0, 0.0)


@pytest.mark.parametrize("ranked", [False, True])
def test_the_gradient_of_the_evidence(ranked: bool) -> None:
    X, Z, _, _, rows, _ = people_and_items(4, 5, 6)
    if ranked:  # orders of three, whose two rows share noise
        orders = np.array([np.random.default_rng(k).permutation(5)[[0, 1, 1, 2]] for k in range(12)])
        rows = rows._replace(pairs=orders.reshape(24, 2), group=np.repeat(np.arange(12), 2))
    at = np.log([0.8, 1.3, 0.9, 1.4, 0.2])

    def scales(x: Array) -> Scales:
        e = np.exp(x)
        return Scales(e[:2], e[2:3], float(e[3]), float(e[4]))

    _, slope, _ = evidence(scales(at), X, Z, rows)
    for k in range(5):
        up, down = at.copy(), at.copy()
        up[k] += 1e-4
        down[k] -= 1e-4
        differences = (evidence(scales(up), X, Z, rows)[0] - evidence(scales(down), X, Z, rows)[0]) / 2e-4
        assert slope[k] == pytest.approx(differences, abs=2e-4, rel=1e-3)


def test_relevance_is_determined_and_helps() -> None:
    """The feature that says nothing gets a long scale; and people like one another tell of one another."""
    X, Z, _, _, rows, f = people_and_items(20, 9, 30, seed=2)
    X = X / X.std(axis=0)
    Z = (Z - Z.mean()) / Z.std()
    tuned = tune_joint(X, Z, rows, people=8, steps=10)
    assert tuned.items[1] > 3 * tuned.items[0]
    X = X - X.mean(axis=0)
    K_items, K_users = tuned.kernels(X, Z)
    got = fit_joint(K_items, K_users, rows)
    assert error(got, f) < error(fit_single(K_items, 20, rows), f) - 0.02
    median = Scales(np.full(2, 1.0), np.ones(1), 1.0, 0.1)
    some = take_rows(rows, rows.user < 8)
    assert evidence(tuned, X, Z[:8], some)[0] > evidence(median, X, Z[:8], some)[0] + 1.0


def test_too_many_for_one_process() -> None:
    with pytest.raises(ValueError, match=f"people times items: expected a whole number, 1 to {MOST}"):
        fit_joint(np.eye(100), np.eye(100), pair_rows([[0, 1]]))

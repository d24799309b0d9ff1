"""EP over what people agree on and each of them, against EP on one vector of everybody's utilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from heedful.inference.gp import joint_ep
from heedful.inference.gp.joint_ep import infer_joint, message_of, person_prior, user_batches
from heedful.inference.gp.per_user_ep import batches_of_users
from heedful.inference.pairwise import PairRows, concatenate, order_rows, pair_rows, take_rows
from one_person import infer

Array = npt.NDArray[np.float64]
N, USERS = 5, 4


def told(seed: int, each: int = 9) -> PairRows:
    """Answers of four people about five items, one ranking among them; the last person says less."""
    rng = np.random.default_rng(seed)
    F = rng.normal(size=N) + 0.6 * rng.normal(size=(USERS, N))
    rows = [order_rows([0, 2, 1], user=1)]
    for u in range(USERS):
        pairs = np.array([rng.choice(N - (u == 3), 2, replace=False) for _ in range(each - 5 * (u == 3))])
        won = F[u, pairs[:, 0]] - F[u, pairs[:, 1]] + rng.normal(size=len(pairs)) > 0
        rows.append(pair_rows(np.where(won[:, None], pairs, pairs[:, ::-1]), user=u))
    return concatenate(rows)


def shapes(seed: int) -> tuple[Array, Array]:
    A, B = np.random.default_rng(seed).normal(size=(2, N, N))
    return A @ A.T / N + 0.2 * np.eye(N), 0.3 * B @ B.T / N + 0.1 * np.eye(N)


def at_once(P: Array, S: Array, rows: PairRows) -> Any:
    """EP on the vector (f_1, ..., f_U): cov(f_u, f_v) = P, and S more where u = v."""
    cov = np.kron(np.ones((USERS, USERS)), P) + np.kron(np.eye(USERS), S)
    apart = rows._replace(user=np.zeros(rows.size, np.int64), pairs=rows.pairs + rows.user[:, None] * N)
    return infer(cov, np.zeros(N * USERS), apart, tolerance=1e-11)


def joint(P: Array, S: Array, rows: PairRows) -> Any:
    none = np.zeros(USERS)
    return infer_joint(P, S, USERS, rows, user_batches(rows, USERS), width=none, lapse=none, tolerance=1e-11)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("few", [False, True])
def test_it_is_ep_of_all_utilities_at_once(monkeypatch: pytest.MonkeyPatch, seed: int, few: bool) -> None:
    if few:  # a person at a time, and nothing is kept
        monkeypatch.setattr(joint_ep, "AT_ONCE", 1)
        monkeypatch.setattr(joint_ep, "HELD", 0)
    rows, (P, S) = told(seed), shapes(seed)
    want, got = at_once(P, S, rows), joint(P, S, rows)
    assert got.log_evidence == pytest.approx(want.log_evidence, abs=1e-8)
    mean = np.kron(np.ones((1, USERS)) / USERS, np.eye(N))
    average = got.average(USERS)
    np.testing.assert_allclose(average.mean, mean @ want.posterior.mean, atol=1e-8)
    np.testing.assert_allclose(average.cov, mean @ want.posterior.cov @ mean.T, atol=1e-8)


def test_the_mean_of_some_people_and_one_person_are_in_it() -> None:
    rows, (P, S) = told(5), shapes(5)
    want, got = at_once(P, S, rows).posterior, joint(P, S, rows)
    whose = np.array([1, 3])
    at = np.flatnonzero(np.isin(rows.user, whose))
    few = take_rows(rows, at)
    few = few._replace(user=np.searchsorted(whose, few.user))
    found = got.average(2, message_of(S, batches_of_users(few, 2), got.sites.tau[at], got.sites.nu[at]))
    take = np.zeros((N, N * USERS))
    take[:, N : 2 * N] = take[:, 3 * N :] = 0.5 * np.eye(N)
    np.testing.assert_allclose(found.mean, take @ want.mean, atol=1e-8)
    np.testing.assert_allclose(found.cov, take @ want.cov @ take.T, atol=1e-8)
    for user in range(USERS):
        at = np.flatnonzero(rows.user == user)
        own = take_rows(rows, at)._replace(user=np.zeros(at.size, np.int64))
        tau, nu = got.sites.tau[at], got.sites.nu[at]
        before = person_prior(got, batches_of_users(own, 1)[0], tau, nu)
        after = infer(before.cov, before.mean, own, tolerance=1e-11).posterior
        here = slice(user * N, (user + 1) * N)
        np.testing.assert_allclose(after.mean, want.mean[here], atol=1e-6)
        np.testing.assert_allclose(after.cov, want.cov[here, here], atol=1e-6)


def test_the_gradient_is_that_of_the_evidence() -> None:
    rows, (P, S) = told(7), shapes(7)
    got, step = joint(P, S, rows).gradient, 1e-4
    for k in range(2):
        ends = []
        for side in (step, -step):
            scale = np.exp(2.0 * side)
            ends.append(joint(P * (scale if k == 0 else 1.0), S * (scale if k == 1 else 1.0), rows).log_evidence)
        assert got[k] == pytest.approx((ends[0] - ends[1]) / (2.0 * step), abs=1e-5)


def test_a_step_of_em_for_what_is_each_persons_own() -> None:
    """S + S apart S / U is the mean of E[(f_u - m)(f_u - m)'], with m and everybody in one Gaussian."""
    rows, (P, S) = told(8), shapes(8)
    got = joint(P, S, rows)
    n, one, own = N, np.linalg.inv(P), np.linalg.inv(S)
    H, h = np.zeros((n * (USERS + 1), n * (USERS + 1))), np.zeros(n * (USERS + 1))
    H[:n, :n] = one + USERS * own
    for u in range(USERS):
        at = np.flatnonzero(rows.user == u)
        here = slice(n * (u + 1), n * (u + 2))
        [few] = batches_of_users(take_rows(rows, at)._replace(user=np.zeros(at.size, np.int64)), 1)
        [T], [pull] = few.table.natural(got.sites.tau[at], got.sites.nu[at])
        met = few.items[0]
        H[here, here] += own
        H[here, :n], H[:n, here] = -own, -own
        H[np.ix_(n * (u + 1) + met, n * (u + 1) + met)] += T
        h[n * (u + 1) + met] += pull
    cov = np.linalg.inv(H)
    mean, want = cov @ h, np.zeros((n, n))
    for u in range(USERS):
        D = np.zeros((n, len(H)))
        D[:, n * (u + 1) : n * (u + 2)], D[:, :n] = np.eye(n), -np.eye(n)
        want += (D @ cov @ D.T + np.outer(D @ mean, D @ mean)) / USERS
    np.testing.assert_allclose(S + S @ got.apart @ S / USERS, want, atol=1e-8)

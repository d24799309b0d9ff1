"""Tables of answers, priors of people and of items, length-scales: the parts of CP."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from crowded import covariance, crowded

from heedful.inference.collaborative import priors, vb_product
from heedful.inference.collaborative import sparse_cells as module
from heedful.inference.collaborative.distances import half_median, standardise
from heedful.inference.collaborative.priors import FactorPrior, ItemPrior
from heedful.inference.collaborative.sparse_cells import cells, group_lists
from heedful.inference.collaborative.user_covariance import user_covariance
from heedful.inference.collaborative.vb_product import Factors
from heedful.inference.gp.sites import root
from heedful.inference.pairwise import pair_rows
from naive_collaborative import under_sites

Array = npt.NDArray[np.float64]


def test_half_the_median_of_squared_distances() -> None:
    X = np.random.default_rng(0).normal(size=(8, 3)) * [1.0, 50.0, 0.01] + 7.0
    X = np.column_stack([X, np.full(8, 3.3)])
    Z = (X[:, :3] - X[:, :3].mean(axis=0)) / X[:, :3].std(axis=0)
    d2 = [((Z[i] - Z[j]) ** 2).sum() for i in range(8) for j in range(i)]
    assert half_median(X) == pytest.approx(np.sqrt(np.median(d2) / 2))
    np.testing.assert_allclose(standardise(X)[:, :3], Z)
    assert (standardise(X)[:, 3] == 0.0).all()
    assert half_median(np.ones((4, 2))) == half_median(np.ones((1, 2))) == 1.0
    many = np.random.default_rng(0).normal(size=(4000, 2))
    assert half_median(many) == pytest.approx(half_median(many[:1500]), rel=0.05)


# ---------------------------------------------------------------------------- tables


def test_rows_in_cells() -> None:
    rows = pair_rows([[2, 0], [0, 2], [1, 2], [1, 0]], [1.0, 2.0, 3.0, 4.0], user=[0, 0, 1, 1])
    of = cells(rows, 2, 3)
    assert list(zip(of.first.tolist(), of.second.tolist())) == [(0, 1), (0, 2), (1, 2)]
    assert (of.pair.tolist(), of.sign.tolist()) == ([1, 1, 2, 0], [-1.0, 1.0, 1.0, -1.0])
    told = of.site_sums(np.array([1.0, 1.0, 0.5, 0.5]), np.array([1.0, 2.0, 3.0, 4.0]))
    np.testing.assert_allclose(told.t, [[0, 3.0, 0], [2.0, 0, 1.5]])
    np.testing.assert_allclose(told.n, [[0, 5.0, 0], [16.0, 0, 9.0]])


def test_a_whole_table_and_lists_of_rows_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where people have 1 to 300 answers, and more than fit at a time."""
    rng = np.random.default_rng(0)
    have = np.array([300, 1, 0, 7, 8, 40, 2, 0, 3, 3])
    user = rng.permutation(np.repeat(np.arange(10), have))
    a = rng.integers(6, size=user.size)
    rows = pair_rows(
        np.stack([a, (a + rng.integers(1, 6, user.size)) % 6], axis=1), rng.integers(1, 3, user.size), user=user
    )
    monkeypatch.setattr(module, "_AT_ONCE", 64)
    whole = cells(rows, 10, 6)
    monkeypatch.setattr(module, "FULL", 0)
    lists = cells(rows, 10, 6)
    assert (len(whole.lists), len(lists.lists)) == (0, 2)
    t, n = rng.random(user.size), rng.normal(size=user.size)
    m, v = rng.normal(size=(15, 4)), rng.random((15, 4))
    w, s = rng.normal(size=(10, 4)), rng.random((10, 4))
    for side, pair, count in (("by_user", (m, v), 10), ("by_pair", (w, s), 15)):
        one, two = (gathered(getattr(of.site_sums(t, n), side)(*pair), count) for of in (whole, lists))
        for x, y in zip(one, two):
            np.testing.assert_allclose(x, y, atol=1e-12)
    np.testing.assert_allclose(whole.at_rows((w, m.T), (s, v.T)), lists.at_rows((w, m.T), (s, v.T)))
    np.testing.assert_allclose(whole.at_rows((w, m.T)), (w[user] * m[whole.pair]).sum(axis=1))
    np.testing.assert_allclose(whole.site_sums(t, n).score(6), lists.site_sums(t, n).score(6), atol=1e-12)
    for x, y in zip(whole.site_sums(t, n).means(), lists.site_sums(t, n).means()):
        np.testing.assert_allclose(x, y)


@pytest.mark.parametrize("at_once", [1 << 18, 30])
def test_one_pass_over_a_table_and_over_lists_is_the_same(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """And it is each weight, then each value in turn, the best with all others as they are: written out; also where a
    table is dealt with in parts, and somebody has no answer."""
    U, n, D = 11, 5, 4
    rng = np.random.default_rng(0)
    user = rng.integers(1, U, 90)
    a = rng.integers(n, size=90)
    rows = pair_rows(np.stack([a, (a + rng.integers(1, n, 90)) % n], axis=1), user=user)
    t, y = rng.random(90), rng.normal(size=90)
    to_w = rng.random((U, D)) + 0.5, rng.normal(size=(U, D))
    to_h = rng.random((D, 10)) + 0.5, rng.normal(size=(D, 10))
    q = Factors(rng.normal(size=(U, D)), rng.random((U, D)), rng.normal(size=(D, 10)), rng.random((D, 10)))
    monkeypatch.setattr(vb_product, "_AT_ONCE", at_once)
    monkeypatch.setattr(vb_product, "_DEEP", 3 if at_once == 30 else 512)
    whole = cells(rows, U, n)
    monkeypatch.setattr(module, "FULL", 0)
    lists = cells(rows, U, n)
    assert (len(whole.lists), len(lists.lists)) == (0, 2)
    assert whole.P == 10
    got = [vb_product.sweep(q, of.site_sums(t, y), to_w, to_h) for of in (whole, lists)]
    mw, vw, mh, vh = (x.copy() for x in q)
    for u in range(U):
        mine = user == u
        p = whole.pair[mine]
        for d in range(D):
            precision = to_w[0][u, d] + (t[mine] * (mh[d, p] ** 2 + vh[d, p])).sum()
            others = mw[u] @ mh[:, p] - mw[u, d] * mh[d, p]
            mw[u, d] = (to_w[1][u, d] + (mh[d, p] * (y[mine] - t[mine] * others)).sum()) / precision
            vw[u, d] = 1.0 / precision
    for p in range(10):
        mine = whole.pair == p
        w, s = mw[user[mine]], vw[user[mine]]
        for d in range(D):
            precision = to_h[0][d, p] + (t[mine] * (w[:, d] ** 2 + s[:, d])).sum()
            others = w @ mh[:, p] - w[:, d] * mh[d, p]
            mh[d, p] = (to_h[1][d, p] + (w[:, d] * (y[mine] - t[mine] * others)).sum()) / precision
            vh[d, p] = 1.0 / precision
    for one in got:
        for x, wanted in zip(one, (mw, vw, mh, vh)):
            np.testing.assert_allclose(x, wanted, atol=1e-12)


def gathered(sums: Any, count: int) -> list[Array]:
    D = 4
    out = [np.zeros((count, D, D)), np.zeros((count, D)), np.zeros((count, D))]
    for who, *parts in sums:
        for whole, part in zip(out, parts):
            whole[who] = part
    return out


def test_lists_hold_every_row_once() -> None:
    by = np.random.default_rng(0).integers(0, 50, 3000) ** 2 // 50
    lists = group_lists(by, 60)
    rows = np.concatenate([rows.ravel() for _, rows in lists])
    assert sorted(rows[rows < 3000].tolist()) == list(range(3000))
    assert rows.size < 3 * 3000
    for who, own in lists:
        for thing, mine in zip(who, own):
            assert (by[mine[mine < 3000]] == thing).all()
    assert group_lists(np.empty(0, np.int64), 5) == ()


@pytest.mark.parametrize("wide", [1000, 0])
def test_the_start_is_what_was_told(wide: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of people who weigh two functions and have told everything: their product, either way to start."""
    monkeypatch.setattr(vb_product, "WIDE", wide)
    rng = np.random.default_rng(0)
    f = rng.normal(size=(7, 2)) @ rng.normal(size=(2, 5))
    a, b = np.triu_indices(5, 1)
    of = cells(pair_rows(np.tile(np.stack([a, b], axis=1), (7, 1)), user=np.repeat(np.arange(7), 10)), 7, 5)
    told = of.site_sums(np.full(70, 0.5), 0.5 * (f[of.user, of.first[of.pair]] - f[of.user, of.second[of.pair]]))
    q = vb_product.initial_factors(told, np.full((7, 3), 2.0), np.full((3, 10), 4.0))
    np.testing.assert_allclose(q.mw @ q.mh, f[:, a] - f[:, b], atol=1e-9)
    assert (q.vw == 0.5).all()
    assert (q.vh == 0.25).all()


# ---------------------------------------------------------------------------- priors


def test_priors_under_sites() -> None:
    """In item space, and as what is shared and what is one's own: as with the whole covariance."""
    world = crowded(1, 5, 1)
    a, b = np.triu_indices(5, 1)
    rng = np.random.default_rng(0)
    t, n = rng.random((3, 10)), rng.normal(size=(3, 10))
    t[0, 2] = n[0, 2] = 0.0
    A = np.eye(5)[a] - np.eye(5)[b]
    R, own = rng.normal(size=(10, 3)), rng.random(10)
    both: list[tuple[Any, Array]] = [
        (ItemPrior(root(world.K), a, b), A @ world.K @ A.T),
        (FactorPrior(R, own), R @ R.T + np.diag(own)),
    ]
    for prior, K in both:
        np.testing.assert_allclose(prior.variance(), np.diag(K), atol=1e-10)
        mean, var, log_z = prior.tilted(t, n)
        for d in range(3):
            m, S, z = under_sites(K, t[d], n[d])
            np.testing.assert_allclose(mean[d], m, atol=1e-9)
            np.testing.assert_allclose(var[d], np.diag(S), atol=1e-9)
            assert log_z[d] == pytest.approx(z, abs=1e-9)
        for x, wanted in zip(prior.marginals(t, n), (mean, var)):
            np.testing.assert_allclose(x, wanted, atol=1e-12)


def test_of_too_many_the_products_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    prior = FactorPrior(rng.normal(size=(6, 3)), rng.random(6))
    t, n = rng.random((2, 6)), rng.normal(size=(2, 6))
    wanted = prior.marginals(t, n)
    monkeypatch.setattr(priors, "_PRODUCTS", 35)  # of 36
    for x, y in zip(prior.marginals(t, n), wanted):
        np.testing.assert_allclose(x, y, atol=1e-12)


@pytest.mark.parametrize("rho", [None, 0.0, 0.4, 1.0])
def test_the_covariance_of_people(rho: float | None) -> None:
    Z = np.random.default_rng(0).normal(size=(9, 2)) * [1.0, 20.0]
    alike = covariance(standardise(Z), half_median(Z))
    wanted = alike + 0.1 * np.eye(9) if rho is None else rho * alike + (1.0 - rho) * np.eye(9)
    got = user_covariance(Z, rho=rho)
    np.testing.assert_allclose(got.R @ got.R.T + np.diag(got.independent), wanted, atol=1e-6)


def test_pseudo_people() -> None:
    """FITC, [H12] section 5.1: variances are kept, covariances those by way of the pseudo-people."""
    Z = np.random.default_rng(0).normal(size=(30, 2))
    whole, few = user_covariance(Z), user_covariance(Z, pseudo=6, seed=3)
    np.testing.assert_allclose(few.variance(), whole.variance(), atol=1e-6)
    chosen = np.random.default_rng(3).choice(30, 6, replace=False)
    K = covariance(standardise(Z), half_median(Z))
    Q = K[:, chosen] @ np.linalg.solve(K[np.ix_(chosen, chosen)], K[chosen])
    np.testing.assert_allclose(few.R @ few.R.T, Q, atol=1e-5)
    np.testing.assert_array_equal(user_covariance(Z, pseudo=100).R, whole.R)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"rho": 1.5}, "rho: expected a number from 0 to 1, got 1.5"),
        ({"pseudo": 0}, "pseudo: expected"),
        ({"Z": [[np.nan]]}, "Z: expected rows of finite numbers"),
        ({"Z": [1.0, 2.0]}, "Z: expected rows of finite numbers"),
    ],
)
def test_refusals(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        user_covariance(**{"Z": np.eye(3), **given})

"""CP and CPU, [H12] sections 3 and 5: the transcription over pairs, brute force, and what must hold of any fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from crowded import covariance, crowded, error, queries, triples
from scipy.special import ndtr

from heedful.inference.collaborative import cp, vb_product
from heedful.inference.collaborative import sparse_cells as cells_module
from heedful.inference.collaborative.cp import fit
from heedful.inference.collaborative.priors import FactorPrior
from heedful.inference.collaborative.user_covariance import user_covariance
from heedful.inference.pairwise import concatenate, order_rows, pair_rows
from naive_collaborative import EPVB

Array = npt.NDArray[np.float64]
SMALL = crowded(6, 5, 7, seed=0)
PEOPLE = np.random.default_rng(1).normal(size=(6, 2))


def covariance_of(people: FactorPrior) -> Array:
    return people.R @ people.R.T + np.diag(people.independent)


# ---------------------------------------------------------------------------- against the transcription


@pytest.mark.parametrize("D", [3, 7])
@pytest.mark.parametrize("people", [None, user_covariance(PEOPLE), user_covariance(PEOPLE, rho=0.6)])
def test_items_are_pairs_factor_by_factor(people: FactorPrior | None, D: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eq. 12 and 13, 15 cycles: weights, predictions of all pairs (Eq. 7 and 8) and the evidence, to 1e-8; with a full
    table of cells and with lists of them."""
    naive = EPVB(SMALL.K, 6, triples(SMALL.rows), D, None if people is None else covariance_of(people))
    naive.cycles(15)
    u, a, b = queries(6, 5)
    wanted, evidence = np.array([naive.predict(*query) for query in zip(u, a, b)]), naive.log_evidence()
    for full in (cells_module.FULL, 0):
        monkeypatch.setattr(cells_module, "FULL", full)
        got = fit(SMALL.K, 6, SMALL.rows, D=D, user_cov=people, cycles=15, tolerance=0.0)
        assert bool(got.cells.lists) == (full == 0)
        np.testing.assert_allclose(np.abs(got.mw), np.abs(naive.mw), atol=1e-8)  # a function may turn round
        np.testing.assert_allclose(got.vw, naive.vw, atol=1e-8)
        mean, var = got.gap(u, a, b)
        np.testing.assert_allclose(mean, wanted[:, 0], atol=1e-8)
        np.testing.assert_allclose(var, wanted[:, 1], atol=1e-8)
        probabilities = ndtr(wanted[:, 0] / np.sqrt(1 + wanted[:, 1]))
        np.testing.assert_allclose(got.predict_proba(u, a, b), probabilities, atol=1e-8)
        assert got.log_evidence == pytest.approx(evidence, abs=1e-8)


@pytest.mark.slow
def test_it_knows_how_far_off_it_is_where_each_answers_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Squared errors of g in units of its variance, four answers each of 300 people: near 1. With two passes in the
    first cycle as in the others it is twice as sure as it may be."""
    world = crowded(300, 8, 4, D=7)
    u, a, b = queries(300, 8)
    truth = world.f[u, a] - world.f[u, b]

    def square() -> float:
        mean, var = fit(world.K, 300, world.rows).gap(u, a, b)
        return float(np.mean((truth - mean) ** 2 / var))

    assert 0.8 < square() < 1.5
    monkeypatch.setattr(cp, "FIRST", cp.PASSES)
    assert square() > 1.8


def test_fitc_over_pairs_is_the_transcription_with_the_covariance_of_fitc() -> None:
    """[H12] section 5.1: K' = Q + diag(K - Q), and predictions from the pseudo-inputs."""
    got = fit(SMALL.K, 6, SMALL.rows, D=3, pseudo_pairs=3, seed=2, cycles=15, tolerance=0.0)
    prior: Any = got.items
    naive = EPVB(SMALL.K, 6, triples(SMALL.rows), 3, None, prior.R @ prior.R.T + np.diag(prior.independent))
    naive.cycles(15)
    np.testing.assert_allclose(np.abs(got.mw), np.abs(naive.mw), atol=1e-8)
    assert got.log_evidence == pytest.approx(naive.log_evidence(), abs=1e-8)
    # At a pair of its own, f and the own part apart: what z says of it, and what is its own beside
    d, (t, n) = 1, got.messages.to_h2
    assert got.functions.kernel is not None
    some = got.functions.kernel
    pseudo = list(zip(some.first, some.second))
    pairs = list(zip(got.cells.first, got.cells.second))
    K = pair_covariance(SMALL.K, pairs, pairs)
    Q = pair_covariance(SMALL.K, pairs, pseudo) @ np.linalg.solve(
        pair_covariance(SMALL.K, pseudo, pseudo), pair_covariance(SMALL.K, pseudo, pairs)
    )
    np.testing.assert_allclose(prior.R @ prior.R.T, Q, atol=1e-8)
    np.testing.assert_allclose(prior.independent, np.diag(K - Q), atol=1e-8)
    # a new h with the covariance of FITC: Q across
    sites = np.linalg.inv(Q + np.diag(np.diag(K - Q)) + np.diag(1.0 / t[d]))
    h, v = got.functions.at(got.cells.first, got.cells.second)
    np.testing.assert_allclose(h[:, d], Q @ sites @ (n[d] / t[d]), atol=1e-7)
    np.testing.assert_allclose(v[:, d], np.diag(K) - np.diag(Q @ sites @ Q), atol=1e-7)


def pair_covariance(k: Array, left: Any, right: Any) -> Array:
    return np.array([[k[i, m] + k[j, n] - k[i, n] - k[j, m] for m, n in right] for i, j in left])


def test_all_pairs_as_pseudo_inputs_are_no_approximation() -> None:
    u, a, b = queries(6, 5)
    whole, few = fit(SMALL.K, 6, SMALL.rows, D=3), fit(SMALL.K, 6, SMALL.rows, D=3, pseudo_pairs=1000)
    np.testing.assert_allclose(few.predict_proba(u, a, b), whole.predict_proba(u, a, b), atol=1e-5)
    with pytest.raises(ValueError, match="pseudo_pairs: expected None for utilities of items"):
        few.posterior(0)


@pytest.mark.slow
def test_too_few_pseudo_inputs_lose() -> None:
    world = crowded(60, 40, 40, D=3, seed=0)
    whole = error(fit(world.K, 60, world.rows, D=5), world.f)
    assert error(fit(world.K, 60, world.rows, D=5, pseudo_pairs=5), world.f) > whole + 0.02


# ---------------------------------------------------------------------------- against brute force

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
FEW, FEW_WEIGHTS = np.polynomial.hermite_e.hermegauss(26)


def by_quadrature(
    K: Array, users: int, rows: Any, asked: list[Any], rho: Array | None = None, lapse: float = 0.0
) -> tuple[float, Array]:
    """Log evidence and P(a beats b) of CP with D = 1 and three items, exactly; of two people, `rho` is K_users."""
    A = np.array([[1.0, 0.0, -1.0], [0.0, 1.0, -1.0]])
    x, p = (NODES, WEIGHTS / WEIGHTS.sum()) if rho is None else (FEW, FEW_WEIGHTS / FEW_WEIGHTS.sum())
    grid = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1).reshape(-1, 2)
    weight = np.outer(p, p).ravel()
    f = np.column_stack([grid @ np.linalg.cholesky(A @ K @ A.T).T, np.zeros(len(grid))])
    if rho is None:
        w = x[None].repeat(users, axis=0)
        each = [np.ones((len(f), x.size)) for _ in range(users)]
        for u, i, j in rows:
            each[u] *= (1 - lapse) * ndtr(np.outer(f[:, i] - f[:, j], w[u])) + lapse / 2
        one = [e @ p for e in each]
        joint = weight * np.prod(one, axis=0)
        told = [(joint / one[u] * ((each[u] * ndtr(np.outer(f[:, i] - f[:, j], w[u]))) @ p)).sum() for u, i, j in asked]
        return float(np.log(joint.sum())), np.array(told) / joint.sum()
    w2 = grid @ np.linalg.cholesky(rho).T
    each2 = np.outer(weight, weight)
    for u, i, j in rows:
        each2 *= ndtr(np.outer(f[:, i] - f[:, j], w2[:, u]))
    told = [(each2 * ndtr(np.outer(f[:, i] - f[:, j], w2[:, u]))).sum() for u, i, j in asked]
    return float(np.log(each2.sum())), np.array(told) / each2.sum()


THREE = np.array([[0.0], [1.0], [2.2]])


def three_items(users: int, each: int, seed: int) -> tuple[Array, list[Any]]:
    rng = np.random.default_rng(seed)
    K = covariance(THREE)
    h, w = rng.multivariate_normal(np.zeros(3), K), rng.normal(size=users)
    rows = []
    for u in range(users):
        for _ in range(each):
            i, j = (int(x) for x in rng.choice(3, 2, replace=False))
            rows.append((u, i, j) if rng.random() < ndtr(w[u] * (h[i] - h[j])) else (u, j, i))
    return K, rows


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_brute_force(seed: int) -> None:
    """Eight people, ten answers each: every probability within .03. The evidence is that of one of two mirror images,
    (w, h) and (-w, -h), and of independent w and h: too low by log 2 and more, and here by less than 2."""
    K, rows = three_items(8, 10, seed)
    asked = [(u, i, j) for u in range(8) for i, j in ((0, 1), (0, 2), (1, 2))]
    evidence, wanted = by_quadrature(K, 8, rows, asked)
    got = fit(
        K, 8, pair_rows([row[1:] for row in rows], user=[row[0] for row in rows]), D=1, tolerance=1e-6, cycles=500
    )
    np.testing.assert_allclose(got.predict_proba(*np.array(asked).T), wanted, atol=0.03)
    assert evidence - 2.0 < got.log_evidence < evidence - 0.5


@pytest.mark.slow
def test_brute_force_with_lapses() -> None:
    """Less exact than without, and on the right side of it."""
    K, rows = three_items(8, 10, 1)
    asked = [(u, i, j) for u in range(8) for i, j in ((0, 1), (0, 2), (1, 2))]
    _, wanted = by_quadrature(K, 8, rows, asked, None, 0.1)
    _, sure = by_quadrature(K, 8, rows, asked)
    table = pair_rows([row[1:] for row in rows], user=[row[0] for row in rows])
    got = fit(K, 8, table, D=1, lapse=0.1, tolerance=1e-6, cycles=500)
    assert np.abs(wanted - sure).max() > 0.06
    np.testing.assert_allclose(got.predict_proba(*np.array(asked).T), wanted, atol=0.05)


def test_brute_force_with_what_is_known_of_people() -> None:
    """CPU: two who are alike. One has said much, the other nothing: what is told of them comes from the first."""
    Z = np.array([[0.0], [0.5]])
    people = user_covariance(Z, rho=0.95)
    K, rows = three_items(1, 30, 2)
    asked = [(u, i, j) for u in (0, 1) for i, j in ((0, 1), (0, 2), (1, 2))]
    _, wanted = by_quadrature(K, 2, rows, asked, covariance_of(people))
    told = pair_rows([row[1:] for row in rows], user=0)
    got = fit(K, 2, told, D=1, user_cov=people, tolerance=1e-6, cycles=500)
    assert np.abs(wanted[3:] - 0.5).max() > 0.05
    np.testing.assert_allclose(got.predict_proba(*np.array(asked).T), wanted, atol=0.05)


# ---------------------------------------------------------------------------- what must hold


def test_either_way_round() -> None:
    world = crowded(20, 8, 15)
    got = fit(world.K, 20, world.rows)
    u, a, b = queries(20, 8)
    np.testing.assert_allclose(got.predict_proba(u, a, b), 1.0 - got.predict_proba(u, b, a), atol=1e-12)
    posterior = got.posterior(3)
    mean, var = posterior.gap(a[u == 3], b[u == 3])
    np.testing.assert_allclose(mean, got.gap(3, a[u == 3], b[u == 3])[0], atol=1e-9)
    np.testing.assert_allclose(var, got.gap(3, a[u == 3], b[u == 3])[1], atol=1e-9)
    assert got.predict_proba(3, 1, 2).shape == ()


@pytest.mark.parametrize("wide", [1000, 0])
def test_permuting_items_and_people_changes_nothing(wide: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vb_product, "WIDE", wide)
    world = crowded(20, 8, 15)
    items, people = np.random.default_rng(0).permutation(8), np.random.default_rng(1).permutation(20)
    rows = world.rows._replace(pairs=np.argsort(items)[world.rows.pairs], user=np.argsort(people)[world.rows.user])
    first = fit(world.K, 20, world.rows, D=4)
    second = fit(world.K[np.ix_(items, items)], 20, rows, D=4)
    u, a, b = queries(20, 8)
    np.testing.assert_allclose(
        second.predict_proba(u, a, b), first.predict_proba(people[u], items[a], items[b]), atol=1e-6
    )


def test_an_answer_given_twice_is_two_answers() -> None:
    world = crowded(10, 6, 8)
    twice = concatenate([world.rows, world.rows])
    u, a, b = queries(10, 6)
    one = fit(world.K, 10, world.rows._replace(times=np.full(80, 2.0)), D=3)
    two = fit(world.K, 10, twice, D=3)
    np.testing.assert_allclose(one.predict_proba(u, a, b), two.predict_proba(u, a, b), atol=1e-7)
    assert one.log_evidence == pytest.approx(two.log_evidence, abs=1e-6)


def test_people_are_told_from_one_another() -> None:
    """People who weigh two functions: with 20 answers each, CP is better than everybody alone; and more functions than
    there are do little harm."""
    from heedful.inference.collaborative.baselines import fit_single

    world = crowded(100, 10, 20, D=2, amplitude=1.5)
    alone = error(fit_single(world.K, 100, world.rows), world.f)
    errors = {D: error(fit(world.K, 100, world.rows, D=D), world.f) for D in (2, 20)}
    assert errors[2] < alone - 0.04
    assert errors[20] < errors[2] + 0.02


def test_who_said_nothing_is_a_coin_and_what_is_the_same_is_equally_good() -> None:
    world = crowded(12, 6, 15)
    K = np.pad(world.K, (0, 2))  # item 6 is never shown; item 7 is item 0 again
    K[6, 6] = 1.0
    K[7, :6], K[:6, 7], K[7, 7] = world.K[0], world.K[0], world.K[0, 0]
    again = pair_rows([[0, 7], [7, 0], [0, 7]], user=[1, 2, 3])
    got = fit(K, 14, concatenate([world.rows, again]))
    assert got.predict_proba(13, 0, 1) == pytest.approx(0.5, abs=1e-12)
    assert got.predict_proba(2, 0, 7) == pytest.approx(0.5, abs=1e-3)
    assert got.predict_proba(2, 6, 1) == pytest.approx(0.5, abs=0.3)
    for part in (got.mw, got.vw, got.functions.mean, got.functions.cov):
        assert np.isfinite(part).all()
    assert np.isfinite(got.log_evidence)


def test_contradictions_and_keys_held_down_leave_it_finite() -> None:
    contrary = pair_rows([[0, 1], [1, 0]], 200, user=0)
    loop = pair_rows([[0, 1], [1, 2], [2, 0]], 50, user=1)
    held = pair_rows([[i, 5] for i in range(5)], 20, user=2)
    doubted = fit(np.eye(6), 4, concatenate([contrary, loop, held]), lapse=0.3)
    assert np.isfinite(doubted.functions.cov).all()
    assert (doubted.messages.to_g1[0] >= 0.0).all()
    got = fit(np.eye(6), 4, concatenate([contrary, loop, held]))
    assert got.predict_proba(0, 0, 1) == pytest.approx(0.5, abs=0.05)
    assert got.predict_proba(2, 0, 5) > 0.9
    assert np.isfinite(got.posterior(3).cov).all()
    assert np.isfinite(got.log_evidence)


def test_no_answers_at_all() -> None:
    got = fit(np.eye(4), 3, pair_rows(np.empty((0, 2))), D=2)
    assert got.predict_proba([0, 1], [0, 2], [1, 3]).tolist() == [0.5, 0.5]
    assert got.log_evidence == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(got.posterior(0).cov, 2.0 * np.eye(4), atol=1e-9)


def test_equally_good_pulls_together() -> None:
    world = crowded(30, 5, 12)
    alike = pair_rows([[0, 1]] * 30, None, True, np.arange(30))
    with pytest.raises(ValueError, match="width: expected more than 0 where items are called equally good"):
        fit(world.K, 30, alike)
    apart = fit(world.K, 30, world.rows, width=0.3)
    closer = fit(world.K, 30, concatenate([world.rows, alike]), width=0.3)
    u = np.arange(30)
    assert np.abs(closer.gap(u, 0, 1)[0]).mean() < np.abs(apart.gap(u, 0, 1)[0]).mean()


def test_rho_nought_is_cp() -> None:
    world = crowded(20, 6, 10)
    Z = np.random.default_rng(0).normal(size=(20, 3))
    u, a, b = queries(20, 6)
    plain, mixed = (
        fit(world.K, 20, world.rows, D=3),
        fit(world.K, 20, world.rows, D=3, user_cov=user_covariance(Z, rho=0.0)),
    )
    np.testing.assert_allclose(mixed.predict_proba(u, a, b), plain.predict_proba(u, a, b), atol=1e-8)
    assert mixed.log_evidence == pytest.approx(plain.log_evidence, abs=1e-6)


def test_what_is_known_of_people_helps_where_it_matters() -> None:
    """Tastes that follow people's features, five answers each: CPU is better than CP."""
    rng = np.random.default_rng(3)
    Z = rng.uniform(-2, 2, size=(80, 1))
    world = crowded(80, 8, 5, seed=3)
    h = rng.multivariate_normal(np.zeros(8), covariance(world.X), 2)
    f = 3.0 * np.column_stack([np.sin(Z[:, 0] * 1.5), np.cos(Z[:, 0])]) @ h
    a, b = world.rows.pairs.T
    user = world.rows.user
    won = f[user, a] - f[user, b] + rng.normal(size=a.size) > 0
    rows = pair_rows(np.where(won[:, None], np.stack([a, b], 1), np.stack([b, a], 1)), user=user)
    informed = fit(world.K, 80, rows, user_cov=user_covariance(Z))
    assert error(informed, f) < error(fit(world.K, 80, rows), f) - 0.03
    few = fit(world.K, 80, rows, user_cov=user_covariance(Z, pseudo=25))
    assert error(few, f) == pytest.approx(error(informed, f), abs=0.01)


# ---------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"D": 0}, "D: expected a whole number, 1 or more, got 0"),
        ({"users": 0}, "users: expected"),
        ({"user_cov": user_covariance(np.eye(3))}, "user_cov: expected features of 6 people, got 3"),
        ({"pseudo_pairs": 0}, "pseudo_pairs: expected"),
        ({"rows": order_rows([0, 1, 2])}, "rows: expected answers that stand alone"),
    ],
)
def test_refusals(change: dict[str, Any], told: str) -> None:
    given: dict[str, Any] = {"K": SMALL.K, "users": 6, "rows": SMALL.rows, "D": 2, **change}
    with pytest.raises(ValueError, match=told):
        fit(**given)

"""What to ask next: [H12] Eq. 11 against integrals, EUBO against an integral, and all pairs against a loop over pairs.

The references use `math` and trapezoid rules; none of them calls what it judges."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from heedful.inference.gp import acquisition
from heedful.inference.gp.acquisition import bald, eubo, expected_change, mes, next_question
from heedful.inference.gp.posterior import LowRankPosterior, Posterior

# ---------------------------------------------------------------------------- references


def cdf(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


def entropy(z: float) -> float:
    """Of a coin that falls with probability Phi(z), in bits."""
    q = cdf(-abs(z))
    return 0.0 if q == 0.0 else -(q * math.log(q) + (1.0 - q) * math.log1p(-q)) / math.log(2.0)


F = np.linspace(-9.0, 9.0, 18_001)
ENTROPIES = np.array([entropy(f) for f in F])


def information(mean: float, var: float) -> float:
    """[H12] Eq. 10 in bits, its integral by the trapezoid rule on f in [-9, 9], beyond which entropy is below 1e-16."""
    density = np.exp(-((F - mean) ** 2) / (2.0 * var)) / math.sqrt(2.0 * math.pi * var)
    return entropy(mean / math.sqrt(var + 1.0)) - float(np.trapezoid(ENTROPIES * density, F))


def paper(mean: float, var: float) -> float:
    """[H12] Eq. 11 as it is printed, in bits."""
    C = math.sqrt(math.pi * math.log(2.0) / 2.0)
    return entropy(mean / math.sqrt(var + 1.0)) - C / math.sqrt(var + C**2) * math.exp(-(mean**2) / (2 * (var + C**2)))


def better_of(a: float, b: float, var: float) -> float:
    """E max(f_a, f_b) = a + E max(0, g), g ~ N(b - a, var), by the trapezoid rule."""
    s = math.sqrt(var)
    g = np.linspace(b - a - 12.0 * s, b - a + 12.0 * s, 200_001)
    density = np.exp(-((g - (b - a)) ** 2) / (2.0 * var)) / math.sqrt(2.0 * math.pi * var)
    return a + float(np.trapezoid(np.maximum(g, 0.0) * density, g))


def worth(rule: str, posterior: Posterior, i: int, j: int) -> float:
    m, S = posterior
    v = float(S[i, i] + S[j, j] - 2.0 * S[i, j])
    gap = float(m[i] - m[j])
    if rule == "bald":
        return max(paper(gap, v), 0.0)
    if rule == "mes":
        return entropy(gap / math.sqrt(v + 1.0))
    s = math.sqrt(v)
    z = gap / s
    return float(m[i]) * cdf(z) + float(m[j]) * cdf(-z) + s * math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)


def some(n: int, seed: int = 0, scale: float = 1.0) -> Posterior:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n + 2))
    return Posterior(scale * rng.standard_normal(n), scale * scale * A @ A.T / n)


# ---------------------------------------------------------------------------- the rules

MEANS = np.linspace(-7.0, 7.0, 57)
VARIANCES = 10.0 ** np.linspace(-4.0, 4.0, 33)


def test_bald_is_the_information_to_within_three_thousandths_of_a_bit() -> None:
    """[H12] Eq. 11 and the trapezoid rule."""
    for var in VARIANCES:
        exact = np.array([information(mean, var) for mean in MEANS])
        np.testing.assert_allclose(bald(MEANS, np.full(MEANS.size, var)), exact, rtol=0.0, atol=0.003)


def test_bald_is_the_printed_formula_and_never_negative() -> None:
    """[H12] Eq. 11; some of it is negative, by less than .003, and there it is 0."""
    printed = np.array([[paper(mean, var) for mean in MEANS] for var in VARIANCES])
    got = bald(MEANS, VARIANCES[:, None])
    np.testing.assert_allclose(got, np.maximum(printed, 0.0), rtol=1e-10, atol=1e-14)
    assert -0.003 < printed.min() < -0.001
    assert got.min() == 0.0
    assert bald(0.0, 0.0) == pytest.approx(0.0, abs=1e-15)


def test_mes_is_the_entropy_of_the_answer() -> None:
    np.testing.assert_allclose(
        mes(MEANS, VARIANCES[:, None]),
        [[entropy(mean / math.sqrt(var + 1.0)) for mean in MEANS] for var in VARIANCES],
        rtol=1e-10,
        atol=1e-300,
    )
    assert mes(0.0, 3.0) == 1.0
    assert 0.0 <= mes(1e6, 1.0) < 1e-100


def test_eubo_is_what_the_better_of_two_is_worth() -> None:
    for a, b, var in [(0.0, 0.0, 1.0), (1.0, -0.5, 0.3), (-2.0, 1.0, 9.0), (-1.0, -1.2, 1e-4), (5.0, 5.1, 400.0)]:
        wanted = better_of(a, b, var)
        assert float(eubo(a, b, var)) == pytest.approx(wanted, rel=1e-7, abs=1e-7)
        assert eubo(a, b, var) == eubo(b, a, var)
    assert eubo(2.0, -3.0, 0.0) == 2.0
    assert eubo(0.0, 0.0, 2.0) == pytest.approx(1.0 / math.sqrt(math.pi))  # E max of two of N(0, 1)
    with np.errstate(over="raise", invalid="raise"):
        assert eubo(1e80, -1e80, 1.0) == 1e80
        assert eubo(-1e30, 1e30, 0.0) == 1e30


def test_bald_leaves_a_coin_alone_and_mes_does_not() -> None:
    """[H12] section 4.1: where it is known that the answer is uncertain, there is nothing to learn."""
    known_tie, unknown = (0.0, 1e-6), (1.0, 4.0)
    assert mes(*known_tie) > mes(*unknown)
    assert bald(*known_tie) < 1e-5 < bald(*unknown)


# ---------------------------------------------------------------------------- the next question


@pytest.mark.parametrize("rule", ["bald", "mes", "eubo"])
@pytest.mark.parametrize(("n", "seed", "scale"), [(2, 0, 1.0), (3, 1, 1.0), (9, 2, 3.0), (60, 3, 1.0), (230, 4, 0.2)])
def test_the_next_question_is_the_best_of_all_pairs(rule: str, n: int, seed: int, scale: float) -> None:
    """230 items are two blocks of rows, the last of them shorter."""
    posterior = some(n, seed, scale)
    each = {pair: worth(rule, posterior, *pair) for pair in combinations(range(n), 2)}
    top = max(each, key=each.__getitem__)
    got = next_question(posterior, rule)
    assert (got.first, got.second) == top
    assert got.score == pytest.approx(each[top], rel=1e-9)
    # without the best three, the fourth; some of them the other way round
    ordered = sorted(each, key=each.__getitem__, reverse=True)
    if len(ordered) > 3:
        skip = [ordered[0], ordered[1][::-1], ordered[2]]
        fourth = next_question(posterior, rule, skip=skip)
        assert (fourth.first, fourth.second) == ordered[3]


@pytest.mark.parametrize("rule", ["bald", "mes", "eubo"])
def test_every_pair_is_looked_at(rule: str) -> None:
    """One pair of 400 is better than the others, wherever it is: first, last, across blocks, in the corner."""
    n = 400
    for i, j in [(0, 1), (0, n - 1), (n - 2, n - 1), (80, 81), (81, 82), (163, 245), (245, 399), (398, 399), (81, 399)]:
        mean = np.zeros(n)
        cov = np.eye(n)
        cov[i, j] = cov[j, i] = -0.9
        if rule == "mes":  # it does not look at variances where means are equal
            mean = np.arange(n) * 1.0
            mean[j] = mean[i]
            cov = np.eye(n)
        got = next_question(Posterior(mean, cov), rule)
        assert got[:2] == (i, j)


def test_equal_scores_go_to_the_first_pair() -> None:
    prior = Posterior(np.zeros(300), np.eye(300))
    for rule in ("bald", "mes", "eubo"):
        assert next_question(prior, rule)[:2] == (0, 1)
        assert next_question(prior, rule, skip=[(0, 1), (2, 0)])[:2] == (0, 3)


@pytest.mark.parametrize("rule", ["bald", "mes", "eubo"])
def test_permuting_items_permutes_the_question(rule: str) -> None:
    posterior = some(40, 6)
    p = np.random.default_rng(0).permutation(40)
    moved = Posterior(posterior.mean[p], posterior.cov[np.ix_(p, p)])
    a, b, score = next_question(posterior, rule)
    i, j, same = next_question(moved, rule)
    assert {int(p[i]), int(p[j])} == {a, b}
    assert same == pytest.approx(score, rel=1e-12)


@pytest.mark.slow
def test_random_questions_are_even_among_those_left() -> None:
    posterior, rng = some(5), np.random.default_rng(0)
    skip = [(0, 1), (4, 2), (2, 4), (3, 4)]
    left = [pair for pair in combinations(range(5), 2) if pair not in {(0, 1), (2, 4), (3, 4)}]
    seen = [next_question(posterior, "random", skip=skip, rng=rng)[:2] for _ in range(7000)]
    assert set(seen) == set(left)
    assert all(abs(seen.count(pair) - 1000) < 5 * 30 for pair in left)  # sd of each count: 29


def test_flat_and_singular_posteriors_get_a_question() -> None:
    """Nothing known, all items the same, one item twice: finite, and two different items."""
    same = Posterior(np.zeros(3), np.ones((3, 3)))
    twice = Posterior(np.array([0.0, 0.0, 1.0]), np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    for rule in ("bald", "mes", "eubo"):
        got = next_question(same, rule)
        assert got[:2] == (0, 1)
        assert math.isfinite(got.score)
    assert next_question(twice, "bald")[:2] == (0, 2)
    assert next_question(twice, "eubo")[:2] == (0, 2)


@pytest.mark.parametrize("rule", ["bald", "mes", "eubo"])
def test_bounds_leave_out_no_pair_that_is_the_first_of_the_best(rule: str) -> None:
    """Items of which nothing is known tie exactly; some are known, and some pairs were asked. Blocks of two rows."""
    rng = np.random.default_rng(0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(acquisition, "_BLOCK", 60)
        for t in range(60):
            n, known = 30, int(rng.integers(0, 9))
            A = rng.integers(-1, 2, (known, 3)) * rng.choice([0.3, 1.0, 3.0])
            cov = np.eye(n)
            cov[n - known :, n - known :] = A @ A.T if t % 2 else A @ A.T + 0.1 * np.eye(known)
            mean = np.concatenate([np.zeros(n - known), rng.integers(-2, 3, known) * 0.5])
            shuffled = rng.permutation(n)
            posterior = Posterior(mean[shuffled], cov[np.ix_(shuffled, shuffled)])
            pairs = list(combinations(range(n), 2))
            gone = [pairs[k] for k in rng.choice(len(pairs), int(rng.integers(0, 400)), replace=False)]
            left = [pair for pair in pairs if pair not in set(gone)]
            a, b = np.array(left).T
            each = acquisition.acquisition_score(rule, posterior.mean[a], posterior.mean[b], posterior.gap(a, b)[1])
            got = next_question(posterior, rule, skip=gone)
            assert (got.first, got.second) == left[int(each.argmax())]


@pytest.mark.parametrize("rule", ["bald", "mes", "eubo"])
def test_what_answers_have_narrowed_is_asked_about_like_the_whole(rule: str) -> None:
    """Covariances made a part at a time, of some items of a prior over more."""
    rng = np.random.default_rng(1)
    prior = some(70, 5).cov
    some_of = np.sort(rng.choice(70, 40, replace=False)), np.concatenate([[0], np.arange(5, 60)])
    for items in (np.arange(70), np.arange(4, 60), *some_of):
        met = np.sort(rng.choice(70, 6, replace=False))
        across = prior[np.ix_(items, met)]
        W = np.linalg.inv(prior[np.ix_(met, met)] + np.eye(6))
        part = LowRankPosterior(rng.standard_normal(items.size), prior, items, across @ W, across)
        cov = prior[np.ix_(items, items)] - across @ W @ across.T
        np.testing.assert_allclose(part.whole().cov, cov, atol=1e-12)
        np.testing.assert_allclose(part.var, cov.diagonal(), atol=1e-12)
        np.testing.assert_allclose(part.row(3), cov[3], atol=1e-12)
        np.testing.assert_allclose(part.block(2, 5), cov[2:5, 3:], atol=1e-12)
        whole, skip = Posterior(part.mean, cov), [(0, 1), (2, 5)]
        assert next_question(part, rule, skip=skip)[:2] == next_question(whole, rule, skip=skip)[:2]


# ---------------------------------------------------------------------------- several at once


def test_after_an_answer_the_gaussian_has_the_moments_of_the_posterior() -> None:
    """Of three items, by a grid: prior N(m, S) times Phi(f_2 - f_0)."""
    m, S = np.array([0.3, -0.2, 0.1]), np.array([[1.0, 0.4, 0.1], [0.4, 0.8, -0.2], [0.1, -0.2, 1.5]])
    axis = np.linspace(-7.0, 7.0, 71)
    grid = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    d = grid - m
    log_prior = -0.5 * np.einsum("ki,ij,kj->k", d, np.linalg.inv(S), d)
    gaps, which = np.unique(np.round(grid[:, 2] - grid[:, 0], 9), return_inverse=True)
    likelihood = np.array([cdf(g) for g in gaps])[which]
    w = np.exp(log_prior) * likelihood
    w /= w.sum()
    mean = w @ grid
    cov = (grid - mean).T @ ((grid - mean) * w[:, None])
    along = S[:, 2] - S[:, 0]
    shift, shrink = expected_change(m[2] - m[0], along[2] - along[0])
    np.testing.assert_allclose(m + shift * along, mean, atol=1e-6)
    np.testing.assert_allclose(S - shrink * np.outer(along, along), cov, atol=1e-6)


def test_after_an_unbelievable_answer_all_is_finite() -> None:
    shift, shrink = expected_change(-80.0, 2.0)
    assert 0.0 < shift < np.inf
    assert 0.0 < 2.0 * shrink < 1.0  # the variance of the difference stays above 0


# ---------------------------------------------------------------------------- the door


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"rule": "best"}, "rule"),
        ({"rule": "random"}, "rng"),
        ({"rule": "random", "rng": 3}, "rng"),
        ({"skip": [(0, 5)]}, "skip"),
        ({"skip": [(1, 1)]}, "skip"),
        ({"skip": [0, 1]}, "skip"),
        ({"skip": [(0.0, 1.0)]}, "skip"),
        ({"skip": [(-1, 2)]}, "skip"),
        ({"skip": "ab"}, "skip"),
    ],
)
def test_nonsense_is_refused_by_name(change: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=f"^{named}: expected"):
        next_question(some(5), **change)


def test_one_item_alone_has_no_question() -> None:
    with pytest.raises(ValueError, match=r"^items: expected a whole number, 2 or more, got 1$"):
        next_question(some(1))

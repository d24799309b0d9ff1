"""How people answer, learned from it: against a grid of the evidence, and against people who are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from brute import by_grid, chosen, tied
from scipy.special import betaln

from heedful.inference.gp.hierarchical import fit
from heedful.inference.gp.response_noise import NoisePrior, ResponseNoise, infer_with_noise, random_probabilities
from heedful.inference.pairwise import PairRows, concatenate, order_rows, pair_rows
from one_person import infer

Array = npt.NDArray[np.float64]
PRIOR = NoisePrior()


def said(
    f: Array, n: int, seed: int, *, lapse: float = 0.0, tie: float = 0.0, user: int = 0, left: bool = False
) -> PairRows:
    """n answers about random pairs of a person with utilities f; a lapse is any of the answers on offer, or where
    `left` the first of the pair."""
    rng = np.random.default_rng(seed)
    pairs = np.array([rng.choice(f.size, 2, replace=False) for _ in range(n)])
    gap = f[pairs[:, 0]] - f[pairs[:, 1]] + rng.normal(size=n)
    what = np.where(np.abs(gap) < tie, 2, gap < 0.0)
    lapses = rng.random(n) < lapse
    what = np.where(lapses, 0 if left else rng.integers(3 if tie else 2, size=n), what)
    return pair_rows(np.where(what[:, None] == 1, pairs[:, ::-1], pairs), None, what == 2, user)


def log_prior(lapse: Any, width: float) -> Any:
    """Beta(1.2, 10) of the lapse rate, log-normal (median .25, sd .7) of the width, as a density of its logarithm."""
    beta = 0.2 * np.log(lapse) + 9.0 * np.log1p(-lapse)
    return beta - 0.5 * (np.log(width / 0.25) / 0.7) ** 2


@pytest.mark.parametrize("seed", range(2))
def test_it_is_where_evidence_and_prior_are_highest(seed: int) -> None:
    """EP's evidence on a grid of lapse rates and widths, plus the log prior: no point of it is higher."""
    rows = said(np.array([1.0, 0.3, -0.4, -1.2]), 40, seed, lapse=0.15, tie=0.4)
    K = 1.5 * np.eye(4)
    got, noise = infer_with_noise(K, np.zeros(4), rows)
    lapse, width = noise.lapse[0], noise.width[0]
    top = got.log_evidence + log_prior(lapse, width)
    for by, far in ((0.1, 0.02), (0.3, 0.1), (1.0, 0.5)):
        for at_lapse, at_width in ((by, 0), (-by, 0), (0, by), (0, -by), (by, -by), (-by, by)):
            rate, w = lapse * np.exp(at_lapse), width * np.exp(at_width)
            other = infer(K, np.zeros(4), rows, lapse=rate, width=w).log_evidence + log_prior(rate, w)
            assert top > other - 1e-4 * far
    brute = by_grid(K, np.zeros(4), likelihoods(rows, width, lapse))[1]
    assert got.log_evidence == pytest.approx(brute, abs=0.1)


def likelihoods(rows: PairRows, width: float, lapse: float) -> list[Any]:
    return [(tied if tie else chosen)(a, b, width, lapse) for (a, b), tie in zip(rows.pairs, rows.equal)]


@pytest.mark.slow
def test_lapses_and_widths_of_people_are_found() -> None:
    """Medians over people with many answers each; who never errs at random is told from who often does."""
    lapses: dict[float, list[float]] = {0.0: [], 0.3: []}
    widths = []
    for lapse, seen in lapses.items():
        for seed in range(8):
            f = 2.0 * np.random.default_rng(seed).normal(size=8)
            _, noise = infer_with_noise(4.0 * np.eye(8), np.zeros(8), said(f, 250, seed, lapse=lapse, tie=0.4))
            seen.append(noise.lapse[0])
            if not lapse:
                widths.append(noise.width[0])
    assert np.median(lapses[0.0]) < 0.03
    assert 0.18 < np.median(lapses[0.3]) < 0.36
    assert min(lapses[0.3]) > max(lapses[0.0])
    assert 0.33 < np.median(widths) < 0.47


@pytest.mark.slow
def test_who_answers_at_random_is_found() -> None:
    """P(at random) by Bayes' rule: of people who do, of people who do not, of somebody who always takes the left."""
    odd: list[float] = []
    even: list[float] = []
    left: list[float] = []
    for seed in range(10):
        f = 2.0 * np.random.default_rng(seed).normal(size=8)
        for out, lapse, first in ((odd, 1.0, False), (even, 0.05, False), (left, 1.0, True)):
            rows = said(f, 200, seed, lapse=lapse, left=first)
            out.append(infer_with_noise(4.0 * np.eye(8), np.zeros(8), rows)[1].random[0])
    assert min(np.median(odd), np.median(left)) > 0.9
    assert max(even) < 1e-6


def test_at_random_is_bayes_rule() -> None:
    """By hand: answers to two, with and without "equally good", best of three, orders with and without ties."""
    rows = concatenate([pair_rows([(0, 1), (1, 2)], [2, 1]), pair_rows([(0, 2)], equal=True)])
    noise = ResponseNoise(np.array([0.3]), np.zeros(1), np.zeros(1))
    # one tie in four answers, the share of ties Beta(1, 2), and the rest evenly first or second
    guessed = betaln(2.0, 5.0) - betaln(1.0, 2.0) - 3.0 * np.log(2.0)
    wanted = 0.05 * np.exp(guessed) / (0.05 * np.exp(guessed) + 0.95 * np.exp(-4.0))
    assert random_probabilities(rows, np.array([-4.0]), noise, PRIOR)[0] == pytest.approx(wanted, abs=1e-12)
    noise = noise._replace(width=np.zeros(1))
    each = (
        (order_rows([1, [0, 2]]), 3),
        (order_rows([0, 1, 2]), 6),
        (order_rows([[0, 1], 2, 3]), 12),
        (pair_rows([(0, 1)]), 2),
    )
    for part, count in each:
        got = random_probabilities(part, np.array([-2.0]), noise, PRIOR)[0]
        assert got == pytest.approx(0.05 / count / (0.05 / count + 0.95 * np.exp(-2.0)), abs=1e-12)
    tie = random_probabilities(order_rows([3, [0, 1], 2], equal=True), np.array([-2.0]), noise, PRIOR)[0]
    assert tie == pytest.approx(0.05 / 12 / (0.05 / 12 + 0.95 * np.exp(-2.0)), abs=1e-12)
    # that all are equally good is one of n + 1 answers: the best of n, or this
    for n in (3, 4):
        level = random_probabilities(order_rows([list(range(n))], equal=True), np.array([-2.0]), noise, PRIOR)[0]
        assert level == pytest.approx(0.05 / (n + 1) / (0.05 / (n + 1) + 0.95 * np.exp(-2.0)), abs=1e-12)
    assert random_probabilities(pair_rows([]), np.zeros(1), noise, PRIOR)[0] == pytest.approx(0.05)


def test_of_many_people_each_has_a_rate_and_all_one_width() -> None:
    """Two of twelve answer at random, and are told. (Not by their lapse rates: they may also be people to whom all is
    alike.)"""
    rng = np.random.default_rng(0)
    m = 2.0 * rng.normal(size=6)
    f = m + 0.7 * rng.normal(size=(12, 6))
    rows = concatenate([said(f[u], 60, u, lapse=1.0 if u < 2 else 0.0, tie=0.4, user=u) for u in range(12)])
    got = fit(np.eye(6), 12, rows, kappa0=1.0, noise=PRIOR, steps=100)
    assert got.noise.random[:2].min() > 0.5
    assert got.noise.random[2:].max() < 1e-6
    assert np.ptp(got.noise.width) == 0.0
    assert 0.3 < got.noise.width[0] < 0.55
    plain = fit(np.eye(6), 12, rows, kappa0=1.0, width=0.4, steps=100)
    assert got.trace[-1] > plain.trace[-1]
    assert (plain.noise.lapse == 0.0).all()


def test_who_said_nothing_is_as_supposed() -> None:
    rows = said(np.array([1.0, 0.0, -1.0]), 20, 0, tie=0.3)
    got = fit(np.eye(3), 2, rows, noise=PRIOR)
    assert got.noise.lapse[1] == pytest.approx(0.2 / 9.2, abs=1e-6)
    assert got.noise.random[1] == pytest.approx(0.05)
    alone, noise = infer_with_noise(np.eye(3), np.zeros(3), pair_rows([]))
    assert list(noise.of(0)) == pytest.approx([0.0, 0.2 / 9.2, 0.05], abs=1e-6)
    np.testing.assert_array_equal(alone.posterior.cov, np.eye(3))


def test_of_rankings_alone_the_rate_stays_that_of_the_prior() -> None:
    rows = concatenate([order_rows([0, 1, 2]), order_rows([2, 1, 0]), order_rows([1, [0, 2]])])
    _, noise = infer_with_noise(np.eye(3), np.zeros(3), rows)
    assert noise.lapse[0] == pytest.approx(PRIOR.lapse, abs=1e-6)

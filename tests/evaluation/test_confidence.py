"""Confidence sequences miss no more often than they state, however often one looks; and they find what is there."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from heedful.evaluation.confidence import Betting, Drifting, win_share_limits

RUNS = 400


def bets(draws: Any) -> Iterator[Any]:
    sequence = Betting(0.05, 201)
    state = sequence.init(draws.shape[1:])
    for x in draws:
        state = sequence.update(state, x)
        yield sequence.interval(state)


def shares(draws: Any) -> Iterator[Any]:
    wins = draws.cumsum(axis=0)
    for t, won in enumerate(wins, 1):
        yield win_share_limits(won, t - won, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("intervals", [bets, shares])
@pytest.mark.parametrize("p", [0.02, 0.5])
def test_shares_are_missed_no_more_often_than_stated(intervals: Any, p: float) -> None:
    draws = (np.random.default_rng(7).random((600, RUNS)) < p).astype(float)
    missed = np.zeros(RUNS, bool)
    for low, high in intervals(draws):
        missed |= (p < low) | (p > high)
    assert missed.mean() <= 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / RUNS)
    assert float((high - low).mean()) < 0.35


# ---------------------------------------------------------------------------- expectations that change


@pytest.mark.parametrize("how", ["rises", "falls", "level", "against the mean so far"])
def test_the_average_of_changing_expectations_is_missed_no_more_often_than_stated(how: str) -> None:
    """Also where the next expectation depends on what came, which no sequence for a fixed mean allows."""
    rng, T = np.random.default_rng(10), 300
    sequence = Drifting(0.05)
    state = sequence.init((RUNS,))
    expected, total, missed = np.zeros(RUNS), np.zeros(RUNS), np.zeros(RUNS, bool)
    for t in range(T):
        mu = {"rises": np.full(RUNS, 0.5 + 0.45 * t / T), "falls": np.full(RUNS, 0.9 - 0.8 * t / T)}.get(
            how, np.full(RUNS, 0.02)
        )
        if how == "against the mean so far":
            mu = np.where(total > 0.5 * t, 0.1, 0.9)
        x = (rng.random(RUNS) < mu).astype(float)
        state, expected, total = sequence.update(state, x), expected + mu, total + x
        low, high = sequence.interval(state)
        missed |= (expected / (t + 1) < low) | (expected / (t + 1) > high)
    assert missed.mean() <= 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / RUNS)
    assert float((high - low).mean()) < 0.35


def test_its_ends_are_where_the_mixture_reaches_what_it_may() -> None:
    """Howard et al. (2021), Theorem 4: the mean over l of exp(l S - psi(l) V) is 2 / alpha at either end, with sums
    taken from all values again."""
    x, alpha = np.random.default_rng(11).beta(5.0, 2.0, 80), 0.1
    sequence = Drifting(alpha)
    state = sequence.init()
    for value in x:
        state = sequence.update(state, value)
    before = [(0.5 + x[:i].sum()) / (i + 1) for i in range(80)]
    V = float(((x - before) ** 2).sum())
    bets = [0.9 / 1.6**i for i in range(10)]
    for end, sign in zip(sequence.interval(state), (1.0, -1.0)):
        S = sign * (x.sum() - 80 * float(end))
        mixture = np.mean([math.exp(b * S - (-math.log(1.0 - b) - b) * V) for b in bets])
        assert mixture == pytest.approx(2.0 / alpha, rel=1e-9)
    assert sequence.interval(sequence.init((2,)))[1].tolist() == [1.0, 1.0]

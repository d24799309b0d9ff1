"""Confidence sequences miss no more often than they state, however often one looks; and they find what is there."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from heedful.evaluation.confidence import Betting, win_share_limits

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

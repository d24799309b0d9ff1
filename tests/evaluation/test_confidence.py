"""The sequence of the share of wins misses no more often than it states, however often one looks; and it finds what is
there."""

from __future__ import annotations

import math

import numpy as np
import pytest

from heedful.evaluation.confidence import win_share_limits

RUNS = 400


@pytest.mark.slow
@pytest.mark.parametrize("p", [0.02, 0.5])
def test_shares_are_missed_no_more_often_than_stated(p: float) -> None:
    wins = (np.random.default_rng(7).random((600, RUNS)) < p).astype(float).cumsum(axis=0)
    missed = np.zeros(RUNS, bool)
    for t, won in enumerate(wins, 1):
        low, high = win_share_limits(won, t - won, 0.05)
        missed |= (p < low) | (p > high)
    assert missed.mean() <= 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / RUNS)
    assert float((high - low).mean()) < 0.35

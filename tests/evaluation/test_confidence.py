"""Confidence sequences miss no more often than they state, however often one looks; and they find what is there."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from heedful.evaluation.confidence import BetaBinomial, Betting, EmpiricalBernstein, OffPolicy, asymptotic

RUNS = 400


def misses(sequence: Any, draws: Any, truth: float) -> tuple[float, float]:
    """(the share of runs that ever missed the truth, the mean width at the end), of draws (T, runs)."""
    state = sequence.init(draws.shape[1:])
    missed = np.zeros(draws.shape[1], bool)
    for x in draws:
        state = sequence.update(state, x)
        low, high = sequence.interval(state)
        missed |= (truth < low) | (truth > high)
    return float(missed.mean()), float((high - low).mean())


@pytest.mark.parametrize("sequence", [Betting(0.05, 201), BetaBinomial(0.05), EmpiricalBernstein(0.05)])
@pytest.mark.parametrize("p", [0.02, 0.5])
def test_shares_are_missed_no_more_often_than_stated(sequence: Any, p: float) -> None:
    draws = (np.random.default_rng(7).random((600, RUNS)) < p).astype(float)
    missed, width = misses(sequence, draws, p)
    assert missed <= 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / RUNS)
    assert width < 0.35


def test_the_asymptotic_sequence_misses_rare_clicks_far_too_often() -> None:
    """Why it is not what verdicts rest on: .41 of the runs at a rate of .02, looked at from 50 to 3,000."""
    draws = (np.random.default_rng(8).random((3000, RUNS)) < 0.02).astype(float)
    mean = draws.cumsum(axis=0) / np.arange(1, 3001)[:, None]
    missed = np.zeros(RUNS, bool)
    for n in range(50, 3001):
        sd = np.sqrt(mean[n - 1] * (1.0 - mean[n - 1]))
        low, high = asymptotic(mean[n - 1], sd, n, 0.05, 1000)
        missed |= (low > 0.02) | (high < 0.02)
    assert 0.3 < missed.mean() < 0.5

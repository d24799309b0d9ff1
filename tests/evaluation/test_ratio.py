"""The ratio of two means: as betting on a mean where all weights are 1, and missed no more often than stated."""

from __future__ import annotations

import math

import numpy as np
import pytest

from heedful.evaluation.ratio import ratio
from naive import capital


@pytest.mark.parametrize("p", [0.1, 0.5, 0.97])
def test_with_equal_weights_it_is_betting_on_the_mean(p: float) -> None:
    rng = np.random.default_rng(1)
    x = np.where(rng.random(900) < 0.3, rng.random(900), (rng.random(900) < p).astype(float))
    value, low, high = ratio(x, np.ones(900), alpha=0.1)
    assert value == pytest.approx(x.mean())
    kept = [max(capital(x, m)) < math.log(10.0) for m in (low - 0.0006, low + 0.0016, high - 0.0016, high + 0.0006)]
    assert kept == [False, True, True, False]


def test_it_takes_as_many_people_at_once_as_one_after_the_other() -> None:
    rng = np.random.default_rng(2)
    w = rng.choice([0.0, 2.0 / 3.0, 2.0], 5000)
    a = np.where(rng.random(5000) < 0.6, w, 0.0)
    ends = np.array([ratio(a[:n], w[:n], 2.0)[1:] for n in (10, 100, 2047, 2048, 2049, 5000)])
    assert (np.diff(ends[:, 0]) >= 0.0).all()
    assert (np.diff(ends[:, 1]) <= 0.0).all()
    assert ends[-1][0] <= 0.6 <= ends[-1][1]
    assert ends[-1][1] - ends[-1][0] < 0.08


@pytest.mark.parametrize("share", [0.05, 0.5, 0.8])
def test_it_is_missed_no_more_often_than_stated_at_any_of_many_looks(share: float) -> None:
    """Weights of pairs that are swapped with probability 1/4, shared by people with few and with many of them."""
    runs, people, alpha = 300, 150, 0.1
    rng = np.random.default_rng(3)
    missed = 0
    for _ in range(runs):
        size = rng.geometric(0.3, people)
        who = np.repeat(np.arange(people), size)
        w = np.where(rng.random(who.size) < 0.25, 2.0, 2.0 / 3.0)
        taste = np.clip(share + 0.2 * rng.choice([-1.0, 1.0], people), 0.0, 1.0)
        a = w * (rng.random(who.size) < taste[who])
        part, whole = np.bincount(who, a) / size, np.bincount(who, w) / size
        truth = float(np.clip(share + 0.2 * np.array([-1.0, 1.0]), 0.0, 1.0).mean())
        _, low, high = ratio(part, whole, 2.0, alpha)
        missed += not low <= truth <= high
    assert missed / runs <= alpha + 3.0 * math.sqrt(alpha * (1.0 - alpha) / runs)


def test_it_refuses_what_makes_no_sense() -> None:
    with pytest.raises(ValueError, match=r"part: expected 0 <= part <= whole <= 1"):
        ratio(np.array([0.6]), np.array([0.5]))
    with pytest.raises(ValueError, match=r"part: expected one number for each"):
        ratio(np.zeros(2), np.zeros(3))
    with pytest.raises(ValueError, match=r"alpha: expected a number between 0 and 1, got 1.0"):
        ratio(np.zeros(2), np.ones(2), alpha=1.0)
    assert ratio(np.zeros(0), np.zeros(0)) == (0.5, 0.0, 1.0)

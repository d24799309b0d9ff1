"""The ratio of two means with an interval: a weighted share over people.

The interval may be looked at as often as one likes while people come one after the other, each with a part and a weight
that stay as they are. If the same people come back, these change, and each look is another chance of a miss: the
interval then holds at one look, and misses more often if it is looked at again and again (`bench/looks.py`).

Person i has a sum of weights w_i >= 0, at most `most`, and a part a_i <= w_i of it: the weight of the answers that are
counted. The ratio is E a / E w. It equals m where the mean of a_i - m w_i is 0, so it is found by betting against every
candidate m: the hedged capital process of Waudby-Smith & Ramdas (JRSS B 2024) on x_i = m + (a_i - m w_i) / most in
[0, 1]. K(m) = (K+(m) + K-(m)) / 2; each x multiplies K+ by 1 + l (x - m) and K- by 1 - l (x - m), where the bet l
depends only on earlier people. A candidate is rejected once K(m) >= 1 / alpha, which by Ville's inequality ever happens
to the true ratio with probability at most alpha. With all weights 1 it is the mean of values in [0, 1].
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

HEADROOM = 0.5
"""The greatest fraction of its capital that a bet may lose (c)."""
CANDIDATES = 1000
ROUNDING = 1e-9
"""By how much inputs may violate their bounds, because they are rounded sums."""
STRIDE = 20
"""Bets are made against each STRIDE-th candidate first, and against those in between only near the ends of the
interval.
"""
ROWS = 4096
"""The number of people processed at a time, so that intermediate arrays stay in the processor's cache."""


def ratio(
    part: npt.NDArray[np.floating[Any]], whole: npt.NDArray[np.floating[Any]], most: float = 1.0, alpha: float = 0.05
) -> tuple[float, float, float]:
    """Return (value, low, high): the ratio E part / E whole with its confidence interval, from n people in order of
    arrival.

    - `part` (n,): for each person, the weight that counts
    - `whole` (n,): for each person, all the weight, at most `most`
    - `alpha`: the probability with which the interval may miss

    If people are independent of each other, the interval contains the ratio for all n at once with probability 1 -
    `alpha`, as long as the numbers of each person stay as they are; with all weights 0 it is (1/2, 0, 1). Raise
    ValueError unless 0 < alpha < 1 and 0 <= part <= whole <= most."""
    a, w = np.asarray(part, float) / most, np.asarray(whole, float) / most
    if a.ndim != 1 or a.shape != w.shape:
        raise ValueError(f"part: expected one number for each of whole {w.shape}, got shape {a.shape}")
    if not ((a >= -ROUNDING) & (a <= w + ROUNDING) & (w <= 1.0 + ROUNDING)).all():
        raise ValueError(f"part: expected 0 <= part <= whole <= {most:g}, got others")
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha: expected a number between 0 and 1, got {alpha!r}")
    a, total = a.clip(0.0, w), float(w.sum())
    if total == 0.0:
        return 0.5, 0.0, 1.0
    value, limit = float(a.sum()) / total, math.log(2.0 / alpha)
    coarse = np.arange(STRIDE // 2, CANDIDATES, STRIDE)
    accepted = coarse[_peaks(a, w, (coarse + 0.5) / CANDIDATES) < limit]
    inside = accepted if accepted.size else np.array([min(int(value * CANDIDATES), CANDIDATES - 1)])
    fine = np.unique(np.concatenate([inside[0] - np.arange(STRIDE), inside[-1] + np.arange(STRIDE)]))
    fine = fine[(fine >= 0) & (fine < CANDIDATES)]
    accepted = np.union1d(inside, fine[_peaks(a, w, (fine + 0.5) / CANDIDATES) < limit])
    low, high = max((float(accepted[0]) - 0.5) / CANDIDATES, 0.0), min((float(accepted[-1]) + 1.5) / CANDIDATES, 1.0)
    return value, min(low, value), max(high, value)


def _peaks(a: Array, w: Array, m: Array) -> Array:
    """Return the greatest log capital (M,), plus log 2, that the bets against each of M candidates `m` (M,)
    ever had."""
    # Each bet depends on all earlier people, and on one imaginary person (1/2, 1) with variance 1/4.
    start = np.array([[0.5, 1.0, 0.25, 0.5, 1.0]])
    cumulative = np.cumsum(np.vstack([start, np.stack([a, w, a * a, a * w, w * w], axis=1)]), axis=0)
    capital, peak = np.zeros((2, m.size)), np.full(m.size, -np.inf)
    for first in range(0, a.size, ROWS):
        rows = slice(first, min(first + ROWS, a.size))
        n = np.arange(rows.start + 1, rows.stop + 1)[:, None]
        sa, sw, saa, saw, sww = (cumulative[rows, j, None] for j in range(5))
        mean = (sa - m * sw) / n
        squares = np.maximum(0.25 + saa - 2.0 * m * saw + m * m * sww - n * mean * mean, 1e-9)
        bet = mean / (squares / n + mean * mean)
        moved = a[rows, None] - m * w[rows, None]
        higher = np.log1p(np.clip(bet, 0.0, HEADROOM / m) * moved)
        lower = np.log1p(-np.clip(-bet, 0.0, HEADROOM / (1.0 - m)) * moved)
        higher, lower = capital[0] + np.cumsum(higher, axis=0), capital[1] + np.cumsum(lower, axis=0)
        peak = np.maximum(peak, np.logaddexp(higher, lower).max(axis=0))
        capital[0], capital[1] = higher[-1], lower[-1]
    return peak

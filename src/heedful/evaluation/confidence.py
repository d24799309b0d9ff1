"""Confidence sequences: intervals that hold at all times at once, so that anybody may look at them whenever they like.

An interval for a fixed sample size misses the truth far more often than stated if it is looked at again and again. Each
sequence here misses it, at any time at all, with probability at most `alpha`.

| sequence | of what | holds |
|---|---|---|
| `Betting` | the mean of values in [0, 1] | always (Waudby-Smith & Ramdas, JRSS B 2024) |
| `win_share_limits` | the share of wins | always (Robbins 1970) |

`init` makes a state, `update` returns the state after one more value, `interval` returns the interval. A state may have
a leading shape, written (...), to follow many sequences at once; values are then arrays of that shape. The bets on the
next value depend only on earlier values. The share of wins needs no state: the numbers of wins and losses are enough.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

HEADROOM = 0.5
"""The greatest fraction of its capital that a bet may lose (c)."""


class Running(NamedTuple):
    """Running mean and variance of one or more sequences of values, with arrays of shape (...).

    Each sequence starts with one value of 1/2 and variance 1/4, which `n`, the number of values, includes.
    """

    n: int
    """the number of values in each sequence, including the first 1/2"""
    mean: Array
    """the mean of the values of each sequence (...)"""
    squares: Array
    """the sum of squared deviations from the mean, for each sequence (...)"""

    @property
    def variance(self) -> Array:
        """Variance of the values so far, of each sequence (...)."""
        return self.squares / self.n

    def add(self, x: Array) -> Running:
        """Return the running mean and variance after one more value of each sequence, `x`, an array (...) with the
        shape of the sequences.
        """
        n = self.n + 1
        gap = x - self.mean
        mean = self.mean + gap / n
        return Running(n, mean, self.squares + gap * (x - mean))


def _start(shape: tuple[int, ...]) -> Running:
    return Running(1, np.full(shape, 0.5), np.full(shape, 0.25))


# ---------------------------------------------------------------------------- betting


class BettingState(NamedTuple):
    """State of `Betting` for sequences of shape (...) and M candidate means."""

    higher: Array
    """the log capital of the bets that the mean is higher than each candidate (..., M)"""
    lower: Array
    """the log capital of the bets that the mean is lower than each candidate (..., M)"""
    running: Running
    """the mean and variance of the values so far"""
    low: Array
    """the least candidate that is not rejected (...)"""
    high: Array
    """the greatest candidate that is not rejected (...)"""


class Betting(NamedTuple):
    """Confidence sequence for the mean of values in [0, 1]: the hedged capital process, which bets against every
    candidate mean m.

    K(m) = (K+(m) + K-(m)) / 2; each value x multiplies K+ by 1 + l (x - m) and K- by 1 - l (x - m), where the bet l
    depends only on earlier values. A candidate m is rejected once K(m) >= 1 / alpha. By Ville's inequality, the true
    mean is ever rejected with probability at most alpha.
    """

    alpha: float = 0.05
    """the probability with which the interval may ever miss the mean"""
    candidates: int = 1001
    """the number M of candidate means; odd, so that one of them is 1/2"""

    @property
    def grid(self) -> Array:
        """Candidate means (M,): the middles of M equal cells of [0, 1]."""
        return (np.arange(self.candidates) + 0.5) / self.candidates

    def init(self, shape: tuple[int, ...] = ()) -> BettingState:
        """Return the state before any value, of sequences in an array of this `shape`; () is a single sequence.

        Raise ValueError unless 0 < alpha < 1.
        """
        check_alpha(self.alpha)
        flat = np.zeros((*shape, self.candidates))
        return BettingState(flat, flat.copy(), _start(shape), np.zeros(shape), np.ones(shape))

    def update(self, state: BettingState, x: Array | float) -> BettingState:
        """Return the state after one more value of each sequence; `x` has their shape and values in [0, 1]."""
        x, m = np.asarray(x, float), self.grid
        gap = state.running.mean[..., None] - m
        bet = gap / (state.running.variance[..., None] + gap * gap)
        up = np.minimum(np.maximum(bet, 0.0), HEADROOM / m)
        down = np.minimum(np.maximum(-bet, 0.0), HEADROOM / (1.0 - m))
        moved = x[..., None] - m
        higher = state.higher + np.log1p(up * moved)
        lower = state.lower + np.log1p(-down * moved)
        accepted = np.logaddexp(higher, lower) < math.log(2.0 / self.alpha)
        low, high = _hull(accepted, state.low, state.high, self.candidates)
        return BettingState(higher, lower, state.running.add(x), low, high)

    def interval(self, state: BettingState) -> tuple[Array, Array]:
        """Return (low, high), each of the shape (...) of the sequences: the interval that contains the mean."""
        return state.low, state.high

    def log_evidence(self, state: BettingState, m: float) -> Array:
        """Return the log of the capital of the bets against the mean being `m`, for each sequence (...), at the
        candidate nearest to m.

        The mean m is rejected once this reaches log(1 / alpha)."""
        j = min(int(m * self.candidates), self.candidates - 1)
        evidence: Array = np.logaddexp(state.higher[..., j], state.lower[..., j]) - math.log(2.0)
        return evidence


def _hull(accepted: npt.NDArray[np.bool_], low: Array, high: Array, n: int) -> tuple[Array, Array]:
    """Return the ends (...) of the candidates in the mask `accepted` (..., n), within `low` and `high`; their middle if
    they cross."""
    any_accepted = accepted.any(axis=-1)
    first = np.maximum((accepted.argmax(axis=-1) - 0.5) / n, 0.0)
    last = np.minimum(1.0 - (accepted[..., ::-1].argmax(axis=-1) - 0.5) / n, 1.0)
    low, high = (
        np.where(any_accepted, np.maximum(low, first), low),
        np.where(any_accepted, np.minimum(high, last), high),
    )
    middle, crossed = (low + high) / 2.0, low > high
    return np.where(crossed, middle, low), np.where(crossed, middle, high)


# ---------------------------------------------------------------------------- wins and losses


def win_share_limits(wins: Array, losses: Array, alpha: float) -> tuple[Array, Array]:
    """Return (low, high): a confidence sequence for the share of wins, from the numbers of `wins` and `losses` so far,
    arrays of one shape, and a uniform prior (Robbins 1970).

    The ends are the shares below and above wins / (wins + losses) at which the evidence (`log_win_evidence`) is 1 /
    alpha, found by bisection. The true share is ever outside with probability at most `alpha`.
    """
    n = np.maximum(wins + losses, 1.0)
    middle = wins / n
    limits = []
    for end in (0.0, 1.0):
        outside, inside = np.full_like(middle, end), middle.copy()
        for _ in range(50):
            p = (outside + inside) / 2.0
            rejected = log_win_evidence(wins, losses, p) >= -math.log(alpha)
            outside, inside = np.where(rejected, p, outside), np.where(rejected, inside, p)
        limits.append(outside)
    return limits[0], limits[1]


def log_win_evidence(wins: Array, losses: Array, p: Array) -> Array:
    """Return the log of the evidence against each share of wins `p` after W `wins` and L `losses`, arrays of one shape.

    The evidence is B(1 + W, 1 + L) / (p^W (1 - p)^L), with B the beta function. For the true share it ever reaches 1 /
    alpha with probability at most alpha.
    """
    from scipy.special import betaln, xlog1py, xlogy

    with np.errstate(divide="ignore"):
        evidence: Array = betaln(1.0 + wins, 1.0 + losses) - xlogy(wins, p) - xlog1py(losses, -p)
    return evidence


def check_alpha(alpha: float) -> None:
    """Raise ValueError unless 0 < `alpha` < 1."""
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha: expected a number between 0 and 1, got {alpha}")

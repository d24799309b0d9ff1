"""A confidence sequence of the share of wins: an interval that holds at all times at once, so that anybody may look
whenever they like.

An interval for a fixed sample size misses the truth far more often than stated if it is looked at again and again. This
one misses it, at any time at all, with probability at most `alpha` (Robbins 1970). The numbers of wins and losses are
all that it needs. For means of values in [0, 1] see `heedful.evaluation.ratio`.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


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

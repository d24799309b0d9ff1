"""How good feedback was, where utilities are known: alpha and slack ([J15] section 3.1), the sign test (3.2)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.jit.kernel import visible
from heedful.spaces.ranking import WithBaseScore

Array = npt.NDArray[np.float64]

ROUNDING = 1e-12
"""Differences of utility up to this share of the greatest utility are none."""


class Utilities(NamedTuple):
    """The utilities of every round: U(x, y) of what was shown, U(x, ybar) of the feedback, U(x, y*), each (T,)."""

    shown: Array
    feedback: Array
    best: Array


def known_utilities(log: Iterable[Any], space: Any, w_star: Array) -> Utilities:
    """The utilities w* . phi(x, .) of the rounds (x, y, feedback) of a log, as the world's user sees them.

    y* is the argmax over all objects of x, of those left where a pool runs dry; of a space that is `approximate`
    (`Subset`) what greed finds, so another object may be better. Where two items are shown (a dueling bandit), the
    first stands for them. With `WithBaseScore` the objects are those of the inner space: w* has the caller's score in
    it, or not.
    """
    if isinstance(space, WithBaseScore):  # its argmax counts the caller's score once more than U does
        space = space.space
    rows = []
    for x, y, feedback in log:
        objects = (visible(y), feedback, space.argmax(w_star, x))
        rows.append([float(w_star @ space.phi(x, each)) for each in objects])
    columns = np.array(rows, np.float64).reshape(-1, 3).T
    return Utilities(columns[0], columns[1], columns[2])


def gains(known: Utilities) -> Array:
    """U(x, ybar) - U(x, y), (T,)."""
    return _zero_rounding(known, known.feedback - known.shown)


def regrets(known: Utilities) -> Array:
    """U(x, y*) - U(x, y), (T,)."""
    return _zero_rounding(known, known.best - known.shown)


def alphas(known: Utilities) -> Array:
    """The alpha that Eq. 6 has without slack, gain / regret, (T,): 1 at best, negative where feedback was worse.

    NaN where nothing was left to gain: there, any alpha will do.
    """
    r = regrets(known)
    found: Array = np.divide(gains(known), r, out=np.full(r.size, np.nan), where=r > 0.0)
    return found


def slacks(known: Utilities, alpha: float) -> Array:
    """xi = alpha (U(x, y*) - U(x, y)) - (U(x, ybar) - U(x, y)), (T,), signed ([J15] Eq. 6).

    The slack of expected feedback (Eq. 7) is the mean of this over the answers that the person might have given.
    """
    return alpha * regrets(known) - gains(known)


def strict_alpha(known: Utilities) -> float:
    """The greatest alpha for which every round satisfies Eq. 5; 0 or less where none does, 1 if nothing was to gain."""
    found = alphas(known)
    worse = bool((gains(known)[np.isnan(found)] < 0.0).any())
    return 0.0 if worse else float(np.nanmin(found, initial=1.0))


class SignTest(NamedTuple):
    """How many differences are positive, zero and negative, and the two-sided p of the binomial test, ties left out."""

    better: int
    equal: int
    worse: int
    p: float


def sign_test(differences: npt.ArrayLike, tolerance: float = ROUNDING) -> SignTest:
    """The binomial sign test of [J15] section 3.2: were positive and negative equally likely? (n,).

    Differences of at most `tolerance` are ties. p is 1 where all are.
    """
    d = np.asarray(differences, np.float64)
    better, worse = int(np.sum(d > tolerance)), int(np.sum(d < -tolerance))
    if better + worse == 0:
        return SignTest(better, d.size, worse, 1.0)
    from scipy.stats import binomtest

    return SignTest(better, d.size - better - worse, worse, float(binomtest(better, better + worse).pvalue))


class Quality(NamedTuple):
    """A log's feedback in numbers.

    `strict`: as `strict_alpha`. `average`: the alpha at which the slacks add up to zero, so that Theorem 1 has no
    first term. Of the slacks at `alpha`: their mean, and the mean of xi+ = max(0, xi).
    """

    rounds: int
    test: SignTest
    gain: float
    regret: float
    strict: float
    average: float
    alpha: float
    slack: float
    clipped: float


def quality(known: Utilities, alpha: float = 0.5) -> Quality:
    """The summary of a log of at least one round; slacks at `alpha`."""
    gain, regret, xi = gains(known), regrets(known), slacks(known, alpha)
    average = float(gain.sum() / regret.sum()) if regret.any() else 1.0
    return Quality(
        gain.size,
        sign_test(gain, 0.0),
        float(gain.mean()),
        float(regret.mean()),
        strict_alpha(known),
        average,
        alpha,
        float(xi.mean()),
        float(np.maximum(xi, 0.0).mean()),
    )


def _zero_rounding(known: Utilities, difference: Array) -> Array:
    """Utilities are sums, in another order for another object: what only rounding makes is none."""
    size = np.maximum(np.maximum(np.abs(known.shown), np.abs(known.feedback)), np.abs(known.best))
    return np.where(np.abs(difference) <= ROUNDING * size, 0.0, difference)

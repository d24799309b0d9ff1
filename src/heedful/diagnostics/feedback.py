"""The quality of feedback where utilities are known: alpha and slack ([J15] section 3.1), the sign test (3.2)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.fold import Round, Y
from heedful.core.space import Space
from heedful.jit.kernel import Floats, Ints, visible
from heedful.spaces.ranking import WithBaseScore

Array = npt.NDArray[np.float64]

ROUNDING = 1e-12
"""Differences of utilities up to this share of the greatest utility count as 0."""


class Utilities(NamedTuple):
    """The utilities of T rounds."""

    shown: Array
    """U(x, y) of the object shown (T,)"""
    feedback: Array
    """U(x, ybar) of the feedback (T,)"""
    best: Array
    """U(x, y*) of the best object (T,)"""


def known_utilities(log: Iterable[Round[Floats, Y, Ints]], space: Space, w_star: Array) -> Utilities:
    """Compute the utilities w* . phi(x, .) of the rounds (x, y, feedback) of a log.

    y* is the argmax over all objects of x (of a pool, over the items left). In a space that is `approximate`
    (`Subset`), it is the greedy object, and another may be better. Where two items are shown (by a dueling bandit), the
    first counts. With `WithBaseScore`, the utility is that of the inner space with the weights w* (N,) as given.
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
    """Return the gain of each round, U(x, ybar) - U(x, y), (T,)."""
    return _zero_rounding(known, known.feedback - known.shown)


def regrets(known: Utilities) -> Array:
    """Return the regret of each round, U(x, y*) - U(x, y), (T,)."""
    return _zero_rounding(known, known.best - known.shown)


def alphas(known: Utilities) -> Array:
    """Return the alpha of each round without slack (Eq. 6), gain / regret, (T,): at most 1, negative where feedback was
    worse.

    NaN where the regret is 0: there, every alpha is possible.
    """
    r = regrets(known)
    found: Array = np.divide(gains(known), r, out=np.full(r.size, np.nan), where=r > 0.0)
    return found


def slacks(known: Utilities, alpha: float) -> Array:
    """Return the slack of each round, xi = alpha (U(x, y*) - U(x, y)) - (U(x, ybar) - U(x, y)), (T,), signed ([J15] Eq.
    6).

    The slack of expected feedback (Eq. 7) is the mean of this over the answers that the person might have given.
    """
    return alpha * regrets(known) - gains(known)


def strict_alpha(known: Utilities) -> float:
    """Return the greatest alpha for which all rounds satisfy Eq. 5; 0 or less where there is none, 1 if all regrets are
    0."""
    found = alphas(known)
    worse = bool((gains(known)[np.isnan(found)] < 0.0).any())
    return 0.0 if worse else float(np.nanmin(found, initial=1.0))


class SignTest(NamedTuple):
    """The result of `sign_test`: how many differences are positive, zero and negative, and the two-sided p-value of the
    binomial test without ties."""

    better: int
    equal: int
    worse: int
    p: float


def sign_test(differences: npt.ArrayLike, tolerance: float = ROUNDING) -> SignTest:
    """Run the binomial sign test of [J15] section 3.2 on differences (n,): are both signs equally likely?

    Differences of at most `tolerance` are ties. p is 1 if all are ties.
    """
    d = np.asarray(differences, np.float64)
    better, worse = int(np.sum(d > tolerance)), int(np.sum(d < -tolerance))
    if better + worse == 0:
        return SignTest(better, d.size, worse, 1.0)
    from scipy.stats import binomtest

    return SignTest(better, d.size - better - worse, worse, float(binomtest(better, better + worse).pvalue))


class Quality(NamedTuple):
    """A summary of the feedback of a log.

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
    """Summarise the utilities of a log of at least one round; slacks are computed for `alpha`."""
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
    """Return the differences, with those that may come from rounding set to 0: utilities of different objects are
    summed in different orders."""
    size = np.maximum(np.maximum(np.abs(known.shown), np.abs(known.feedback)), np.abs(known.best))
    return np.where(np.abs(difference) <= ROUNDING * size, 0.0, difference)

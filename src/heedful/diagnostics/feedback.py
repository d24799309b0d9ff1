"""Quality of feedback in a log where true utilities are known ([J15] sections 3.1 and 3.2).

The feedback of a round is alpha-informative if it gains at least the fraction alpha of the regret; the slack of a round
is what it lacks. The sign test asks whether feedback is better than what was shown.
"""

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
"""Differences of utilities up to this fraction of the greatest utility count as 0."""


class Utilities(NamedTuple):
    """True utilities in each of T rounds, where x is the context of the round."""

    shown: Array
    """(T,) U(x, y) of the object shown"""
    feedback: Array
    """(T,) U(x, ybar) of the object given as feedback"""
    best: Array
    """(T,) U(x, y*) of the best object"""


def true_utilities(log: Iterable[Round[Floats, Y, Ints]], space: Space, w_star: Array) -> Utilities:
    """Return the true utilities w* . phi(x, .) in the T rounds (x, y, feedback) of a log, where x is the context and y
    what was shown.

    `w_star` (N,) are the true weights w* of N features. The best object y* is the argmax over all objects of `space`
    for the context of the round (which may have only the items that are not used up).

    - In a space that is `approximate` (`Subset`), y* is the object that its greedy argmax finds; another may be better.
    - If two items are shown (by a dueling bandit), the first counts.
    - With `WithBaseScore`, the utility is that of the inner space with the weights w* as given.
    """
    if isinstance(space, WithBaseScore):  # its argmax adds the base score once more than U counts it
        space = space.space
    rows = []
    for x, y, feedback in log:
        objects = (visible(y), feedback, space.argmax(w_star, x))
        rows.append([float(w_star @ space.phi(x, shown)) for shown in objects])
    columns = np.array(rows, np.float64).reshape(-1, 3).T
    return Utilities(columns[0], columns[1], columns[2])


def gains(utilities: Utilities) -> Array:
    """Return the gain of each of T rounds `utilities` (T,): the utility of the feedback minus that of the
    object shown."""
    return _zero_rounding(utilities, utilities.feedback - utilities.shown)


def regrets(utilities: Utilities) -> Array:
    """Return the regret of each of T rounds `utilities` (T,): the utility of the best object minus that of the object
    shown.
    """
    return _zero_rounding(utilities, utilities.best - utilities.shown)


def alphas(utilities: Utilities) -> Array:
    """Return for each of T rounds `utilities` (T,) the greatest alpha for which its feedback gains at least the
    fraction alpha of the regret, without slack ([J15] Eq. 6): gain / regret.

    It is at most 1, and negative if the feedback was worse than what was shown. It is NaN if the regret is 0: then
    every alpha is possible.
    """
    r = regrets(utilities)
    ratios: Array = np.divide(gains(utilities), r, out=np.full(r.size, np.nan), where=r > 0.0)
    return ratios


def slacks(utilities: Utilities, alpha: float) -> Array:
    """Return the slack of each of T rounds `utilities` (T,): xi = alpha (U(x, y*) - U(x, y)) - (U(x, ybar) - U(x, y))
    ([J15] Eq. 6).

    U is the utility in context x of the best object y*, the object shown y, and the feedback ybar. The slack is
    negative where the feedback was better than `alpha` requires. The slack of expected feedback (Eq. 7) is the mean of
    this over the answers that the person might have given.
    """
    return alpha * regrets(utilities) - gains(utilities)


def strict_alpha(utilities: Utilities) -> float:
    """Return the greatest alpha for which all rounds `utilities` satisfy [J15] Eq. 5: the feedback of each gains at
    least the fraction alpha of its regret.

    0 or less means that there is none above 0; it is 1 if all regrets are 0.
    """
    ratios = alphas(utilities)
    worse = bool((gains(utilities)[np.isnan(ratios)] < 0.0).any())
    return 0.0 if worse else float(np.nanmin(ratios, initial=1.0))


class SignTest(NamedTuple):
    """The result of `sign_test` on differences: how many have which sign, and the p-value."""

    better: int
    """the number of differences above 0"""
    equal: int
    """the number of differences that count as 0"""
    worse: int
    """the number of differences below 0"""
    p: float
    """the two-sided p-value of the binomial test that leaves out zeros"""


def sign_test(differences: npt.ArrayLike, tolerance: float = ROUNDING) -> SignTest:
    """Run the two-sided binomial sign test of [J15] section 3.2 on n `differences` (n,), the gains in utility of
    feedback: are positive and negative ones equally likely?

    Differences of at most `tolerance` in absolute value count as 0 and are left out; p is 1 if all are.
    """
    d = np.asarray(differences, np.float64)
    better, worse = int(np.sum(d > tolerance)), int(np.sum(d < -tolerance))
    if better + worse == 0:
        return SignTest(better, d.size, worse, 1.0)
    from scipy.stats import binomtest

    return SignTest(better, d.size - better - worse, worse, float(binomtest(better, better + worse).pvalue))


def _zero_rounding(utilities: Utilities, difference: Array) -> Array:
    """Return the `difference` of utilities in each of T rounds (T,), set to 0 where it may be due to rounding:
    utilities of different objects are summed in different orders.
    """
    size = np.maximum(np.maximum(np.abs(utilities.shown), np.abs(utilities.feedback)), np.abs(utilities.best))
    return np.where(np.abs(difference) <= ROUNDING * size, 0.0, difference)

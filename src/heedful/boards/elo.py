"""Utilities of items on the Elo scale of chess ratings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import describe, is_number
from heedful.core.wording import BAR
from heedful.data.comparisons import join_names
from heedful.inference.gp.mixture import Mixture
from heedful.inference.gp.posterior import Posterior

Array = npt.NDArray[np.float64]

MIDDLE = 1_000.0
"""The score of the average item, if no item has a fixed score."""

POINTS = math.sqrt(8.0 / math.pi) * 400.0 / math.log(10.0)
"""Elo points of a difference of 1 in utility, 277. By Elo's formula, 400 / ln 10 points are a logit. A choice here has
probability Phi(d), whose slope at d = 0 is that of the logistic function of sqrt(8 / pi) d. So nearly equal matches, on
which scores depend most, have the same odds on both scales; elsewhere Elo's formula gives the favourite up to .018
less.
"""


MOST_SCORE = 1e6
"""The greatest absolute value of the score that an anchor may be given."""


def anchor_of(anchor: object, names: Sequence[str]) -> tuple[int, float] | None:
    """Return the number of the anchor, a pair of one of these `names` and its score, and this score; None if it is
    None. Raise ValueError if it is none."""
    if anchor is None:
        return None
    if not isinstance(anchor, tuple | list) or len(anchor) != 2:
        raise ValueError(f"anchor: expected an item and its score, such as ('name', 1000), got {describe(anchor)}")
    item, score = anchor
    if not isinstance(item, str) or item not in names:
        raise ValueError(f"anchor: expected one of {join_names(names)}, got {describe(item)}")
    if not is_number(score, int, float) or not abs(score) <= MOST_SCORE:
        most = f"{MOST_SCORE:,.0f}"
        raise ValueError(f"anchor: expected a score from -{most} to {most}, got {describe(score)}")
    return names.index(item), float(score)


class Scores(NamedTuple):
    """Elo scores of n items, `score` (n,), with the bounds `low` and `high` (n,) of their central 90 % posterior
    intervals."""

    score: Array
    low: Array
    high: Array


def scores(posterior: Posterior | Mixture, anchor: tuple[int, float] | None = None) -> Scores:
    """Return the Elo scores of n items under a posterior over their utilities, with 90 % intervals.

    The average of all items has the score 1,000; or, with `anchor` (item number, score), this item has exactly that
    score, and the others are as uncertain as their difference from it. Elo points are 277 times utilities.
    """
    off, sd = relative(posterior.whole(), anchor)
    at = MIDDLE if anchor is None else anchor[1]
    return Scores(at + POINTS * off, at + POINTS * (off - BAR * sd), at + POINTS * (off + BAR * sd))


def relative(posterior: Posterior, anchor: tuple[int, float] | None) -> tuple[Array, Array]:
    """Return mean and standard deviation, (n,) each, of n utilities less their average, or less that of the `anchor`'s
    item."""
    if anchor is None:
        return posterior.mean - posterior.mean.mean(), posterior.sd()
    off, var = posterior.gap(np.arange(posterior.mean.size), np.full(posterior.mean.size, anchor[0]))
    return off, np.sqrt(var)

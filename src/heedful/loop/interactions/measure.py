"""The measures by which learners are compared on a log of answers; each kind of feedback has one or several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from heedful.jit.kernel import Floats


class Compared(NamedTuple):
    """How good the predictions of L learners were for one answer in the log, by one `Measure`."""

    values: Floats
    """how good each prediction is (L, c), for L learners and c comparisons, between `low` and `high` of the measure;
    nan for a learner that makes no such prediction"""
    weights: Floats
    """the weight of each comparison (c,): an inverse probability of what was shown, or 1"""
    most: float = 0.0
    """the greatest value that any prediction could have had, if the `high` of the measure is not known beforehand: that
    of what could have been chosen, not of what was"""


class ListClick(NamedTuple):
    """One click on an item of a list, for L learners."""

    place: int
    """the place of the item, from 0"""
    upper: float
    """1 / (2 P) if it is the upper one of two neighbours that were shown in either order at random, P being the
    probability of the order in which they were; 0 if it is not"""
    lower: float
    """the same if it is the lower one of two"""
    above: Sequence[int]
    """(L,) the items that each learner ranks before it, of those shown at the first `MOST_PLACES` places of
    `heedful.evaluation.examination`: bit q is 1 if it does the item at place q"""

"""The measures by which learners are compared on a log of answers; each kind of feedback has one or several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from heedful.jit.kernel import Floats


class Measure(NamedTuple):
    """A measure by which learners are compared on a log: a weighted mean, over answers, of how good their predictions
    of these were."""

    name: str
    """the name of the measure: "mean error\""""
    about: str
    """a sentence that says what the measure is the mean of"""
    missing: str
    """the reason why some logs do not allow to compute it, in words that follow "because\""""
    remedy: str
    """a sentence that says how to obtain a log that allows to compute it"""
    low: float = 0.0
    """the least possible value; -inf if it is not known, as of rewards that are amounts"""
    high: float = 1.0
    """the greatest possible value; inf if it is not known; `low`, which is 0 then, if it is what comparisons say
    (`Compared.most`)"""
    more_is_better: bool = True
    """whether a greater value is a better one; False for errors"""
    most_weight: float = 1.0
    """the greatest possible weight of one comparison"""
    once: bool = False
    """whether a decision counts once, with the first of its answers that can be compared, instead of with each"""
    decisive: bool = True
    """whether a learner that is better by it is the better one to serve; False for a part of what a loop is for, such
    as the cost alone"""
    counts: str = "comparison"
    """what a value rests on a number of, as a noun: "pair", "list" or "click", in the singular"""

    @property
    def is_share(self) -> bool:
        """whether its values are shares, which are written as percentages; an error is none"""
        return (self.low, self.high, self.more_is_better) == (0.0, 1.0, True)


class PositionBias(NamedTuple):
    """How much people look at a place of a list compared with the place above it, whatever items are there: by
    `heedful.evaluation.examination`, from clicks on items that were shown in either order at random."""

    place: int
    """the upper of the two places, from 1"""
    ratio: float
    """the number of clicks at the lower place for each click at the upper one, where the same items stood at both;
    below 1 where people look less"""
    low: float
    """the lower end of a confidence interval for `ratio`, which holds at one look"""
    high: float
    """the upper end of that interval"""
    clicks: int
    """the number of clicks on two neighbours at these places, which were shown in either order at random"""


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

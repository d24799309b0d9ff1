"""What a learner is measured by from a log of answers: for each kind of feedback, one measure or several."""

from __future__ import annotations

from typing import NamedTuple

from heedful.jit.kernel import Floats


class Measure(NamedTuple):
    """A number that says how good a learner would have been: a mean over what people answered."""

    name: str
    about: str
    """what it is the mean of, as a sentence"""
    missing: str
    """why a log may not tell it, in words that follow "because" """
    remedy: str
    """what would make a log tell it, as a sentence"""
    low: float = 0.0
    """the least value"""
    high: float = 1.0
    """the greatest value"""
    more_is_better: bool = True
    most_weight: float = 1.0
    """the greatest weight of one comparison"""
    once: bool = False
    """whether a decision counts once, with the first of its answers that says something"""


class Compared(NamedTuple):
    """What the learners predicted of one answer, by one measure, compared with the answer."""

    values: Floats
    """for each of the L learners and each comparison, how good the prediction is, between the ends of the measure
    (L, c); nan for a learner that predicts nothing of the sort"""
    weights: Floats
    """of the comparisons (c,): inverse probabilities of what was shown, or 1"""

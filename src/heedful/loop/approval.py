"""Thumbs, counted by arm: the share of thumbs up among what was learned and what was left alone, with 95 % intervals.

A thumb names no place, so it says nothing of how high what was wanted stood; it is counted as it is, 1 for up and 0 for
down. The intervals are over people (`heedful.loop.cluster_robust`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from heedful.loop.cluster_robust import Difference, difference, paired
from heedful.loop.log import Event
from heedful.loop.records import FeedbackRecord


class Share(NamedTuple):
    """The thumbs of one arm, and the share of thumbs up with its 95 % interval."""

    thumbs: int
    up: int
    share: float | None
    """up / thumbs; None if there is none"""
    low: float | None
    """ends of its 95 % interval; None if chance cannot be told: the thumbs are one person's, or all alike"""
    high: float | None


class Approval(NamedTuple):
    """The share of thumbs up in both arms of a loop, learned lists and control lists, with their difference."""

    learned: Share
    control: Share
    difference: Difference | None
    """the share of learned less that of control; None where it cannot be said"""


class Approved:
    """A count of thumbs by arm, which takes in the decisions of a loop in any order."""

    def __init__(self) -> None:
        self._given: list[tuple[bool, str | int, float]] = []  # (learned, who, 1.0 for up)

    def take(self, learned: bool, who: str | int, given: Sequence[tuple[Event, FeedbackRecord]]) -> None:
        """Take in the feedback on a decision that was not undone; `who` is the person, or the decision's number."""
        self._given += [(learned, who, float(f.values[0] > 0.0)) for _, f in given if f.form == "thumb"]

    def measured(self) -> Approval | None:
        """Return the shares and their difference; None if no thumb was given."""
        if not self._given:
            return None
        arms, names, ups = zip(*self._given)
        numbers: dict[str | int, int] = {}
        people = np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)
        learned, up = np.array(arms), np.array(ups)
        both = [_share(up[arm], people[arm]) for arm in (learned, ~learned)]
        return Approval(both[0], both[1], difference(up, learned, people))


def _share(up: np.ndarray, people: np.ndarray) -> Share:
    if not up.size:
        return Share(0, 0, None, None, None)
    found = paired(up, np.unique(people, return_inverse=True)[1])
    low, high = (None, None) if found is None else (max(found.low, 0.0), found.high)
    return Share(up.size, int(up.sum()), float(up.mean()), low, high)

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
    """thumbs up / all thumbs; None if there are none"""
    low: float | None
    """the ends of its 95 % interval; None if it cannot be told: all thumbs come from one person, or are alike"""
    high: float | None


class Approval(NamedTuple):
    """The share of thumbs up in the learned and in the control lists of a loop, with their difference."""

    learned: Share
    control: Share
    difference: Difference | None
    """the share of learned lists minus that of control lists; None if it cannot be told"""


class Approved:
    """A counter of thumbs by arm, which takes in the decisions of a loop in any order."""

    def __init__(self) -> None:
        self._given: list[tuple[bool, str | int, float]] = []  # (learned, who, 1.0 for up)

    def take(self, learned: bool, who: str | int, given: Sequence[tuple[Event, FeedbackRecord]]) -> None:
        """Count the thumbs among the feedback on one decision, without what was undone; `who` is the person, or the
        number of the decision."""
        self._given += [(learned, who, float(f.values[0] > 0.0)) for _, f in given if f.form == "thumb"]

    def measured(self) -> Approval | None:
        """Return the shares and their difference; None if there was no thumb."""
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

"""Thumbs up and down by arm: the share of thumbs up on learned lists and on control lists, with 95 % intervals.

A learned list is in the order of the model. A control list is in the caller's own order (or a random one), shown to a
share of requests for comparison. A thumb names no preferred item, so it has no place in the rank-based score that
compares the arms; it counts 1 for up and 0 for down. The intervals are cluster-robust over people
(`heedful.loop.cluster_robust`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from heedful.loop.cluster_robust import Difference, difference, paired_difference
from heedful.loop.log import Event
from heedful.loop.records import FeedbackRecord


class Share(NamedTuple):
    """The thumbs given to one sort of lists (learned or control), and the share of thumbs up with its 95 % interval.

    `thumbs` counts all of them, `up` those that were up, `share` = up / thumbs, and `low` and `high` are the ends of
    the interval; None where it cannot be computed."""

    thumbs: int
    """how many thumbs there were"""
    up: int
    """how many of them were up"""
    share: float | None
    """thumbs up / all thumbs; None if there are no thumbs"""
    low: float | None
    """the lower end of the 95 % interval; None if it cannot be computed: all thumbs come from one person, or are
    alike"""
    high: float | None
    """its upper end"""


class Approval(NamedTuple):
    """The share of thumbs up on learned lists and on control lists (the caller's own order), with their difference."""

    learned: Share
    """the thumbs on lists in the order of the model"""
    control: Share
    """the thumbs on lists in the caller's own order"""
    difference: Difference | None
    """the share of learned lists minus that of control lists; None if its interval cannot be computed"""


class ApprovalCounter:
    """Counter of thumbs up and down on learned and control lists: call `take` for each decision, in any order, then
    `approval`."""

    def __init__(self) -> None:
        self._given: list[tuple[bool, str | int, float]] = []  # (learned, who, 1.0 for up)

    def take(self, learned: bool, who: str | int, given: Sequence[tuple[Event, FeedbackRecord]]) -> None:
        """Count the thumbs up and down in the feedback on one decision; other forms of feedback are skipped.

        `given` is that feedback without what was undone, as pairs (event, decoded feedback). `learned` is True if the
        model ordered the list, False if it was in the caller's own order (control). `who` identifies the person for the
        cluster-robust interval: their name, or the decision's sequence number if it was made for nobody in
        particular."""
        self._given += [(learned, who, float(f.values[0] > 0.0)) for _, f in given if f.form == "thumb"]

    def approval(self) -> Approval | None:
        """Return the share of thumbs up on learned lists and on control lists, and its difference; None if no thumb was
        counted."""
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
    found = paired_difference(up, np.unique(people, return_inverse=True)[1])
    low, high = (None, None) if found is None else (max(found.low, 0.0), found.high)
    return Share(up.size, int(up.sum()), float(up.mean()), low, high)

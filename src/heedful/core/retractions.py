"""Which events of a log are in effect: feedback may be undone, and a rollback leaves out all that came after a version.

A rollback is an event of its own: with the event at `seq` rolled back to version `to`, everything in (to, seq) counts
as if it had not happened, and the log goes on from there. Rollbacks count too, so that rolling back to before a
rollback brings back what that one left out: the newest is looked at first, and what it leaves out is not looked at any
more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Retractions:
    """The events of a log that do not count, because they were undone or rolled back: `seq in retractions` is True for
    those."""

    undone: Mapping[int, int] = field(default_factory=dict)
    """sequence number of an undone event -> that of the first undo of it that is in effect itself"""
    spans: tuple[tuple[int, int], ...] = ()
    """(to, seq) of each rollback in effect, the newest first: it leaves out the events between the two, both
    excluded"""

    def __contains__(self, seq: object) -> bool:
        return seq in self.undone or bool(self.spans and isinstance(seq, int) and self.is_rolled_back(seq))

    def is_rolled_back(self, seq: int) -> bool:
        """Return whether a rollback leaves out the event with the sequence number `seq`, even if the event was also
        undone."""
        return any(to < seq < end for to, end in self.spans)

    def changes(self, position: int) -> bool:
        """Return whether an event up to the sequence number `position` was undone or rolled back by a later event.

        If so, a model of that position is outdated."""
        return self.is_rolled_back(position) or any(target <= position < seq for target, seq in self.undone.items())


def find_retractions(undos: Iterable[tuple[int, int]], rollbacks: Iterable[tuple[int, int]]) -> Retractions:
    """Return which events of a log do not count, from all its undos and rollbacks.

    - `undos`: pairs (sequence number of the undo, that of the event undone)
    - `rollbacks`: pairs (sequence number of the rollback, version of the model to go back to)"""
    spans: list[tuple[int, int]] = []
    for seq, to in sorted(rollbacks, reverse=True):
        if not spans or seq <= spans[-1][0]:  # otherwise a newer rollback leaves this one out
            spans.append((to, seq))
    rolled_back, undone = Retractions(spans=tuple(spans)), dict[int, int]()
    for seq, target in sorted(undos):
        if not rolled_back.is_rolled_back(seq):
            undone.setdefault(target, seq)
    return Retractions(undone, rolled_back.spans)

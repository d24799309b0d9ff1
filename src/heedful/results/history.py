"""Feedback that was given, as it is shown again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class LessonTold(NamedTuple):
    """A piece of feedback in terms of item names: what was preferred to what, and whether it was learned, late or
    undone."""

    event: str
    """the id of the feedback, which `Loop.undo` takes"""
    seq: int
    """its sequence number in the log"""
    time: int
    """when it was given, in microseconds since 1970"""
    form: str
    """the form of the feedback: "clicks", "grade", "thumb", ..."""
    decision: str
    """the id of the decision that it answers"""
    arm: str
    """how that decision was made: "learned", "control", "sampled", "interleaved" or "imported\""""
    person: str | None
    """whom the decision was for; None for nobody in particular"""
    chosen: tuple[str, ...]
    """names of the items that the feedback is for (clicked, rated, put first), the best first; for a thumb or an
    action, also an item that it is against (see `values`). Empty for a thumb on the whole list and for an edit that is
    no item"""
    over: tuple[str, ...]
    """names of the items shown that the feedback ranks below `chosen`, in the order shown; empty if it agrees with the
    order shown, or compares nothing"""
    values: tuple[float, ...]
    """for a rating or grade, the number given to each item of `chosen`; for a thumb 1 or -1; for an action its weight,
    below 0 if it is against its item; otherwise empty"""
    text: str | None
    """the corrected text, or the names of the actions; None if there is none, or if the loop stores no texts"""
    late: bool
    """whether it came later after the decision was shown than the setting `late_after` says"""
    undone: bool
    """whether it was undone or rolled back, so that the model is made without it"""
    learned: bool
    """whether it held something to learn and the learner did not fail on it (if it was undone: whether that had been
    so)"""
    said: Mapping[str, Any] | None = None
    """the feedback as it was given, in its JSON fields, if all of it is about items that were not on offer when it was
    decided: nothing is learned from it. Otherwise None"""

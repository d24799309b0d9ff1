"""What is to be written to a loop's log."""

from __future__ import annotations

from typing import NamedTuple

from heedful.loop.log import Event
from heedful.loop.packing import LoggedDecision
from heedful.loop.records import FeedbackRecord

AGAIN = "another process has changed the model meanwhile"
"""The reason with which a decision is rejected that was made by a model that has changed meanwhile."""


LOST = (
    "decision {id} is not in the log: this loop answers decisions before they are on the disk, so it was lost in a "
    "crash, or there never was one of this id; nothing was learned: record what was shown under this id, then send the "
    "feedback again, or decide again"
)
"""The reason that a `LostDecision` gives. The log cannot tell a decision that was lost in a crash from one never
made."""


class PendingEvent(NamedTuple):
    """An event to be submitted to the log, with what the model needs to learn from it."""

    event: Event
    """the event, with sequence number 0 until it is appended"""
    decision: LoggedDecision | None = None
    """the decision that a feedback answers, or that this event is; None for other events"""
    feedback: FeedbackRecord | None = None
    """the record of a feedback; None for other events"""
    again: bool = False
    """whether it is a decision made by this loop: it is rejected with the reason `AGAIN`, to be made again, if another
    process has changed the model meanwhile, and in a loop with `durable="feedback"` it need not wait for the disk"""

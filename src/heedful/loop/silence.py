"""Silence as an answer: in a loop with the setting `none_after` a list without feedback stands for the answer "none"
once it is so many seconds old.

It is worked out when a log is read, from the times of its events, and is no event itself: "none" teaches nothing, so
the model is the same. Feedback that comes later takes its place, and feedback that was undone gives way to it."""

from __future__ import annotations

from collections.abc import Iterator

from heedful.loop.history import History
from heedful.loop.log import Event
from heedful.loop.packing import LoggedDecision
from heedful.loop.records import FeedbackRecord

NONE = FeedbackRecord("none")
"""The answer that a list without feedback stands for, where silence is one."""


def is_over(none_after: float | None, shown: int, until: int) -> bool:
    """Return whether a list that was shown at the time `shown` counts at the time `until`, both in microseconds since
    1970: if silence is an answer after `none_after` seconds, not before these have passed."""
    return none_after is None or until - shown >= 1e6 * none_after


def silent_steps(history: History) -> Iterator[tuple[Event, LoggedDecision, FeedbackRecord]]:
    """Yield (event, decision, the answer "none") for each decision whose silence is an answer by now, in the log's
    order; nothing without the setting `none_after`.

    The event is that of the feedback that there would be, at the decision's place in the log (`history` is the log
    with its model). Now is the time of the log's latest event. Imported decisions bring their own times."""
    none_after, log = history.settings.none_after, history.log
    if none_after is None:
        return
    retractions, until = log.retractions(), max((event.time for event in log.events()), default=0)
    answered = {event.target for event in log.events(kinds=["feedback"]) if event.seq not in retractions}
    activated = {event.target: event.time for event in log.events(kinds=["activate"])}
    for event in log.events(kinds=["decision"]):
        if event.seq in answered:
            continue
        decision = history.decision(event)
        record = decision.record
        shown = activated.get(event.seq) if record.deferred else event.time
        asks = record.shown and record.arm != "imitated"  # whose order teaches, whatever is said of it
        if asks and shown is not None and is_over(none_after, shown, until):
            answer = event._replace(kind="feedback", target=event.seq, subject=None, payload="", arrays=None)
            yield answer, decision, NONE

"""The feedback of a loop as a person reads it: what was said, by name, the newest first.

The log is read backwards, a page at a time, and no further than is wanted: the newest lessons of a long log come as
quickly as those of a short one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from heedful.jit.kernel import Floats
from heedful.loop import records
from heedful.loop.interactions.forms import NONE, known_forms
from heedful.loop.interactions.protocol import LoopModel
from heedful.loop.log import Event, Log
from heedful.loop.model import Context
from heedful.loop.packing import LoggedDecision
from heedful.loop.projection import Projection
from heedful.loop.records import FeedbackRecord

PAGE = 50
"""Decisions read at a time."""


class LessonTold(NamedTuple):
    """A piece of feedback in words of a person: what was chosen over what, and what became of it."""

    event: str
    """the id of the feedback, which `undo` takes"""
    seq: int
    time: int
    """when it was said, in microseconds since 1970"""
    form: str
    decision: str
    arm: str
    """of the decision: learned, control, sampled or imported"""
    person: str | None
    chosen: tuple[str, ...]
    """what it speaks for, the best first; of a thumb or an action that is against it, too: see `values`. Items alone: a
    thumb on the whole list, and an edit that is no item, have none"""
    over: tuple[str, ...]
    """what was shown and is worse than what was chosen, in the order shown; empty where it agrees with what was shown,
    or compares nothing"""
    values: tuple[float, ...]
    """of a rating or grade, the numbers of what was chosen; of a thumb 1 or -1; of an action what it weighs, below 0
    where it speaks against its item"""
    text: str | None
    """the corrected text, the names of the actions; None where texts are not stored"""
    late: bool
    undone: bool
    learned: bool
    """whether there was a lesson in it (of one that was undone: whether there had been)"""


def lessons(
    projection: Projection, limit: int = 50, before: int | None = None, person: str | None = None
) -> tuple[LessonTold, ...]:
    """Return the newest `limit` pieces of feedback, the newest first.

    `before` leaves out those from this sequence number on, `person` all but those of one person."""
    head = projection.log.last()[0]
    undone = projection.log.retractions()
    found = answers(projection.log, head + 1 if before is None else min(before, head + 1), person)
    return tuple([_told(projection, event, decided, event.seq in undone) for event, decided in islice(found, limit)])


def answers(log: Log, before: int, person: str | None = None) -> Iterator[tuple[Event, Event]]:
    """Yield (feedback, the decision it answers) before a sequence number, the newest first, undone feedback too."""
    some: list[Event] = []
    for event in log.newest_first(before, "feedback"):
        some.append(event)
        if len(some) >= PAGE:
            yield from _with_decisions(log, some, person)
            some = []
    yield from _with_decisions(log, some, person)


def _with_decisions(log: Log, some: Sequence[Event], person: str | None) -> Iterator[tuple[Event, Event]]:
    decisions = {event.seq: event for event in log.many(sorted({event.target or 0 for event in some}))}
    for event in some:
        decided = decisions.get(event.target or 0)
        if decided is not None and person in (None, decided.subject):  # somebody may be forgotten meanwhile
            yield event, decided


# ---------------------------------------------------------------------------- what one says


def shown_at(projection: Projection, decision: LoggedDecision) -> int:
    """Return when a decision was shown, in microseconds since 1970."""
    if not decision.record.deferred:
        return decision.since
    activated = projection.log.find("activate", decision.id)
    return decision.since if activated is None else activated.time


def lesson_of(
    projection: Projection,
    model: LoopModel,
    event: Event,
    decision: LoggedDecision,
    feedback: FeedbackRecord,
    context: Context,
) -> Any:
    """Return what feedback says to the learner of `model`, in a type of its interaction; None if that is nothing.

    `context` is that of the decision."""
    extra: Floats = projection.requests.extra(feedback, event.arrays, context, projection.row_of, decision.arrays)
    return model.lesson(context, feedback, extra)


def _told(projection: Projection, event: Event, decided: Event, undone: bool) -> LessonTold:
    decision, feedback = projection.decision(decided), records.decode_feedback(event.payload)
    record = decision.record
    names = decision.names
    form = known_forms(projection.interaction).get(feedback.form, NONE)  # an unknown form: chosen, over nothing
    chosen, over = form.compared(record.shown, feedback)
    context = projection.requests.context(decision)
    lesson = lesson_of(projection, projection.model, event, decision, feedback, context)
    return LessonTold(
        event.id,
        event.seq,
        event.time,
        feedback.form,
        decision.id,
        record.arm,
        decision.person,
        tuple([names[j] if j >= 0 else _elsewhere(projection, feedback.chain[-1 - j]) for j in chosen]),
        tuple([names[j] for j in over]),
        form.values(feedback, chosen),
        "; ".join(", ".join(names) for names in feedback.done) if feedback.done else feedback.text,
        event.time - shown_at(projection, decision) > 1e6 * projection.settings.late_after,
        undone,
        lesson is not None and event.seq not in projection.failed,
    )


def _elsewhere(projection: Projection, place: tuple[int, int]) -> str:
    """Return the name of a candidate of a later decision; `place` is (its sequence number, the candidate)."""
    event = projection.log.at(place[0])
    if event is None:
        return ""
    return projection.decision(event).names[place[1]]

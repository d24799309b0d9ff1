"""The feedback of a loop in words and with names of items, the newest first.

The log is read backwards, a page at a time, and no further than needed: the newest feedback of a long log comes as
quickly as that of a short one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from heedful.core.validation import check_count
from heedful.evaluation.answers import chosen_over
from heedful.loop import records
from heedful.loop.history import History
from heedful.loop.interactions.forms import known_forms, read_answer
from heedful.loop.log import Event, Log
from heedful.loop.packing import LoggedDecision
from heedful.results.history import LessonTold

PAGE = 50
"""How many pieces of feedback are read from the log at a time."""


def lessons(
    history: History, limit: int = 50, before: int | None = None, person: str | None = None
) -> tuple[LessonTold, ...]:
    """Return the newest `limit` pieces of feedback in the loop whose log and model are `history`, the newest first.

    Feedback with sequence number `before` or later is left out (None: nothing is). `person` takes only feedback on
    decisions for that person (None: on all). Feedback that was undone is included. Raise ValueError, naming the field,
    on bad input."""
    check_count("limit", limit, most=10_000)
    if before is not None:
        check_count("before", before)
    person = None if person is None else records.check_id("person", person)
    head = history.log.last()[0]
    undone = history.log.retractions()
    found = answers(history.log, head + 1 if before is None else min(before, head + 1), person)
    return tuple(
        [_describe_lesson(history, event, decided, event.seq in undone) for event, decided in islice(found, limit)]
    )


def answers(log: Log, before: int, person: str | None = None) -> Iterator[tuple[Event, Event]]:
    """Yield (feedback event, event of the decision it answers) for feedback with a sequence number below `before`, the
    newest first.

    `person` takes only decisions for that person (None: all). Feedback that was undone is included."""
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


def shown_at(history: History, decision: LoggedDecision) -> int:
    """Return when a decision was shown, in microseconds since 1970.

    That is the time at which it was made. For a decision that was deferred (made ahead of time) it is that of its
    activation or, while it is not activated, again that at which it was made. `history` is the loop's log with its
    model."""
    if not decision.record.deferred:
        return decision.since
    activated = history.log.find("activate", decision.id)
    return decision.since if activated is None else activated.time


def _describe_lesson(history: History, event: Event, decided: Event, undone: bool) -> LessonTold:
    decision, feedback = history.decision(decided), records.decode_feedback(event.payload)
    record = decision.record
    names, forms = decision.names, known_forms(history.interaction)
    said = feedback.said if feedback.form == "unknown" else None
    named = next(name for name in said if name in forms) if said is not None else feedback.form
    answer = read_answer(forms, feedback, record.shown)
    chosen, over = chosen_over(record.shown, answer)
    chosen = [j for j in chosen if j >= 0 or feedback.chain]
    numbers = (answer.values or answer.weights) if feedback.values else {}
    values = [numbers[j] for j in chosen] if numbers else [] if answer.verdict is None else [answer.verdict[1]]
    context = history.requests.context(decision)
    extra = history.requests.extra(feedback, event.arrays, context, history.row_of, decision.arrays)
    lesson = history.model.lesson(context, feedback, extra)
    return LessonTold(
        event.id,
        event.seq,
        event.time,
        named,
        decision.id,
        record.arm,
        decision.person,
        tuple([names[j] if j >= 0 else _elsewhere(history, feedback.chain[-1 - j]) for j in chosen]),
        tuple([names[j] for j in over]),
        tuple(values),
        "; ".join(", ".join(names) for names in feedback.done) if feedback.done else feedback.text,
        event.time - shown_at(history, decision) > 1e6 * history.settings.late_after,
        undone,
        lesson is not None and event.seq not in history.failed and history.model.teaches(lesson),
        said,
    )


def _elsewhere(history: History, place: tuple[int, int]) -> str:
    """Return the name of a candidate of a later decision; "" if that decision is not in the log.

    `place` is (sequence number of the decision, index of the candidate)."""
    event = history.log.at(place[0])
    if event is None:
        return ""
    return history.decision(event).names[place[1]]

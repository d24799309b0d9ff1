"""Feedback on the cards (items) of a page: writing it to the log, and reading it back card by card.

It is kept in the log alone, so every window shows the same, also after a reload."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from heedful.loop import Loop, records
from heedful.results.answers import Answer
from heedful.server.decisions import answer_fields, outcome
from heedful.server.pages.card_order import Hand
from heedful.server.pages.formatting import SEEN
from heedful.server.pages.page import Visit

LOOKED = 5000
"""The most pieces of feedback, the newest first, that are searched for those on one list."""


class CardAnswer(NamedTuple):
    """What one piece of feedback says about one item (card): a number, or actions such as "cart"."""

    seq: int
    """the feedback's sequence number in the log"""
    event: str
    """the feedback's id"""
    form: str
    """the form of feedback: "rating", "grade", "actions", ..."""
    item: str
    """the name of the item"""
    value: float
    """the number that the item was given; 0 for actions"""
    done: tuple[str, ...]
    """the names of the actions on it"""
    alone: bool
    """whether the feedback is about no other item"""


async def write_answer(
    visit: Visit, fields: Mapping[str, object], names: Sequence[str], shown: Sequence[str], event: str,
    person: str | None,
) -> tuple[str, Answer]:  # fmt: skip
    """Log feedback given on a page; return (the id of its decision, what became of the feedback).

    `visit` is the request of the page, `fields` the JSON fields of the feedback, `event` its id, `person` whom it is
    from. If the form names no decision, the page itself made the list: then a decision that showed `shown` out of the
    candidates `names` is logged first. Raise Problem if the feedback is rejected."""
    decision = visit.form.get("decision", "")
    if not decision:
        decision = f"{event}{SEEN}"
        await visit.worker.run(visit.loop.record, names, shown, id=decision, person=person)
        visit.note("decision", "imported")
    answer = await visit.worker.feedback({"decision": decision, "id": event, **fields})
    visit.note("feedback", outcome(answer))
    answer_fields(answer)
    return decision, answer


async def take_back(visit: Visit, event: str) -> Answer:
    """Undo the feedback with the id `event`; return what became of that, which may be a rejection."""
    answer = await visit.worker.run(visit.loop.undo, event)
    visit.note("undo", outcome(answer))
    return answer


def answers_to(loop: Loop, decision: str) -> Iterator[CardAnswer]:
    """Yield what was said about single items of the list that the decision with this id showed, newest first.

    Feedback that was undone is left out."""
    logged = loop.projection.find_decision(decision) if decision else None
    if logged is None:
        return
    log = loop.projection.log
    undone = log.retractions()
    for event in islice(log.newest_first(log.last()[0] + 1, "feedback"), LOOKED):
        if event.seq < logged.seq:
            return
        if event.target != logged.seq or event.seq in undone:
            continue
        feedback = records.decode_feedback(event.payload)
        alone = len(feedback.chosen) == 1
        for i, j in enumerate(feedback.chosen):
            value = feedback.values[i] if feedback.values else 0.0
            done = tuple(feedback.done[i]) if feedback.done else ()
            yield CardAnswer(event.seq, event.id, feedback.form, logged.names[j], value, done, alone)


def earlier_answers(loop: Loop, decision: str, item: str, event: str) -> list[str]:
    """Return the ids of earlier feedback that the feedback with the id `event` replaces, newest first, to be undone.

    If a person gives `item` a new number, older numbers for it in the same list (`decision`) no longer count. Feedback
    about several items stays, and so do actions, which add up."""
    earlier = [
        answer
        for answer in answers_to(loop, decision)
        if answer.item == item and answer.alone and answer.form != "actions"
    ]
    newest = [answer for answer in earlier if answer.event == event]
    return [answer.event for answer in earlier if newest and answer.seq < newest[0].seq]


def logged_hand(loop: Loop, names: Sequence[str], decision: str, person: str | None) -> Hand | None:
    """Return the cards called `names` in this order, with the id of the decision that showed them, so that no card
    moves when another is answered.

    Return None if there is no such `decision`, or if it was made for somebody other than `person`."""
    logged = loop.projection.find_decision(decision) if decision else None
    if logged is None or logged.person != person:
        return None
    return Hand(tuple(names), tuple(names), decision, logged.record.arm)

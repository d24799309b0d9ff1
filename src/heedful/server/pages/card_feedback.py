"""Writes the feedback on a list of cards to the log, and reads it back card by card.

As the log is the only place where it is kept, every window shows the same, also after a reload.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from heedful.loop import Loop, records
from heedful.loop.records import Answer
from heedful.server.decisions import accepted, outcome
from heedful.server.pages.card_order import Hand
from heedful.server.pages.formatting import SEEN
from heedful.server.pages.page import Visit

LOOKED = 5000
"""The most answers in the log that are searched for those to one list, the newest first."""


class CardAnswer(NamedTuple):
    """An answer, as far as it is about one item."""

    seq: int
    """the answer's place in the log"""
    event: str
    """the answer's id"""
    form: str
    item: str
    value: float
    """the number that the item got; 0 for actions"""
    done: tuple[str, ...]
    """the names of actions"""
    alone: bool
    """whether the answer is about no other item"""


async def write_answer(
    visit: Visit, fields: Mapping[str, object], names: Sequence[str], shown: Sequence[str], event: str,
    person: str | None,
) -> tuple[str, Answer]:  # fmt: skip
    """Log feedback with these `fields` under the id `event`; return (the id of its decision, the outcome).

    If the form names no decision, the page itself made the list: then the candidates `names` and the list `shown` are
    logged first. Raise Problem if the feedback is rejected.
    """
    decision = visit.form.get("decision", "")
    if not decision:
        decision = f"{event}{SEEN}"
        await visit.run(visit.loop.record, names, shown, id=decision, person=person)
        visit.note("decision", "imported")
    answer = await visit.worker.feedback({"decision": decision, "id": event, **fields})
    visit.note("feedback", outcome(answer))
    accepted(answer)
    return decision, answer


async def take_back(visit: Visit, event: str) -> Answer:
    """Undo the feedback `event` and return the outcome, which may be a rejection."""
    answer = await visit.run(visit.loop.undo, event)
    visit.note("undo", outcome(answer))
    return answer


def answers_to(loop: Loop, decision: str) -> Iterator[CardAnswer]:
    """Yield what was said about the items of a list, newest first, without what was taken back."""
    known = loop.projection.find_decision(decision) if decision else None
    if known is None:
        return
    log = loop.projection.log
    undone = log.retractions()
    for event in islice(log.newest_first(log.last()[0] + 1, "feedback"), LOOKED):
        if event.seq < known.seq:
            return
        if event.target != known.seq or event.seq in undone:
            continue
        feedback = records.decode_feedback(event.payload)
        alone = len(feedback.chosen) == 1
        for i, j in enumerate(feedback.chosen):
            value = feedback.values[i] if feedback.values else 0.0
            done = tuple(feedback.done[i]) if feedback.done else ()
            yield CardAnswer(event.seq, event.id, feedback.form, known.names[j], value, done, alone)


def earlier_answers(loop: Loop, decision: str, item: str, event: str) -> list[str]:
    """The ids of earlier answers that the answer `event` replaces, newest first, so that they can be undone.

    When a person gives a card a new number, the older numbers for that card in the same list no longer count.
    Answers about several cards are left alone, and so are actions, which add up.
    """
    found = [each for each in answers_to(loop, decision) if each.item == item and each.alone and each.form != "actions"]
    own = [each for each in found if each.event == event]
    return [each.event for each in found if own and each.seq < own[0].seq]


def logged_hand(loop: Loop, names: Sequence[str], decision: str, person: str | None) -> Hand | None:
    """Return these cards in the order of a decision, so that no card moves when another one is answered. Return None if
    there is no such decision, or it was made for another person."""
    known = loop.projection.find_decision(decision) if decision else None
    if known is None or known.person != person:
        return None
    return Hand(tuple(names), tuple(names), decision, known.record.arm)

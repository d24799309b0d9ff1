"""What was said of the cards of a list, item by item, read from the log by the list that it was said to.

So it is the same in every window, and after a reload. And how an answer is written to the log, whatever its form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from heedful.loop import Loop, records
from heedful.loop.records import Answer
from heedful.server.decisions import accepted, outcome
from heedful.server.pages.card_order import Hand
from heedful.server.pages.formatting import SEEN
from heedful.server.pages.page import Visit

LOOKED = 5000
"""Answers since a list was shown that are looked at for those to it, the newest first."""


class CardAnswer(NamedTuple):
    """One thing that was said of an item, by its place in the log."""

    seq: int
    event: str
    form: str
    item: str
    value: float
    """the number; 0 of actions"""
    done: tuple[str, ...]
    """the names of actions"""
    alone: bool
    """whether this answer says nothing of other items"""


async def write_answer(
    visit: Visit, form: Mapping[str, Any], names: Sequence[str], shown: Sequence[str], event: str, person: str | None
) -> tuple[str, Answer]:
    """(the decision, what became of the answer) of feedback on a list. Where no decision is known, the page made the
    list itself: it is noted as `shown`, of the cards `names`. Problem where the answer is rejected."""
    assert visit.worker is not None
    decision = visit.form.get("decision", "")
    if not decision:
        decision = f"{event}{SEEN}"
        await visit.worker.run(partial(visit.loop.record, names, shown, id=decision, person=person))
        count_event(visit, "decision", "imported")
    answer = await visit.worker.feedback({"decision": decision, "id": event, **form})
    count_event(visit, "feedback", outcome(answer))
    accepted(answer)
    return decision, answer


async def take_back(visit: Visit, event: str) -> Answer:
    """Undo an answer. What became of that."""
    assert visit.worker is not None
    answer = await visit.worker.run(partial(visit.loop.undo, event))
    count_event(visit, "undo", outcome(answer))
    return answer


def count_event(visit: Visit, kind: str, result: str) -> None:
    """Count an event, by what became of it."""
    visit.service.metrics.events[visit.caller.tenant, visit.name, kind, result] += 1


def answers_to(loop: Loop, decision: str) -> Iterator[CardAnswer]:
    """What was said of what is in a list and not taken back, the newest first."""
    known = loop.projection.known(decision) if decision else None
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


def hand_as_dealt(loop: Loop, names: Sequence[str], decision: str, person: str | None) -> Hand | None:
    """Cards as they were dealt: what is learned of one moves none of the others from under a hand. None where the list
    is not there, or another person's."""
    known = loop.projection.known(decision) if decision else None
    if known is None or known.person != person:
        return None
    return Hand(tuple(names), tuple(names), decision, known.record.arm)

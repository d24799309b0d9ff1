"""What was said of the cards of a list, item by item, read from the log by the list that it was said to.

So it is the same in every window, and after a reload. Common to loops of grades and of ratings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from heedful.loop import Loop, wire
from heedful.loop.wire import Answer
from heedful.server.pages.card_order import Hand

LOOKED = 5000
"""Answers since a list was shown that are looked at for those to it, the newest first."""


class Told(NamedTuple):
    """What a form says of one card."""

    item: str
    form: dict[str, Any]
    """as feedback"""
    words: str
    """as a person reads it: "4", "buy\""""


class Way(NamedTuple):
    """How cards are scored in one kind of loop."""

    wanted: Callable[[Loop, Mapping[str, str]], Told]
    """what a form says. ValueError, by name, where it says nothing"""
    predicted: Callable[[Loop, str, str | None], float | None]
    """what is predicted of an item at this moment, of a person; None where it is not known, or off offer"""
    said: Callable[[Loop, Told, float | None, float | None, Answer], str]
    """what came of it, in words: predicted before, and after"""


class Given(NamedTuple):
    """One thing that was said of an item, by its place in the log."""

    seq: int
    event: str
    form: str
    item: str
    value: float
    """the grade or the rating; 0 of actions"""
    done: tuple[str, ...]
    """the names of actions"""
    alone: bool
    """whether this answer says nothing of other items"""


def answers_to(loop: Loop, decision: str) -> Iterator[Given]:
    """What was said of what is in a list and not taken back, the newest first."""
    known = loop.ledger.known(decision) if decision else None
    if known is None:
        return
    log = loop.ledger.log
    undone = set(log.targets("undo"))
    for event in islice(log.newest_first(log.last()[0] + 1, "feedback"), LOOKED):
        if event.seq < known.seq:
            return
        if event.target != known.seq or event.seq in undone:
            continue
        feedback = wire.decode_feedback(event.payload)
        if feedback.form not in ("grade", "rating", "actions"):
            continue
        alone = len(feedback.chosen) == 1
        for i, j in enumerate(feedback.chosen):
            value = feedback.values[i] if feedback.values else 0.0
            done = tuple(feedback.done[i]) if feedback.done else ()
            yield Given(event.seq, event.id, feedback.form, known.names[j], value, done, alone)


def earlier_answers(loop: Loop, decision: str, item: str, event: str) -> list[str]:
    """The answers that a new grade or rating of the same card stands in place of: those before it that say nothing
    else. Actions stand beside each other."""
    found = [each for each in answers_to(loop, decision) if each.item == item and each.alone and each.form != "actions"]
    own = [each for each in found if each.event == event]
    return [each.event for each in found if own and each.seq < own[0].seq]


def hand_as_dealt(loop: Loop, names: Sequence[str], decision: str, person: str | None) -> Hand | None:
    """Cards as they were dealt: what is learned of one moves none of the others from under a hand. None where the list
    is not there, or another person's."""
    known = loop.ledger.known(decision) if decision else None
    if known is None or known.person != person:
        return None
    return Hand(tuple(names), tuple(names), decision, known.record.arm)


def reply(head: str, given: str, before: str, after: str, again: bool, verbs: tuple[str, str]) -> str:
    """What came of an answer, in words: what was predicted `before` and `after` it, "" where that is not known; where
    it came `again`, what was before is not told. `verbs` are those of now and of then, "thinks" and "thought"."""
    now, then = verbs
    if not after:
        return head
    if again or not before:
        return f"{head} It now {now} {after}."
    if before == given:
        return f"{head} That is what it {then}" + ("." if after == given else f"; now it {now} {after}.")
    if after == before:
        return f"{head} It {then} {before}, and so far still does."
    return f"{head} It {then} {before}, and now {now} {after}."

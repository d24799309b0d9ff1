"""The page of a grading loop: what is predicted of the cards, what was given to them, where the score is cut.

What was given is read from the log, by the list it was given to: so it is the same in every window, and after a reload.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from heedful.doors import describe
from heedful.loop import Loop, wire
from heedful.loop.grading import GradingModel
from heedful.loop.wire import Answer
from heedful.server.pages.cards import cards
from heedful.server.pages.placing import Hand

BUTTONS = 10
"""Up to so many grades have a button each; of more, one is typed in."""
LOOKED = 5000
"""Answers since a list was shown that are looked at for those to it, the newest first."""
_WHOLE = re.compile(r"[0-9]{1,4}", re.ASCII)


# ---------------------------------------------------------------------------- the cards


class Mark(NamedTuple):
    """What stands on one card."""

    predicted: int
    """the grade that the model would give by now"""
    given: int | None
    """the grade that the person gave; None where she gave none"""


class Board(NamedTuple):
    """The cards of a hand as grades."""

    k: int
    marks: dict[str, Mark]
    buttons: tuple[int, ...]
    """a button for each grade; none where there are too many"""

    def share(self, grade: int) -> float:
        """Where a grade stands on the scale, in percent of its length."""
        return 100 * (grade - 1) / (self.k - 1)


class Given(NamedTuple):
    """One answer that grades an item, by its place in the log."""

    seq: int
    event: str
    item: str
    grade: int
    alone: bool
    """whether it grades nothing else"""


def board(loop: Loop, hand: Hand, person: str | None) -> Board | None:
    """What is predicted of the cards at this moment and what was said of them; None for a loop that predicts none."""
    if loop.grades is None:
        return None
    there = [name for name in hand.names if name in loop.ledger.shelf.current]
    predicted = loop.graded(there, person=person) if there else {}
    given: dict[str, int] = {}
    for each in given_to(loop, hand.decision):
        given.setdefault(each.item, each.grade)
    marks = {name: Mark(predicted[name], given.get(name)) for name in there}
    return Board(loop.grades, marks, tuple(range(1, loop.grades + 1)) if loop.grades <= BUTTONS else ())


def given_to(loop: Loop, decision: str) -> Iterator[Given]:
    """The grades that were given to what is in a list and not taken back, the newest first."""
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
        if feedback.form == "grade":
            for j, value in zip(feedback.chosen, feedback.values):
                yield Given(event.seq, event.id, known.names[j], int(value), len(feedback.chosen) == 1)


def lying(loop: Loop, names: Sequence[str], decision: str, person: str | None) -> Hand | None:
    """Cards as they were dealt: what is learned of one moves none of the others from under a hand. None where the list
    is not there, or another person's."""
    known = loop.ledger.known(decision) if decision else None
    if known is None or known.person != person:
        return None
    return Hand(tuple(names), tuple(names), decision, known.record.arm)


# ---------------------------------------------------------------------------- what is said


def wanted_grade(item: str, text: str, k: int) -> int:
    """A grade as a form says it. ValueError, by name, where it is none."""
    whole = int(text) if _WHOLE.fullmatch(text.strip()) else 0
    if not 1 <= whole <= k:
        raise ValueError(f"grade[{describe(item)}]: wanted a whole number from 1 to {k}, got {describe(text)}")
    return whole


def predicted(loop: Loop, item: str, person: str | None) -> int | None:
    """The grade predicted of an item at this moment; None where it is no longer on offer."""
    return loop.graded([item], person=person)[item] if item in loop.ledger.shelf.current else None


def replaced(loop: Loop, decision: str, item: str, event: str) -> list[str]:
    """The answers that a new grade of the same card stands in place of: those before it that grade nothing else."""
    own = loop.ledger.log.find("feedback", event)
    if own is None:
        return []
    found = [each for each in given_to(loop, decision) if each.item == item and each.alone]
    return [each.event for each in found if each.seq < own.seq]


def said(loop: Loop, item: str, grade: int, before: int | None, after: int | None, answer: Answer) -> str:
    """What a grade did, in words."""
    titles = [card.title for card in cards(loop, [item])]
    told = f"{titles[0] if titles else item}: {grade} of {loop.grades}."
    if before is None or after is None:
        return f"{told} It is no longer on offer."
    if answer.status == "duplicate":
        return f"{told} It now thinks {after}."
    if before == grade:
        return f"{told} That is what it thought" + ("." if after == grade else f"; now it thinks {after}.")
    if after == before:
        return f"{told} It thought {before}, and so far still does."
    return f"{told} It thought {before}, and now thinks {after}."


# ---------------------------------------------------------------------------- where the score is cut


class Part(NamedTuple):
    """The scores for which one grade is predicted."""

    grade: int
    told: str
    left: float
    """where it begins on the line that is drawn, and how long it is, in percent of the line"""
    width: float


class Line(NamedTuple):
    """The scores, cut into grades."""

    parts: tuple[Part, ...]
    told: str
    """what the thresholds are, for who does not see the line"""
    listed: bool
    """whether the grades are few enough to be told one by one"""


def line(loop: Loop, person: str | None) -> Line | None:
    """Where the thresholds lie, for a person where she has an offset of her own; None for a learner without any."""
    model = loop.ledger.model
    if not isinstance(model, GradingModel) or not hasattr(loop.learner, "thresholds"):
        return None
    state, own = loop.ledger.reading(person)
    level = 0.0 if own is None else model.level(own)  # w.x - level < b, drawn on the line of w.x
    b = [float(each) + level for each in loop.learner.thresholds(state.shared)]
    apart = b[-1] - b[0]
    pad = apart / len(b) if apart > 0.0 else 1.0
    low, high = b[0] - pad, b[-1] + pad
    edges = [low, *b, high]
    parts = [
        Part(
            r,
            _between(r, b),
            round(100 * (left - low) / (high - low), 2),
            round(100 * (right - left) / (high - low), 2),
        )
        for r, (left, right) in enumerate(pairwise(edges), 1)
    ]
    told = f"The line of scores, cut into the grades 1 to {len(parts)} at {len(b)} thresholds"
    ends = f"from {_number(b[0])} to {_number(b[-1])}" if apart > 0.0 else f"which all still lie at {_number(b[0])}"
    return Line(tuple(parts), f"{told}, {ends}.", len(parts) <= BUTTONS)


def _between(r: int, b: Sequence[float]) -> str:
    """For which scores a grade is predicted."""
    if r == 1:
        return f"below {_number(b[0])}"
    if r == len(b) + 1:
        return f"{_number(b[-1])} and above"
    low, high = b[r - 2], b[r - 1]
    return f"{_number(low)} to {_number(high)}" if low < high else "no score so far"


def _number(value: float) -> str:
    return f"{value + 0.0:.2f}".replace("-", "−").replace("−0.00", "0.00")

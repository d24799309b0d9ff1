"""The page of a grading loop: what is predicted of the cards, what was given to them, where the score is cut."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from heedful.core.validation import describe
from heedful.loop import Loop, wire
from heedful.loop.interactions.ordinal.model import GradingModel
from heedful.loop.wire import Answer
from heedful.server.pages.card_feedback import Told, Way, answers_to, reply
from heedful.server.pages.card_order import Hand
from heedful.server.pages.cards import title_of

BUTTONS = 10
"""Up to so many grades have a button each; of more, one is typed in."""
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

    @property
    def noun(self) -> str:
        """What is said of a card."""
        return "grade"

    @property
    def digits(self) -> bool:
        """Whether each grade is a key."""
        return self.k <= 9

    def share(self, grade: int) -> float:
        """Where a grade stands on the scale, in percent of its length."""
        return 100 * (grade - 1) / (self.k - 1)


def board(loop: Loop, hand: Hand, person: str | None) -> Board | None:
    """What is predicted of the cards at this moment and what was said of them; None for a loop that predicts none."""
    if loop.grades is None:
        return None
    there = [name for name in hand.names if name in loop.ledger.shelf.current]
    predicted = loop.predict(there, person=person) if there else {}
    given: dict[str, int] = {}
    for each in answers_to(loop, hand.decision):
        given.setdefault(each.item, int(each.value))
    marks = {name: Mark(int(predicted[name].value), given.get(name)) for name in there}
    return Board(loop.grades, marks, tuple(range(1, loop.grades + 1)) if loop.grades <= BUTTONS else ())


# ---------------------------------------------------------------------------- what is said


def wanted(loop: Loop, given: Mapping[str, str]) -> Told:
    """A grade as a form says it. ValueError, by name, where it is none."""
    k, kind = loop.grades or 0, given.get("kind", "grade")
    if kind != "grade":
        raise ValueError(f"kind: wanted grade, as this loop learns grades from 1 to {k}, got {describe(kind)}")
    item, text = wire.wanted_id("item", given.get("item", "")), given.get("grade", "")
    whole = int(text) if _WHOLE.fullmatch(text.strip()) else 0
    if not 1 <= whole <= k:
        raise ValueError(f"grade[{describe(item)}]: wanted a whole number from 1 to {k}, got {describe(text)}")
    return Told(item, {"grade": {item: whole}}, str(whole))


def predicted(loop: Loop, item: str, person: str | None) -> int | None:
    """The grade predicted of an item at this moment; None where it is no longer on offer."""
    return int(loop.predict([item], person=person)[item].value) if item in loop.ledger.shelf.current else None


def said(loop: Loop, given: Told, before: float | None, after: float | None, answer: Answer) -> str:
    """What a grade did, in words."""
    head = f"{title_of(loop, given.item)}: {given.words} of {loop.grades}."
    if before is None or after is None:
        return f"{head} It is no longer on offer."
    was, now = str(before), str(after)
    return reply(head, given.words, was, now, answer.status == "duplicate", ("thinks", "thought"))


WAY = Way(wanted, predicted, said)


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

"""The page of a loop of ratings: what is expected of the cards, what was said of them, what is left for a person."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from heedful.core.validation import describe
from heedful.loop import Loop, wire
from heedful.loop.interactions.protocol import Predicted
from heedful.loop.interactions.rating.model import CONSUMED, RatingModel
from heedful.loop.settings import Settings
from heedful.loop.wire import Answer
from heedful.server.pages.card_feedback import Told, Way, answers_to, reply
from heedful.server.pages.card_order import Hand
from heedful.server.pages.cards import title_of

BUTTONS = 11
"""Up to so many whole ratings have a button each; otherwise one is typed in."""
SLATE = 12
"""How many items are shown at a time, at most: as many as the loop shows."""
_NUMBER = re.compile(r"[-+]?([0-9]{1,60}(\.[0-9]{0,60})?|\.[0-9]{1,60})([eE][-+]?[0-9]{1,3})?", re.ASCII)


# ---------------------------------------------------------------------------- the cards


class Mark(NamedTuple):
    """What stands on one card."""

    expected: float | None
    """the rating that the model expects by now; None where it does not say"""
    spread: float | None
    """the standard deviation of that belief; None where it does not say"""
    given: float | None
    """the rating that the person gave to this card; None where there is none"""
    done: dict[str, str]
    """the actions on it, each with the answer that says so; "" of one that says something else as well"""


class Board(NamedTuple):
    """The cards of a hand as ratings."""

    low: float
    high: float
    marks: dict[str, Mark]
    buttons: tuple[int, ...]
    """a button for each rating; none where there are too many, or where there are halves"""
    actions: tuple[str, ...]
    """a button for each action; none where they are not asked for"""
    offered: bool
    """whether the page may offer buttons for actions, or put them away"""
    rated: int
    """how many of the items on offer the person has rated"""

    @property
    def noun(self) -> str:
        """What is said of a card."""
        return "rating"

    @property
    def digits(self) -> bool:
        """Whether each rating is a key."""
        return bool(self.buttons) and self.buttons[0] >= 0 and self.buttons[-1] <= 9

    def told(self, value: float) -> str:
        """A rating that is expected, to as many places as mean something."""
        return told(value, self.high - self.low)

    def number(self, value: float) -> str:
        """A rating that may be given, as a form has it."""
        return _exact(value)

    def words(self, value: float) -> str:
        """The same as it is read."""
        return _exact(value).replace("-", "−")

    def nearest(self, mark: Mark) -> int | None:
        """The button nearest to what is expected."""
        return None if mark.expected is None or not self.buttons else math.floor(mark.expected + 0.5)

    def share(self, value: float) -> float:
        """Where a rating stands on the scale, in percent of its length."""
        return 100 * (value - self.low) / (self.high - self.low)


def board(loop: Loop, hand: Hand, person: str | None, acting: bool = False) -> Board | None:
    """What is expected of the cards at this moment and what was said of them; None for a loop of another kind."""
    if loop.ratings is None:
        return None
    low, high = loop.ratings
    there = [name for name in hand.names if name in loop.ledger.shelf.current]
    foreseen = expected(loop, there, person)
    given: dict[str, float] = {}
    done: dict[str, dict[str, str]] = {name: {} for name in there}
    for each in answers_to(loop, hand.decision):
        if each.form == "rating":
            given.setdefault(each.item, each.value)
        for action in each.done:
            done.get(each.item, {}).setdefault(action, each.event if each.alone and len(each.done) == 1 else "")
    marks = {}
    for name in there:
        found = foreseen.get(name)
        rating, spread = (None, None) if found is None else (found.value, found.spread)
        marks[name] = Mark(rating, spread, given.get(name), done[name])
    whole = low == int(low) and high == int(high) and high - low < BUTTONS
    usual = loop.settings.actions == Settings(ratings=loop.settings.ratings).actions
    return Board(
        low,
        high,
        marks,
        tuple(range(int(low), int(high) + 1)) if whole else (),
        () if usual and not acting else tuple(loop.settings.actions),
        usual,
        0 if person is None else len(loop.ledger.shelf.current) - len(_left(loop, person)),
    )


def expected(loop: Loop, names: Sequence[str], person: str | None) -> dict[str, Predicted]:
    """What is expected of items on offer; {} where nothing was learned yet, and for a learner that does not say."""
    model = loop.ledger.model
    assert isinstance(model, RatingModel)
    if not names or loop.ledger.reading(None)[0].shared.users == 0:
        return {}
    try:
        return loop.predict(names, person=person)
    except ValueError:  # random-item has no opinion
        return {}


def told(value: float, span: float) -> str:
    """A number on a scale of this length, to about 40 steps."""
    if span > 1e6 or span < 1e-6:
        return f"{value:.3g}".replace("-", "−")
    places = min(max(math.ceil(math.log10(40.0 / span)), 0), 8)
    text = f"{value:.{places}f}"
    return text.lstrip("-") if float(text) == 0.0 else text.replace("-", "−")


def _exact(value: float) -> str:
    return f"{value:.10g}"


# ---------------------------------------------------------------------------- what is left to show


def left(loop: Loop, person: str | None, past: Sequence[str]) -> list[str]:
    """The items on offer that the loop may show this person; without those that were passed over, where there are
    others."""
    names = list(loop.ledger.shelf.current) if loop.settings.repeats else _left(loop, person)
    others = [name for name in names if name not in set(past)]
    return others or names


def _left(loop: Loop, person: str | None) -> list[str]:
    """The items on offer that a person has not consumed."""
    model, shelf = loop.ledger.model, loop.ledger.shelf
    assert isinstance(model, RatingModel)
    state, own = loop.ledger.reading(person)
    consumed = set(model.consumed(state.shared, own).tolist())
    return [name for name in list(shelf.current) if shelf.number(name) not in consumed]


def finished(loop: Loop, hand: Hand) -> bool:
    """Whether all cards of a list have their answers: rated, or acted on as loudly as a rating."""
    weight = dict.fromkeys(hand.names, 0.0)
    for each in answers_to(loop, hand.decision):
        if each.item in weight:
            actions = [loop.settings.actions[name][1] for name in each.done if name in loop.settings.actions]
            weight[each.item] += 1.0 if each.form == "rating" else sum(actions)
    return bool(weight) and min(weight.values()) >= CONSUMED


# ---------------------------------------------------------------------------- what is said


def wanted(loop: Loop, given: Mapping[str, str]) -> Told:
    """A rating, or an action, as a form says it. ValueError, by name, where it is none."""
    assert loop.ratings is not None
    low, high = loop.ratings
    kind = given.get("kind", "rating")
    if kind not in ("rating", "action"):
        wanted = f"wanted rating or action, as this loop learns ratings from {low:g} to {high:g}"
        raise ValueError(f"kind: {wanted}, got {describe(kind)}")
    item = wire.wanted_id("item", given.get("item", ""))
    if kind == "action":
        action = given.get("action", "")
        if action not in loop.settings.actions:
            raise ValueError(f"action: wanted {', '.join(loop.settings.actions)}, got {describe(action)}")
        return Told(item, {"actions": {item: action}}, action)
    text = given.get("rating", "")
    value = float(text) if _NUMBER.fullmatch(text.strip()) else math.nan
    if not low <= value <= high:
        raise ValueError(f"rating[{describe(item)}]: wanted a number from {low:g} to {high:g}, got {describe(text)}")
    return Told(item, {"rating": {item: value}}, _exact(value))


def predicted(loop: Loop, item: str, person: str | None) -> float | None:
    """The rating expected of an item at this moment; None where that is not known, or the item off offer."""
    found = expected(loop, [item] if item in loop.ledger.shelf.current else [], person)
    return found[item].value if found else None


def said(loop: Loop, given: Told, before: float | None, after: float | None, answer: Answer) -> str:
    """What a rating did, in words."""
    assert loop.ratings is not None
    span = loop.ratings[1] - loop.ratings[0]
    head = f"{title_of(loop, given.item)}: {given.words.replace('-', '−') if 'rating' in given.form else given.words}."
    if given.item not in loop.ledger.shelf.current:
        return f"{head} It is no longer on offer."
    rating = given.form.get("rating")
    ours = "" if rating is None else told(rating[given.item], span)
    was, now = ("" if value is None else told(value, span) for value in (before, after))
    return reply(head, ours, was, now, answer.status == "duplicate", ("expects", "expected"))


WAY = Way(wanted, predicted, said)

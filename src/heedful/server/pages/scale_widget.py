"""The widget for numbers: what is predicted of each card, what was given to it, a scale of buttons, or an input."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from heedful.core.validation import describe
from heedful.loop import Loop, records
from heedful.loop.interactions.card import Scale
from heedful.server.pages.card_feedback import answers_to
from heedful.server.pages.card_order import Hand
from heedful.server.pages.cards import title_of
from heedful.server.pages.prediction_summary import format_number, predictions

BUTTONS = 11
"""Up to so many numbers have a button each; otherwise one is typed in."""
FULL = 1.0 - 1e-9
"""How much answers to a card have to count for, that it is done with."""
_NUMBER = re.compile(r"[-+]?([0-9]{1,60}(\.[0-9]{0,60})?|\.[0-9]{1,60})([eE][-+]?[0-9]{1,3})?", re.ASCII)
_WHOLE = re.compile(r"[0-9]{1,4}", re.ASCII)


class Mark(NamedTuple):
    """What stands on one card."""

    predicted: float | None
    """what is predicted by now; None where nothing is"""
    spread: float | None
    """the standard deviation of that belief; None where the learner does not say"""
    given: float | None
    """what the person gave to this card; None where nothing"""
    done: dict[str, str]
    """the actions on it, each with the answer that says so; "" of one that says something else as well"""


class Board(NamedTuple):
    """The cards of a hand on a scale."""

    scale: Scale
    marks: dict[str, Mark]
    buttons: tuple[int, ...]
    """a button for each number; none where there are too many, or where there are halves"""
    actions: tuple[str, ...]
    """a button for each action; none where they are not asked for"""
    answered: int
    """how many of the items on offer the person is done with"""

    @property
    def noun(self) -> str:
        """What is given to a card."""
        return self.scale.form

    @property
    def digits(self) -> bool:
        """Whether each number is a key."""
        return bool(self.buttons) and self.buttons[0] >= 0 and self.buttons[-1] <= 9

    def prediction(self, value: float) -> str:
        """What is predicted, to as many places as mean something."""
        return _prediction(self.scale, value)

    def number(self, value: float) -> str:
        """A number that may be given, as a form has it."""
        return _exact(value)

    def words(self, value: float) -> str:
        """The same as it is read."""
        return _exact(value).replace("-", "−")

    def nearest(self, mark: Mark) -> int | None:
        """The button nearest to what is predicted."""
        return None if mark.predicted is None or not self.buttons else math.floor(mark.predicted + 0.5)

    def share(self, value: float) -> float:
        """Where a number stands on the scale, in percent of its length."""
        return 100 * (value - self.scale.low) / (self.scale.high - self.scale.low)


def board(loop: Loop, scale: Scale, hand: Hand, person: str | None, acting: bool) -> Board:
    """What is predicted of the cards at this moment and what was said of them."""
    current = loop.projection.catalogue.current
    there = [name for name in hand.names if name in current]
    predicted = predictions(loop, there, person)
    given: dict[str, float] = {}
    done: dict[str, dict[str, str]] = {name: {} for name in there}
    for each in answers_to(loop, hand.decision):
        if each.form == scale.form:
            given.setdefault(each.item, each.value)
        for action in each.done:
            done.get(each.item, {}).setdefault(action, each.event if each.alone and len(each.done) == 1 else "")
    marks = {}
    for name in there:
        found = predicted.get(name)
        value, spread = (None, None) if found is None else found
        marks[name] = Mark(value, spread, given.get(name), done[name])
    low, high = scale.low, scale.high
    whole = low == int(low) and high == int(high) and high - low < BUTTONS
    return Board(
        scale,
        marks,
        tuple(range(int(low), int(high) + 1)) if whole else (),
        () if scale.hidden and not acting else tuple(scale.actions),
        0 if person is None else len(current) - len(items_left(loop, person)),
    )


def _prediction(scale: Scale, value: float) -> str:
    return f"{value:.0f}" if scale.whole else format_number(value, scale.high - scale.low)


def _exact(value: float) -> str:
    return f"{value:.10g}"


# ---------------------------------------------------------------------------- what is left to show


def candidates(loop: Loop, person: str | None, past: Sequence[str]) -> list[str]:
    """The items on offer that the loop may show this person; without those that were passed over, where there are
    others."""
    names = list(loop.projection.catalogue.current) if loop.settings.repeats else items_left(loop, person)
    others = [name for name in names if name not in set(past)]
    return others or names


def items_left(loop: Loop, person: str | None) -> list[str]:
    """The items on offer that a person is not done with."""
    catalogue = loop.projection.catalogue
    state, own = loop.projection.reading(person)
    used = loop.projection.interaction.used(loop.projection.model, state.shared, own)
    return [name for name in list(catalogue.current) if catalogue.number(name) not in used]


def is_finished(loop: Loop, scale: Scale, hand: Hand) -> bool:
    """Whether all cards of a list have their answers: a number, or actions that count for as much."""
    weight = dict.fromkeys(hand.names, 0.0)
    for each in answers_to(loop, hand.decision):
        if each.item in weight:
            weight[each.item] += 1.0 if each.form == scale.form else sum([scale.actions.get(a, 0.0) for a in each.done])
    return bool(weight) and min(weight.values()) >= FULL


# ---------------------------------------------------------------------------- what was posted


def parse(scale: Scale, given: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """(the item, feedback) as a form says it. ValueError, by name, where it says nothing."""
    kinds = [scale.form, *(["action"] if scale.actions else [])]
    kind, low, high = given.get("kind", scale.form), scale.low, scale.high
    if kind not in kinds:
        expected = f"expected {' or '.join(kinds)}, as this loop learns {scale.form}s from {low:g} to {high:g}"
        raise ValueError(f"kind: {expected}, got {describe(kind)}")
    item = records.check_id("item", given.get("item", ""))
    if kind == "action":
        action = given.get("action", "")
        if action not in scale.actions:
            raise ValueError(f"action: expected {', '.join(scale.actions)}, got {describe(action)}")
        return item, {"actions": {item: action}}
    text = given.get(scale.form, "")
    pattern, number = (_WHOLE, "a whole number") if scale.whole else (_NUMBER, "a number")
    value = float(text) if pattern.fullmatch(text.strip()) else math.nan
    if not low <= value <= high:
        raise ValueError(
            f"{scale.form}[{describe(item)}]: expected {number} from {low:g} to {high:g}, got {describe(text)}"
        )
    return item, {scale.form: {item: int(value) if scale.whole else value}}


def prediction_of(loop: Loop, item: str, person: str | None) -> float | None:
    """What is predicted of an item at this moment; None where nothing is, or it is no longer on offer."""
    found = predictions(loop, [item] if item in loop.projection.catalogue.current else [], person).get(item)
    return None if found is None else found.value


def reply(
    loop: Loop, scale: Scale, item: str, form: Mapping[str, Any], before: float | None, after: float | None, again: bool
) -> str:
    """What came of an answer, in words: what was predicted before and after it; where it came `again`, what was before
    is not told."""
    given = form["actions"][item] if "actions" in form else _exact(form[scale.form][item]).replace("-", "−")
    head = f"{title_of(loop, item)}: {given}."
    if item not in loop.projection.catalogue.current:
        return f"{head} It is no longer on offer."
    if after is None:
        return head
    now = _prediction(scale, after)
    if before is None or again:
        return f"{head} Predicted now: {now}."
    return f"{head} Predicted before: {_prediction(scale, before)}, now: {now}."

"""The input for numbers, such as stars: a prediction on each card, and buttons or a field for the number."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from heedful.core.validation import describe
from heedful.loop import Loop, records
from heedful.loop.interactions.forms import Numbers
from heedful.loop.settings import Settings
from heedful.server.pages.card_feedback import answers_to
from heedful.server.pages.card_order import Hand
from heedful.server.pages.cards import title_of
from heedful.server.pages.charts import Axis
from heedful.server.pages.prediction_summary import predictions

BUTTONS = 11
"""The most whole numbers on a scale that has a button for each; on other scales people type a number."""
FULL = 1.0 - 1e-9
"""A card is finished if its answers weigh as much as one number, up to rounding errors."""
_NUMBER = re.compile(r"[-+]?([0-9]{1,60}(\.[0-9]{0,60})?|\.[0-9]{1,60})([eE][-+]?[0-9]{1,3})?", re.ASCII)
_WHOLE = re.compile(r"[0-9]{1,4}", re.ASCII)


class Scale(NamedTuple):
    """The numbers that people may give to items, and the buttons for actions next to them."""

    form: str
    """the form of feedback that holds the number: "rating\""""
    low: float
    """the lowest number that can be given"""
    high: float
    """the highest number that can be given"""
    whole: bool
    """whether only whole numbers are taken"""
    selects: bool
    """whether the model chooses the items for each person from all that are on offer; otherwise a random sample is
    shown"""
    actions: Mapping[str, float]
    """the actions (buy, hide, ...) that have a button, with the weight of each as an answer"""
    hidden: bool
    """whether the buttons for actions are hidden until they are asked for"""

    def prediction(self, value: float) -> str:
        """Return a predicted number as text, with as many decimals as the scale needs."""
        return f"{value:.0f}" if self.whole else Axis(self.low, self.high).number(value)


def scale_of(loop: Loop) -> Scale | None:
    """Return the numbers that people may give in this loop; None if they answer in another way."""
    interaction, settings = loop.projection.interaction, loop.settings
    if interaction.words.widget != "scale" or interaction.scale is None:
        return None
    form = next(form for form in interaction.forms.values() if isinstance(form, Numbers))
    actions = settings.actions if "actions" in interaction.forms else {}
    makes = {interaction.setting: getattr(settings, interaction.setting)} if interaction.setting else {}
    usual = actions == Settings(**makes).actions
    weights = {name: weight for name, (_, weight) in actions.items()}
    scale = interaction.scale
    return Scale(form.name, scale.low, scale.high, scale.whole, interaction.by_number, weights, usual)


class Mark(NamedTuple):
    """The predicted number on the card of one item, the number that the person gave, and the actions on the item."""

    predicted: float | None
    """the current prediction; None if there is none"""
    spread: float | None
    """the standard deviation of the prediction; None if the learner has none"""
    answer: float | None
    """the number that the person gave; None if they gave none"""
    done: dict[str, str]
    """action on the item -> id of the feedback that reports it; "" if that feedback says something else as well"""


class ScaleWidget(NamedTuple):
    """The numbers on all cards (items) of a page: predicted and given; and the controls for giving them."""

    scale: Scale
    """the numbers that people may give: the lowest, the highest, whether only whole ones"""
    marks: dict[str, Mark]
    """for each item, by name"""
    buttons: tuple[int, ...]
    """the numbers that have a button; none if there are too many, or numbers between whole ones"""
    actions: tuple[str, ...]
    """the actions that have a button; none if the visitor did not ask for them"""
    answered: int
    """how many of the items on offer the person has rated, or acted on as much as counts for a rating"""

    @property
    def noun(self) -> str:
        """What a number that people give is called in this loop: "rating" or "grade"."""
        return self.scale.form

    @property
    def digits(self) -> bool:
        """True if the keys 0 to 9 give the numbers."""
        return bool(self.buttons) and self.buttons[0] >= 0 and self.buttons[-1] <= 9

    def shown(self, mark: Mark) -> float | None:
        """Return the prediction on a card (`mark`) as exactly as the card shows it; None without a prediction."""
        return (
            None
            if mark.predicted is None
            else float(self.scale.prediction(mark.predicted).replace("−", "-").replace(",", ""))
        )

    def number(self, value: float) -> str:
        """Return a number that people can give as text for an HTML control, with a plain minus."""
        return _exact(value)

    def words(self, value: float) -> str:
        """Return a number that people can give as text for people, with a typographic minus."""
        return _exact(value).replace("-", "−")

    def nearest(self, mark: Mark) -> int | None:
        """Return the button nearest to the prediction of a `mark`; None without buttons or prediction."""
        return None if mark.predicted is None or not self.buttons else math.floor(mark.predicted + 0.5)

    def share(self, value: float) -> float:
        """Return the position of a number on the scale, in percent of its length."""
        return 100 * (value - self.scale.low) / (self.scale.high - self.scale.low)


def board(loop: Loop, scale: Scale, hand: Hand, person: str | None, acting: bool) -> ScaleWidget:
    """Return the numbers and controls on the cards of `hand`, the items of a page: predictions for `person`, and what
    they answered.

    `scale` is that of the numbers. `acting` says whether the visitor asked for buttons for actions such as "looked
    at"."""
    current = loop.projection.catalogue.current
    offered = [name for name in hand.names if name in current]
    predicted = predictions(loop, offered, person)
    answers: dict[str, float] = {}
    done: dict[str, dict[str, str]] = {name: {} for name in offered}
    for answer in answers_to(loop, hand.decision):
        if answer.form == scale.form:
            answers.setdefault(answer.item, answer.value)
        for action in answer.done:
            done.get(answer.item, {}).setdefault(action, answer.event if answer.alone and len(answer.done) == 1 else "")
    marks = {}
    for name in offered:
        value, spread = predicted.get(name, (None, None))
        marks[name] = Mark(value, spread, answers.get(name), done[name])
    low, high = scale.low, scale.high
    whole = low == int(low) and high == int(high) and high - low < BUTTONS
    return ScaleWidget(
        scale,
        marks,
        tuple(range(int(low), int(high) + 1)) if whole else (),
        () if scale.hidden and not acting else tuple(scale.actions),
        0 if person is None else len(current) - len(items_left(loop, person)),
    )


def _exact(value: float) -> str:
    return f"{value:.10g}"


# ---------------------------------------------------------------------------- what is left to show


def candidates(loop: Loop, person: str | None, past: Sequence[str]) -> list[str]:
    """Return the names of the items that the model may show to `person` next.

    Those in `past`, which were shown before, are left out if there are others."""
    names = list(loop.projection.catalogue.current) if loop.settings.repeats else items_left(loop, person)
    others = [name for name in names if name not in set(past)]
    return others or names


def items_left(loop: Loop, person: str | None) -> list[str]:
    """Return the names of the items on offer that `person` is not done with.

    They are done with an item once they have rated it, or acted on it as much as counts for a rating."""
    catalogue = loop.projection.catalogue
    used = loop.projection.interaction.used(loop.projection.reading(person)[1])
    return [name for name in list(catalogue.current) if catalogue.number(name) not in used]


def is_finished(loop: Loop, scale: Scale, hand: Hand) -> bool:
    """Return whether the person has answered every card (item) of the page `hand`.

    An answer is a number on `scale`, or actions that weigh as much; they are read from the log of `loop`."""
    weight = dict.fromkeys(hand.names, 0.0)
    for answer in answers_to(loop, hand.decision):
        if answer.item in weight:
            weight[answer.item] += (
                1.0 if answer.form == scale.form else sum([scale.actions.get(a, 0.0) for a in answer.done])
            )
    return bool(weight) and min(weight.values()) >= FULL


# ---------------------------------------------------------------------------- what was posted


def parse(scale: Scale, posted: Mapping[str, str]) -> tuple[str, dict[str, dict[str, float | str]]]:
    """Return (item, fields of the feedback) from a posted form (`posted`): a number on `scale`, or an action, for one
    item.

    Raise ValueError, naming the field, if one is missing or invalid."""
    kinds = [scale.form, *(["action"] if scale.actions else [])]
    kind, low, high = posted.get("kind", scale.form), scale.low, scale.high
    if kind not in kinds:
        expected = f"expected {' or '.join(kinds)}, as this loop learns {scale.form}s from {low:g} to {high:g}"
        raise ValueError(f"kind: {expected}, got {describe(kind)}")
    item = records.check_id("item", posted.get("item", ""))
    if kind == "action":
        action = posted.get("action", "")
        if action not in scale.actions:
            raise ValueError(f"action: expected {', '.join(scale.actions)}, got {describe(action)}")
        return item, {"actions": {item: action}}
    text = posted.get(scale.form, "")
    pattern, number = (_WHOLE, "a whole number") if scale.whole else (_NUMBER, "a number")
    value = float(text) if pattern.fullmatch(text.strip()) else math.nan
    if not low <= value <= high:
        raise ValueError(
            f"{scale.form}[{describe(item)}]: expected {number} from {low:g} to {high:g}, got {describe(text)}"
        )
    return item, {scale.form: {item: int(value) if scale.whole else value}}


def prediction_of(loop: Loop, item: str, person: str | None) -> float | None:
    """Return the present prediction for the item; None if there is none, or the item is no longer on offer."""
    prediction = predictions(loop, [item] if item in loop.projection.catalogue.current else [], person).get(item)
    return None if prediction is None else prediction.value


def reply(
    loop: Loop,
    scale: Scale,
    item: str,
    fields: Mapping[str, Mapping[str, float | str]],
    before: float | None,
    after: float | None,
    again: bool,
) -> str:
    """Return in words what feedback on `item` changed: its predictions `before` and `after` the feedback, None if
    unknown.

    `fields` is the feedback, a number or an action. If it was sent `again` (a duplicate), the text leaves `before` out.
    `scale` is that of the numbers."""
    [value] = [values[item] for values in fields.values()]
    text = value if isinstance(value, str) else _exact(value).replace("-", "−")
    head = f"{title_of(loop, item)}: {text}."
    if item not in loop.projection.catalogue.current:
        return f"{head} It is no longer on offer."
    if after is None:
        return head
    now = scale.prediction(after)
    if before is None or again:
        return f"{head} Predicted now: {now}."
    return f"{head} Predicted before: {scale.prediction(before)}, now: {now}."

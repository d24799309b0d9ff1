"""The forms of feedback on the answer of a model: thumbs, and edits as thumbs of the share that was left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from heedful.core.validation import describe
from heedful.core.wording import share
from heedful.loop.interactions.forms import AnsweredDecision, Edit, Thumb
from heedful.loop.records import Feedback, FeedbackRecord, check_id, check_number, check_text

if TYPE_CHECKING:
    from heedful.results.history import LessonTold

LONGEST = 10_000
"""The greatest length of an answer, and of its edited text, in words: comparing two of that length takes some 10 ms."""


class GradedThumb(Thumb):
    """A thumb up (1) or down (-1) on an answer, or a number between them where an edit left a part of it."""

    def write(self, record: FeedbackRecord, decided: AnsweredDecision) -> dict[str, Any]:
        line = super().write(record, decided)
        if abs(record.values[0]) == 1.0:
            return line
        item = {"item": line["item"]} if "item" in line else {}
        return {"edit": {"changed": (1.0 - record.values[0]) / 2.0}} | item

    def tell(self, lesson: LessonTold) -> str:
        of = f" of {lesson.chosen[0]}" if lesson.chosen else ""
        if abs(lesson.values[0]) == 1.0:
            return f"Thumb {'up' if lesson.values[0] > 0.0 else 'down'} for the answer{of}"
        return f"Changed {share((1.0 - lesson.values[0]) / 2.0)} of the answer{of}"


class AnswerEdit(Edit):
    """An edit of the answer that was shown: {"from": the answer, "to": the edited text}, or {"changed": a share}.

    It counts as a thumb of the share that was left: nothing changed is a thumb up, everything is a thumb down."""

    schema: ClassVar[Mapping[str, Any]] = {
        "anyOf": [
            {"type": "object", "properties": {each: {"type": "string"} for each in ("from", "to")}},
            {"type": "object", "properties": {"changed": {"type": "number", "minimum": 0, "maximum": 1}}},
        ]
    }
    hint = "the answer and its edited text, or the share of it that was changed"
    example: Any = {"from": "the answer", "to": "the edited answer"}  # noqa: RUF012  # nobody writes to it

    def parse(self, value: object, given: Mapping[str, object]) -> Feedback:
        """The number is 1 - 2 c, where c is the share that was changed."""
        item = given.get("item")
        names = () if item is None else (check_id("item", item),)
        if isinstance(value, Mapping) and set(value) == {"changed"}:
            share = check_number("edit: changed", value["changed"])
            if not 0.0 <= share <= 1.0:
                raise ValueError(f"edit: changed: expected a share from 0 to 1, got {describe(value['changed'])}")
        elif isinstance(value, Mapping) and set(value) == {"from", "to"}:
            share = share_changed(*(_text(f"edit: {name}", value[name]) for name in ("from", "to")))
        else:
            expected = 'expected {"from": the answer, "to": the edited text}, or {"changed": a share from 0 to 1}'
            raise ValueError(f"edit: {expected}, got {describe(value)}")
        if given.get("nearest") is not None:
            raise ValueError("nearest: expected none, as answers are not on offer, got it")
        return Feedback("thumb", names, (1.0 - 2.0 * share,))


def share_changed(before: str, after: str) -> float:
    """Return which share of a text was changed, 0 to 1: 1 - 2 M / T, where T counts the words of both texts and M those
    that stayed, in order: their longest common subsequence.

    `before` is the text, `after` the edited one. White space does not count. The length M comes from the bit-vector
    algorithm of Crochemore et al. (Information Processing Letters 80, 2001): a bit for each word of `before`, and a few
    operations on whole numbers for each word of `after`, whatever the texts are."""
    old, new = before.split(), after.split()
    places: dict[str, int] = {}
    for j, word in enumerate(old):
        places[word] = places.get(word, 0) | 1 << j
    every = (1 << len(old)) - 1
    left = every  # a 0 at each word of `before` at which the common subsequence grows
    for word in new:
        matched = left & places.get(word, 0)
        left = (left + matched | left - matched) & every
    total = len(old) + len(new)
    return 1.0 - 2.0 * (len(old) - left.bit_count()) / total if total else 0.0


def _text(name: str, value: object) -> str:
    text = check_text(name, value)
    if (words := len(text.split())) > LONGEST:
        told = 'for a longer text send {"changed": a share from 0 to 1}'
        raise ValueError(f"{name}: expected at most {LONGEST:,} words, got {words:,}; {told}")
    return text

"""The items with the highest predictions, and the first item of a person's last list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from heedful.loop import Loop
from heedful.loop.packing import LoggedDecision
from heedful.server.pages.cards import cards, title_of, with_titles
from heedful.server.pages.charts import Axis
from heedful.server.pages.formatting import describe_lesson

if TYPE_CHECKING:
    from heedful.loop.interactions.protocol import ItemPrediction

BEST = 10
"""The number of predictions that the page shows."""


def predictions(loop: Loop, names: Sequence[str], person: str | None) -> dict[str, ItemPrediction]:
    """Return the predictions for the items called `names`, {name: prediction}, highest first; {} if the loop predicts
    nothing.

    They are for `person`, or for a new person if it is None."""
    if not names or loop.projection.interaction.why_not_predicted(loop.projection.reading(None)[0].shared):
        return {}
    return loop.predict(names, person=person)


def summary(loop: Loop, axis: Axis, person: str | None) -> dict[str, object]:
    """Return the values that the template needs for the items with the highest predictions, on a scale drawn as `axis`,
    for `person`, or for a new person if it is None."""
    best = list(predictions(loop, list(loop.projection.catalogue.current), person).items())[:BEST]
    titles = {card.name: card.title for card in cards(loop, [name for name, _ in best])}
    state, view = loop.projection.reading(person)
    answers, number = loop.projection.interaction.own_answers(view), loop.projection.catalogue.number
    last = _last(loop, person)
    return {
        "axis": axis,
        "best": [(titles.get(name, name), prediction, answers.get(number(name), "")) for name, prediction in best],
        "unpredicted": loop.projection.interaction.why_not_predicted(state.shared) or "Nothing is on offer.",
        "last": "" if last is None or not last.record.shown else title_of(loop, last.names[last.record.shown[0]]),
        "decision": "" if last is None else last.id,
    }


# ---------------------------------------------------------------------------- why


def _last(loop: Loop, person: str | None) -> LoggedDecision | None:
    """Return the last decision for `person`; None if there is none."""
    log = loop.projection.log
    event = log.at(seq) if person is not None and (seq := log.newest("decision", person)) > 0 else None
    return None if event is None else loop.projection.find_decision(event.id)


def lesson_text(loop: Loop, seq: int) -> str:
    """Return what was said in the feedback with the sequence number `seq`, and by whom, in words."""
    lessons = with_titles(loop, loop.lessons(limit=1, before=seq + 1))
    return f"{lessons[0].person or 'Somebody'}: {describe_lesson(loop, lessons[0])}" if lessons else ""

"""The items with the highest predictions, and why a person was shown the first item of their last list."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from heedful.loop import Loop
from heedful.loop.interactions.telling import Line, Table
from heedful.loop.packing import LoggedDecision
from heedful.server.pages.cards import cards, title_of, with_titles
from heedful.server.pages.formatting import Moment, describe_lesson, moment

if TYPE_CHECKING:
    from heedful.loop.interactions.protocol import ItemPrediction

BEST = 10
"""The number of predictions that the page shows."""
ROWS = 5
"""The most rows of a table of an explanation."""


class Best(NamedTuple):
    """An item with a high prediction, and the marks for the prediction on a drawn scale."""

    title: str
    """the title of the item, or its name"""
    value: str
    """the prediction, as text"""
    spread: str
    """its standard deviation, as text; "" if the learner has none"""
    own: str
    """what the person said about the item: "said 4", "looked at"; "" if nothing"""
    at: float
    """the position of the prediction on the scale, in percent of its length"""
    left: float
    """the position of the prediction minus one standard deviation, in percent, at least 0"""
    width: float
    """the length from there to the prediction plus one standard deviation, in percent"""


class Why(NamedTuple):
    """The explanation of why one item stood first in the list that a person was last shown."""

    title: str
    """the title of the item, or its name"""
    at: Moment
    """when the list was shown"""
    lines: tuple[str, ...]
    """sentences of the explanation"""
    tables: tuple[Table, ...]
    """what its features contribute and which feedback moved its score, at most `ROWS` rows each"""
    each: str
    """the last part of the path of the page that explains every item of the list"""


class Summary(NamedTuple):
    """The items with the highest predictions for a person, drawn on a scale."""

    low: str
    """the lower end of the scale, as text"""
    high: str
    """the upper end of the scale, as text"""
    best: tuple[Best, ...]
    """the items with the highest predictions, highest first; () if there are none"""
    unpredicted: str
    """why there are no predictions, in words; "" if there are some"""
    last: str
    """the title of the first item of the person's last list; "" if there is none"""
    why: Why | None
    """why that item was first; None if the visitor did not ask for it"""


def predictions(loop: Loop, names: Sequence[str], person: str | None) -> dict[str, ItemPrediction]:
    """Return the predictions for the items called `names`, {name: prediction}, highest first; {} if the loop predicts
    nothing.

    They are for `person`, or for a new person if it is None."""
    if not names or loop.projection.interaction.why_not_predicted(loop.projection.reading(None)[0].shared):
        return {}
    return loop.predict(names, person=person)


def summary(loop: Loop, low: float, high: float, person: str | None, asked: bool = False) -> Summary:
    """Return the items with the highest predictions on the scale from `low` to `high`, for `person`, or for a new
    person if it is None.

    With `asked`, it includes why the first item of the person's last list was shown. This replays a part of the log,
    which takes a while."""
    found = list(predictions(loop, list(loop.projection.catalogue.current), person).items())[:BEST]
    titles = {card.name: card.title for card in cards(loop, [name for name, _ in found])}
    state, person_state = loop.projection.reading(person)
    own, best = loop.projection.interaction.own_answers(state.shared, person_state), []
    for name, (value, deviation) in found:
        spread = 0.0 if deviation is None else deviation
        start, end = max(value - spread, low), min(value + spread, high)
        best.append(
            Best(
                titles.get(name, name),
                format_number(value, high - low),
                "" if deviation is None else format_number(deviation, high - low),
                own.get(loop.projection.catalogue.number(name), ""),
                _share(value, low, high),
                _share(start, low, high),
                round(_share(end, low, high) - _share(start, low, high), 2),
            )
        )
    ends = [f"{each:g}".replace("-", "−") for each in (low, high)]
    last = _last(loop, person)
    first = "" if last is None or not last.record.shown else title_of(loop, last.names[last.record.shown[0]])
    why = _why(loop, last) if asked and last is not None else None
    unpredicted = loop.projection.interaction.why_not_predicted(state.shared)
    if not best and not unpredicted:
        unpredicted = "Nothing is on offer."
    return Summary(ends[0], ends[1], tuple(best), "" if best else unpredicted, first, why)


def format_number(value: float, span: float) -> str:
    """Return a number as text, with so many decimals that a scale of the length `span` has at least 40 steps."""
    if span > 1e6 or span < 1e-6:
        return f"{value:.3g}".replace("-", "−")
    places = min(max(math.ceil(math.log10(40.0 / span)), 0), 8)
    text = f"{value:.{places}f}"
    return text.lstrip("-") if float(text) == 0.0 else text.replace("-", "−")


def _share(value: float, low: float, high: float) -> float:
    """Return the position of `value` on the scale from `low` to `high`, in percent of the scale's length."""
    return round(100 * (value - low) / (high - low), 2)


# ---------------------------------------------------------------------------- why


def _last(loop: Loop, person: str | None) -> LoggedDecision | None:
    """Return the last decision for `person`; None if there is none."""
    log = loop.projection.log
    event = log.at(seq) if person is not None and (seq := log.newest("decision", person)) > 0 else None
    return None if event is None else loop.projection.find_decision(event.id)


def _why(loop: Loop, last: LoggedDecision) -> Why | None:
    """Return why the first item of the list `last` was shown; None if the person was forgotten meanwhile."""
    try:
        found = loop.explain(last.id)
    except LookupError:
        return None
    parts = loop.projection.interaction.tell_explanation(found)
    texts = {each.event: lesson_text(loop, each.seq) for each in found.lessons[:ROWS]}  # in place of ids of events
    lines = tuple([part.text for part in parts if isinstance(part, Line)])
    tables = tuple([
        part._replace(rows=tuple([tuple([texts.get(cell, cell) for cell in row]) for row in part.rows[:ROWS]]))
        for part in parts
        if isinstance(part, Table)
    ])  # fmt: skip
    return Why(
        title_of(loop, found.first), moment(last.since), lines, tables, f"why?{urlencode({'decision': last.id})}"
    )


def lesson_text(loop: Loop, seq: int) -> str:
    """Return what was said in the feedback with the sequence number `seq`, and by whom, in words."""
    found = with_titles(loop, loop.lessons(limit=1, before=seq + 1))
    return f"{found[0].person or 'Somebody'}: {describe_lesson(loop, found[0])}" if found else ""

"""What is predicted of the items on offer: the highest predictions, and for one person why something was shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from heedful.loop import Loop
from heedful.loop.interactions.telling import Line, Table
from heedful.loop.packing import LoggedDecision
from heedful.server.pages.cards import cards, title_of, with_titles
from heedful.server.pages.formatting import Moment, describe_lesson, moment

if TYPE_CHECKING:
    from heedful.loop.interactions.protocol import Predicted

BEST = 10
"""Items that are told of."""
ROWS = 5
"""Of a table of an explanation."""


class Best(NamedTuple):
    """An item with a high prediction."""

    title: str
    value: str
    spread: str
    """its standard deviation; "" where the learner does not say"""
    own: str
    """what the person said of it: "said 4", "looked at"; "" for nothing"""
    at: float
    """where it stands on the scale, in percent of its length; where one standard deviation less does, and how long it
    is from there to one more"""
    left: float
    width: float


class Why(NamedTuple):
    """Why something was shown first to a person."""

    title: str
    at: Moment
    lines: tuple[str, ...]
    tables: tuple[Table, ...]


class Summary(NamedTuple):
    """What the page tells."""

    low: str
    high: str
    best: tuple[Best, ...]
    unpredicted: str
    """why nothing is predicted, in words; "" where something is"""
    last: str
    """what came first in the last list that was shown to the person; "" where there is none"""
    why: Why | None
    """why that was; None where nobody asks"""


def predictions(loop: Loop, names: Sequence[str], person: str | None) -> dict[str, Predicted]:
    """What is predicted of items on offer, the highest first; {} where nothing is."""
    if not names or loop.projection.interaction.unpredicted(loop.projection.reading(None)[0].shared):
        return {}
    return loop.predict(names, person=person)


def summary(loop: Loop, low: float, high: float, person: str | None, asked: bool = False) -> Summary:
    """What there is to tell, of a person or of somebody new, on a scale. Where it is `asked` why something was shown,
    a part of the log is folded again."""
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
    unpredicted = loop.projection.interaction.unpredicted(state.shared)
    if not best and not unpredicted:
        unpredicted = "Nothing is on offer."
    return Summary(ends[0], ends[1], tuple(best), "" if best else unpredicted, first, why)


def format_number(value: float, span: float) -> str:
    """A number on a scale of this length, to about 40 steps."""
    if span > 1e6 or span < 1e-6:
        return f"{value:.3g}".replace("-", "−")
    places = min(max(math.ceil(math.log10(40.0 / span)), 0), 8)
    text = f"{value:.{places}f}"
    return text.lstrip("-") if float(text) == 0.0 else text.replace("-", "−")


def _share(value: float, low: float, high: float) -> float:
    return round(100 * (value - low) / (high - low), 2)


# ---------------------------------------------------------------------------- why


def _last(loop: Loop, person: str | None) -> LoggedDecision | None:
    """The last list that was shown to a person; None where there is none."""
    log = loop.projection.log
    event = log.at(seq) if person is not None and (seq := log.newest("decision", person)) > 0 else None
    return None if event is None else loop.projection.known(event.id)


def _why(loop: Loop, last: LoggedDecision) -> Why | None:
    """Why the first of a list was shown, as its interaction tells it; None where the person was forgotten meanwhile."""
    try:
        found = loop.explain(last.id)
    except LookupError:
        return None
    parts = loop.projection.interaction.tell_explanation(found)
    lines = tuple([part.text for part in parts if isinstance(part, Line)])
    tables = [part._replace(rows=part.rows[:ROWS]) for part in parts if isinstance(part, Table)]
    named = {each.event: _lesson(loop, each.seq) for each in found.lessons[:ROWS]}
    told = [
        table._replace(rows=tuple([tuple([named.get(cell, cell) for cell in row]) for row in table.rows]))
        for table in tables
    ]
    return Why(title_of(loop, found.first), moment(last.since), lines, tuple(told))


def _lesson(loop: Loop, seq: int) -> str:
    """What was said in one piece of feedback, and by whom."""
    found = with_titles(loop, loop.lessons(limit=1, before=seq + 1))
    return f"{found[0].person or 'Somebody'}: {describe_lesson(loop, found[0])}" if found else ""

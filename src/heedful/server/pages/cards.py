"""Items as a person sees them: a title and a few attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from heedful.loop import Loop
from heedful.loop.history import LessonTold
from heedful.server.pages.feature_phrases import label, short

FACTS = 6
_TITLES = ("title", "name", "label")


class Fact(NamedTuple):
    """One attribute of an item as its card shows it: a label and a value, both texts."""

    label: str
    value: str

    @property
    def long(self) -> bool:
        """Whether it wants a line of its own."""
        return len(self.value) > 40


class Card(NamedTuple):
    """One item."""

    name: str
    """by which the loop knows it"""
    title: str
    facts: tuple[Fact, ...]


def cards(loop: Loop, names: Sequence[str]) -> list[Card]:
    """Items on offer, in this order; those that no longer are, left out."""
    current = loop.projection.catalogue.current
    versions = {name: current[name] for name in names if name in current}
    rows = {
        event.seq: msgspec.json.decode(event.payload) for event in loop.projection.log.many(list(versions.values()))
    }
    return [_card(loop, name, rows.get(version, {})) for name, version in versions.items()]


def title_of(loop: Loop, name: str) -> str:
    """What an item is called on its card; its name where it is no longer on offer."""
    return next((card.title for card in cards(loop, [name])), name)


def with_titles(loop: Loop, lessons: Sequence[LessonTold]) -> list[LessonTold]:
    """Lessons with the titles of items that are on offer in place of their names, as their cards have them."""
    names = dict.fromkeys(name for told in lessons for name in (*told.chosen, *told.over))
    titles = {card.name: card.title for card in cards(loop, list(names))}

    def titles_of(named: Sequence[str]) -> tuple[str, ...]:
        return tuple([titles.get(name, name) for name in named])

    return [told._replace(chosen=titles_of(told.chosen), over=titles_of(told.over)) for told in lessons]


def _card(loop: Loop, name: str, row: Mapping[str, Any]) -> Card:
    encoding = loop.manifest.encoding
    head = next((key for key in row if key.lower() in _TITLES and key != encoding.identifier), None)
    title = row[head] if head is not None and isinstance(row[head], str) and row[head].strip() else name
    first = [column.name for column in encoding.columns if column.kind != "ignored"]
    keys = [key for key in [*first, *row] if key in row and key not in (encoding.identifier, head)]
    facts = [Fact(short(label(key)), told) for key in dict.fromkeys(keys) if (told := value(key, row[key])) is not None]
    return Card(name, short(title), tuple(facts[:FACTS]))


def value(column: str, given: Any) -> str | None:
    """An attribute's value as text; None where it cannot be told in a word."""
    if isinstance(given, bool):
        return "yes" if given else "no"
    if isinstance(given, int):
        # The years of a catalogue are no amounts.
        return str(given) if "year" in column.lower() else f"{given:,}"
    if isinstance(given, float):
        return f"{given:,.0f}" if abs(given) >= 1000 else f"{given:,.4g}"
    if given is None or given == "":
        return "–"
    if isinstance(given, str):
        return short(given)
    return None

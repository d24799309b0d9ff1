"""Cards: the boxes in which a page shows items, with a title and a few attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from heedful.loop import Loop
from heedful.results.history import LessonTold
from heedful.studies.study import Study, study_of
from heedful.studies.things import Fact, label, labels, rows_of, short, value

FACTS = 6
"""The most attributes that a card shows."""
_TITLES = ("title", "name", "label")


class ItemCard(NamedTuple):
    """An item as a page shows it: a box with its title and some attributes."""

    name: str
    """the item's name in the loop"""
    title: str
    """in a study what people see of it in a line; else the item's title among its attributes, or its name"""
    facts: tuple[Fact, ...]
    """some of its attributes"""


def cards(loop: Loop, names: Sequence[str]) -> list[ItemCard]:
    """Return the cards of the items called `names`, in this order, without those that are no longer on offer."""
    called = {} if study_of(loop.path) == Study() else labels(loop, names)
    found = [_card(loop, name, row) for name, row in rows_of(loop, names).items()]
    return [card._replace(title=called.get(card.name, card.title)) for card in found]


def title_of(loop: Loop, name: str) -> str:
    """Return the title on the card of the item `name`; its name if it is no longer on offer."""
    return next((card.title for card in cards(loop, [name])), name)


def with_titles(loop: Loop, lessons: Sequence[LessonTold]) -> list[LessonTold]:
    """Return `lessons` with the items' titles in place of their names, if they are still on offer."""
    names = dict.fromkeys(name for lesson in lessons for name in (*lesson.chosen, *lesson.over))
    titles = {card.name: card.title for card in cards(loop, list(names))}

    def titles_of(named: Sequence[str]) -> tuple[str, ...]:
        return tuple([titles.get(name, name) for name in named])

    return [lesson._replace(chosen=titles_of(lesson.chosen), over=titles_of(lesson.over)) for lesson in lessons]


def _card(loop: Loop, name: str, row: Mapping[str, object]) -> ItemCard:
    encoding = loop.manifest.encoding
    head = next((key for key in row if key.lower() in _TITLES and key != encoding.identifier), None)
    text = None if head is None else row[head]
    title = text if isinstance(text, str) and text.strip() else name
    first = [column.name for column in encoding.columns if column.kind != "ignored"]
    keys = [key for key in [*first, *row] if key in row and key not in (encoding.identifier, head)]
    facts = [Fact(short(label(key)), text) for key in dict.fromkeys(keys) if (text := value(key, row[key])) is not None]
    return ItemCard(name, short(title), tuple(facts[:FACTS]))

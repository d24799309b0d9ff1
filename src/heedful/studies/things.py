"""What people see of the items of a loop: a heading, a text, a picture or attributes; and that in a line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from heedful.loop import Loop
from heedful.results.explanation import Why
from heedful.studies.study import Study, study_of

LONGEST = 140
"""The most characters of a text on a card."""
LINE = 80
"""The most characters of what people saw of an item, where it stands in a line."""


class Fact(NamedTuple):
    """An attribute of an item on its card: a label and a value, both as text."""

    label: str
    """the name of the attribute, with blanks in place of underscores"""
    value: str
    """its value as text"""

    @property
    def long(self) -> bool:
        """True if the value is so long that it needs a line of its own."""
        return len(self.value) > 40


class Thing(NamedTuple):
    """An item as the people of a study see it: a heading, a text, a picture or attributes."""

    name: str
    """its name in the loop"""
    title: str
    """the heading; "" if its name is not to be shown"""
    text: str
    """its text, if the study compares texts"""
    picture: str
    """the number of its picture; "" if it has none"""
    facts: tuple[Fact, ...]
    """its attributes"""


def rows_of(loop: Loop, names: Sequence[str]) -> dict[str, dict[str, object]]:
    """Return the attributes of the items called `names`, by name and in this order, without items no longer on
    offer."""
    current = loop.projection.catalogue.current
    versions = {name: current[name] for name in names if name in current}
    events = loop.projection.log.many(list(versions.values()))
    rows = {event.seq: msgspec.json.decode(event.payload) for event in events}
    return {name: rows.get(version, {}) for name, version in versions.items()}


def things(loop: Loop, study: Study, names: Sequence[str]) -> list[Thing]:
    """Return the items called `names` as people see them, without those that are no longer on offer."""
    return [_make_thing(loop, study, name, row) for name, row in rows_of(loop, names).items()]


def _make_thing(loop: Loop, study: Study, name: str, row: Mapping[str, object]) -> Thing:
    """Return the item `name`, with the attributes `row`, as people see it in this study."""
    if study.kind == "answers":
        return Thing(name, name, "", "", ())
    if study.kind == "pictures":
        return Thing(name, "", "", str(row.get("picture", "")), ())
    if study.kind == "texts":
        return Thing(name, "", str(row.get("text", "")), "", ())
    identifier = loop.manifest.encoding.identifier
    keys = [key for key in study.show or row if key != identifier]
    hidden = bool(study.show) and identifier not in study.show
    facts = [(key, text) for key in keys if (text := _text_of(key, row.get(key))) and text != "–"]
    title = "" if hidden or (identifier == "row" and facts) else name
    if not title and len(facts) == 1:  # a column of texts
        return Thing(name, "", facts[0][1], "", ())
    return Thing(name, title, "", "", tuple([Fact(short(label(key)), text) for key, text in facts]))


def labels(loop: Loop, names: Sequence[str]) -> dict[str, str]:
    """Return in a line what people of the study `loop` see of each item called `names`, by name.

    That is its heading, the beginning of its text, or its attributes. Only of pictures, and where people see the same
    of two items, its name is told, too. An item that is no longer on offer has its name."""
    lines = {thing.name: _line(thing) for thing in things(loop, study_of(loop.path), names)}
    times = Counter(lines.values())
    return {name: name if name not in lines else _labelled(lines[name], name, times[lines[name]] > 1) for name in names}


def as_seen(loop: Loop, why: Why) -> Why:
    """Return an explanation with what people of the study `loop` see of its items in place of their names."""
    called = labels(loop, [name for name in (why.item, why.next) if name is not None])
    return why._replace(item=called[why.item], next=called.get(why.next or ""))


def _line(thing: Thing) -> str:
    facts = [fact.value if len(thing.facts) == 1 else f"{fact.label}: {fact.value}" for fact in thing.facts]
    line = thing.title or " ".join(thing.text.split()) or ", ".join(facts) or thing.name
    return line if len(line) <= LINE or line == thing.name else f"{line[: LINE - 3].rstrip()} …"


def _labelled(line: str, name: str, repeated: bool) -> str:
    return f"{line} ({name})" if repeated and line != name else line


def _text_of(key: str, cell: object) -> str | None:
    """Return the value `cell` of the attribute `key` as a text of any length; None if it is a list or an object."""
    return cell if isinstance(cell, str) and cell.strip() else value(key, cell)


def value(column: str, cell: object) -> str | None:
    """Return the value `cell` of an attribute as a short text; None if it is a list or an object.

    `column` is the attribute's name. If that contains "year", a number has no comma for thousands."""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        # A year is no amount: it has no comma for thousands.
        return str(cell) if "year" in column.lower() else f"{cell:,}"
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:,.4g}"
    if cell is None or cell == "":
        return "–"
    if isinstance(cell, str):
        return short(cell)
    return None


def short(text: str) -> str:
    """Return a text, cut to `LONGEST` characters."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST].rstrip()}…"


def label(name: str) -> str:
    """Return the name of a column as people read it: with blanks in place of underscores."""
    return " ".join(name.replace("_", " ").split()) or name

"""Fields that several forms and queries have: the person, and lists of items."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from heedful.core.validation import describe
from heedful.loop import Loop, records
from heedful.server.pages.page import Visit

MOST = 100
"""The most items that a form may list."""


def person_of(fields: Mapping[str, str]) -> str | None:
    """Return the person named in the fields `fields` of a form or a query; None if nobody is.

    Raise ValueError if the name is not valid."""
    person = fields.get("person", "").strip()
    return records.check_id("person", person) if person else None


def wants_actions(visit: Visit) -> bool:
    """Return whether the visitor asked for buttons for actions, such as "looked at", on the cards."""
    return bool((visit.form if visit.request.method == "POST" else visit.query).get("actions"))


def names_of(field: str, text: str, least: int = 1) -> list[str]:
    """Return the names in `text`, a JSON list of `least` to MOST different names.

    Raise ValueError, beginning with `field`, if it is anything else."""
    try:
        names = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        raise ValueError(f"{field}: expected a list of names as JSON, got {describe(text)}") from None
    if isinstance(names, list) and len(names) > MOST:
        raise ValueError(f"{field}: expected at most {MOST} names, got {len(names)}")
    return list(records.distinct(field, names, least))


def items_on_offer(loop: Loop, text: str, field: str = "hand") -> list[str]:
    """Return the names of items on offer in `text`, a JSON list of 1 to MOST different names; other names are left out.

    Raise ValueError, beginning with `field`, if `text` is no such list."""
    current = loop.projection.catalogue.current
    return [name for name in names_of(field, text) if name in current]

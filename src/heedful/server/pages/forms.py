"""What forms and queries say of a hand: whose it is, which items are in it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from heedful.core.validation import describe
from heedful.loop import Loop, records
from heedful.server.pages.page import Visit

MOST = 100
"""How many items a page may say it has shown."""


def person_of(given: Mapping[str, str]) -> str | None:
    """The person that a form or a query names; None where it names nobody. ValueError where that is no name."""
    person = given.get("person", "").strip()
    return records.check_id("person", person) if person else None


def acting(visit: Visit) -> bool:
    """Whether a page of ratings shall have buttons for the usual actions, too."""
    return bool((visit.form if visit.request.method == "POST" else visit.query).get("actions"))


def names_of(field: str, text: str, least: int = 1) -> list[str]:
    """A JSON list of names. ValueError where it is none, or too long a one."""
    try:
        names = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        raise ValueError(f"{field}: expected a list of names as JSON, got {describe(text)}") from None
    if isinstance(names, list) and len(names) > MOST:
        raise ValueError(f"{field}: expected at most {MOST} names, got {len(names)}")
    return list(records.distinct(field, names, least))


def on_offer(loop: Loop, text: str, field: str = "hand") -> list[str]:
    """The items of a hand that are still there."""
    current = loop.projection.catalogue.current
    return [name for name in names_of(field, text) if name in current]

"""An event of the log: one row, with a checksum that finds a flipped bit."""

from __future__ import annotations

import time
import zlib
from typing import NamedTuple

from heedful.storage import Damaged


class Event(NamedTuple):
    """One event, a row of the log: an item, a decision, feedback, an undo, ..."""

    seq: int
    """its sequence number, the place in the order of the log: 1, 2, ...; 0 before it is appended"""
    kind: str
    """what sort of event it is: "loop", "item", "decision", "activate", "feedback", "undo", "rollback", "experiment",
    "stop", "promote", "style", "forget", "erased" or "export\""""
    id: str
    """the caller's event id; no two events of a kind have the same"""
    time: int
    """when it happened, in microseconds since 1970, UTC"""
    subject: str | None
    """the person of a decision or of what was said by hand about their style, or the name of an item; None for other
    kinds, and for nobody in particular"""
    target: int | None
    """the sequence number of the event that this one is about: of the decision that feedback answers, of the feedback
    that an undo takes back; None if there is none"""
    version: int
    """the version of the model when the event came: the sequence number of the last event that the model was made of"""
    payload: str
    """what happened, as JSON"""
    arrays: bytes | None = None
    """float32 features, little-endian, that belong to it; None if there are none"""


COLUMNS = ", ".join((*Event._fields, "checked"))
"""The columns of a row in SQL: those of an event, then its checksum."""
WIDTH = len(Event._fields) + 1
"""the number of those columns"""


def checksum(event: Event) -> int:
    """Return the CRC-32 of all fields of `event`, which the table of events keeps in its last column."""
    return zlib.crc32(event.arrays or b"", zlib.crc32(repr(event[:-1]).encode("utf-8", "surrogatepass")))


def to_event(row: tuple[object, ...], path: object) -> Event:
    """Return a row of the table of events as an `Event`; its columns are in the order of `COLUMNS`.

    `path` names the log in error messages. Raise Damaged if the row's checksum does not fit."""
    event = Event._make(row[:-1])
    if checksum(event) != row[-1]:
        told = "its content was changed since it was written: the log is damaged, restore a back-up"
        raise Damaged(f"{path}: event {event.seq}: {told}")
    return event


def now() -> int:
    """Return the current time in microseconds since 1970, UTC, by this machine's clock.

    Events are ordered by their sequence numbers, never by time."""
    return time.time_ns() // 1000

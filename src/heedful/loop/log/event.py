"""An event of the log: one row, with a checksum that finds a flipped bit."""

from __future__ import annotations

import time
import zlib
from typing import Any, NamedTuple

from heedful.storage import Damaged


class Event(NamedTuple):
    """A row of the log. `seq` is 0 before it is appended; times are microseconds since 1970, UTC."""

    seq: int
    kind: str
    id: str
    time: int
    subject: str | None
    target: int | None
    version: int
    payload: str
    arrays: bytes | None = None


COLUMNS = ", ".join((*Event._fields, "checked"))
"""The columns of a row: those of an event, then its checksum."""
WIDTH = len(Event._fields) + 1


def checksum(event: Event) -> int:
    """Return the CRC-32 of all fields of an event."""
    return zlib.crc32(event.arrays or b"", zlib.crc32(repr(event[:-1]).encode("utf-8", "surrogatepass")))


def to_event(row: tuple[Any, ...], path: object) -> Event:
    """Return a row of the log `path` as an event. Raise Damaged if it is not as it was written."""
    event = Event._make(row[:-1])
    if checksum(event) != row[-1]:
        told = "its content was changed since it was written: the log is damaged, restore a back-up"
        raise Damaged(f"{path}: event {event.seq}: {told}")
    return event


def now() -> int:
    """Return the current time in microseconds since 1970, UTC. Events are ordered by their sequence numbers, never by
    time."""
    return time.time_ns() // 1000

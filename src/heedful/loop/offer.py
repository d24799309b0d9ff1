"""Items are put on offer and withdrawn: the events of that."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from heedful.features.encoding import Features
from heedful.loop import records
from heedful.loop.history import History
from heedful.loop.log import Event, now
from heedful.loop.writer import PendingEvent, Writer
from heedful.results.answers import Put


def put_items(writer: Writer, rows: Sequence[Mapping[str, object]], encoded: Features) -> Put:
    """Put items on offer that were checked: their attributes `rows`, and `encoded` (n, N) as features. An item that is
    on offer with the same attributes is not put again.

    Raise ValueError, naming the row, for a name or attributes that cannot be kept; nothing is put then."""
    pending, latest, before = list[PendingEvent](), dict[str, str](), dict[str, int]()
    offered, encoding = writer.catalogue.current, writer.manifest.encoding
    changed = dict[str, None]()
    for i, row in enumerate(rows):
        try:
            name = records.check_id(encoding.identifier or "id", encoding.name_of(row))
            payload = writer.manifest.item_payload(row)
        except ValueError as error:
            raise ValueError(f"row {i + 1}: {error}") from None
        arrays = encoded[i].astype("<f4").tobytes()
        # The digest makes the id: the same version of an item is the same event, whichever caller sends it again.
        digest = hashlib.blake2b(f"{name}\0{payload}".encode() + arrays, digest_size=12).hexdigest()
        if _is_current(writer, name, latest.get(name), digest):
            continue
        if name in offered:
            changed[name] = None
        latest[name] = digest
        # What it follows is in the id as well: an item may change, and change back.
        before[name] = (before[name] if name in before else writer.log.newest("item", name)) + 1
        event_id = f"{digest}-{before[name]}"
        pending.append(PendingEvent(Event(0, "item", event_id, now(), name, None, 0, payload, arrays)))
    writer.submit(pending)
    return Put(len(pending), tuple(changed))


def offered(history: History) -> tuple[list[Mapping[str, Any]], Features]:
    """Return (attributes, features (n, N)) of the items that are on offer, in the order in which they were put there.

    The features are those in the log, as it may not have all that they were made from."""
    versions = [version for _, version in history.catalogue.on_offer()]
    events = {event.seq: event for event in history.log.many(versions)}
    rows = [msgspec.json.decode(events[version].payload) for version in versions]
    encoded = b"".join(events[version].arrays or b"" for version in versions)
    return rows, np.frombuffer(encoded, "<f4").reshape(len(rows), history.manifest.encoding.size)


def _is_current(history: History, name: str, latest: str | None, digest: str) -> bool:
    if latest is not None:
        return latest == digest
    version = history.catalogue.current.get(name)
    event = history.log.at(version) if version is not None else None
    return event is not None and event.id.startswith(f"{digest}-")


def withdraw(writer: Writer, name: str | int) -> bool:
    """Take the item `name` off offer; return whether it was on offer."""
    writer.catch_up()
    version = writer.catalogue.current.get(records.check_id("name", name))
    if version is None:
        return False
    writer.submit([PendingEvent(Event(0, "item", f"withdraw-{version}", now(), str(name), None, 0, "{}"))])
    return True

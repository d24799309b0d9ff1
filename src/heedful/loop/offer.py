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
from heedful.loop.pending import PendingEvent
from heedful.loop.projection import Projection
from heedful.loop.settings import Manifest
from heedful.results.answers import Put


def put_items(projection: Projection, rows: Sequence[Mapping[str, object]], encoded: Features) -> Put:
    """Put items on offer that were checked: their attributes `rows`, and `encoded` (n, N) as features. An item that is
    on offer with the same attributes is not put again.

    Raise ValueError, naming the row, for a name or attributes that cannot be kept; nothing is put then."""
    events = item_events(projection.manifest, rows, encoded, projection)
    names = dict.fromkeys(event.subject for event in events if event.subject is not None)
    changed = tuple(name for name in names if name in projection.catalogue.current)
    projection.submit([PendingEvent(event) for event in events])
    return Put(len(events), changed)


def item_events(
    manifest: Manifest, rows: Sequence[Mapping[str, object]], encoded: Features, history: History | None = None
) -> list[Event]:
    """Return the events, without numbers, that put items on offer in a loop with this `manifest` and `history`, None
    for a new one; the other arguments and errors are those of `put_items`."""
    events, latest, before = list[Event](), dict[str, str](), dict[str, int]()
    encoding = manifest.encoding
    for i, row in enumerate(rows):
        try:
            name = records.check_id(encoding.identifier or "id", encoding.name_of(row))
            payload = manifest.item_payload(row)
        except ValueError as error:
            raise ValueError(f"row {i + 1}: {error}") from None
        arrays = encoded[i].astype("<f4").tobytes()
        # The digest makes the id: the same version of an item is the same event, whichever caller sends it again.
        digest = hashlib.blake2b(f"{name}\0{payload}".encode() + arrays, digest_size=12).hexdigest()
        if (latest.get(name) or _digest(history, name)) == digest:
            continue
        if name not in latest:
            before[name] = 0 if history is None else history.log.newest("item", name)
        latest[name] = digest
        # What it follows is in the id as well: an item may change, and change back.
        before[name] += 1
        events.append(Event(0, "item", f"{digest}-{before[name]}", now(), name, None, 0, payload, arrays))
    return events


def _digest(history: History | None, name: str) -> str:
    """Return the digest in the id of the event that put the item `name` on offer; "" if it is not on offer."""
    version = None if history is None else history.catalogue.current.get(name)
    event = None if history is None or version is None else history.log.at(version)
    return "" if event is None else event.id.partition("-")[0]


def offered(history: History) -> tuple[list[Mapping[str, Any]], Features]:
    """Return (attributes, features (n, N)) of the items that are on offer, in the order in which they were put there.

    The features are those in the log, as it may not have all that they were made from."""
    versions = [version for _, version in history.catalogue.on_offer()]
    events = {event.seq: event for event in history.log.many(versions)}
    rows = [msgspec.json.decode(events[version].payload) for version in versions]
    encoded = b"".join(events[version].arrays or b"" for version in versions)
    return rows, np.frombuffer(encoded, "<f4").reshape(len(rows), history.manifest.encoding.size)


def withdraw(projection: Projection, name: str | int) -> bool:
    """Take the item `name` off offer; return whether it was on offer."""
    projection.catch_up()
    version = projection.catalogue.current.get(records.check_id("name", name))
    if version is None:
        return False
    projection.submit([PendingEvent(Event(0, "item", f"withdraw-{version}", now(), str(name), None, 0, "{}"))])
    return True

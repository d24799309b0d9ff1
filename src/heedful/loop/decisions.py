"""The decisions of a loop by id: the newest ones in memory, the others read from the log."""

from __future__ import annotations

import threading
from collections import OrderedDict
from sys import getsizeof

import msgspec
from msgspec.structs import astuple

from heedful.loop.catalogue import Catalogue
from heedful.loop.log import Event, Log
from heedful.loop.packing import LoggedDecision, unpack
from heedful.storage import Closed, Damaged

CACHED, HELD = 50_000, 128_000_000
"""The most decisions kept in memory, and the most bytes they may take there.

Older ones are read from the log when feedback on them comes.
"""
ENTRY = 400
"""About how many bytes a decision in memory takes in addition to its fields."""


class CachedDecision(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A decision kept in memory, packed as in the log (see `heedful.loop.packing`), so that feedback on it needs no
    read of the log.

    There are many of them, so none holds anything that the garbage collector would have to look through. The fields
    are those of its `Event`."""

    seq: int
    time: int
    person: str | None
    """whom it was for"""
    version: int
    """the version of the model that made it"""
    payload: str
    arrays: bytes | None
    size: int
    """about how many bytes it takes in memory"""


class Decisions:
    """The decisions in a log, with the names of their candidates at that time. Any number of threads may use it."""

    def __init__(self, log: Log, catalogue: Catalogue) -> None:
        """Read the decisions in `log`, of items in `catalogue`."""
        self._log, self._catalogue = log, catalogue
        # An ordinary dict forgets its first entries slowly: each time it looks past all that were forgotten before.
        self.cached = OrderedDict[str, CachedDecision]()
        """those in memory, by id, the oldest first"""
        self.size = 0
        """about how many bytes these take"""
        self._lock = threading.Lock()

    def find(self, id: str) -> LoggedDecision | None:
        """Return the decision with this `id`; None if there is none."""
        cached = self.cached.get(id)
        if cached is not None:
            seq, time, person, version, payload, arrays, _ = astuple(cached)
            return self.read(Event(seq, "decision", id, time, person, None, version, payload, arrays))
        event = self._log.find("decision", id)
        if event is None:
            return None
        self.remember(event)
        return self.read(event)

    def read(self, event: Event) -> LoggedDecision:
        """Return the decision in an `event` of kind "decision". Raise Damaged if it is not as it was written."""
        seq, _, id, time, person, _, version, payload, arrays = event
        try:
            record, came = unpack(payload, arrays)
            if record.catalogue:
                _, names, items, rows = self._catalogue.at_version(record.catalogue)
                record = msgspec.structs.replace(record, items=items, catalogue=0)
                return LoggedDecision(id, seq, time, person, record, came, names, version, rows)
            if not record.items:
                return LoggedDecision(id, seq, time, person, record, came, record.names, version)
            names, rows = self._catalogue.called_at(record.items)
            return LoggedDecision(id, seq, time, person, record, came, names, version, rows)
        except (Closed, Damaged):
            raise
        except (KeyError, ValueError) as error:
            told = f"expected a decision as it was written, got another: {type(error).__name__}: {error}"
            raise Damaged(f"{self._log.path}: event {seq}: {told}: restore a back-up") from None

    def remember(self, event: Event) -> None:
        """Keep the decision in `event` in memory, and drop the oldest ones if there are too many."""
        seq, _, id, time, person, _, version, payload, arrays = event
        size = ENTRY + sum([getsizeof(part) for part in (id, person, payload, arrays)])
        with self._lock:
            before = self.cached.pop(id, None)
            self.size += size - (0 if before is None else before.size)
            self.cached[id] = CachedDecision(seq, time, person, version, payload, arrays, size)
            while len(self.cached) > CACHED or self.size > HELD:
                self.size -= self.cached.popitem(last=False)[1].size

    def clear(self) -> None:
        """Drop what is in memory."""
        self.cached, self.size = OrderedDict(), 0

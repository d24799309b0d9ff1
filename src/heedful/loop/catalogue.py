"""The items of a loop, now and at any earlier time: names, versions, encoded features.

The version of an item is the sequence number of the event that put it on offer with these attributes. A decision refers
to versions, so that replaying the log sees the candidates as they were when they were shown. The catalogue as a whole
has versions too: the sequence number of an item event identifies which items were on offer right after it, and in which
order.

A row is the index of one version in the catalogue's array of features; it is valid in this process only. A number
counts items 0, 1, ... by first appearance; learners that know items by number, not by features, use it.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from heedful.features.encoding import Features
from heedful.loop.log import Event, Log

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


BLOCK = 512
"""How many events are looked at for items when one is missing: most are put on offer together."""
CATALOGUES = 4
"""How many of the lists of all items on offer at some version (`CatalogueVersion`) are kept in memory."""


class CatalogueVersion(NamedTuple):
    """The items that were on offer at one point of the log: right after an item was put on offer, changed or withdrawn.

    `names`, `items` and `rows` have one entry per item, in the order in which items were put on offer; an item that was
    withdrawn and put back counts from its return."""

    version: int
    """the sequence number of that item event; 0 before there was any"""
    names: tuple[str, ...]
    """the name of each item"""
    items: tuple[int, ...]
    """the version of each item: the sequence number of the event that put it on offer"""
    rows: Ints
    """the row of each item in the catalogue's array of features"""


class _History:
    """The events of a log that put items on offer or withdraw them, in order: the sequence number of each (`seqs`), the
    number of its item (`ids`), and whether it puts the item on offer (`there`)."""

    def __init__(self) -> None:
        self.seqs, self.ids, self.there = array("q"), array("q"), bytearray()
        self.numbers: dict[str, int] = {}  # name -> its number, by first appearance
        self.names: list[str] = []

    @property
    def version(self) -> int:
        return self.seqs[-1] if self.seqs else 0

    def number(self, name: str) -> int:
        number = self.numbers.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
        return number

    def add(self, seq: int, name: str, there: bool) -> None:
        self.seqs.append(seq)
        self.ids.append(self.number(name))
        self.there.append(there)

    def on_offer(self, version: int) -> tuple[list[str], list[int]]:
        """Return (names, versions) of the items that were on offer right after the event with sequence number
        `version`.

        The version of an item is the sequence number of the event that put it on offer."""
        seqs = np.array(self.seqs, np.int64)
        end = int(np.searchsorted(seqs, version, "right"))
        ids, there, at = np.array(self.ids, np.int64)[:end], np.array(self.there, np.bool_)[:end], np.arange(end)
        # Where an index comes more than once the last value stays: that of the last event, or, backwards, the first.
        last, gone, first = (np.full(len(self.names), -1, np.int64) for _ in range(3))
        last[ids] = at
        gone[ids[~there]] = at[~there]
        since = at[at > gone[ids]][::-1]
        first[ids[since]] = since
        left = np.flatnonzero(last > gone)
        left = left[np.argsort(first[left])]
        return [self.names[number] for number in left.tolist()], seqs[last[left]].tolist()


class Catalogue:
    """The items of a log by name and by version, read from the log when first needed and kept in memory; thread-safe.

    The version of an item is the sequence number of the event that put it on offer. Features of all versions are rows
    of one array; a row is valid as long as the catalogue lives."""

    def __init__(self, log: Log, n_features: int, apart: bool = False) -> None:
        """Serve the items of `log`, each encoded as `n_features` numbers.

        With `apart`, an item whose features change counts as another item in `number`."""
        self._log = log
        self._apart = apart
        self._n = n_features
        self._history: _History | None = None
        self._current: dict[str, int] | None = None
        self._catalogues: dict[int, CatalogueVersion] = {}
        self._numbering: dict[tuple[str, bytes], int] | None = None
        self._number_at: dict[int, int] = {}  # row -> number
        self._place: dict[int, int] = {}  # version -> row of the features
        self._names: list[str] = []  # of the versions, by row
        self._versions: list[int] = []
        self._standing: dict[str, int] = {}  # name -> row, of what is on offer and has been read
        self._features = np.zeros((16, n_features + 1), np.float32)  # the last column is for the caller's score: 0
        self._lock = threading.RLock()

    def look_again(self) -> None:
        """Drop the cached lists of items on offer, so that the next call reads them from the log again.

        Cached features stay, since those of a version never change."""
        with self._lock:
            self._history = self._current = self._numbering = None
            self._catalogues, self._standing = {}, {}

    def on_offer(self) -> list[tuple[str, int]]:
        """Return (name, version) of every item on offer, in the order in which they were put on offer.

        The version is the sequence number of the event that did so."""
        with self._lock:
            return list(self.current.items())

    @property
    def current(self) -> dict[str, int]:
        """the version of every item on offer (the sequence number of the event that put it there), by name, in the
        order in which they were put on offer"""
        with self._lock:
            if self._current is None:
                history = self._came_and_went()
                self._current = dict(zip(*history.on_offer(history.version)))
            return self._current

    @property
    def count(self) -> int | None:
        """how many items are on offer; None if that would have to be read from the log first"""
        current = self._current
        return None if current is None else len(current)

    def _came_and_went(self) -> _History:
        if self._history is None:
            history = _History()
            for seq, name, there in self._log.subjects("item"):
                history.add(seq, name, there)
            self._history = history
        return self._history

    def at_version(self, version: int | None = None) -> CatalogueVersion:
        """Return all items that were on offer right after the item event `version` (a sequence number); None for
        now."""
        with self._lock:
            history = self._came_and_went()
            version = history.version if version is None else version
            found = self._catalogues.pop(version, None)
            if found is None:
                names, items = history.on_offer(version)
                found = CatalogueVersion(version, tuple(names), tuple(items), self.rows(items))
            while len(self._catalogues) >= CATALOGUES:
                self._catalogues.pop(next(iter(self._catalogues)))
            self._catalogues[version] = found
            return found

    def number(self, name: str, features: bytes = b"") -> int:
        """Return the number by which learners know an item: 0, 1, ... in the order in which item names first came in
        the log.

        If the catalogue was made with `apart`, numbers count pairs of `name` and `features` (float32 bytes) instead. A
        new name or pair gets the next number, so callers have to pass item events in the order of the log."""
        with self._lock:
            if not self._apart:
                return self._came_and_went().number(name)
            if self._numbering is None:
                there = [e for e in self._log.events(kinds=["item"]) if e.arrays is not None]
                keys = dict.fromkeys((event.subject or "", event.arrays or b"") for event in there)
                self._numbering = {key: i for i, key in enumerate(keys)}
            return self._numbering.setdefault((name, features), len(self._numbering))

    def _numbers_apart(self, rows: Ints) -> Ints:
        """Return the numbers (m,) by which learners know the items with these `rows` (m,), one for each set of features
        of an item."""
        there = self._number_at
        for row in rows.tolist():
            if row not in there:
                there[row] = self.number(self._names[row], self._features[row, :-1].astype("<f4").tobytes())
        return np.array([there[row] for row in rows.tolist()], np.int64)

    def items_at(self, rows: Ints) -> Ints:
        """Return the numbers (m,) by which learners know the items with these `rows` (m,), counted as in `number`.

        A row is the index of a version of an item in the catalogue's array of features."""
        if self._apart:
            return self._numbers_apart(rows)
        with self._lock:
            history, names = self._came_and_went(), self.names_at(rows.tolist())
            numbers = history.numbers
            return np.array([numbers[n] if n in numbers else history.number(n) for n in names], np.int64)

    def put(self, event: Event) -> None:
        """Take in an item event that was appended to the log: an item put on offer, a new version of one or a
        withdrawal.

        A withdrawal has no features: `event.arrays` is None."""
        with self._lock:
            if event.subject is None:
                return
            if self._numbering is not None and event.arrays is not None:
                self.number(event.subject, event.arrays)
            current, history = self.current, self._came_and_went()
            if event.seq > history.version:  # what was just read has it already
                history.add(event.seq, event.subject, event.arrays is not None)
                if event.arrays is None:
                    current.pop(event.subject, None)
                    self._standing.pop(event.subject, None)
                else:
                    current[event.subject] = event.seq
                    self.keep(event)
                    self._standing[event.subject] = self._place[event.seq]

    def versions(self, names: Sequence[str]) -> tuple[int, ...]:
        """Return the versions of the items on offer called `names`, in that order: the sequence numbers of the events
        that put them on offer.

        Raise KeyError, with the name, for one that is not on offer."""
        return tuple(map(self.current.__getitem__, names))

    def standing(self, names: Sequence[str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return (versions, rows) of those items called `names`, all of which are on offer now, in that order.

        A version is the sequence number of the event that put an item on offer, a row its index in the catalogue's
        array of features. Raise KeyError, with the name, for one that is not on offer."""
        try:
            rows = tuple(map(self._standing.__getitem__, names))
        except KeyError:
            rows = self._read(names)
        return self.versions_at(rows), rows

    def _read(self, names: Sequence[str]) -> tuple[int, ...]:
        with self._lock:
            versions = self.versions(names)
            rows = tuple(self._rows(versions))
            self._standing.update(zip(names, rows))
            return rows

    def versions_at(self, rows: Sequence[int]) -> tuple[int, ...]:
        """Return the versions of the items with these `rows`, in that order.

        A row is an index in the catalogue's array of features, a version the sequence number of the event that put the
        item on offer."""
        return tuple(map(self._versions.__getitem__, rows))

    def names_at(self, rows: Sequence[int]) -> tuple[str, ...]:
        """Return the names of the items with these `rows` (indices in the catalogue's array of features), in that
        order."""
        return tuple(map(self._names.__getitem__, rows))

    def called_at(self, versions: Sequence[int]) -> tuple[tuple[str, ...], Ints]:
        """Return (names, rows) of the items with these `versions`, in that order, whether or not they are on offer now.

        A version is the sequence number of the event that put an item on offer, a row its index in the catalogue's
        array of features. Raise KeyError for a version that is not in the log."""
        rows, names = self._rows(versions), self._names
        return tuple([names[row] for row in rows]), np.array(rows, np.int64)

    def attributes(self, version: int) -> dict[str, Any]:
        """Return the attributes of the item with this `version` as the log keeps them, which has no texts if the loop
        stores none.

        A version is the sequence number of the event that put the item on offer. Raise KeyError if the log has none."""
        event = self._log.at(version)
        if event is None:
            raise KeyError(version)
        found: dict[str, Any] = msgspec.json.decode(event.payload)
        return found

    def features(self, versions: Sequence[int]) -> Features:
        """Return a copy of the features (m, N) of the items with these `versions`: m of them, N features of an item.

        A version is the sequence number of the event that put an item on offer."""
        return self.at(self.rows(versions))

    def at(self, rows: Ints) -> Features:
        """Return a copy of m `rows` (m,) of the catalogue's array of features, as (m, N) with N features of an item."""
        return self._features.take(rows, axis=0)[:, :-1]

    def whole(self, rows: Ints) -> Array:
        """Return a copy of m `rows` (m,) of the catalogue's array of features, as (m, N + 1) with N features of an
        item, in float64.

        The last column is 0: the caller writes there the score that a request gives to each item (`prior`)."""
        return self._features.take(rows, axis=0).astype(np.float64)

    def rows(self, versions: Sequence[int]) -> Ints:
        """Return the rows (m,) of the items with these `versions`: their indices in the catalogue's array of features.

        A version is the sequence number of the event that put an item on offer, now or earlier. It keeps its row as
        long as the catalogue lives. Raise KeyError for a version that is not in the log."""
        return np.array(self._rows(versions), np.int64)

    def _rows(self, versions: Sequence[int]) -> list[int]:
        place = self._place
        try:
            return [place[version] for version in versions]  # faster than map
        except KeyError:
            with self._lock:
                for version in versions:
                    if version not in place:
                        for event in self._log.between(version & -BLOCK, version | (BLOCK - 1), "item"):
                            self.keep(event)
            return [place[version] for version in versions]

    def keep(self, event: Event) -> None:
        """Store the features of the item that `event` puts on offer, as the next row of the array, unless they are
        there already: they need not be read from the log again."""
        with self._lock:
            if event.arrays is not None and event.seq not in self._place:
                self._add(event)

    def _add(self, event: Event) -> None:
        row = len(self._names)
        if row == len(self._features):
            grown = np.zeros((2 * row, self._n + 1), np.float32)
            grown[:row] = self._features
            self._features = grown  # a reader of the old one at this moment finds all it asked for
        self._features[row, :-1] = np.frombuffer(event.arrays or b"", "<f4")
        self._names.append(event.subject or "")
        self._versions.append(event.seq)
        self._place[event.seq] = row

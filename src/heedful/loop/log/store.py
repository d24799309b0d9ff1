"""What a log needs of the database that it is in: the few things that SQLite and PostgreSQL do differently.

The queries of a log are written once (`reader`, `log`), as SQLite has them. A store runs them; one with another dialect
translates them first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from heedful.storage import Place

Rows = list[Any]
Run = Callable[..., Rows]
"""Runs a query with its parameters, and returns all rows."""


class Shelf(Protocol):
    """The place of the snapshots of one loop, each at a position: the sequence number of an event."""

    def positions(self) -> list[int]:
        """Return the positions of all snapshots, the newest first."""

    def name(self, position: int) -> str:
        """Return the name of a snapshot, for messages."""

    def read(self, position: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return (arrays by name, the values about them) of a snapshot. Raise OSError or ValueError if it cannot be
        read."""

    def prepare(self, arrays: dict[str, Any], about: dict[str, Any]) -> Any:
        """Return what `write` takes for these arrays by name, and the values about them; before a transaction."""

    def write(self, position: int, prepared: object) -> Place:
        """Write a snapshot within a transaction of the log; return where it is. Raise OSError if that fails."""

    def remove(self, positions: Sequence[int]) -> None:
        """Remove these snapshots within a transaction of the log."""

    def clear(self) -> None:
        """Remove all snapshots, also unfinished ones."""


class Store(Protocol):
    """The place of one log. Within a process one thread writes at a time; any thread may read."""

    secret: bytes
    """the key of this log, with which digests of forgotten ids are made"""
    lists_segments: bool
    """whether it lists segments, stretches of the log in files next to it"""
    unmoved: int
    """about how many bytes this process wrote since `move_write_ahead` was called"""

    @property
    def path(self) -> Place:
        """where the log is"""

    @property
    def shelf(self) -> Shelf | None:
        """where snapshots of the model are kept; None: as files in the folder of the log's file"""

    locks_readers: bool
    """whether events that belong together are read in a transaction that keeps writers out; if not, anyone reads while
    the owner of the loop writes"""

    @property
    def owns(self) -> bool:
        """whether this process may write, as far as it knows; False while another process owns the loop"""

    def keep_owning(self, seconds: float, address: str) -> None:
        """Stay the owner of the loop for `seconds` after a commit or `renew`, where stores have owners.

        Other processes send clients to `address` meanwhile."""

    def renew(self) -> bool:
        """Stay the owner for as long again; return False if this process is not the owner."""

    def hand_over(self) -> None:
        """Let another process become the owner at once; from now on, own the loop only while this process commits."""

    # ------------------------------------------------------------------------ writing

    def writing(self, patient: bool = True, durable: bool = True) -> AbstractContextManager[None]:
        """Begin a transaction, committed when the block ends and rolled back if it raises; see `Log.writing`."""

    def execute(self, query: str, parameters: Sequence[Any] = ()) -> Rows:
        """Return the rows of a query that is part of the transaction."""

    def head(self) -> int:
        """Return the sequence number of the last event, 0 if there is none; within the transaction."""

    def append(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Append rows of events, whose columns are `COLUMNS`; within the transaction."""

    def known(self, columns: str, kind: str, ids: Sequence[str]) -> Rows:
        """Return these columns of the events of `kind` with one of these `ids`; within the transaction."""

    def remove(self, seqs: Sequence[int], digests: Sequence[str], seq: int) -> None:
        """Delete the events `seqs` and keep `digests` of their ids, as erased by event `seq`; within the transaction.

        Every other way to delete an event is refused by the database."""

    def rewrite(self) -> None:
        """Remove the bytes of deleted events from the disk. Raise TimeoutError if somebody is reading all the time."""

    def unreached(self) -> tuple[str, ...]:
        """Return where bytes of deleted events may be that `rewrite` cannot remove, in words."""

    def sync(self) -> None:
        """Wait until all that was committed is on the disk."""

    # ------------------------------------------------------------------------ reading

    def one(self, query: str, parameters: Sequence[object] = ()) -> Any:
        """Return the first row of a short query; None if there is none."""

    def few(self, query: str, parameters: Sequence[object] = ()) -> Rows:
        """Return all rows of a short query."""

    def scanning(self) -> AbstractContextManager[Run]:
        """Yield what runs queries that may read much, so that short reads need not wait for them."""

    def problems(self) -> list[str]:
        """Return what is wrong with the database, a sentence each; [] if nothing is."""

    # ------------------------------------------------------------------------ the place itself

    def is_there(self) -> bool:
        """Return whether the log is where it was opened; False if it was removed, or another took its place."""

    def leave_write_ahead(self) -> None:
        """Leave work between commits to the caller of `move_write_ahead`."""

    def move_write_ahead(self) -> None:
        """Do the work that need not be done within a commit, while others read and write."""

    def begin_write_ahead_anew(self) -> None:
        """Do what is left of that work between two commits."""

    def drop(self) -> None:
        """Delete a log that was just created."""

    def close(self) -> None:
        """Close all connections."""

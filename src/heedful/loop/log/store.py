"""What a log needs of the database that it is in: the few things that SQLite and PostgreSQL do differently.

The queries of a log are written once (`reader`, `log`), as SQLite has them. A store runs them; one with another dialect
translates them first."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from heedful.storage import Place

Rows = list[Any]
Run = Callable[..., Rows]
"""Runs a query with its parameters, and returns all rows."""


def unwritable(path: Place, why: str) -> PermissionError:
    """Return the error of who would write to a log that is only read, as it `why`, such as "cannot be written"."""
    return PermissionError(errno.EACCES, f"the log {why}; nothing was changed", str(path))


def anyone() -> str:
    """Return "": any process may own the loop."""
    return ""


class Shelf(Protocol):
    """The place where the snapshots of one loop's model are stored, each at a position: the sequence number of an
    event."""

    def positions(self) -> list[int]:
        """Return the positions of all snapshots, the newest first."""

    def name(self, position: int) -> str:
        """Return a name for the snapshot at `position`, for messages."""

    def read(self, position: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return (arrays by name, other values by name) of the snapshot at `position`. Raise OSError or ValueError if
        it cannot be read."""

    def prepare(self, arrays: dict[str, Any], about: dict[str, Any]) -> Any:
        """Return a snapshot, made of `arrays` and of the values `about` them, by name, in the form that `write` takes.

        It is called before a transaction, as it may take long."""

    def write(self, position: int, prepared: object) -> Place:
        """Write the `prepared` snapshot at `position`, within a transaction of the log; return where it is.

        Raise OSError if that fails."""

    def remove(self, positions: Sequence[int]) -> None:
        """Remove the snapshots at these `positions`, within a transaction of the log."""

    def clear(self) -> None:
        """Remove all snapshots, also unfinished ones."""


class Store(Protocol):
    """The database of one log, SQLite or PostgreSQL. In a process one thread writes at a time; any thread may read."""

    secret: bytes
    """the key of this log, with which digests are made of the ids of deleted events"""
    unmoved: int
    """about how many bytes this process has written since `move_write_ahead` was last called"""

    @property
    def path(self) -> Place:
        """the file or the address of the log"""

    @property
    def shelf(self) -> Shelf | None:
        """the place of snapshots of the model; None if they are files in the folder of the log's file"""

    locks_readers: bool
    """whether events that belong together are read in a transaction that keeps writers out; if not, anyone reads while
    the owner of the loop writes"""

    @property
    def read_only(self) -> bool:
        """whether nothing is written: it was opened for reading only, or cannot be written"""

    @property
    def owns(self) -> bool:
        """whether this process may write, as far as it knows; False while another process owns the loop"""

    def keep_owning(self, seconds: float, address: str, rightful: Callable[[], str] = anyone) -> None:
        """Make this process stay the owner of the loop for `seconds` after each commit, in databases where loops have
        owners, and longer where that is renewed (`heedful.loop.log.directory.Directory.renew`).

        Meanwhile other processes pass requests on to `address`, a URL. `rightful()` is the address of the one that
        should own the loop if nobody does; "" if this one may."""

    def hand_over(self) -> None:
        """Give up owning the loop, so that another process can own it at once; from now on own it only during a
        commit."""

    # ------------------------------------------------------------------------ writing

    def writing(self, patient: bool = True, durable: bool = True) -> AbstractContextManager[None]:
        """Begin a transaction, committed when the block ends and rolled back if it raises; see `Log.writing`.

        Raise PermissionError if it is `read_only`."""

    def execute(self, query: str, parameters: Sequence[Any] = ()) -> Rows:
        """Return the rows of the SQL `query` with these `parameters`, run within the transaction."""

    def head(self) -> int:
        """Return the sequence number of the last event, 0 if there is none; within the transaction."""

    def append(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Append `rows` of events, whose columns are `COLUMNS`, within the transaction."""

    def known(self, columns: str, kind: str, ids: Sequence[str]) -> Rows:
        """Return the columns `columns` (SQL) of the events of the kind `kind` with one of the ids `ids`, within the
        transaction."""

    def remove(self, seqs: Sequence[int], digests: Sequence[str], seq: int) -> None:
        """Delete the events with the sequence numbers `seqs` and keep `digests` of their ids, within the transaction.

        `seq` is the sequence number of the event that records the deletion. Every other way to delete an event is
        refused by the database."""

    def rewrite(self) -> None:
        """Remove the bytes of deleted events from the disk. Raise TimeoutError if somebody is reading all the time."""

    def unreached(self) -> tuple[str, ...]:
        """Return, in words, the places where bytes of deleted events may be that `rewrite` cannot remove; () if there
        are none."""

    def sync(self) -> None:
        """Wait until all that was committed is on the disk."""

    # ------------------------------------------------------------------------ reading

    def one(self, query: str, parameters: Sequence[object] = ()) -> Any:
        """Return the first row of a short SQL `query` with these `parameters`; None if there is none."""

    def few(self, query: str, parameters: Sequence[object] = ()) -> Rows:
        """Return all rows of a short SQL `query` with these `parameters`."""

    def scanning(self) -> AbstractContextManager[Run]:
        """Yield a function that runs queries that may read much, so that short reads need not wait for them."""

    def frozen(self) -> AbstractContextManager[Run]:
        """Yield a function that runs queries, all of which see the log as it is at the first one, whoever writes."""

    def problems(self) -> list[str]:
        """Return what is wrong with the database, a sentence each; [] if nothing is. The content of events is not
        checked."""

    def lease_problem(self) -> tuple[str, str] | None:
        """Return what is wrong with what says who owns the loop, and what to do about it; None if nothing is."""

    # ------------------------------------------------------------------------ the place itself

    def is_there(self) -> bool:
        """Return whether the log is where it was opened; False if it was removed, or another took its place."""

    def leave_write_ahead(self) -> None:
        """Stop commits from doing the work of `move_write_ahead`, which another thread of this process calls from now
        on."""

    def move_write_ahead(self) -> None:
        """Move what commits wrote to a write-ahead file into the database file, while others read and write.

        Do nothing where the database does so itself."""

    def begin_write_ahead_anew(self) -> None:
        """Move the rest of the write-ahead file between two commits, so that the next commit writes at its beginning.

        Do nothing while a thread is writing."""

    def close(self) -> None:
        """Close all connections."""

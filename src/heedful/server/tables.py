"""The keys, sessions, links and audit log of a server in a PostgreSQL database, which `server.db` holds otherwise."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from heedful.server.server_log import log
from heedful.storage import Address, Unreachable
from heedful.storage.postgres import Connection, Server, plain

LOOK = 0.5
"""Seconds between two looks whether keys have changed."""
_TABLE = re.compile(r"\b(FROM|INTO|UPDATE) (keys|sessions|links|audit)\b")


@lru_cache(100)
def _translate(query: str) -> str:
    return plain(_TABLE.sub(r"\1 heedful.\2", query))


class Tables:
    """The tables of keys, sessions, links and the audit log."""

    def __init__(self, address: Address) -> None:
        """Use the tables in the database of `address`, which need not exist; only `writing(create=True)` creates
        them."""
        self.path = Address(address.url)
        self._server = Server(self.path)
        self._lock = threading.Lock()
        self._there = False

    def exists(self) -> bool:
        """Return whether the tables are there. Raise Unreachable if the database cannot be reached."""
        with self._lock:
            return self._server.run("read", self._is_there, wait=0.0)

    def _is_there(self, connection: Connection) -> bool:
        if not self._there and self._server.check(connection):
            self._there = True
        return self._there

    @contextmanager
    def reading(self, wait: float | None = None) -> Iterator[Connection | None]:
        """Yield a connection on which to read; None if there are no tables.

        It waits at most `wait` seconds for another thread (None: 5). Raise TimeoutError after that."""
        if not self._lock.acquire(timeout=self._server.wait if wait is None else wait):
            raise TimeoutError(f"{self.path}: another thread uses the keys")
        try:
            with self._server.errors(), self._server.lent("read", _translate) as connection:
                yield connection if self._is_there(connection) else None
        finally:
            self._lock.release()

    @contextmanager
    def writing(self, create: bool = False) -> Iterator[Connection]:
        """Yield a connection within a transaction that writes, one at a time; `create` creates missing tables.

        What was written is on the disk when the block ends, and rolled back if it raises."""
        with self._lock, self._server.errors(), self._server.lent("write", _translate) as connection:
            if create:
                self._server.install(connection)
            with self._server.transaction(connection):
                # Also the lock that others wait for, so that what the block reads holds until it writes.
                connection.execute("UPDATE heedful.version SET changes = changes + 1")
                yield connection

    def changes(self, connection: Connection) -> int:
        """Return the number of the last change of the tables, which grows whenever something is written."""
        return self._server.counted(connection, "changes")

    def close(self) -> None:
        """Close the connections that nothing else uses."""
        self._server.close()


class Watch:
    """A thread that watches the table of keys for changes, so that no request has to wait for the database."""

    def __init__(self, tables: Tables, rows: Callable[[Connection], list[Any]]) -> None:
        """Watch `tables`; `rows(connection)` reads all keys."""
        self._tables, self._rows = tables, rows
        self.stamp: tuple[int, ...] = ()
        """the number of the last change that was seen"""
        self.keys: list[Any] = []
        """every key as of then"""
        self._looked: float | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heedful-keys", daemon=True)

    @property
    def silence(self) -> float:
        """for how many seconds the database has not answered"""
        return 0.0 if self._looked is None else max(time.monotonic() - self._looked - LOOK, 0.0)

    def start(self) -> None:
        """Look for changes once, then start the thread that goes on doing so. Do nothing if it was started before."""
        if self._looked is None:
            self.look()
            self._thread.start()

    def look(self) -> None:
        """Read the keys if they have changed. Raise Unreachable if the database cannot be reached."""
        with self._tables.reading() as connection:
            stamp = () if connection is None else (self._tables.changes(connection),)
            if connection is not None and stamp != self.stamp:
                self.keys = self._rows(connection)
            self.stamp, self._looked = stamp, time.monotonic()

    def _run(self) -> None:
        while not self._ended.wait(LOOK):
            try:
                self.look()
            except (Unreachable, TimeoutError) as error:  # until it can be reached, what is known holds
                log.warning("%s", error)
            except Exception:
                log.exception("the keys could not be read")

    def close(self) -> None:
        """End the thread."""
        self._ended.set()

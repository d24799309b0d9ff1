"""The connections of a process to a PostgreSQL database, which all loops share."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from heedful.storage.errors import Busy, OutOfConnections

MOST = {"write": 8, "read": 4, "scan": 4, "own": 2, "serve": 1}
"""How many connections a process has to a database at most, for all its loops, by what they are lent for: transactions
that write; short reads; long ones; leases, which may wait for a lock; and what a server does twice a second. Each has
its own, as a transaction that writes reads meanwhile, and as what takes long must not hold up what does not."""


class Pool:
    """The connections of this process to one database, few for any number of loops: each is lent for one transaction
    or one statement, and made when none is idle."""

    def __init__(self) -> None:
        self.users = 0
        """how many `Server`s use it; when the last one is closed, so are the connections"""
        self._changed = threading.Condition()
        self._lent = Counter[str]()
        self._idle: list[Any] = []

    def lend(self, use: str, wait: float, connect: Callable[[], Any]) -> Any:
        """Return psycopg's connection for a `use` in MOST: an idle one, or a new one of `connect`.

        It waits up to `wait` seconds for one that is lent, also where the database has none left. Raise Busy if `wait`
        is 0 and none is idle, TimeoutError, or what `connect` raises."""
        until = time.monotonic() + wait
        with self._changed:
            while self._lent[use] >= MOST[use]:
                if not wait:
                    raise Busy("all connections are in use")
                if not self._changed.wait(until - time.monotonic()):
                    raise TimeoutError("all connections to the database are in use; nothing was changed: try again")
            self._lent[use] += 1
        try:
            while True:
                with self._changed:
                    while self._idle:
                        raw = self._idle.pop()
                        if not (raw.closed or raw.broken):
                            return raw
                if not wait:
                    raise Busy("no connection is idle")
                try:
                    return connect()
                except OutOfConnections:
                    with self._changed:
                        alone = self._lent.total() <= 1 or not self._changed.wait(until - time.monotonic())
                        if alone and not self._idle:
                            raise
        except BaseException:
            self._end(use)
            raise

    def _end(self, use: str) -> None:
        with self._changed:
            self._lent[use] -= 1
            self._changed.notify_all()

    def take_back(self, use: str, raw: Any) -> None:
        """Take back a connection that was lent for `use`. One in a transaction is closed; if it was lost, so are those
        that are idle, which were lost with it, mostly."""
        lost = raw.closed or raw.broken
        if lost:
            self.drop_idle()
        with self._changed:
            if lost or raw.info.transaction_status != 0 or not self.users:
                with suppress(Exception):
                    raw.close()
            else:
                self._idle.append(raw)
        self._end(use)

    def drop_idle(self) -> None:
        """Close the connections that are idle."""
        with self._changed:
            idle, self._idle = self._idle, []
        for raw in idle:
            with suppress(Exception):
                raw.close()

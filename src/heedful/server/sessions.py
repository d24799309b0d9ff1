"""Sessions: browsers that signed in with a key. The token is in a cookie; the server keeps only its digest."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from heedful.server.database import digest_of, open_database
from heedful.storage import Place

IDLE = 12 * 3600.0
"""Seconds without a request after which a session ends."""
LENGTH = 43
"""Characters of a session's token: 256 random bits."""
MOST = 20
"""The most sessions of one key; the least recently used one makes room for a new one."""
WAIT = 0.2
"""Seconds that a read of the database waits for another process; any visitor can cause one."""
FRESH, HOLDS = 1.0, 5.0
"""Seconds for which a session found in the database is used without another read: for a request, and for a stream of
events that stays open."""


class _CachedSession(NamedTuple):
    """A session, as it was last read from the database."""

    prefix: str
    """the prefix of the API key that it belongs to"""
    ends: int
    """when it ends without further requests, in microseconds since 1970"""
    at: float
    """when it was read from the database, in seconds since 1970"""


class Sessions:
    """The sessions of browsers that signed in with a key, in the file `server.db` of a folder of loops."""

    def __init__(self, home: Place, *, idle: float = IDLE, clock: Callable[[], float] = time.time) -> None:
        """Open the sessions of the loops in `home`, a folder or a database.

        They end after `idle` seconds without a request. `clock` gives seconds since 1970.

        Raise Damaged, a ValueError, if `server.db` is something else, is damaged, or was written by a newer heedful."""
        self._database = open_database(home)
        self._idle, self._clock = idle, clock
        self._seen: dict[bytes, _CachedSession] = {}  # good ones alone

    def create(self, prefix: str, *, instead_of: str | None = None) -> str:
        """Begin a session with the key of this `prefix` and return its token, which is not stored and cannot be had
        again.

        The session of the token `instead_of` ends, and expired ones are removed."""
        token, former = secrets.token_urlsafe(32), digest_of(instead_of or "")
        oldest = "SELECT digest FROM sessions WHERE prefix = ? ORDER BY ends DESC LIMIT 1000000000 OFFSET ?"
        with self._database.writing() as connection:
            connection.execute("DELETE FROM sessions WHERE ends <= ? OR digest = ?", (self._now(), former))
            connection.execute(f"DELETE FROM sessions WHERE digest IN ({oldest})", (prefix, MOST - 1))
            insertion = "INSERT INTO sessions (digest, prefix, ends) VALUES (?, ?, ?)"
            connection.execute(insertion, (digest_of(token), prefix, self._end()))
        self._seen.clear()
        return token

    def prefix_of(self, token: str) -> str | None:
        """Return the prefix of the key with which the session of this `token` began, and put off the end of the
        session; None if there is no such session.

        Raise TimeoutError if another process is writing."""
        digest = digest_of(token)
        session = self._find(token, digest, FRESH)
        if (
            session is not None and self._end() - session.ends > self._idle * 1e6 / 20
        ):  # not at every visit: it is a commit
            with suppress(OSError):  # a full disk, a lock: it is good until its end all the same
                with self._database.writing() as connection:
                    connection.execute("UPDATE sessions SET ends = ? WHERE digest = ?", (self._end(), digest))
                self._seen.pop(digest, None)
        return None if session is None else session.prefix

    def holds(self, token: str) -> bool:
        """Return whether the session of this token still exists, without extending it; True if the database cannot be
        read."""
        try:
            return self._find(token, digest_of(token), HOLDS) is not None
        except OSError:  # sessions stay valid until the file can be read
            return True

    def _find(self, token: str, digest: bytes, within: float) -> _CachedSession | None:
        now, seen = self._clock(), self._seen.get(digest)
        if seen is None or not 0 <= now - seen.at < within:
            try:
                seen = self._look(token, digest, now)
            except TimeoutError:  # another process is writing: use what is known
                if seen is None:
                    raise
            if seen is None:
                self._seen.pop(digest, None)
            else:
                self._seen[digest] = seen
        return seen if seen is not None and seen.ends > self._now() else None

    def _look(self, token: str, digest: bytes, now: float) -> _CachedSession | None:
        if len(token) != LENGTH or not token.isascii():
            return None
        with self._database.reading(WAIT) as connection:
            if connection is None:
                return None
            row = connection.execute("SELECT prefix, ends FROM sessions WHERE digest = ?", [digest]).fetchone()
        return None if row is None else _CachedSession(str(row[0]), int(row[1]), now)

    def end(self, token: str) -> None:
        """End the session of this token, if there is one."""
        digest = digest_of(token)
        if self._database.exists():
            with self._database.writing() as connection:
                connection.execute("DELETE FROM sessions WHERE digest = ?", [digest])
        self._seen.pop(digest, None)

    def _now(self) -> int:
        return int(self._clock() * 1e6)

    def _end(self) -> int:
        return int((self._clock() + self._idle) * 1e6)

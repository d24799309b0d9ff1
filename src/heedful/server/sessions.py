"""Who signed in with a key, on a page: a token in a cookie, of which only a digest is kept."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import delete, insert, or_, select, update

from heedful.server.database import SCHEMAS, SESSIONS, Database

IDLE = 12 * 3600.0
"""Seconds without a visit after which a session has ended."""
LENGTH = 43
"""Characters of a token: 256 random bits."""
MOST = 20
"""Sessions of one key; the one that was visited least lately makes room."""
WAIT = 0.2
"""Seconds that a look at the database waits for another process: anybody may cause one."""
FRESH, HOLDS = 1.0, 5.0
"""Seconds that what the database said holds: for a visit, and for what goes on after one."""


class _Seen(NamedTuple):
    """A session, as it was found in the database."""

    prefix: str
    ends: int
    at: float


class Sessions:
    """The sessions of a folder, in its `server.db`, beside the keys that they rest on."""

    def __init__(self, folder: Path, *, idle: float = IDLE, clock: Callable[[], float] = time.time) -> None:
        """Damaged, a ValueError, where `server.db` is something else, is damaged, or was written by a newer heedful."""
        self._database = Database(Path(folder) / "server.db")
        self._idle, self._clock = idle, clock
        self._seen: dict[bytes, _Seen] = {}  # good ones alone

    def create(self, prefix: str, *, instead_of: str | None = None) -> str:
        """Begin a session of the key of that prefix: its token, which is not to be had again. That of another token
        ends; those that have ended go."""
        token, former = secrets.token_urlsafe(32), _digest(instead_of or "")
        mine = select(SESSIONS.c.digest).where(SESSIONS.c.prefix == prefix).order_by(SESSIONS.c.ends.desc())
        gone = or_(SESSIONS.c.ends <= self._now(), SESSIONS.c.digest == former)
        with self._database.writing() as connection:
            connection.execute(delete(SESSIONS).where(gone))
            connection.execute(delete(SESSIONS).where(SESSIONS.c.digest.in_(mine.offset(MOST - 1))))
            connection.execute(insert(SESSIONS).values(digest=_digest(token), prefix=prefix, ends=self._end()))
        self._seen.clear()
        return token

    def prefix_of(self, token: str) -> str | None:
        """The prefix of the key that a session rests on, which lasts as long again from now; None where there is none,
        or no more. TimeoutError where another process is writing."""
        digest = _digest(token)
        found = self._found(token, digest, FRESH)
        if found is not None and self._end() - found.ends > self._idle * 1e6 / 20:  # not at every visit: it is a commit
            with suppress(OSError):  # a full disk, a lock: it is good until its end all the same
                with self._database.writing() as connection:
                    here = SESSIONS.c.digest == digest
                    connection.execute(update(SESSIONS).where(here).values(ends=self._end()))
                self._seen.pop(digest, None)
        return None if found is None else found.prefix

    def holds(self, token: str) -> bool:
        """Whether a session goes on, as far as the database says by now; it lasts no longer for that."""
        try:
            return self._found(token, _digest(token), HOLDS) is not None
        except OSError:  # whoever was let in stays until it can be told
            return True

    def _found(self, token: str, digest: bytes, within: float) -> _Seen | None:
        now, seen = self._clock(), self._seen.get(digest)
        if seen is None or not 0 <= now - seen.at < within:
            try:
                seen = self._look(token, digest, now)
            except TimeoutError:  # until whoever is writing is done, what is known holds
                if seen is None:
                    raise
            if seen is None:
                self._seen.pop(digest, None)
            else:
                self._seen[digest] = seen
        return seen if seen is not None and seen.ends > self._now() else None

    def _look(self, token: str, digest: bytes, now: float) -> _Seen | None:
        if len(token) != LENGTH or not token.isascii() or not self._database.there():
            return None
        with self._database.reading(WAIT) as connection:
            if self._database.schema(connection) != SCHEMAS[-1]:
                return None
            row = connection.execute(select(SESSIONS.c.prefix, SESSIONS.c.ends).where(SESSIONS.c.digest == digest))
            found = row.one_or_none()
        return None if found is None else _Seen(str(found.prefix), int(found.ends), now)

    def end(self, token: str) -> None:
        """End a session, where there is one."""
        digest = _digest(token)
        if self._database.there():
            with self._database.writing() as connection:
                connection.execute(delete(SESSIONS).where(SESSIONS.c.digest == digest))
        self._seen.pop(digest, None)

    def _now(self) -> int:
        return int(self._clock() * 1e6)

    def _end(self) -> int:
        return int((self._clock() + self._idle) * 1e6)


def _digest(token: str) -> bytes:
    return sha256(token.encode()).digest()

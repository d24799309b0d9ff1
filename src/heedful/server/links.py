"""Links by which people without a key answer a study, or see its ranking.

A link is /s/TOKEN, where TOKEN is 256 random bits; the server keeps only its digest. It is shown once, to the person
who makes it. Anyone who has it may answer the study that it was made for, or see its ranking, until it ends or is
revoked, and may do nothing else."""

from __future__ import annotations

import re
import secrets
import string
import time
from collections.abc import Callable, Sequence
from hashlib import sha256
from hmac import compare_digest
from hmac import new as new_hmac
from typing import NamedTuple

from heedful.core.validation import check_count, describe, is_number
from heedful.server.database import digest_of, open_database
from heedful.storage import Place

LENGTH = 43
"""Characters of a link's token: 256 random bits."""
LASTS = 60.0, 366 * 86_400.0
"""The shortest and the longest time that a link may be valid, in seconds."""
WEEK = 7 * 86_400.0
WAIT = 0.2
"""Seconds that a read of the database waits for another process; any visitor can cause one."""
FRESH = 1.0
"""Seconds for which a link found in the database is used without another read."""
STALE = 30.0
"""Seconds for which it is used if the database cannot be read because another process is writing."""
KNOWN = 1000
"""The most links that are kept in memory."""
PEOPLE = 1000
"""How many people a link admits by default."""
MOST_PEOPLE = 100_000
COOKIE = re.compile(r"([A-Za-z0-9_-]{22})\.([0-9a-f]{32})")
"""A participant's cookie: random bits, and the link's signature of them."""
NOBODY, OTHERS = "guest", ("you", "guest")
"""The name in place of a segment in the names of people who came by a link without one; and the names that no segment
may have, as other answers are kept under them: those of the person at the server (`heedful.studies.answers.OWN`), and
NOBODY."""
_TOKEN = re.compile(rf"[A-Za-z0-9_-]{{{LENGTH}}}")
_SEGMENT = re.compile(r"[^\W_](?:[\w .-]{0,58}[\w.-])?")
_LETTERS = string.ascii_lowercase + string.digits


class Link(NamedTuple):
    """A link by which people reach a study, as the database has it, without its secret token."""

    handle: str
    """the name by which people refer to it"""
    tenant: str
    """the tenant that the loop belongs to"""
    loop: str
    """the name of the loop that holds the study"""
    founded: int
    """when the loop was created, in microseconds since 1970: a later loop of the same name is another study"""
    segment: str
    """the name of the group of people who answer by it; "" for none"""
    created: int
    """when it was made, in microseconds since 1970"""
    ends: int
    """when it ends, in microseconds since 1970"""
    revoked: int | None
    """when it was revoked, in microseconds since 1970; None if it was not"""
    secret: bytes
    """the key that signs its participants' cookies"""
    most: int
    """how many people it admits"""
    begun: int
    """how many people it has admitted"""
    shows: bool
    """whether it shows the ranking (of its segment, if it has one) instead of asking questions"""

    def good(self, now: int) -> bool:
        """Return whether the link may be used at the time `now`, in microseconds since 1970."""
        return self.revoked is None and now < self.ends

    def state(self, now: int) -> str:
        """Return "good", "full", "ended" or "revoked", at the time `now`, in microseconds since 1970."""
        if self.revoked is not None:
            return "revoked"
        return "ended" if not self.good(now) else "full" if self.begun >= self.most else "good"

    def cookie(self) -> str:
        """Return a new signed cookie for the browser of a new participant."""
        drawn = secrets.token_urlsafe(16)
        return f"{drawn}.{self._sign('cookie', drawn)}"

    def person(self, cookie: str) -> str | None:
        """Return the participant with this cookie, as 12 hexadecimal digits from which the cookie cannot be computed.

        Return None if this link did not make the cookie."""
        match = COOKIE.fullmatch(cookie)
        if match is None or not compare_digest(match[2], self._sign("cookie", match[1])):
            return None
        return self._sign("person", match[1])[:12]

    def _sign(self, what: str, drawn: str) -> str:
        return new_hmac(self.secret, f"{what} {drawn}".encode(), sha256).hexdigest()[:32]


_COLUMNS = ", ".join(Link._fields)


class Links:
    """The links of a folder of loops, in its file `server.db`, which is created with the first key or link."""

    def __init__(self, home: Place, *, clock: Callable[[], float] = time.time) -> None:
        """Open the links of the loops in `home`, a folder or a database; `clock` gives seconds since 1970.

        Raise Damaged, a ValueError, if `server.db` is something else, is damaged, or was written by a newer heedful."""
        self._database = open_database(home)
        self._clock = clock
        self._seen: dict[bytes, tuple[Link, float]] = {}

    def create(
        self,
        tenant: str,
        loop: str,
        founded: int,
        *,
        segment: str = "",
        seconds: float = WEEK,
        people: int = PEOPLE,
        shows: bool = False,
    ) -> tuple[Link, str]:
        """Make a link to a study and return (the link, its token); the token is not stored and cannot be had again.

        The study is the `loop` of the `tenant` that was created at `founded` (microseconds since 1970). The link is
        valid for `seconds`. It admits `people` participants of a `segment` (a group of people, "" for none). With
        `shows`, it shows the ranking instead, of the segment if there is one. Raise ValueError, naming the field, on
        bad input."""
        segment = segment if shows else check_segment("segment", segment)
        if not is_number(seconds, int, float) or not LASTS[0] <= seconds <= LASTS[1]:
            raise ValueError(f"lasts: expected a minute to a year, got {describe(seconds)} seconds")
        check_count("people", people, most=MOST_PEOPLE)
        token, now = secrets.token_urlsafe(32), self._now()
        handle = "".join(secrets.choice(_LETTERS) for _ in range(8))
        ends, secret = now + int(seconds * 1e6), secrets.token_bytes(32)
        link = Link(handle, tenant, loop, founded, segment, now, ends, None, secret, people, 0, shows)
        with self._database.writing(create=True) as connection:
            values = ", ".join("?" * (len(link) + 1))
            connection.execute(f"INSERT INTO links (digest, {_COLUMNS}) VALUES ({values})", (digest_of(token), *link))
        return link, token

    def begin(self, token: str) -> bool:
        """Admit one more person by the link with this `token`; return False if it is full, has ended or was revoked."""
        good = "digest = ? AND revoked IS NULL AND ends > ? AND begun < most"
        with self._database.writing() as connection:
            made = connection.execute(
                f"UPDATE links SET begun = begun + 1 WHERE {good}", (digest_of(token), self._now())
            )
            return bool(made.rowcount)

    def revoke(self, tenant: str, loop: str, handle: str) -> bool:
        """End the link `handle` of the tenant's loop at once; return whether one that had not ended was there."""
        if not self._database.exists():
            return False
        here = "tenant = ? AND loop = ? AND handle = ? AND revoked IS NULL"
        with self._database.writing() as connection:
            made = connection.execute(f"UPDATE links SET revoked = ? WHERE {here}", (self._now(), tenant, loop, handle))
            ended = made.rowcount
        self._seen.clear()
        return bool(ended)

    def all(self, tenant: str, loop: str, founded: int) -> list[Link]:
        """Return every link to one study, in the order in which they were made.

        The study is the `loop` of the `tenant` that was created at `founded` (microseconds since 1970): a later loop of
        the same name is another study."""
        return self._links("tenant = ? AND loop = ? AND founded = ?", (tenant, loop, founded))

    def at(self, token: str) -> Link | None:
        """Return the link with this token if it may be used; otherwise None.

        Raise TimeoutError if another process is writing and the link is not cached."""
        if not _TOKEN.fullmatch(token):
            return None
        digest, now = digest_of(token), self._clock()
        seen = self._seen.get(digest)
        if seen is None or not 0 <= now - seen[1] < FRESH:
            try:
                links = self._links("digest = ?", [digest], WAIT)
            except TimeoutError:
                if seen is None or not 0 <= now - seen[1] < STALE:
                    raise
                return seen[0] if seen[0].good(self._now()) else None  # somebody is writing: what is known holds
            self._seen.pop(digest, None)
            if not links:
                return None
            if len(self._seen) >= KNOWN:
                self._seen.clear()
            self._seen[digest] = seen = links[0], now
        return seen[0] if seen[0].good(self._now()) else None

    def find_cached(self, token: str) -> Link | None:
        """Return the link with this token if it may be used and was read less than `FRESH` seconds ago; else None."""
        seen = self._seen.get(digest_of(token)) if len(token) == LENGTH else None
        fresh = seen is not None and 0 <= self._clock() - seen[1] < FRESH
        return seen[0] if fresh and seen is not None and seen[0].good(self._now()) else None

    def has_ended(self, token: str) -> bool:
        """Return whether this is the token of a link at all, even of one that has ended or was revoked."""
        return bool(_TOKEN.fullmatch(token) and self._links("digest = ?", [digest_of(token)], WAIT))

    def _links(self, here: str, values: Sequence[object], wait: float | None = None) -> list[Link]:
        with self._database.reading(wait) as connection:
            if connection is None:
                return []
            rows = connection.execute(f"SELECT {_COLUMNS} FROM links WHERE {here} ORDER BY id", values).fetchall()
        return [Link._make(row)._replace(shows=bool(row[-1])) for row in rows]

    def _now(self) -> int:
        return int(self._clock() * 1e6)


def check_segment(name: str, value: object) -> str:
    """Return `value` if it is a valid name of a segment (a group of participants) or "", for none.

    Raise ValueError, beginning with `name`, if it is not."""
    if value == "":
        return ""
    if not isinstance(value, str) or not _SEGMENT.fullmatch(value):
        expected = "expected 1 to 60 letters, digits, spaces, '.', '_' and '-', beginning with a letter or digit"
        raise ValueError(f"{name}: {expected}, got {describe(value)}")
    if value in OTHERS:
        raise ValueError(f"{name}: expected another name than {' and '.join(OTHERS)}, got {describe(value)}")
    return value

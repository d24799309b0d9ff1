"""Keys of the HTTP interface, with their tenant, scopes and rate. The server keeps only their digests.

A key is `hk_<8 characters>_<256 random bits>`. Its first eleven characters are its prefix, which may be shown and
logged. The whole text is shown once, to the person who makes it, and is never written down: not in the database, in a
log, or in an error."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import string
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from heedful.core.validation import describe, is_number
from heedful.loop.records import check_id
from heedful.server import audit
from heedful.server.audit import COMMAND, Actor
from heedful.server.database import Database, open_database
from heedful.server.tables import Watch
from heedful.storage import Damaged, Place
from heedful.storage.sqlite import Connection

SCOPES = ("decide", "feedback", "read", "admin", "metrics")
SHAPE = re.compile(r"hk_[a-z0-9]{8}_[A-Za-z0-9_-]{43}")
"""The form of a key's text."""

RATES = 0.001, 1_000_000.0
"""The lowest and the highest rate limit, in requests per second."""

_TENANT = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_SECRET = re.compile(r"(hk_[a-z0-9]{8}_)[A-Za-z0-9_-]+")
_LETTERS = string.ascii_lowercase + string.digits
_COLUMNS = "prefix, name, tenant, scopes, rate, digest, created, revoked, expires, used"

Stamp = tuple[int, ...]


class Key(NamedTuple):
    """An API key as the database has it, without its secret text."""

    prefix: str
    """its first characters, hk_xxxxxxxx, which identify it"""
    name: str
    """what its maker called it"""
    tenant: str
    """the name of the tenant, whose loops it gives access to"""
    scopes: frozenset[str]
    """what it may do: some of `SCOPES`"""
    rate: float | None
    """requests per second; None for the server's own limit"""
    digest: bytes
    """SHA-256 of its whole text"""
    created: int
    """when it was made, in microseconds since 1970, UTC"""
    revoked: int | None
    """when it was revoked, in microseconds since 1970, UTC; None if it was not"""
    expires: int | None = None
    """when it ends by itself, in microseconds since 1970, UTC; None if it does not"""
    used: int | None = None
    """when it was last used, in microseconds since 1970, UTC; None if never. Servers write it once a minute"""


class Keys:
    """The API keys of a folder of loops, in its file `server.db`, which is created with the first key.

    Several processes may use it at once."""

    def __init__(self, home: Place) -> None:
        """Open the keys of the loops in `home`, a folder or a database.

        Raise Damaged, a ValueError, if `server.db` is something else, is damaged, or was written by a newer heedful."""
        self._database = open_database(home)
        self._far = None if isinstance(self._database, Database) else Watch(self._database, self._rows)
        self.path = self._database.path
        self._file = str(self.path)
        self._watching = threading.Lock()
        self._watch: Connection | None = None
        self._watched: Stamp = ()
        self._opened = 0

    # ------------------------------------------------------------------------ writing

    def create(
        self,
        name: str,
        *,
        tenant: str = "main",
        scopes: Iterable[str] = SCOPES,
        rate: float | None = None,
        expires: int | None = None,
        by: Actor = COMMAND,
    ) -> tuple[Key, str]:
        """Make a key called `name` for a `tenant` and return (the key, its text), which is not stored and cannot be had
        again.

        `scopes` is what it may do (some of `SCOPES`), `rate` its limit in requests per second; None for the server's
        own limit; `expires` is when it ends, in microseconds since 1970; None for never. `by` is who makes it, for
        the audit log, as in the methods that follow. Raise ValueError, naming the field, on bad input."""
        row = _name(name), check_tenant(tenant), " ".join(_scopes(scopes)), check_rate(rate)
        with self._database.writing(create=True) as connection:
            while True:
                prefix = "hk_" + "".join(secrets.choice(_LETTERS) for _ in range(8))
                if connection.execute("SELECT 1 FROM keys WHERE prefix = ?", [prefix]).fetchone() is None:
                    break
            key = f"{prefix}_{secrets.token_urlsafe(32)}"
            digest = hashlib.sha256(key.encode()).digest()
            insertion = f"INSERT INTO keys ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, NULL, ?, NULL)"
            connection.execute(insertion, (prefix, *row, digest, _now(), expires))
            audit.write(connection, by, row[1], "make key", about=prefix)
            return self._key_of(connection, prefix), key

    def revoke(self, prefix: str, by: Actor = COMMAND) -> Key:
        """Revoke the key with this prefix for good and return it; revoking it again changes nothing.

        Raise LookupError if no key has that prefix."""
        self._check_exists(prefix)
        with self._database.writing() as connection:
            ended = "UPDATE keys SET revoked = ? WHERE prefix = ? AND revoked IS NULL"
            connection.execute(ended, (_now(), prefix))
            return self._changed(connection, prefix, "revoke key", by)

    def set_scopes(self, prefix: str, scopes: Iterable[str]) -> Key:
        """Set what the key with this prefix may do (some of `SCOPES`), and return it.

        Raise LookupError if no key has that prefix, and ValueError if it was revoked or the scopes are wrong."""
        held = " ".join(_scopes(scopes))
        self._check_exists(prefix)
        with self._database.writing() as connection:
            if self._key_of(connection, prefix).revoked is not None:
                raise ValueError(f"prefix: expected a key that was not revoked, got {prefix!r}; make a new one")
            connection.execute("UPDATE keys SET scopes = ? WHERE prefix = ?", (held, prefix))
            return self._changed(connection, prefix, "set scopes", COMMAND)

    def _changed(self, connection: Any, prefix: str, action: str, by: Actor) -> Key:
        key = self._key_of(connection, prefix)
        audit.write(connection, by, key.tenant, action, about=prefix)
        return key

    def record_uses(self, uses: Mapping[str, int]) -> None:
        """Note when keys were last used: prefix -> time, in microseconds since 1970. A later time that another server
        noted stays."""
        with self._database.writing() as connection:
            for prefix, used in uses.items():
                newer = "UPDATE keys SET used = ? WHERE prefix = ? AND coalesce(used, 0) < ?"
                connection.execute(newer, (used, prefix, used))

    @property
    def silence(self) -> float:
        """for how many seconds the database has not answered, which is asked all the time; 0 for a folder"""
        return 0.0 if self._far is None else self._far.silence

    def close(self) -> None:
        """Close the connection to the file."""
        with self._watching:
            self._unwatch()
        if self._far is not None:
            self._far.close()
        if not isinstance(self._database, Database):
            self._database.close()

    # ------------------------------------------------------------------------ reading

    def all(self) -> list[Key]:
        """Return every key, in the order in which they were made."""
        with self._database.reading() as connection:
            return [] if connection is None else self._rows(connection)

    def exist(self) -> bool:
        """Return whether any key was ever made, revoked or not."""
        with self._database.reading() as connection:
            return connection is not None and connection.execute("SELECT 1 FROM keys LIMIT 1").fetchone() is not None

    def trace(self) -> Stamp | None:
        """Return a fingerprint of the file of keys (device, inode, times, size), which takes a microsecond; None
        without a file.

        It changes when a key is made or changed, unless two changes come within the same tick of the clock. In
        PostgreSQL it is the number of the last change that the thread which watches for changes has seen."""
        if self._far is not None:
            return tuple(self._far.stamp)
        try:
            seen = os.stat(self._file)
        except FileNotFoundError:
            return None
        return seen.st_dev, seen.st_ino, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_size

    def since(self, stamp: Stamp | None, wait: float = 0.0) -> tuple[Stamp, list[Key]] | None:
        """Return (a new stamp, every key) if a key was made or changed since `stamp`; otherwise None.

        A stamp identifies a state of the keys. `stamp` is the one that an earlier call returned, None for the first
        call. Raise TimeoutError if another process keeps writing for longer than `wait` seconds."""
        if self._far is not None:
            self._far.start()
            newest, keys = self._far.stamp, list[Key](self._far.keys)
            return None if newest == stamp else (newest, keys)
        with self._watching:
            try:
                return self._since(stamp, wait)
            except TimeoutError:
                raise
            except BaseException:
                self._unwatch()
                raise

    def _since(self, stamp: Stamp | None, wait: float) -> tuple[Stamp, list[Key]] | None:
        database, trace = self._database, self.trace()
        if trace is None or not isinstance(database, Database):
            self._unwatch()
            return None if stamp == () else ((), [])
        if self._watch is None or trace[:2] != self._watched:  # another file may lie there now: a restored back-up
            self._unwatch()
            self._watch, self._watched = database.connect(), trace[:2]
            self._opened += 1
        with database.errors(), database.transaction(self._watch, writes=False):
            self._watch.execute(f"PRAGMA busy_timeout = {wait * 1000:.0f}")
            # Another number after every commit of any other connection, those of this process as well.
            [version] = self._watch.execute("PRAGMA data_version").fetchone()
            newest = (*self._watched, self._opened, version)
            if newest == stamp:
                return None
            return newest, self._rows(self._watch) if database.check(self._watch) else []

    def _unwatch(self) -> None:
        if self._watch is not None:
            self._watch.close()
        self._watch = None

    def _rows(self, connection: Any) -> list[Key]:
        return [self._key(row) for row in connection.execute(f"SELECT {_COLUMNS} FROM keys ORDER BY id")]

    def _key_of(self, connection: Any, prefix: str) -> Key:
        row = connection.execute(f"SELECT {_COLUMNS} FROM keys WHERE prefix = ?", [prefix]).fetchone()
        if row is None:
            raise _no_such_key(prefix)
        return self._key(row)

    def _check_exists(self, prefix: str) -> None:
        if not isinstance(prefix, str) or not self.exist():
            raise _no_such_key(prefix)

    def _key(self, row: Sequence[Any]) -> Key:
        """Return the key in `row`, a row of the database. Raise Damaged if heedful did not write it so."""
        prefix, name, tenant, scopes, rate, digest, created, *times = row
        try:
            whole = type(prefix) is type(name) is str and type(digest) is bytes and len(digest) == 32
            whole = whole and type(created) is int and all(time is None or type(time) is int for time in times)
            if whole and (rate is None or RATES[0] <= rate <= RATES[1]):
                return Key(prefix, name, check_tenant(tenant), _read_scopes(scopes), rate, digest, created, *times)
        except (TypeError, ValueError, AttributeError):
            pass
        message = "expected a key as it was written, got another: the database is damaged, restore a back-up"
        raise Damaged(f"{self.path}: {message}")


# ---------------------------------------------------------------------------- what is let in


def mask_prefix(text: str) -> str:
    """Return `text` with every API key in it cut to its prefix."""
    return _SECRET.sub(r"\1...", text)


def _describe(value: object) -> str:
    """Return a short description of a value for an error message, with API keys cut to their prefixes."""
    return mask_prefix(describe(value))


def _no_such_key(prefix: object) -> LookupError:
    return LookupError(
        f"prefix: expected one that `heedful keys list` shows, such as hk_ab12cd34, got {_describe(prefix)}"
    )


def _name(value: object) -> str:
    if isinstance(value, str) and _SECRET.search(value):
        raise ValueError(f"name: expected a text without a key in it, got {_describe(value)}")
    return check_id("name", value)


def check_tenant(value: object) -> str:
    """Return `value` if it is a valid name for a tenant, whose loops are in a folder of that name.

    Raise ValueError if it is not."""
    if not isinstance(value, str) or not _TENANT.fullmatch(value):
        expected = "expected 1 to 40 of a-z, 0-9 and -, the first of them no -"
        raise ValueError(f"tenant: {expected}, got {_describe(value)}")
    return value


def check_rate(value: object) -> float | None:
    """Return `value` as a rate limit in requests per second, None for no limit.

    Raise ValueError if it is out of range or no number."""
    if value is None:
        return None
    if not is_number(value, int, float) or not RATES[0] <= value <= RATES[1]:
        expected = f"expected requests per second, from {RATES[0]:g} to {RATES[1]:,.0f}, or nothing for no limit"
        raise ValueError(f"rate: {expected}, got {_describe(value)}")
    return float(value)


def _scopes(value: Any) -> list[str]:
    scopes = [value] if isinstance(value, str) or not isinstance(value, Iterable) else list(value)
    wrong = next((scope for scope in scopes if not isinstance(scope, str) or scope not in SCOPES), None)
    if isinstance(value, str) or wrong is not None or not scopes:
        got = _describe(value if isinstance(value, str) else wrong) if scopes else "none of them"
        raise ValueError(f"scopes: expected a list of some of {', '.join(SCOPES)}, got {got}")
    return in_order(scopes)


@lru_cache(100)
def _read_scopes(kept: str) -> frozenset[str]:
    return frozenset(_scopes(kept.split()))


def in_order(scopes: Iterable[str]) -> list[str]:
    """Return these scopes in the order of `SCOPES`, each once."""
    held = set(scopes)
    return [scope for scope in SCOPES if scope in held]


def _now() -> int:
    return time.time_ns() // 1000

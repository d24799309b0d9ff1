"""The database of keys and of who signed in with them: its tables, how it is opened, what its errors mean.

SQLite beside the loops, reached through SQLAlchemy; alembic brings its schema up to date (`migrations/`).
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Engine,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    NullPool,
    String,
    Table,
    create_engine,
    event,
    exc,
    text,
)
from sqlalchemy.engine import URL

WAIT = 5.0
"""Seconds to wait for another process that is writing, before giving up."""

SCHEMAS = ("0001", "0002", "0003", "0004")
"""Every revision in `migrations/versions`, the oldest first; the last is the schema of these tables."""

METADATA = MetaData()
TABLE = Table(
    "keys",
    METADATA,
    Column("id", Integer, primary_key=True),  # the order of making: no row is ever deleted
    Column("prefix", String(11), nullable=False, unique=True),
    Column("name", String(200), nullable=False),
    Column("tenant", String(40), nullable=False),
    Column("scopes", String(200), nullable=False),  # words, a space between them
    Column("rate", Float),  # requests per second
    Column("digest", LargeBinary(32), nullable=False, unique=True),  # SHA-256 of the key
    Column("created", BigInteger, nullable=False),  # microseconds since 1970, UTC
    Column("revoked", BigInteger),
)
SESSIONS = Table(
    "sessions",
    METADATA,
    Column("digest", LargeBinary(32), primary_key=True),  # SHA-256 of what the cookie holds
    Column("prefix", String(11), nullable=False),  # of the key that was signed in with
    Column("ends", BigInteger, nullable=False),  # microseconds since 1970, UTC
)

LINKS = Table(
    "links",
    METADATA,
    Column("id", Integer, primary_key=True),  # the order of making
    Column("handle", String(8), nullable=False, unique=True),  # what a link is called; it opens nothing
    Column("digest", LargeBinary(32), nullable=False, unique=True),  # SHA-256 of the token in the link
    Column("tenant", String(40), nullable=False),
    Column("loop", String(100), nullable=False),
    Column("founded", BigInteger, nullable=False),  # when that loop was made: another of its name is another study
    Column("segment", String(60), nullable=False),
    Column("created", BigInteger, nullable=False),  # microseconds since 1970, UTC
    Column("ends", BigInteger, nullable=False),
    Column("revoked", BigInteger),
    Column("secret", LargeBinary(32), nullable=False),  # what the cookies of its participants are signed with
    Column("most", Integer, nullable=False),  # people it lets in
    Column("begun", Integer, nullable=False),  # people it has let in
    Column("shows", Boolean, nullable=False, server_default="0"),  # the ranking, and asks nothing
)

# What SQLite answers: the low byte of its result codes, https://sqlite.org/rescode.html
_BUSY, _LOCKED, _FULL = 5, 6, 13
_UNREACHABLE = {3, 8, 10, 14, 23}  # PERM, READONLY, IOERR, CANTOPEN, AUTH

_migrating = threading.Lock()  # alembic's context is one for the whole process


class Damaged(ValueError):
    """The file is not what was written: broken, of another kind, or a newer heedful's."""


class Database:
    """One file, which need not be there: nothing but `writing(create=True)` makes it."""

    def __init__(self, path: Path) -> None:
        """Damaged where the file is something else, is damaged, or was written by a newer heedful."""
        self.path = path.absolute()
        self._reader, self._writer = (_engine(self.path, writes) for writes in (False, True))
        if self.there() and self._outdated():
            with self.writing():
                pass

    def there(self) -> bool:
        """Whether there is a file; OSError where that cannot be told."""
        try:
            os.stat(self.path)
        except FileNotFoundError:
            return False
        return True

    def _outdated(self) -> bool:
        with self.reading() as connection:
            return self.schema(connection) not in ("", SCHEMAS[-1])

    def connect(self) -> Connection:
        """A connection of one's own, to be closed."""
        with self.errors():
            return self._reader.connect()

    @contextmanager
    def reading(self, wait: float = WAIT) -> Iterator[Connection]:
        """A transaction that reads. TimeoutError where another process writes for longer than `wait` seconds."""
        with self.errors(), self._reader.connect() as connection, connection.begin():
            connection.exec_driver_sql(f"PRAGMA busy_timeout = {wait * 1000:.0f}").close()
            yield connection

    @contextmanager
    def writing(self, create: bool = False) -> Iterator[Connection]:
        """A transaction that writes, on the newest schema: on the disk when the block ends, undone where it raises."""
        if create:
            with suppress(FileExistsError):  # whoever else makes it just now makes the same
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL, 0o600))  # nobody else's to read
        with self.errors(), self._writer.connect() as connection, connection.begin():
            if self.schema(connection) != SCHEMAS[-1]:
                _migrate(connection)
            yield connection

    def schema(self, connection: Connection) -> str:
        """The revision that the database is of; "" where it is empty. Damaged where it is none of ours."""
        names = connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'table'")).scalars().all()
        if not names and os.stat(self.path).st_size == 0:
            return ""  # whoever was about to make the first key stopped there
        query = text("SELECT version_num FROM alembic_version")
        found = connection.execute(query).scalars().all() if "alembic_version" in names else []
        if len(found) != 1 or not isinstance(found[0], str):
            raise Damaged(f"{self.path}: wanted a database of keys, got one of another kind or a damaged one")
        if found[0] not in SCHEMAS:
            raise Damaged(
                f"{self.path}: wanted keys of schema {SCHEMAS[-1]} or older, got {found[0][:40]!r}: "
                "a newer heedful wrote them; upgrade heedful to open them"
            )
        return found[0]

    @contextmanager
    def errors(self) -> Iterator[None]:
        """What SQLite says, in the words of the operating system and of the user."""
        try:
            yield
        except exc.DBAPIError as error:
            code = (getattr(error.orig, "sqlite_errorcode", None) or 0) & 0xFF
            if code in (_BUSY, _LOCKED):
                told = f"{self.path}: another process is writing; nothing was changed: try again"
                raise TimeoutError(told) from None
            if code == _FULL:
                told = "the disk is full; nothing was changed: make room and try again"
                raise OSError(errno.ENOSPC, told, str(self.path)) from None
            if code in _UNREACHABLE:
                told = f"the keys cannot be read or written ({error.orig}); nothing was changed"
                raise OSError(errno.EIO, told, str(self.path)) from None
            # Nobody but us asks: where a question makes no sense to the database, the database is damaged.
            told = f"wanted a whole database of keys, got a damaged file or one of another kind ({error.orig})"
            raise Damaged(f"{self.path}: {told}: restore a back-up") from None


def _engine(path: Path, writes: bool) -> Engine:
    # mode=rw: a file that went away is not made again by looking at it.
    url = URL.create("sqlite", database=path.as_uri(), query={"mode": "rw", "uri": "true"})
    waiting = {"timeout": WAIT, "check_same_thread": False}
    engine = create_engine(url, poolclass=NullPool, hide_parameters=True, connect_args=waiting)
    pragmas = ["trusted_schema = OFF"]
    if writes:  # these look at the file, and wait where somebody is writing: who only reads does without
        pragmas += ["journal_mode = DELETE", "synchronous = FULL", "fullfsync = ON"]

    def set_up(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # a transaction begins where `begin` says so, and holds the schema too
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}").close()

    def begin(connection: Connection) -> None:
        # One that reads first and then wants to write may fail at once, however long it would wait.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    event.listen(engine, "connect", set_up)
    event.listen(engine, "begin", begin)
    return engine


def _migrate(connection: Connection) -> None:
    """Bring the schema up to date, in the transaction that is open."""
    from alembic import command

    with _migrating:
        command.upgrade(migrations(connection), "head")


def migrations(connection: Connection) -> Any:
    """Alembic's configuration for that connection; there is no file of it."""
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", "heedful.server:migrations")
    config.set_main_option("path_separator", "os")
    return config

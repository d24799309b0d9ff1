"""SQLite files: the one module that opens them.

It holds what the log of a loop and the keys of a server need alike: a new file that only its owner may read, its
tables, a check that a file has them and nothing else, transactions, and SQLite's errors as errors that a user
understands. docs/decisions/0005 lists what another database would spell otherwise.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from heedful.storage.errors import Busy, Closed, Damaged, Newer

WAIT = 5.0
"""Seconds to wait for another process that is writing."""

LONG = 4_000_000
"""Bytes of a write-ahead file that is emptied when a file is opened; SQLite begins to move it then by default."""

Connection = sqlite3.Connection
"""A connection to an open file. Code outside this package only executes SQL with it, and closes it."""

_UNREACHABLE = {
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
}
_MASTER = "SELECT name, type, tbl_name, sql FROM sqlite_master"
# Tables that ANALYZE creates, which only SQLite's query planner reads.
_OTHERS = {
    "sqlite_stat1": ("table", "sqlite_stat1", "CREATE TABLE sqlite_stat1(tbl,idx,stat)"),
    "sqlite_stat4": ("table", "sqlite_stat4", "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)"),
    "_litestream_seq": (
        "table",
        "_litestream_seq",
        "CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)",
    ),
    "_litestream_lock": ("table", "_litestream_lock", "CREATE TABLE _litestream_lock (id INTEGER)"),
}
"""Tables that may be there besides ours: statistics of SQLite's planner, and those of Litestream, which copies the file
while it is in use."""

Objects = dict[str, tuple[Any, ...]]


class Schema(NamedTuple):
    """The contents that a database file must have."""

    noun: str
    """what error messages call the file, such as "log" """
    tables: tuple[str, ...]
    """the SQL statements that create its tables and indices"""
    triggers: tuple[tuple[str, str], ...] = ()
    """(name, SQL) of each trigger"""
    application: int = 0
    """the number in the file's header (`application_id`) that says which application it belongs to"""
    version: int = 1
    """the file's `user_version`; a file with another one is refused"""


class Database:
    """A SQLite file with its schema. It keeps no connection open: the caller of `connect` closes the connection."""

    def __init__(self, path: Path, schema: Schema, *, wait: float = WAIT) -> None:
        """Describe the file `path` with the tables of `schema`. It need not exist, and is neither created nor opened
        here.

        Connections wait up to `wait` seconds for another process that is writing.
        """
        self.path, self.schema, self.wait = path, schema, wait
        self._address = path.absolute().as_uri()

    # ------------------------------------------------------------------------ the file

    def create(self) -> None:
        """Create an empty file that only its owner may read. Raise FileExistsError if there is anything at its path."""
        flags = os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)  # a symbolic link counts as a file that is there
        try:
            os.close(os.open(self.path, flags, 0o600))
        except FileExistsError:
            told = f"expected a new {self.schema.noun}, got one that is there already"
            raise FileExistsError(errno.EEXIST, told, str(self.path)) from None

    def create_copy(self, source: Connection) -> None:
        """Create the file with what `source`, a connection to another one, has now; others write to that meanwhile.

        Raise FileExistsError if there is anything at its path."""
        self.create()
        with self.errors(), closing(sqlite3.connect(self.path)) as target:
            source.backup(target)

    def check_header(self) -> None:
        """Raise Damaged unless the file's header says SQLite and has the schema's `application` number.

        It reads 100 bytes and does not open the file with SQLite, which may change it. Raise OSError if it cannot be
        read.
        """
        with self.path.open("rb") as file:
            header = file.read(100)
        if header[:16] != b"SQLite format 3\0" or header[68:72] != self.schema.application.to_bytes(4, "big"):
            told = f"expected a {self.schema.noun}, got a file of another kind or a damaged one"
            raise Damaged(f"{self.path}: {told}")

    def connect(self, *pragmas: str, wait: float | None = None, mode: str = "rw") -> Connection:
        """Return a new connection in autocommit mode; the caller closes it, and may use it from any thread.

        Each of `pragmas` is executed as "PRAGMA ...". A statement waits up to `wait` seconds for another process that
        is writing (None: the `wait` of this database). `mode` is that of SQLite: "rw", "ro" for reading only, or
        "ro&immutable=1" for a file that nobody writes to meanwhile. None of them creates a file that was removed. Raise
        as `errors` does if the file cannot be opened.
        """
        timeout = self.wait if wait is None else wait
        with self.errors():
            connection = sqlite3.connect(
                f"{self._address}?mode={mode}",
                uri=True,
                timeout=timeout,
                isolation_level=None,  # a transaction begins where `transaction` says so, and holds the schema too
                check_same_thread=False,
                cached_statements=64,
            )
            try:
                for pragma in ("trusted_schema = OFF", *pragmas):
                    connection.execute(f"PRAGMA {pragma}").close()
            except BaseException:
                connection.close()
                raise
        return connection

    # ------------------------------------------------------------------------ the schema

    def check(self, connection: Connection) -> bool:
        """Return whether the file has been filled, having checked that it holds our tables and nothing else.

        Raise Newer if a newer heedful wrote it, and Damaged if a table is missing, or if there is anything that the
        schema does not have, since a view, a trigger or a computed column of somebody else's could run any code,
        without end. A missing index or trigger is not refused.
        The check itself runs no code that is stored in the file.
        """
        schema = self.schema
        [found] = connection.execute("PRAGMA user_version").fetchone()
        if found > schema.version:
            raise Newer(
                f"{self.path}: expected a {schema.noun} of schema {schema.version}, got {found}: "
                "a newer heedful wrote it; upgrade heedful to open it"
            )
        there = _objects(connection)
        known = _expected_objects(schema) if found == schema.version else {}
        may = known | _OTHERS
        wrong = [f"{about[0]} {name!r:.100}" for name, about in there.items() if about != may.get(name)]
        wrong += [f"no table {name!r}" for name, about in known.items() if about[0] == "table" and name not in there]
        if wrong:
            more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
            told = f"expected the tables of a {schema.noun} and nothing else, got {', '.join(wrong[:3])}{more}"
            raise Damaged(f"{self.path}: {told}: it was changed, restore a back-up")
        return bool(known)

    def fill(self, connection: Connection) -> None:
        """Create the tables and triggers in an empty file; call it in a writing transaction."""
        for statement in self.schema.tables:
            connection.execute(statement)
        self.create_triggers(connection)
        connection.execute(f"PRAGMA user_version = {self.schema.version}")

    def create_triggers(self, connection: Connection) -> None:
        """Create the triggers of the schema, replacing those that are there."""
        for name, sql in self.schema.triggers:
            connection.execute(f"DROP TRIGGER IF EXISTS {name}")
            connection.execute(sql)

    # ------------------------------------------------------------------------ transactions

    @contextmanager
    def transaction(self, connection: Connection, *, writes: bool = True, patient: bool = True) -> Iterator[None]:
        """Run the block in a transaction: commit when it ends, roll back if it raises.

        With `writes`, the lock for writing is taken at the beginning. With `patient`, wait for another process that is
        writing, as long as the connection does. Without it, take the lock for writing at once, whatever `writes` is, or
        raise Busy."""
        if not patient:
            self._begin_at_once(connection)
        else:
            # One that reads first and then wants to write may fail at once, however long it would wait.
            connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _begin_at_once(self, connection: Connection) -> None:
        connection.execute("PRAGMA busy_timeout = 0")
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if _code(error) == sqlite3.SQLITE_BUSY:
                raise Busy(f"{self.path}: another process is writing") from None
            raise
        finally:
            connection.execute(f"PRAGMA busy_timeout = {int(1000 * self.wait)}")

    def sync(self) -> None:
        """Wait until the write-ahead file is on the disk, as a commit does with synchronous = FULL.

        What a checkpoint has moved from there into the database file is on the disk already. Raise OSError if it fails.
        """
        # Closing it drops no lock of SQLite's: those are on the file itself and on the -shm.
        file = os.open(f"{self.path}-wal", os.O_RDWR)
        try:
            os.fsync(file)
        finally:
            os.close(file)

    def shrink_write_ahead(self, connection: Connection) -> None:
        """Move what is in a write-ahead file of more than `LONG` bytes, such as one that processes left that were
        killed, into the database file, and empty it.

        Nobody is waited for: if others read or write, or the file cannot be written, it stays as long as it is."""
        try:
            if os.stat(f"{self.path}-wal").st_size <= LONG:
                return
        except FileNotFoundError:
            return
        try:
            connection.execute("PRAGMA busy_timeout = 0")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.OperationalError:
            pass
        finally:
            connection.execute(f"PRAGMA busy_timeout = {int(1000 * self.wait)}")

    # ------------------------------------------------------------------------ errors

    def can_write(self) -> bool:
        """Return whether this user may write to the file, and to its folder, in which SQLite makes others."""
        effective = os.access in os.supports_effective_ids
        paths = self.path, self.path.absolute().parent
        return all(os.access(path, os.W_OK, effective_ids=effective) for path in paths)

    @contextmanager
    def errors(self, *, writing: bool = False) -> Iterator[None]:
        """Run the block and raise its SQLite errors as TimeoutError, OSError, Damaged or Closed, in words for users.

        If the block is `writing`, the error of a statement that SQLite refuses (a constraint, say) is raised unchanged;
        otherwise such a statement means that the schema is damaged.
        """
        try:
            yield
        except sqlite3.ProgrammingError as error:
            if "closed" in str(error):
                raise Closed(f"{self.path}: the {self.schema.noun} is closed: open it again") from None
            raise
        except sqlite3.Error as error:
            code, name, noun = _code(error), str(self.path), self.schema.noun
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                told = f"{name}: another process is writing; nothing was changed: try again"
                raise TimeoutError(told) from error
            if code == sqlite3.SQLITE_FULL:
                told = "the disk is full; nothing was changed: make room and try again"
                raise OSError(errno.ENOSPC, told, name) from error
            if code in _UNREACHABLE:
                told = f"the {noun} cannot be read or written ({error}); nothing was changed"
                raise OSError(errno.EIO, told, name) from error
            if "decode" in str(error):  # text that is none any more; what it is now is not repeated
                raise Damaged(f"{name}: expected a whole {noun}, got a damaged one: restore a back-up") from None
            # Nobody but us asks: where a question makes no sense to the database, its schema is damaged.
            if not writing or code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                told = (
                    f"expected a whole {noun}, got a damaged file or one of another kind ({error}): restore a back-up"
                )
                raise Damaged(f"{name}: {told}") from error
            raise


def _code(error: sqlite3.Error) -> int:
    """Return the primary result code of an error, 0 if it has none: https://sqlite.org/rescode.html"""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def _objects(connection: Connection) -> Objects:
    """Return the tables, indices, triggers and views of a database by name: (type, its table, SQL with single
    spaces)."""
    return {
        name: (kind, table, " ".join(sql.split()) if isinstance(sql, str) else sql)
        for name, kind, table, sql in connection.execute(_MASTER)
    }


@lru_cache
def _expected_objects(schema: Schema) -> Objects:
    """Return what `_objects` finds in an undamaged file of this schema, by creating one in memory."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in (*schema.tables, *(sql for _, sql in schema.triggers)):
            connection.execute(statement)
        return _objects(connection)

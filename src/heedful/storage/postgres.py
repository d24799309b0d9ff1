"""PostgreSQL: the one module that imports psycopg, and only when a database is used.

It works behind a pooler in transaction mode, where the next transaction may use another connection: settings are made
within transactions, and no statement is prepared. docs/decisions/0029 says how loops are kept.
"""

from __future__ import annotations

import errno
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from types import ModuleType
from typing import Any

from heedful.core.extras import lacking
from heedful.storage.address import Address
from heedful.storage.errors import Closed, Damaged, Newer, OutOfConnections, Unreachable

SCHEMA = "heedful"
"""The schema, in PostgreSQL's sense, that holds all tables."""
WAIT = 5.0
"""Seconds to wait for others that are writing, and for a server that cannot be reached."""
CONNECT = 3
"""Seconds that one attempt to connect may take."""
ENCODING = "in a password write % as %25, @ as %40, / as %2F, ? as %3F, # as %23 and a blank as %20"
_NONE_LEFT = re.compile(r"too many (clients|connections)|remaining connection slots|no more connections allowed")
"""What PostgreSQL and PgBouncer say where they take no more connections: an error of connecting has no code."""
_INSTALLING = 0x68656564
"""The number of the advisory lock, for a transaction, under which the tables are created."""


def driver() -> ModuleType:
    """Return the module psycopg. Raise ModuleNotFoundError, which says how to install it, if it is not installed."""
    try:
        import psycopg
    except ModuleNotFoundError as error:
        if error.name != "psycopg":
            raise
        told = lacking("a loop in PostgreSQL", "psycopg", "postgres")
        raise ModuleNotFoundError(told, name="psycopg") from None
    return psycopg


class Connection:
    """A connection to PostgreSQL in autocommit mode, for one thread at a time, which takes the SQL that SQLite
    takes."""

    def __init__(self, raw: Any, translate: Callable[[str], str]) -> None:
        """Execute SQL on psycopg's connection `raw`, after the function `translate` has translated each statement."""
        self.raw, self._translate = raw, translate

    def execute(self, query: str, parameters: Sequence[Any] = ()) -> Any:
        """Execute one statement, `query`, with a `?` for each of `parameters`, and return psycopg's cursor."""
        return self.raw.execute(self._translate(query), parameters)

    def script(self, statements: str) -> Any:
        """Execute several statements, without parameters, in one exchange with the server; return psycopg's cursor."""
        return self.raw.execute(statements)

    @property
    def broken(self) -> bool:
        """whether the connection was closed or lost"""
        return bool(self.raw.closed or self.raw.broken)

    @property
    def in_transaction(self) -> bool:
        """whether a transaction has begun on it"""
        return bool(self.raw.info.transaction_status != 0)

    def close(self) -> None:
        """Close the connection; errors are ignored."""
        with suppress(Exception):
            self.raw.close()


@lru_cache(1000)
def plain(query: str) -> str:
    """Return the SQL `query`, with `?` for parameters, in the form that psycopg takes."""
    return query.replace("%", "%%").replace("?", "%s")


class Server:
    """A PostgreSQL database with heedful's tables. It keeps no connection open."""

    def __init__(self, address: Address, steps: Sequence[Sequence[str]], *, wait: float = WAIT) -> None:
        """Describe the database of `address`, without opening it.

        `steps` are the migrations that create its tables, the oldest first, each a sequence of SQL statements.
        Statements wait up to `wait` seconds for others."""
        self.address, self.wait, self._steps = address, wait, steps
        self._checked = False
        self._checking = threading.Lock()

    def connect(self, translate: Callable[[str], str] = plain) -> Connection:
        """Return a new connection, which passes SQL through `translate`.

        Raise Unreachable if the server cannot be reached, and Damaged if the URL is not valid."""
        psycopg = driver()
        try:
            raw = psycopg.connect(
                self.address.url,
                autocommit=True,
                prepare_threshold=None,
                connect_timeout=CONNECT,
                keepalives_idle=2,
                keepalives_interval=1,
                keepalives_count=3,
                tcp_user_timeout=4000,
                application_name="heedful",
            )
        except psycopg.ProgrammingError:  # its text has the part that makes no sense, of a password mostly
            raise Damaged(
                f"{self.address}: expected the URL of a database, got one that makes no sense: {ENCODING}"
            ) from None
        except psycopg.OperationalError as error:
            if _NONE_LEFT.search(str(error)):
                told = "the database has no connection left; nothing was changed: raise its max_connections above three"
                told += " for each open loop of each server, lower --most-open, or put a pooler in front"
                raise OutOfConnections(f"{self.address}: {told}") from None
            # A part of a password may have been taken for a host, whose name would be told.
            told = str(error).strip().splitlines()[0] if self.address.plain else f"is that the URL? {ENCODING}"
            raise Unreachable(f"{self.address}: the database cannot be reached; nothing was changed: {told}") from None
        return Connection(raw, translate)

    # ------------------------------------------------------------------------ the schema

    def version(self, connection: Connection) -> int:
        """Return how many of the migration steps the database has had; 0 if it has none of heedful's tables."""
        [[there]] = connection.execute(f"SELECT to_regclass('{SCHEMA}.version') IS NOT NULL").fetchall()
        return self.counted(connection, "number", least=1) if there else 0

    def counted(self, connection: Connection, column: str, *, least: int = 0) -> int:
        """Return the number in a `column` of the only row of the table of versions. Raise Damaged unless there is one
        of `least` or more."""
        rows = connection.execute(f"SELECT {column} FROM {SCHEMA}.version").fetchall()
        if len(rows) == 1 and type(rows[0][0]) is int and rows[0][0] >= least:
            return int(rows[0][0])
        got = f"{rows[0][0]!r:.40}" if len(rows) == 1 else f"{len(rows)} rows"
        expected = f"expected one row with a whole number from {least} on in {column}, got {got}"
        raise Damaged(f"{self.address}: {SCHEMA}.version: {expected}: restore a back-up")

    def check(self, connection: Connection) -> bool:
        """Return whether heedful's tables are there, of the newest version. Raise Newer if a newer heedful made
        them."""
        found, newest = self.version(connection), len(self._steps)
        if found > newest:
            raise Newer(
                f"{self.address}: expected tables of version {newest} or older, got {found}: "
                "a newer heedful made them; upgrade heedful to use them"
            )
        return found == newest

    def install(self, connection: Connection) -> None:
        """Create heedful's tables, or bring them up to the newest version, in one transaction."""
        with self._checking:
            if self._checked or self.check(connection):
                self._checked = True
                return
            with self.transaction(connection):
                connection.execute(f"SELECT pg_advisory_xact_lock({_INSTALLING})")
                found = self.version(connection)  # another process may have been faster
                for step in self._steps[found:]:
                    for statement in step:
                        connection.script(statement)
                connection.execute(f"UPDATE {SCHEMA}.version SET number = ?", [len(self._steps)])
            self._checked = True

    # ------------------------------------------------------------------------ transactions

    def settings(self, seconds: float, durable: bool = True, idle: float | None = None) -> str:
        """Return the statements that begin a transaction in which a statement waits for others at most `seconds`.

        The server ends it if nothing comes for `idle` seconds (None: twice as long as statements wait by default), so
        that a process that was stopped holds no lock. If `durable` is False, the commit does not wait for the disk."""
        most = max(int(1000 * seconds), 1)
        return (
            f"BEGIN; SET LOCAL lock_timeout = {most}; "
            f"SET LOCAL idle_in_transaction_session_timeout = {int(1000 * (2 * self.wait if idle is None else idle))}; "
            f"SET LOCAL synchronous_commit = {'on' if durable else 'off'}"
        )

    @contextmanager
    def transaction(self, connection: Connection) -> Iterator[None]:
        """Run the block in a transaction: commit when it ends, roll back if it raises."""
        connection.script(self.settings(self.wait))
        try:
            yield
            connection.script("COMMIT")
        except BaseException:
            self.roll_back(connection)
            raise

    def roll_back(self, connection: Connection) -> None:
        """Roll back; a connection on which that fails is closed, which does the same."""
        try:
            if not connection.broken and connection.in_transaction:
                connection.script("ROLLBACK")
        except Exception:
            connection.close()

    # ------------------------------------------------------------------------ errors

    @contextmanager
    def errors(self, *, writing: bool = False) -> Iterator[None]:
        """Run the block and raise psycopg's errors as TimeoutError, Unreachable, OSError, Damaged or Closed.

        If the block is `writing`, the error of a statement that the database refuses is raised unchanged; otherwise
        such a statement means that the tables are not heedful's, and Damaged is raised."""
        psycopg = driver()
        refused = psycopg.errors
        try:
            yield
        except (refused.LockNotAvailable, refused.QueryCanceled, refused.DeadlockDetected) as error:
            told = f"{self.address}: another process is writing; nothing was changed: try again"
            raise TimeoutError(told) from error
        except (refused.DiskFull, refused.OutOfMemory) as error:
            told = "the database is full; nothing was changed: make room and try again"
            raise OSError(errno.ENOSPC, told, str(self.address)) from error
        except (refused.InsufficientPrivilege, refused.ReadOnlySqlTransaction) as error:
            raise PermissionError(errno.EACCES, f"the database refuses it: {error}", str(self.address)) from error
        except (psycopg.OperationalError, refused.IdleInTransactionSessionTimeout) as error:
            raise Unreachable(
                f"{self.address}: the connection to the database was lost; nothing was changed"
            ) from error
        except psycopg.InterfaceError as error:
            raise Closed(f"{self.address}: the connection to the database is closed: open it again") from error
        except (refused.UndefinedTable, refused.UndefinedColumn, refused.InvalidSchemaName) as error:
            told = f"expected heedful's tables, got a database without them or with others ({error}): restore a back-up"
            raise Damaged(f"{self.address}: {told}") from error
        except psycopg.Error as error:
            if writing:
                raise
            raise Damaged(
                f"{self.address}: expected whole tables, got an error ({error}): restore a back-up"
            ) from error

    def lost(self, error: BaseException) -> bool:
        """Return whether `error` says that a connection was lost, so that another one may do."""
        psycopg = driver()
        refused = psycopg.errors
        waited = refused.LockNotAvailable, refused.QueryCanceled, refused.DeadlockDetected
        full = refused.DiskFull, refused.OutOfMemory
        lost = psycopg.OperationalError, psycopg.InterfaceError, refused.IdleInTransactionSessionTimeout
        return isinstance(error, lost) and not isinstance(error, waited + full)


class Reader:
    """A connection for reading, made when it is first used, and again if it is lost. Any thread may use it."""

    def __init__(self, server: Server, translate: Callable[[str], str] = plain) -> None:
        """Read from `server`, after the function `translate` has translated the SQL."""
        self._server, self._translate = server, translate
        self._connection: Connection | None = None
        self._lock = threading.Lock()
        self._closed = False

    def rows(self, query: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Return all rows of the SQL `query` with these `parameters`. Raise Unreachable if the server cannot be
        reached."""
        until = time.monotonic() + self._server.wait
        with self._lock, self._server.errors():
            while True:
                if self._closed:
                    raise Closed(f"{self._server.address}: the log is closed: open it again")
                try:
                    if self._connection is None or self._connection.broken:
                        self._connection = self._server.connect(self._translate)
                    found: list[Any] = self._connection.execute(query, parameters).fetchall()
                    return found
                except Exception as error:
                    lost = isinstance(error, Unreachable) or self._server.lost(error)
                    if not lost or time.monotonic() > until:
                        raise
                    if self._connection is not None:
                        self._connection.close()
                        self._connection = None
                    time.sleep(0.05)

    def close(self) -> None:
        """Close the connection; the reader cannot be used afterwards."""
        with self._lock:
            self._closed = True
            if self._connection is not None:
                self._connection.close()

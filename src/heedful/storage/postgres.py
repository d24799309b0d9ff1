"""PostgreSQL: the one module that imports psycopg, and only when a database is used.

It works behind a pooler in transaction mode, where the next transaction may use another connection: settings are made
within transactions, and no statement is prepared. docs/decisions/0029 says how loops are kept. The
file is long because connecting, lending, transactions and errors share one driver.
"""

from __future__ import annotations

import errno
import os
import re
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from types import ModuleType
from typing import Any, TypeVar

from heedful.core.extras import lacking
from heedful.storage.address import Address
from heedful.storage.errors import Busy, Closed, Damaged, Newer, OutOfConnections, Unreachable
from heedful.storage.pool import MOST, Pool
from heedful.storage.tables import TABLES, VERSION

T = TypeVar("T")

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


HURRY = 0.2
"""Seconds for which a thread that is `hurried` waits for an answer of a database."""
_thread = threading.local()


@contextmanager
def hurried() -> Iterator[None]:
    """Let this thread not wait for a database in the block: what needs a connection that is not there or in use, or
    takes longer than `HURRY` seconds, raises Busy.

    A server's event loop asks so, and lets another thread do what would hold up all requests."""
    _thread.hurried = True
    try:
        yield
    finally:
        _thread.hurried = False


def _is_hurried() -> bool:
    return getattr(_thread, "hurried", False)


def _bounded(raw: Any, steps: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
    """Return the `steps` of a question on psycopg's connection `raw`, which is closed if no answer comes in time."""
    until = time.monotonic() + HURRY
    try:
        wanted = next(steps)
        while True:
            ready = yield wanted  # 0 where nothing has come
            if not ready and time.monotonic() > until:
                raw.close()
                raise Busy("the database takes long to answer")
            wanted = steps.send(ready)
    except StopIteration as done:
        found: T = done.value
        return found


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


_connections: weakref.WeakSet[Any] = weakref.WeakSet()  # psycopg's
_counting = threading.Lock()


def open_connections() -> int:
    """Return how many connections to databases this process has open."""
    with _counting:
        return sum(not raw.closed for raw in _connections)


class Connection:
    """A connection to PostgreSQL in autocommit mode, for one thread at a time, which takes the SQL that SQLite
    takes."""

    def __init__(self, raw: Any, translate: Callable[[str], str], give_back: Callable[[], None] | None = None) -> None:
        """Execute SQL on psycopg's connection `raw`, after the function `translate` has translated each statement.

        Call `give_back` when it is done with: of a connection of its own that closes it."""
        self.raw, self._translate = raw, translate
        self.give_back = self.close if give_back is None else give_back

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


_pools: dict[tuple[int, str], Pool] = {}
"""by process, as a forked one has none of its parent's connections, and URL"""
_pooling = threading.Lock()


class Server:
    """A PostgreSQL database with heedful's tables. All of a process that have the same URL share connections."""

    def __init__(self, address: Address, *, wait: float = WAIT) -> None:
        """Describe the database of `address`, without opening it.

        Statements wait up to `wait` seconds for others."""
        self.address, self.wait = address, wait
        self._checked = self._closed = False
        self._checking = threading.Lock()
        self._pool: tuple[int, Pool] | None = None

    @property
    def pool(self) -> Pool:
        """the connections that this process shares"""
        process = os.getpid()
        if self._pool is None or self._pool[0] != process:
            with _pooling:
                if self._pool is None or self._pool[0] != process:
                    pool = _pools.setdefault((process, self.address.url), Pool())
                    pool.users += 1
                    self._pool = process, pool
        return self._pool[1]

    def lend(self, use: str, translate: Callable[[str], str] = plain, wait: float | None = None) -> Connection:
        """Return a connection for a `use` in MOST, which passes SQL through `translate`; `give_back` it afterwards.

        It waits up to `wait` seconds (None: as long as statements do) where all are lent. Raise what `Pool.lend` and
        `connect` raise."""
        if self._closed:
            raise Closed(f"{self.address}: the log is closed: open it again")
        pool, most = self.pool, self.wait if wait is None else wait
        raw = pool.lend(use, 0.0 if _is_hurried() else most, lambda: self.connect().raw)
        return Connection(raw, translate, lambda: pool.take_back(use, raw))

    @contextmanager
    def lent(
        self, use: str, translate: Callable[[str], str] = plain, wait: float | None = None
    ) -> Iterator[Connection]:
        """Lend a connection for the block; the arguments and errors are those of `lend`."""
        connection = self.lend(use, translate, wait)
        try:
            yield connection
        finally:
            connection.give_back()

    def run(
        self,
        use: str,
        work: Callable[[Connection], T],
        translate: Callable[[str], str] = plain,
        wait: float | None = None,
    ) -> T:
        """Return what `work` returns of a connection that is lent for `use`, and of another one if that was lost.

        Raise Unreachable if the database cannot be reached for `wait` seconds (None: as long as statements wait)."""
        until, again = time.monotonic() + (self.wait if wait is None else wait), False
        with self.errors():
            while True:
                try:
                    with self.lent(use, translate) as connection:
                        return work(connection)
                except Exception as error:
                    away = isinstance(error, Unreachable)
                    if not (away or self.lost(error)) or (time.monotonic() > until and (away or again)):
                        raise
                    again = True
                    time.sleep(0.05)

    def close(self) -> None:
        """Lend no more connections; the last that is closed closes those that are idle."""
        with _pooling:
            self._closed = True
            if self._pool is not None and self._pool[0] == os.getpid():
                pool, self._pool = self._pool[1], None
                pool.users -= 1
                if not pool.users:
                    _pools.pop((os.getpid(), self.address.url), None)
                    pool.drop_idle()

    def connect(self, translate: Callable[[str], str] = plain) -> Connection:
        """Return a new connection of its own, which passes SQL through `translate`.

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
                told = "the database has no connection left; nothing was changed: raise its max_connections above "
                told += f"{sum(MOST.values())} for each server, or put a pooler in front"
                raise OutOfConnections(f"{self.address}: {told}") from None
            # A part of a password may have been taken for a host, whose name would be told.
            told = str(error).strip().splitlines()[0] if self.address.plain else f"is that the URL? {ENCODING}"
            raise Unreachable(f"{self.address}: the database cannot be reached; nothing was changed: {told}") from None
        wait = raw.wait
        raw.wait = lambda steps, *more, **named: wait(_bounded(raw, steps) if _is_hurried() else steps, *more, **named)
        with _counting:
            _connections.add(raw)
        return Connection(raw, translate)

    # ------------------------------------------------------------------------ the schema

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
        """Return whether heedful's tables are there. Raise Newer if a newer heedful made them."""
        [[there]] = connection.execute(f"SELECT to_regclass('{SCHEMA}.version') IS NOT NULL").fetchall()
        if there and (found := self.counted(connection, "number", least=1)) > VERSION:
            raise Newer(
                f"{self.address}: expected tables of version {VERSION}, got {found}: "
                "a newer heedful made them; upgrade heedful to use them"
            )
        return bool(there)

    def install(self, connection: Connection) -> None:
        """Create heedful's tables, in one transaction, if they are not there."""
        with self._checking:
            if not (self._checked or self.check(connection)):
                with self.transaction(connection):
                    connection.execute(f"SELECT pg_advisory_xact_lock({_INSTALLING})")
                    if not self.check(connection):  # another process may have been faster
                        for statement in TABLES:
                            connection.script(statement)
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
    """Reads from a database, each time on a connection that is lent, or on another if that was lost. Any thread may use
    it."""

    def __init__(self, server: Server, translate: Callable[[str], str] = plain, use: str = "read") -> None:
        """Read from `server`, after the function `translate` has translated the SQL; `use` is one in MOST."""
        self._server, self._translate, self._use = server, translate, use

    def rows(self, query: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Return all rows of the SQL `query` with these `parameters`. Raise Unreachable if the server cannot be
        reached."""

        def read(connection: Connection) -> list[Any]:
            found: list[Any] = connection.execute(query, parameters).fetchall()
            return found

        return self._server.run(self._use, read, self._translate)

"""A log in a PostgreSQL database, a `Store`: one owner at a time, checked in every transaction that writes.

The lease of a loop is a row (owner, epoch, expires). A transaction locks it and goes on only if the epoch is the one
under which this process became the owner. docs/decisions/0029 says why. The file is long because `LogTable` has a
method for each thing that a log asks of its database.
"""

from __future__ import annotations

import math
import re
import secrets
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import lru_cache, partial
from typing import Any

from heedful.core.serialization import pack_arrays, unpack_arrays
from heedful.loop.log.event import COLUMNS
from heedful.loop.log.store import Rows, Run, anyone, unwritable
from heedful.storage import Address, Busy, Closed, Damaged, Moved, Owned, Unreachable
from heedful.storage.postgres import Connection, Reader, Server, plain
from heedful.storage.sqlite import WAIT
from heedful.storage.tables import PARTITIONS

ASK_AGAIN = 0.05
"""Seconds between two looks at a lease that another process holds."""
LARGEST = 2**29
"""Bytes of the largest snapshot that is kept in the database."""
LONGEST = 3_600.0
"""Seconds for which no process asks to own a loop after a commit: `heedful serve` asks for 600 at most."""
_RENEW = "UPDATE heedful.lease SET expires = clock_timestamp() + make_interval(secs => ?)"
_TABLE = re.compile(r"\b(FROM|JOIN) (event|forgotten)\b(?: ([a-z]+)\b)?")
_PLUS = re.compile(r"\+(?=(?:[a-z]\.)?(?:kind|seq)\b)")
_TYPES = ("bigint", "text", "text", "bigint", "text", "bigint", "bigint", "text", "bytea", "bigint")
"""Of the columns of an event."""


@lru_cache(4000)
def translate(number: int, query: str) -> str:
    """Return the SQL `query` of a log, written for SQLite and one loop, for PostgreSQL and the events of the loop with
    the number `number`."""

    def table(match: re.Match[str]) -> str:
        keyword, name, alias = match.groups()
        return f"{keyword} (SELECT * FROM heedful.{name} WHERE loop = {number}) AS {alias or name}"

    return plain(_PLUS.sub("", _TABLE.sub(table, query)))


def write_loop(
    address: Address, secret: bytes, pages: Iterable[Rows], forgotten: Iterable[tuple[int, list[str]]]
) -> None:
    """Create the loop at `address` in one transaction, and the tables before that if there are none.

    `secret` is the key of its log, `pages` are rows of events, whose columns are `COLUMNS`, and `forgotten` is
    (sequence number, digests) of each deletion. Raise FileExistsError if there is a loop of that name, and ValueError
    for a name that no server can serve."""
    address.check_name()
    server = Server(address)
    with server.errors(), closing(server.connect()) as connection:
        server.install(connection)
        stored = secret.hex() + f"{zlib.crc32(secret.hex().encode()):08x}"
        with server.transaction(connection):
            insertion = "INSERT INTO heedful.loop (name, secret) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING number"
            rows = connection.execute(insertion, [address.key, stored]).fetchall()
            if not rows:
                raise FileExistsError(17, "expected a new loop, got one that is there already", str(address))
            [[number]] = rows
            connection.execute("INSERT INTO heedful.lease VALUES (?, '', '', 0, '-infinity')", [number])
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")  # another log may be slow
            for page in pages:
                _insert(connection, number, page)
            for seq, digests in forgotten:
                _insert_forgotten(connection, number, digests, seq)


def _insert(connection: Connection, number: int, rows: Rows) -> None:
    arrays = ", ".join(f"?::{type}[]" for type in _TYPES)
    insertion = f"INSERT INTO heedful.event (loop, {COLUMNS}) SELECT {number}, * FROM unnest({arrays})"
    connection.execute(insertion, [list(column) for column in zip(*rows)])


def _insert_forgotten(connection: Connection, number: int, digests: Sequence[str], seq: int) -> None:
    connection.execute(
        f"INSERT INTO heedful.forgotten SELECT {number}, digest, ? FROM unnest(?::text[]) AS digest "
        "ON CONFLICT DO NOTHING",
        [seq, list(digests)],
    )


class LogTable:
    """The log of one loop in a PostgreSQL database of many, whose connections all loops of a process share.

    Any number of processes may have it open and read; one at a time owns it and writes. `hold` is the number of seconds
    for which this process stays the owner after a commit or `renew`, and then it does not wait for another owner; 0 if
    it owns the loop only during a commit."""

    locks_readers = False

    def __init__(self, address: Address, *, wait: float = WAIT, read_only: bool = False) -> None:
        """Open the log of the loop at `address`, with `read_only` for reading only.

        A writer waits up to `wait` seconds for others. Raise FileNotFoundError if there is no such loop."""
        self.path, self._wait, self.read_only = address, wait, read_only
        self.hold, self.address, self.rightful = 0.0, "", anyone
        self.unmoved = 0
        self._server = Server(address, wait=wait)
        self._owner = secrets.token_hex(8)
        self._epoch = -1
        self._renewed = -math.inf
        self._left = False
        self._leasing = threading.Lock()
        self._lock = threading.RLock()
        self._writer: Connection | None = None
        self._gone = False
        self._appended: list[tuple[Any, ...]] = []
        self._buffered: list[tuple[Any, ...]] = []
        self._head = 0
        try:
            with self._server.errors():
                number, secret = self._find()
            self.number = number
            salt, checked = secret[:-8], secret[-8:]
            if checked != f"{zlib.crc32(salt.encode()):08x}":
                raise Damaged(f"{address}: expected a whole log, got one whose secret was changed: restore a back-up")
        except BaseException:
            self._server.close()
            raise
        self.secret = bytes.fromhex(salt)
        self._translate = partial(translate, number)
        self._reader, self._scanner, self._leases = (
            Reader(self._server, self._translate, use) for use in ("read", "scan", "own")
        )
        self.shelf = Shelf(self)

    def _find(self) -> tuple[int, str]:
        def look(connection: Connection) -> list[Any]:
            query = "SELECT number, secret FROM heedful.loop WHERE name = ?"
            there = self._server.check(connection)
            return connection.execute(query, [self.path.key]).fetchall() if there else []

        rows = self._server.run("read", look, wait=0.0)
        if not rows:
            raise FileNotFoundError(2, "no such loop; make one with heedful init", str(self.path))
        return int(rows[0][0]), str(rows[0][1])

    def close(self) -> None:
        with suppress(Exception):
            self.release()
        with self._lock:
            self._server.close()

    # ------------------------------------------------------------------------ who owns the loop

    @property
    def owns(self) -> bool:
        """True if this process owns the loop, as far as it knows; also if it takes ownership anew for each write, as
        it does before `keep_owning` was called (then `hold`, the seconds for which it stays the owner, is 0)"""
        return not self.read_only and (self.hold == 0.0 or self._epoch >= 0)

    def keep_owning(self, seconds: float, address: str, rightful: Callable[[], str] = anyone) -> None:
        with self._leasing:
            self.hold, self.address, self.rightful = seconds, address, rightful
            if self._epoch >= 0:  # it wrote to the loop: nobody becomes the owner who could say where it is
                self._leases.rows(
                    f"{_RENEW}, address = ? WHERE loop = ? AND epoch = ? AND owner = ? RETURNING 1",
                    [seconds, address, self.number, self._epoch, self._owner],
                )

    def release(self) -> None:
        """Let another process become the owner at once."""
        with self._leasing:
            if (self.hold or self._left) and self._epoch >= 0:
                ended = "UPDATE heedful.lease SET expires = clock_timestamp()"
                self._leases.rows(
                    f"{ended} WHERE loop = ? AND epoch = ? AND owner = ? RETURNING 1",
                    [self.number, self._epoch, self._owner],
                )
                self._epoch = -1

    def hand_over(self) -> None:
        self._left, self.hold = True, 0.0
        self.release()

    # ------------------------------------------------------------------------ transactions

    @contextmanager
    def writing(self, patient: bool = True, durable: bool = True) -> Iterator[None]:
        """Begin a transaction as the owner of the loop.

        Raise Owned, a TimeoutError, if another process owns it, and Unreachable if the connection is lost; a commit
        whose answer did not come is looked up."""
        if self.read_only:
            raise unwritable(self.path, "was opened for reading only")
        if not self._lock.acquire(blocking=patient):
            raise Busy(f"{self.path}: a thread is writing")
        try:
            epoch = self._begin(patient, durable)
            try:
                yield
                with self._server.errors(writing=True):
                    self._commit()
            except BaseException:
                if self._writer is not None:
                    self._server.roll_back(self._writer)
                raise
            self._epoch = epoch
        finally:
            self._give_back()
            self._lock.release()

    def _give_back(self) -> None:
        """Give back the connection on which the transaction was, whether it ended or was lost."""
        if self._writer is not None:
            self._writer.give_back()
            self._writer = None

    def _begin(self, patient: bool, durable: bool) -> int:
        """Begin a transaction that holds the lease; return the epoch of the lease, which is valid once this is
        committed.

        `patient` says whether to wait for other writers, `durable` whether the commit waits for the disk."""
        until = time.monotonic() + (self._wait if patient else 0.0)
        while True:
            try:
                with self._server.errors():
                    left = max(until - time.monotonic(), 0.05)
                    return self._try_to_begin(patient, durable, min(left, 0.5) if self.hold else left)
            except Owned:
                if self.hold or self._left or time.monotonic() > until:
                    raise
                time.sleep(ASK_AGAIN)
            except Unreachable as error:
                if not patient:
                    raise Busy(str(error)) from error
                if time.monotonic() > until:
                    raise
                time.sleep(ASK_AGAIN)
            except TimeoutError as error:
                if not patient:
                    raise Busy(str(error)) from error
                if not self.hold or time.monotonic() > until:
                    raise
                self._end_stuck()

    def _end_stuck(self) -> None:
        """End another session's transaction that holds the lease, if its client has sent nothing for as long as a lease
        lasts.

        The database itself does so between statements, but not while it waits for the rest of one."""
        query = (
            "SELECT pg_terminate_backend(a.pid) FROM heedful.lease e "
            "JOIN pg_locks l ON l.locktype = 'transactionid' AND l.granted AND l.transactionid = e.xmax "
            "JOIN pg_stat_activity a ON a.pid = l.pid AND a.usename = current_user "
            "WHERE e.loop = ? AND a.wait_event = 'ClientRead' "
            "AND a.state_change < clock_timestamp() - make_interval(secs => ?)"
        )
        self._leases.rows(query, [self.number, self.hold])

    def _try_to_begin(self, patient: bool, durable: bool, seconds: float) -> int:
        self._appended, self._buffered = [], []
        if self._gone:
            raise Moved(f"{self.path}: the loop was deleted while it was open; nothing was written")
        db = self._writer = self._server.lend("write", self._translate, None if patient else 0.0)
        held = "SELECT epoch, owner, address, expires > clock_timestamp() FROM heedful.lease"
        lease = f"{held} WHERE loop = {self.number} FOR UPDATE"
        try:
            cursor = db.script(
                f"{self._server.settings(seconds if patient else self._wait, durable, idle=self.hold or None)}; "
                f"{lease}{'' if patient else ' NOWAIT'}; "
                f"SELECT coalesce(max(seq), 0) FROM heedful.event WHERE loop = {self.number}"
            )
            answers = [cursor.fetchall() if cursor.description else []]
            while cursor.nextset():
                answers.append(cursor.fetchall() if cursor.description else [])
            leases, [[self._head]] = answers[-2:]
            if not leases:  # whoever removed it may have removed the loop, or not
                made = "SELECT number, '', '', 0, '-infinity' FROM heedful.loop WHERE number = ? ON CONFLICT DO NOTHING"
                db.execute(f"INSERT INTO heedful.lease {made}", [self.number])
                leases = db.execute(lease).fetchall()
            if not leases:
                self._gone = True
                raise Moved(f"{self.path}: the loop was deleted while it was open; nothing was written")
            [[epoch, owner, address, live]] = leases
            if owner == self._owner and epoch == self._epoch:
                if (
                    self.hold and time.monotonic() > self._renewed + self.hold / 4
                ):  # `Directory.renew` skips what commits
                    db.execute(f"{_RENEW} WHERE loop = ?", [self.hold, self.number])
                    self._renewed = time.monotonic()
                return int(epoch)
            if not patient:
                raise Busy(f"{self.path}: another process has written")
            if live and owner != self._owner:
                self._epoch = -1
                told = f"another process owns the loop{f' at {address}' if address else ''}; nothing was changed"
                raise Owned(f"{self.path}: {told}", str(address))
            if not live and (rightful := self.rightful()):
                self._epoch = -1
                told = f"the server at {rightful} should own the loop; nothing was changed"
                raise Owned(f"{self.path}: {told}", rightful)
            [[epoch]] = db.execute(
                "UPDATE heedful.lease SET owner = ?, address = ?, epoch = epoch + 1, "
                "expires = clock_timestamp() + make_interval(secs => ?) WHERE loop = ? RETURNING epoch",
                [self._owner, self.address, self.hold, self.number],
            ).fetchall()
            self._renewed = time.monotonic()
            return int(epoch)
        except BaseException:
            self._server.roll_back(db)
            self._give_back()
            raise

    def _commit(self) -> None:
        db = self._writing
        rows = self._appended
        try:
            # In no pipeline, which is sent in pieces: with the lock, the server waits for the rest of one without end.
            self._flush()
            db.script("COMMIT")
        except Exception as error:
            if not self._server.lost(error):
                raise
            db.close()
            self._give_back()
            if not rows:
                raise
            if not self._settle(rows[-1]):
                raise
        finally:
            self._appended = []

    def _settle(self, row: tuple[object, ...]) -> bool:
        """Return whether the transaction that appended `row` was committed, although no answer came.

        The lease's row is locked for that, so that the old transaction has ended. Raise Unreachable if it cannot be
        known."""
        until = time.monotonic() + self._wait
        while True:
            try:
                lent = self._server.lent("write", self._translate)
                with self._server.errors(), lent as db, self._server.transaction(db):
                    db.execute(f"SELECT FROM heedful.lease WHERE loop = {self.number} FOR UPDATE")
                    query = "SELECT kind, id, checked FROM event WHERE seq = ?"
                    return bool(db.execute(query, [row[0]]).fetchall() == [(row[1], row[2], row[-1])])
            except TimeoutError:
                if time.monotonic() > until:
                    told = "the connection was lost during the commit, and whether it was written is not known"
                    raise Unreachable(f"{self.path}: {told}: send it again, with its id") from None
                time.sleep(ASK_AGAIN)

    def sync(self) -> None:
        with self.writing():  # a lock leaves a record in the write-ahead log, and the commit waits for it
            pass

    @property
    def _writing(self) -> Connection:
        if self._writer is None:
            raise Closed(f"{self.path}: no transaction has begun")
        return self._writer

    def execute(self, query: str, parameters: Sequence[Any] = ()) -> list[Any]:
        with self._server.errors(writing=True):
            self._flush()
            rows: list[Any] = self._writing.execute(query, parameters).fetchall()
            return rows

    def head(self) -> int:
        return self._head

    def known(self, columns: str, kind: str, ids: Sequence[str]) -> list[Any]:
        return self.execute(f"SELECT {columns} FROM event WHERE kind = ? AND id = ANY(?::text[])", [kind, list(ids)])

    def append(self, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            self._appended += rows
            self._buffered += rows
            self._head = rows[-1][0]

    def _flush(self) -> None:
        if self._buffered:
            self._insert()

    def _insert(self) -> None:
        rows, self._buffered = self._buffered, []
        _insert(self._writing, self.number, rows)

    # ------------------------------------------------------------------------ erasing

    def remove(self, seqs: Sequence[int], digests: Sequence[str], seq: int) -> None:
        self.execute("SELECT set_config('heedful.erasing', ?, true)", [str(self.number)])
        with self._server.errors(writing=True):
            db = self._writing
            _insert_forgotten(db, self.number, digests, seq)
            db.execute(f"DELETE FROM heedful.event WHERE loop = {self.number} AND seq = ANY(?::bigint[])", [list(seqs)])
            db.execute(f"DELETE FROM heedful.snapshot WHERE loop = {self.number}")
            db.execute("SELECT set_config('heedful.erasing', '', true)")

    def unreached(self) -> tuple[str, ...]:
        found = ["the database's write-ahead log, until its files are used again"]
        [[archive]] = self._reader.rows("SELECT current_setting('archive_mode')")
        if archive != "off":
            found.append("the archive of the write-ahead log")
        [[standbys]] = self._reader.rows("SELECT count(*) FROM pg_stat_replication")
        [[slots]] = self._reader.rows("SELECT count(*) FROM pg_replication_slots WHERE NOT active")
        if standbys:
            found.append(f"{standbys} standbys of the database, until they have replayed it")
        if slots:
            found.append(f"{slots} standbys or copies of the database that are not connected now")
        return tuple(found)

    def rewrite(self) -> None:
        """Write anew the tables that held deleted events and snapshots, as their bytes stay in PostgreSQL's pages
        otherwise. Raise TimeoutError, too, if the role that is connected may not."""
        # Whoever commits or connects to the database at this moment may see the old rows, too, but not for long.
        until, pause = time.monotonic() + self._wait, 0.1
        while self._rewrite():
            if time.monotonic() + pause > until:
                raise TimeoutError(
                    f"{self.path}: another session has had a transaction open in this database since before, so the "
                    "forgotten rows are still in the tables: end it and open the loop again, which finishes the job"
                )
            time.sleep(pause)
            pause = min(2.0 * pause, 0.5)

    def _rewrite(self) -> int:
        """Write the tables anew once; return how many deleted rows are still in them because somebody sees them."""
        kept, refusals = [0], list[str]()

        def told(diagnostic: Any) -> None:
            if diagnostic.severity_nonlocalized == "WARNING":  # VACUUM skips what it may not touch, without an error
                refusals.append(diagnostic.message_primary)
            match = re.match(r"(\d+) ", diagnostic.message_detail or "")
            kept[0] += int(match[1]) if match else 0

        with self._server.errors():
            db = self._server.connect()
            try:
                db.raw.add_notice_handler(told)
                [[table]] = db.execute(
                    "SELECT tableoid::regclass::text FROM heedful.event WHERE loop = ? LIMIT 1", [self.number]
                ).fetchall()
                for each in (table, "heedful.snapshot"):
                    self._vacuum(db, each)
            finally:
                db.close()
        if refusals:
            raise TimeoutError(
                f"{self.path}: this role may not write the tables anew ({refusals[0]}), so the forgotten rows are "
                "still in them: connect as their owner and open the loop, which finishes the job"
            )
        return kept[0]

    def _vacuum(self, db: Connection, table: str) -> None:
        """Write the table with the name `table` anew, on the connection `db`. Raise TimeoutError if others read it all
        the time.

        VACUUM runs in no transaction, so `lock_timeout` cannot be set for it alone; and as long as it waits for its
        lock, everybody else waits for it."""
        ended, mark = threading.Event(), f"-- {self._owner}"
        waits = "SELECT 1 FROM pg_stat_activity WHERE query LIKE ? AND state = 'active' AND wait_event_type = 'Lock'"

        def watch() -> None:
            while not ended.wait(self._wait / 2):
                with suppress(Exception):
                    if self._reader.rows(waits, [f"VACUUM % {mark}"]):
                        db.raw.cancel()

        watching = threading.Thread(target=watch, daemon=True)
        watching.start()
        try:
            # VACUUM FULL keeps what any transaction of any database of the server might see. This one, which leaves the
            # bytes where they are, asks only those of this database, and then there is nothing left to keep.
            db.execute(f"VACUUM (INDEX_CLEANUP FALSE, TRUNCATE FALSE) {table} {mark}")
            with self._server.transaction(db):  # this one waits no longer than it may
                db.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
            db.execute(f"VACUUM (FULL, VERBOSE) {table} {mark}")
        finally:
            ended.set()
            watching.join()

    # ------------------------------------------------------------------------ reading

    def one(self, query: str, parameters: Sequence[object] = ()) -> Any:
        rows = self._reader.rows(query, parameters)
        return rows[0] if rows else None

    def few(self, query: str, parameters: Sequence[object] = ()) -> list[Any]:
        return self._reader.rows(query, parameters)

    @contextmanager
    def scanning(self) -> Iterator[Run]:
        yield self._scanner.rows

    @contextmanager
    def frozen(self) -> Iterator[Run]:
        with self._server.errors(), closing(self._server.connect(self._translate)) as db:
            db.script("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield lambda query, parameters=(): db.execute(query, parameters).fetchall()

    def problems(self) -> list[str]:
        found = []
        triggers = {
            name
            for [name] in self._scanner.rows(
                "SELECT tgname FROM pg_trigger WHERE tgrelid IN ('heedful.event'::regclass, "
                "'heedful.forgotten'::regclass) AND tgenabled = 'O' AND NOT tgisinternal"
            )
        }
        missing = sorted({"event_stays", "event_whole", "forgotten_stays", "forgotten_whole"} - triggers)
        if missing:
            found.append(f"the database no longer refuses changes: {', '.join(missing)} missing or changed")
        [[parts]] = self._scanner.rows("SELECT count(*) FROM pg_inherits WHERE inhparent = 'heedful.event'::regclass")
        if parts != PARTITIONS:
            found.append(f"partitions of events: expected {PARTITIONS}, got {parts}")
        [[mode]] = self._scanner.rows("SELECT current_setting('fsync')")
        if mode != "on":
            found.append(
                f"fsync: expected on, got {mode}: a crash of the database's machine may lose what was answered"
            )
        return found

    def lease_problem(self) -> tuple[str, str] | None:
        query = "SELECT address, expires::text, expires > clock_timestamp() + make_interval(secs => ?) "
        rows = self._scanner.rows(f"{query} FROM heedful.lease WHERE loop = ?", [LONGEST, self.number])
        if not rows:
            told = "missing: the database does not have the row that says who owns the loop"
            return told, "Nothing is lost: the next decision or feedback makes it again."
        [[address, expires, forever]] = rows
        if not forever:
            return None
        told = f"another process{f', at {address},' if address else ''} owns the loop until {expires}"
        ended = f"UPDATE heedful.lease SET expires = clock_timestamp() WHERE loop = {self.number}"
        return told, f"Nobody asks for so long. If the database's clock is right, let others write to it: {ended}"

    # ------------------------------------------------------------------------ the place itself

    def is_there(self) -> bool:
        return not self._gone

    def leave_write_ahead(self) -> None:
        """Do nothing: the database looks after its write-ahead log."""

    move_write_ahead = begin_write_ahead_anew = leave_write_ahead


class Shelf:
    """The snapshots of one loop's model in a table of its PostgreSQL database, each at a position: the sequence number
    of an event."""

    def __init__(self, table: LogTable) -> None:
        """Keep the snapshots of the loop whose log is `table`."""
        self._table = table

    def positions(self) -> list[int]:
        query = f"SELECT position FROM heedful.snapshot WHERE loop = {self._table.number} ORDER BY position DESC"
        return [position for [position] in self._table.few(query)]

    def name(self, position: int) -> str:
        return f"snapshot {position}"

    def read(self, position: int) -> tuple[dict[str, Any], dict[str, Any]]:
        query = f"SELECT content FROM heedful.snapshot WHERE loop = {self._table.number} AND position = ?"
        with self._table.scanning() as run:
            rows = run(query, [position])
        if not rows:
            raise FileNotFoundError(f"{self.name(position)}: expected a snapshot, got none")
        return unpack_arrays(rows[0][0], self.name(position))

    def prepare(self, arrays: dict[str, Any], about: dict[str, Any]) -> bytes:
        return pack_arrays(arrays, about)

    def write(self, position: int, prepared: Any) -> Address:
        content: bytes = prepared
        if len(content) > LARGEST:
            raise OSError(
                27, f"expected a snapshot of at most {LARGEST} bytes, got {len(content)}", self.name(position)
            )
        self._table.execute(
            "INSERT INTO heedful.snapshot VALUES (?, ?, ?) ON CONFLICT (loop, position) "
            "DO UPDATE SET content = excluded.content RETURNING 1",
            [self._table.number, position, content],
        )
        return self._table.path

    def remove(self, positions: Sequence[int]) -> None:
        if positions:
            query = "DELETE FROM heedful.snapshot WHERE loop = ? AND position = ANY(?::bigint[]) RETURNING 1"
            self._table.execute(query, [self._table.number, list(positions)])

    def clear(self) -> None:
        self._table.few("DELETE FROM heedful.snapshot WHERE loop = ? RETURNING 1", [self._table.number])

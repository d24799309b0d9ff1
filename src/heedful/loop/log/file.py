"""A log in a SQLite file, a `Store`: opening it, transactions, erasing, and its write-ahead file.

It is in WAL mode with full synchronisation, so a commit is on the disk before anybody is told. The file is long because
`LogFile` has a method for each thing that a log asks of its database.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Any

from heedful.core.paths import path_kind
from heedful.loop.log.event import COLUMNS, WIDTH
from heedful.loop.log.schema import APPLICATION, CACHE, PRAGMAS, SCHEMA, TRIGGERS
from heedful.loop.log.store import Run, anyone, unwritable
from heedful.storage import Busy, Damaged, Moved
from heedful.storage.sqlite import WAIT, Connection, Database

COMMITTED = 16_000
"""About how many bytes a commit writes in addition to its events: pages of the table and its indices."""
KEPT = "-kept"
"""What a copy of the log is called, behind its name, that was written because a part of it was removed."""
_ROW = f"({', '.join('?' * WIDTH)})"


class LogFile:
    """An open log file: one connection that writes, one for short reads, and others for long reads while they last.

    Several processes may have the file open. Within a process one thread writes at a time (`writing`); any thread may
    read.
    """

    shelf = None

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        create: bool = False,
        wait: float = WAIT,
        read_only: bool = False,
        secret: bytes = b"",
    ) -> None:
        """Open the file `path`, or create it if `create` is True; the arguments and errors are those of `Log`.

        A file that is created to hold the events of another log is given the `secret` of that one."""
        self.path = Path(path)
        self._name = str(self.path)  # a path made anew from its parts takes longer than to look whether it is there
        self._opened: dict[str, tuple[int, ...]] = {}  # which files the open ones are, by the ends of their names
        self._database = Database(self.path, SCHEMA, wait=wait)
        self._errors = self._database.errors
        self._locked = not create and not self._database.can_write()
        self.read_only = read_only or self._locked
        self.owns = self.locks_readers = not self.read_only
        self._immutable = False  # whether SQLite reads it as a file that nobody writes to
        if not create and path_kind(self.path) != "file":
            raise FileNotFoundError(errno.ENOENT, "no such log; make one with heedful init", str(self.path))
        if create:
            self._database.create()
        elif (kept := self._beside(KEPT)).exists():
            told = "expected a whole log, got one of which a part was removed while it was open"
            raise Damaged(f"{self.path}: {told}; {self._put_in_place(kept)}")
        else:
            self._database.check_header()
        self._note_opened("")  # before it is opened: another file in its place would be found out
        self.unmoved = 0
        """about how many bytes this process wrote into the write-ahead file since the last checkpoint moved them to the
        log file"""
        self._lock = threading.RLock()
        self._durable = True  # whether the writer's commits wait for the disk, as PRAGMAS say
        self._reading, self._scanning = threading.Lock(), threading.Lock()
        try:
            # Set before WAL mode begins: until a checkpoint, whatever comes later is not in the file itself.
            self._writer = self._connect(*([f"application_id = {APPLICATION}"] if create else []), *PRAGMAS)
            self._reader = self._writer if self.read_only else self._connect(CACHE)
            with self._errors():
                self._database.check(self._writer)
            if create:
                self._fill(secret or secrets.token_bytes(32))
            self.secret = self._salt()
            if not self.read_only:
                with self._errors():
                    self._database.shrink_write_ahead(self._writer)
                self._note_opened("-wal", "-shm")  # they were made, or found, when the log was read
        except BaseException as error:
            self.close()
            if create:
                for suffix in ("", "-wal", "-shm"):
                    self._beside(suffix).unlink(missing_ok=True)
                if isinstance(error, Damaged):  # a new log is none: with no file left to open, a part was not seen
                    raise OSError(errno.EIO, f"the new log cannot be read: {error}", str(self.path)) from error
            raise

    def _connect(self, *pragmas: str) -> Connection:
        return self._connect_reading() if self.read_only else self._database.connect(*pragmas)

    def _connect_reading(self) -> Connection:
        """Return a connection that changes nothing, and leaves behind no file that was not there.

        Where SQLite can make the write-ahead file and the index of it, its last connection removes them, if it may
        write. Where it cannot, a log without a write-ahead file is read as it is (https://sqlite.org/wal.html#readonly).
        """
        wal = self._beside("-wal")
        pragmas = "query_only = ON", "user_version"  # the second one reads the file
        if wal.exists() or not self._locked:
            try:
                return self._database.connect(*pragmas, mode="ro" if wal.exists() else "rw")
            except OSError:
                if not self._locked:
                    raise
        if wal.exists() and wal.stat().st_size:
            told = f"{wal.name} has events that the log has not yet, and cannot be read where nothing can be written"
            told += f": copy {self.path.parent} as a whole to a folder that can be written, and read it there"
            raise OSError(errno.EROFS, told, str(self.path))
        if not self._immutable:
            self._immutable = True
            self._note_opened("")
        return self._database.connect(*pragmas, mode="ro&immutable=1")

    def _fill(self, secret: bytes) -> None:
        """Give a new file its tables and its `secret`, all or nothing."""
        with self.writing():
            self._database.fill(self._writer)
            salt = secret.hex()
            checked = f"{zlib.crc32(salt.encode()):08x}"
            self._writer.execute("INSERT INTO secret VALUES ('salt', ?)", [salt + checked])

    def _salt(self) -> bytes:
        """Return the secret key of this log, with which digests of forgotten ids are made. Raise Damaged if it was
        changed."""
        [value] = self.one("SELECT value FROM secret WHERE name = 'salt'") or [""]
        salt, checked = value[:-8], value[-8:]
        if checked != f"{zlib.crc32(salt.encode()):08x}":
            raise Damaged(f"{self.path}: expected a whole log, got one whose secret was changed: restore a back-up")
        return bytes.fromhex(salt)

    def close(self) -> None:
        if self._missing():
            self._keep()
        self._opened = {}  # SQLite removes the write-ahead file with the last connection
        with self._lock, self._reading, self._scanning:  # a connection must not go while a thread is using it
            for name in ("_reader", "_writer"):
                connection = self.__dict__.get(name)
                if connection is not None:
                    connection.close()

    def keep_owning(self, seconds: float, address: str, rightful: Callable[[], str] = anyone) -> None:
        """Do nothing: the process that commits next is the owner meanwhile."""

    def hand_over(self) -> None:
        """Do nothing: the process that commits next is the owner meanwhile."""

    # ------------------------------------------------------------------------ transactions

    @contextmanager
    def writing(self, patient: bool = True, durable: bool = True) -> Iterator[None]:
        if self._locked and self._database.can_write():
            raise Moved(f"{self.path}: it can be written now: open it again")
        if self.read_only:
            why = "cannot be written, so it is only read" if self._locked else "was opened for reading only"
            raise unwritable(self.path, why)
        if not self._lock.acquire(blocking=patient):
            raise Busy(f"{self.path}: a thread is writing")
        try:
            if durable != self._durable:
                with self._errors():
                    self._writer.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                self._durable = durable
            with self._errors(writing=True), self._database.transaction(self._writer, patient=patient):
                yield
                self._check_same()  # before anybody is told that it was written
        finally:
            self._lock.release()

    def sync(self) -> None:
        self._check_same()
        self._database.sync()

    def execute(self, query: str, parameters: Sequence[Any] = ()) -> list[Any]:
        return self._writer.execute(query, parameters).fetchall()

    def head(self) -> int:
        [seq] = self._writer.execute("SELECT coalesce(max(seq), 0) FROM event").fetchone()
        return int(seq)

    def known(self, columns: str, kind: str, ids: Sequence[str]) -> list[Any]:
        query = f"SELECT {columns} FROM event WHERE kind = ? AND id IN (SELECT value FROM json_each(?))"
        return self._writer.execute(query, (kind, json.dumps(ids))).fetchall()

    def append(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self.unmoved += COMMITTED + sum([1000 + len(row[7]) + len(row[8] or b"") for row in rows])
        # Many rows in a statement: between statements other threads take the interpreter, and this one waits.
        at = 0
        for size in (256, 64, 16, 4, 1):
            while len(rows) - at >= size:
                self._writer.execute(_insert(size), [value for row in rows[at : at + size] for value in row])
                at += size

    # ------------------------------------------------------------------------ erasing

    def remove(self, seqs: Sequence[int], digests: Sequence[str], seq: int) -> None:
        for name, _ in TRIGGERS:  # those that refuse to delete, created again below
            self._writer.execute(f"DROP TRIGGER {name}")
        insertion = "INSERT OR REPLACE INTO forgotten VALUES (?, ?)"
        self._writer.executemany(insertion, [(digest, seq) for digest in digests])
        self._writer.executemany("DELETE FROM event WHERE seq = ?", [(each,) for each in seqs])
        self._database.create_triggers(self._writer)

    def unreached(self) -> tuple[str, ...]:
        kept = self.path.with_name(f".{self.path.name}-litestream")  # which copies the file while it is in use
        return (f"{kept.name} next to the log, and the copies that Litestream makes of it",) if kept.exists() else ()

    def rewrite(self) -> None:
        # Readers go on meanwhile: SQLite waits until each has finished. It does not wait for another process that is
        # running a checkpoint at this moment, so this loop does.
        until, busy = time.monotonic() + self._database.wait, True
        self._beside(f"{KEPT}.part").unlink(missing_ok=True)
        with self._lock, self._errors():
            self._writer.execute("VACUUM")
            while busy:
                [busy, _, _] = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if busy and time.monotonic() > until:
                    break
                time.sleep(0.01 if busy else 0.0)
        if busy:
            raise TimeoutError(
                f"{self.path}: another process is reading, so the forgotten bytes are still in the write-ahead file: "
                "close it and open the loop again, which finishes the job"
            )

    def _beside(self, suffix: str) -> Path:
        return Path(f"{self.path}{suffix}")

    def _note_opened(self, *suffixes: str) -> None:
        for suffix in suffixes:
            if (identity := _identity(self._name + suffix, self._immutable)) is not None:
                self._opened[suffix] = identity

    def _missing(self) -> str | None:
        """Return the end of the name ("", "-wal", "-shm") of the first open file that is no longer at its path; None if
        all are."""
        for suffix, identity in self._opened.items():
            if _identity(self._name + suffix, self._immutable) != identity:
                return suffix
        return None

    def is_there(self) -> bool:
        # A log that could not be written, and can be now, has to be opened again.
        return self._missing() is None and not (self._locked and self._database.can_write())

    def _check_same(self) -> None:
        """Raise Moved if a path no longer names the open file: events written to that would be lost.

        If it is not the log itself, but its write-ahead file or the index of that, all events are written to a file
        next to it, as only the open connections have those that were not moved into the log yet."""
        missing = self._missing()
        if missing == "":
            told = "the file was removed or replaced while it was open; nothing was written: open the loop again"
            raise Moved(f"{self.path}: {told}")
        if missing is not None:
            told = f"{self._beside(missing).name} was removed or replaced while it was open; nothing was written"
            raise Moved(f"{self.path}: {told}; {self._keep()}")

    def _keep(self) -> str:
        """Write all that the open connections see to a file next to the log, unless that was done; return in words
        where it is, and what to do."""
        kept, part = self._beside(KEPT), self._beside(f"{KEPT}.part")
        try:
            with self._reading:
                if not kept.exists():
                    part.unlink(missing_ok=True)
                    with open(os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600), "rb") as file, self._errors():
                        self._reader.execute("VACUUM INTO ?", [str(part)])
                        os.fsync(file.fileno())
                    os.replace(part, kept)
        except (OSError, ValueError) as error:
            part.unlink(missing_ok=True)
            return f"what is not in {self.path.name} could not be kept, and ends with this process: {error}"
        return self._put_in_place(kept)

    def _put_in_place(self, kept: Path) -> str:
        paths = [quote(str(self._beside(suffix))) for suffix in ("-wal", "-shm")]
        command = f"rm -f {' '.join(paths)} && mv {quote(str(kept))} {quote(str(self.path))}"
        return f"{kept.name} next to it has every event: end all that use the loop, and put it in place: {command}"

    # ------------------------------------------------------------------------ the write-ahead file

    def leave_write_ahead(self) -> None:
        with self._lock, self._errors():
            self._writer.execute("PRAGMA wal_autocheckpoint = 65536")  # at 256 MB a commit runs one all the same

    def move_write_ahead(self) -> None:
        with self._scanner(*PRAGMAS) as connection, self._errors():
            self.unmoved = 0
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def begin_write_ahead_anew(self) -> None:
        if self._lock.acquire(blocking=False):
            try:
                with self._errors():
                    self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)")
            finally:
                self._lock.release()

    # ------------------------------------------------------------------------ connections that read

    @contextmanager
    def _reads(self) -> Iterator[None]:
        """Run the block with the errors of a query. Raise Moved if SQLite reads a file as one that nobody writes to,
        and somebody has."""
        with self._errors():
            try:
                yield
            finally:
                if self._immutable and self._missing() is not None:
                    raise Moved(f"{self.path}: it was written while it was read: open it again")

    def one(self, query: str, parameters: Sequence[object] = ()) -> Any:
        with self._reading, self._reads():
            return self._reader.execute(query, parameters).fetchone()

    def few(self, query: str, parameters: Sequence[object] = ()) -> list[Any]:
        with self._reading, self._reads():
            return self._reader.execute(query, parameters).fetchall()

    @contextmanager
    def scanning(self) -> Iterator[Run]:
        with self._scanner() as scanner:

            def run(query: str, parameters: Sequence[object] = ()) -> list[Any]:
                with self._scanning, self._reads():
                    return scanner.execute(query, parameters).fetchall()

            yield run

    @contextmanager
    def frozen(self) -> Iterator[Run]:
        with self._scanner() as scanner, self._errors(), self._database.transaction(scanner, writes=False):
            yield lambda query, parameters=(): scanner.execute(query, parameters).fetchall()

    def copy_to(self, path: Path) -> None:
        """Copy the log as it is now to the new file `path`, while others write to it."""
        with self._scanner() as scanner:
            Database(path, SCHEMA).create_copy(scanner)

    @contextmanager
    def _scanner(self, *pragmas: str) -> Iterator[Connection]:
        with self._reading, self._errors():
            _ = self._reader.total_changes  # a log that was closed stays closed
        scanner = self._connect(*(pragmas or [CACHE]))
        try:
            yield scanner
        finally:
            scanner.close()

    def problems(self) -> list[str]:
        with self.scanning() as run:
            found = [row[0] for row in run("PRAGMA integrity_check") if row[0] != "ok"]
            there = dict(run("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"))
            [[mode]] = run("PRAGMA journal_mode")
        missing = sorted(name for name, sql in TRIGGERS if there.get(name) != sql)
        if missing:
            found.append(f"the database no longer refuses changes: {', '.join(missing)} missing or changed")
        if mode != "wal" and not self.read_only:  # who writes makes it so
            found.append(f"journal mode: expected wal, got {mode}")
        return found

    def lease_problem(self) -> None:
        """Return None: the process that commits next is the owner meanwhile."""


def _identity(path: str, unchanged: bool = False) -> tuple[int, ...] | None:
    """Return what the system knows the file at `path` by, and if it is to be `unchanged`, when it was written last;
    None if there is none."""
    try:
        there = os.stat(path)
    except OSError:
        return None
    return there.st_ino, there.st_dev, *([there.st_size, there.st_mtime_ns] if unchanged else [])


def _insert(rows: int) -> str:
    return f"INSERT INTO event ({COLUMNS}) VALUES {', '.join([_ROW] * rows)}"

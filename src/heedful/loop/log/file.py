"""The file of a log: opening it, transactions, and its write-ahead file.

It is SQLite in WAL mode with full synchronisation, so a commit is on the disk before anybody is told.
"""

from __future__ import annotations

import errno
import os
import secrets
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from heedful.loop.log.schema import APPLICATION, PRAGMAS, SCHEMA
from heedful.storage import WAIT, Busy, Connection, Damaged, Database, Moved


class LogFile:
    """An open log file: one connection that writes, one for short reads, and others for long reads while they last.

    Several processes may have the file open. Within a process one thread writes at a time (`writing`); any thread may
    read.
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool = False, wait: float = WAIT) -> None:
        """Open the file `path`, or create it if `create` is True; the arguments and errors are those of `Log`."""
        self.path = Path(path)
        self._database = Database(self.path, SCHEMA, wait=wait)
        self._errors = self._database.errors
        if not create and not self.path.is_file():
            raise FileNotFoundError(errno.ENOENT, "no such log; make one with heedful init", str(self.path))
        if create:
            self._database.create()
        else:
            self._database.check_header()
        opened = os.stat(self.path)
        self._identity = opened.st_ino, opened.st_dev
        self.unmoved = 0
        """about how many bytes this process wrote into the write-ahead file since the last checkpoint moved them to the
        log file"""
        self._lock = threading.RLock()
        self._durable = True  # whether the writer's commits wait for the disk, as PRAGMAS say
        self._reading, self._scanning = threading.Lock(), threading.Lock()
        try:
            self._writer, self._reader = self._connect(create), self._connect()
            with self._errors():
                outdated = self._database.check(self._writer) < SCHEMA.newest
            if outdated:
                self._migrate(create)
            self._secret = self._salt()
        except BaseException:
            self.close()
            if create:
                for suffix in ("", "-wal", "-shm"):
                    Path(f"{self.path}{suffix}").unlink(missing_ok=True)
            raise

    def _connect(self, create: bool = False) -> Connection:
        # Set before WAL mode begins: until a checkpoint, whatever comes later is not in the file itself.
        return self._database.connect(*([f"application_id = {APPLICATION}"] if create else []), *PRAGMAS)

    def _migrate(self, create: bool) -> None:
        """Take the migration steps that the file has not had, all of them or none; a new file (`create`) also gets its
        secret."""
        with self.writing() as connection:
            self._database.migrate(connection)
            if create:
                salt = secrets.token_hex(32)
                checked = f"{zlib.crc32(salt.encode()):08x}"
                connection.execute("INSERT INTO secret VALUES ('salt', ?)", [salt + checked])

    def _salt(self) -> bytes:
        """Return the secret key of this log, with which digests of forgotten ids are made. Raise Damaged if it was
        changed."""
        [value] = self._one("SELECT value FROM secret WHERE name = 'salt'") or [""]
        salt, checked = value[:-8], value[-8:]
        if checked != f"{zlib.crc32(salt.encode()):08x}":
            raise Damaged(f"{self.path}: expected a whole log, got one whose secret was changed: restore a back-up")
        return bytes.fromhex(salt)

    def close(self) -> None:
        """Close all connections; the log cannot be used afterwards."""
        with self._lock, self._reading, self._scanning:  # a connection must not go while a thread is using it
            for name in ("_reader", "_writer"):
                connection = self.__dict__.get(name)
                if connection is not None:
                    connection.close()

    # ------------------------------------------------------------------------ transactions

    @contextmanager
    def writing(self, patient: bool = True, durable: bool = True) -> Iterator[Connection]:
        """Begin a transaction, which is committed and on the disk when the `with` block ends, or rolled back if it
        raises.

        Yields the connection that writes. Raise TimeoutError if another process keeps writing, Busy if another thread
        or process is writing and `patient` is False, and Moved if the file was removed or replaced.

        If `durable` is False, the transaction is committed when the block ends, seen by every process, and kept if this
        one is killed. It reaches the disk with the next durable transaction, or with `sync`. Until then a power cut may
        take it, with all that came after it.
        """
        if not self._lock.acquire(blocking=patient):
            raise Busy(f"{self.path}: a thread is writing")
        try:
            if durable != self._durable:
                with self._errors():
                    self._writer.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                self._durable = durable
            with self._errors(writing=True), self._database.transaction(self._writer, patient=patient):
                self._check_same()
                yield self._writer
        finally:
            self._lock.release()

    def sync(self) -> None:
        """Wait until all that was committed is on the disk. Raise Moved if the file was removed or replaced."""
        self._check_same()
        self._database.sync()

    def _check_same(self) -> None:
        """Raise Moved if the path no longer names the open file: events written to it would be lost."""
        try:
            there = os.stat(self.path)
        except OSError:
            there = None
        if there is None or (there.st_ino, there.st_dev) != self._identity:
            told = "the file was removed or replaced while it was open; nothing was written: open the loop again"
            raise Moved(f"{self.path}: {told}")

    # ------------------------------------------------------------------------ the write-ahead file

    def leave_write_ahead(self) -> None:
        """Stop commits of this process from running checkpoints, because another of its threads calls
        `move_write_ahead`.

        If the write-ahead file reaches 256 MB, a commit runs one all the same."""
        with self._lock, self._errors():
            self._writer.execute("PRAGMA wal_autocheckpoint = 65536")  # 256 MB

    def move_write_ahead(self) -> None:
        """Run a checkpoint: move pages from the write-ahead file to the log file, while others read and write."""
        with self._scanner() as connection, self._errors():
            self.unmoved = 0
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def begin_write_ahead_anew(self) -> None:
        """Run a checkpoint between two commits, so that the next commit starts at the beginning of the write-ahead
        file.

        It moves the few pages that came since the last checkpoint. Do nothing while a thread is writing."""
        if self._lock.acquire(blocking=False):
            try:
                with self._errors():
                    self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)")
            finally:
                self._lock.release()

    # ------------------------------------------------------------------------ connections that read

    def _one(self, query: str, parameters: Sequence[Any] = ()) -> Any:
        """Return the first row of a short query; None if there is none."""
        with self._reading, self._errors():
            return self._reader.execute(query, parameters).fetchone()

    @contextmanager
    def _scanner(self) -> Iterator[Connection]:
        """Open a connection for a long read, so that short reads need not wait for it; it is closed when the block
        ends."""
        with self._reading, self._errors():
            self._reader.execute("SELECT 1")  # a log that was closed stays closed
        scanner = self._connect()
        try:
            yield scanner
        finally:
            scanner.close()

    def _scan(self, query: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Return all rows of a `query` that may read much of the log, on a connection of its own."""
        with self._scanner() as scanner, self._scanning, self._errors():
            return scanner.execute(query, parameters).fetchall()

"""The file `server.db`, in the folder of loops: tables of keys, sessions, links and the audit log, with a
connection for each use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from heedful.core.wording import count
from heedful.storage import Address, Damaged, Place, sqlite
from heedful.storage.sqlite import Connection, Schema
from heedful.storage.tables import SERVER_TABLES

SCHEMA = Schema("database of keys", SERVER_TABLES)

if TYPE_CHECKING:
    from heedful.server.tables import Tables


def digest_of(token: str) -> bytes:
    """Return the SHA-256 of the secret `token` of a session or a link, of which the tables have nothing else."""
    return sha256(token.encode()).digest()


def open_database(home: Place) -> Database | Tables:
    """Return the database of keys, sessions and links for the loops in `home`: the file `server.db` of a folder, or
    tables in the loops' own database.

    Raise Damaged, a ValueError, if it is something else, is damaged, or was written by a newer heedful."""
    if isinstance(home, Address):
        from heedful.server.tables import Tables

        return Tables(home)
    return Database(Path(home) / "server.db")


def problem_of(path: Path) -> str:
    """Return what is wrong with the file `path`, a `server.db`, as a sentence; "" if nothing is. It is only read."""
    database = sqlite.Database(path, SCHEMA)
    try:
        with database.errors(), closing(database.connect(mode="ro")) as connection:
            if not database.check(connection) and path.stat().st_size:
                return f"{path}: expected a {SCHEMA.noun}, got a file of another kind or a damaged one"
            wrong = [row[0] for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
    except (ValueError, OSError) as error:
        return str(error)
    if not wrong:
        return ""
    first = " ".join(wrong[0].split())
    return f"{path}: expected a whole {SCHEMA.noun}, got one with {count(len(wrong), 'fault')}: {first}"


class Database(sqlite.Database):
    """The file `server.db`, with the API keys, sessions and links of a folder of loops.

    It need not exist; only `writing(create=True)` creates it."""

    def __init__(self, path: Path) -> None:
        """Prepare to use the file `path`, which need not exist.

        Raise Damaged if it is something else, is damaged, or was written by a newer heedful."""
        super().__init__(path.absolute(), SCHEMA)
        if self.exists():
            with self.errors(), closing(self.connect()) as connection:
                self.check(connection)

    def exists(self) -> bool:
        """Return whether the file exists. Raise OSError if the system cannot tell."""
        try:
            os.stat(self.path)
        except FileNotFoundError:
            return False
        return True

    def check(self, connection: Connection) -> bool:
        """Return whether the tables exist, after checking that this heedful can use the file: the process that created
        it may have stopped before it made them.

        Raise Damaged if it cannot, also for a file without tables that is not empty."""
        filled = super().check(connection)
        if not filled and os.stat(self.path).st_size:
            raise Damaged(f"{self.path}: expected a {self.schema.noun}, got a file of another kind or a damaged one")
        return filled

    @contextmanager
    def reading(self, wait: float | None = None) -> Iterator[Connection | None]:
        """Yield a connection within a transaction that reads; None if the file or its tables do not exist.

        Raise TimeoutError if another process writes for longer than `wait` seconds (None: 5)."""
        if not self.exists():
            yield None
            return
        with self.errors(), closing(self.connect(wait=wait)) as connection, self.transaction(connection, writes=False):
            yield connection if self.check(connection) else None

    def close(self) -> None:
        """Do nothing: each use has a connection of its own."""

    @contextmanager
    def writing(self, create: bool = False) -> Iterator[Connection]:
        """Yield a connection within a transaction that writes; `create` creates a missing file.

        What was written is on the disk when the block ends, and rolled back if it raises."""
        if create:
            with suppress(FileExistsError):  # another process makes the same file
                self.create()
        # These look at the file, and wait where somebody is writing: who only reads does without.
        durable = ("journal_mode = DELETE", "synchronous = FULL", "fullfsync = ON")
        with self.errors(), closing(self.connect(*durable)) as connection, self.transaction(connection):
            if not self.check(connection):
                self.fill(connection)
            yield connection

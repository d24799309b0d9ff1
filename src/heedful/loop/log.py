"""The log: what happened, in the order it happened, in a database that refuses to change it.

One table of events with an increasing sequence number. SQLite in WAL mode with full synchronisation: a commit is on
the disk before anybody is told. UPDATE and DELETE are refused by triggers of the database itself, whoever asks; the
one way to take something out is `Log.erase`, which forgets a person, says so in the log, and rewrites the file.

Only this module touches the database. It knows nothing of learners: `heedful.loop` says what the events mean.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import json
import os
import secrets
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from heedful.storage import WAIT, Busy, Connection, Damaged, Database, Moved, Schema

COMMITTED = 16_000
"""Bytes that a commit writes besides its events, about: pages of the table and its indices."""
PAGE = 200
"""Events read at a time by whoever goes back."""
FEW = 2000
"""So many events of a kind are found by the index alone."""
APPLICATION = 0x68656564
"""What the header of a log says it is: "heed"."""

# The schema, one step after the other; a step that has been released is never edited. What another database spells
# otherwise is said in docs/decisions/0005.
STEPS = (
    (
        """CREATE TABLE event (
            seq INTEGER NOT NULL PRIMARY KEY, -- 1, 2, ...: the order of the log; what was forgotten leaves a gap
            kind TEXT NOT NULL,               -- loop, item, decision, activate, feedback, undo, forget, erased, export
            id TEXT NOT NULL,                 -- the caller's event id
            time BIGINT NOT NULL,             -- microseconds since 1970, UTC, by the clock of the writer
            subject TEXT,                     -- the person of a decision, the name of an item
            target BIGINT,                    -- the decision a feedback answers, the event an undo takes back
            version BIGINT NOT NULL,          -- the model's version when the event came
            payload TEXT NOT NULL,            -- JSON
            arrays BLOB,                      -- float32 features, little-endian
            checked BIGINT NOT NULL,          -- CRC-32 of all that stands before: a flipped bit is found
            UNIQUE (kind, id)
        )""",
        "CREATE INDEX event_subject ON event (kind, subject, seq) WHERE subject IS NOT NULL",
        "CREATE TABLE forgotten (digest TEXT NOT NULL PRIMARY KEY, seq BIGINT NOT NULL) WITHOUT ROWID",
        "CREATE TABLE secret (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    ),
)

_REFUSE = "SELECT RAISE(ABORT, 'the log is append-only')"
# INSERT OR REPLACE deletes without firing a DELETE trigger: an insertion where there is a row is refused as well.
_TRIGGERS = tuple(
    (f"{table}_{name}", f"CREATE TRIGGER {table}_{name} BEFORE {act} ON {table} {when} BEGIN {_REFUSE}; END")
    for table, taken in (
        ("event", "seq = NEW.seq OR (kind = NEW.kind AND id = NEW.id)"),
        ("forgotten", "digest = NEW.digest"),
        ("secret", "name = NEW.name"),
    )
    for name, act, when in (
        ("keeps", "UPDATE", ""),
        ("stays", "DELETE", ""),
        ("adds", "INSERT", f"WHEN EXISTS (SELECT 1 FROM {table} WHERE {taken})"),
    )
)
SCHEMA = Schema("log", STEPS, _TRIGGERS, APPLICATION)
_PRAGMAS = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "fullfsync = ON",
    "secure_delete = ON",
    "cache_size = -65536",  # 64 MB: the indices of a few million events
    "wal_autocheckpoint = 8192",  # 32 MB: ids are random, so pages change often
)


class Event(NamedTuple):
    """One row of the log; `seq` 0 before it is appended."""

    seq: int
    kind: str
    id: str
    time: int
    subject: str | None
    target: int | None
    version: int
    payload: str
    arrays: bytes | None = None


_COLUMNS = ", ".join((*Event._fields, "checked"))
_WIDTH = len(Event._fields) + 1


def _insert(rows: int) -> str:
    return f"INSERT INTO event ({_COLUMNS}) VALUES {', '.join([_ROW] * rows)}"


_ROW = f"({', '.join('?' * _WIDTH)})"


def checksum(event: Event) -> int:
    """CRC-32 of an event."""
    return zlib.crc32(event.arrays or b"", zlib.crc32(repr(event[:-1]).encode("utf-8", "surrogatepass")))


def now() -> int:
    """The time of an event: microseconds since 1970, UTC. The order of the log is its sequence, never its clock."""
    return time.time_ns() // 1000


class Log:
    """The log in one file, opened for reading and for appending.

    Several processes may have it open; each appends in a transaction of its own that first looks at what the others
    appended (`head`). Within a process one thread writes at a time (`writing`); any thread may read.
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool = False, wait: float = WAIT) -> None:
        """Open the log `path`, or create it. FileExistsError or FileNotFoundError where that cannot be; ValueError
        where the file is something else, is damaged, or was written by a newer heedful."""
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
        """bytes that this process wrote into the write-ahead file since it was last moved, about"""
        self._lock = threading.RLock()
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
        self.look_for_forgotten()

    # ------------------------------------------------------------------------ opening

    def _connect(self, create: bool = False) -> Connection:
        # What the header says is there from the first page on: until it is moved, the rest is in the write-ahead file.
        return self._database.connect(*([f"application_id = {APPLICATION}"] if create else []), *_PRAGMAS)

    def _migrate(self, create: bool) -> None:
        """Bring the schema up to date, step by step, all of it or nothing."""
        with self.writing() as connection:
            self._database.migrate(connection)
            if create:
                salt = secrets.token_hex(32)
                checked = f"{zlib.crc32(salt.encode()):08x}"
                connection.execute("INSERT INTO secret VALUES ('salt', ?)", [salt + checked])

    def _salt(self) -> bytes:
        """What digests are made with: no two logs have the same."""
        [value] = self._one("SELECT value FROM secret WHERE name = 'salt'") or [""]
        salt, checked = value[:-8], value[-8:]
        if checked != f"{zlib.crc32(salt.encode()):08x}":
            raise Damaged(f"{self.path}: wanted a whole log, got one whose secret was changed: restore a back-up")
        return bytes.fromhex(salt)

    def close(self) -> None:
        """Close the file; the log cannot be used afterwards."""
        with self._lock, self._reading, self._scanning:  # a connection must not go while a thread is using it
            for name in ("_reader", "_writer"):
                connection = self.__dict__.get(name)
                if connection is not None:
                    connection.close()

    # ------------------------------------------------------------------------ appending

    @contextmanager
    def writing(self, patient: bool = True) -> Iterator[Connection]:
        """One transaction: committed and on the disk when the block ends, undone where it raises. One that is not
        patient waits for nobody: Busy where somebody else is writing."""
        if not self._lock.acquire(blocking=patient):
            raise Busy(f"{self.path}: a thread is writing")
        try:
            with self._errors(writing=True), self._database.transaction(self._writer, patient=patient):
                self._wanted_same()
                yield self._writer
        finally:
            self._lock.release()

    def _wanted_same(self) -> None:
        """Moved where the file is no longer the one that was opened: what goes into it nobody would find again."""
        try:
            there = os.stat(self.path)
        except OSError:
            there = None
        if there is None or (there.st_ino, there.st_dev) != self._identity:
            told = "the file was removed or replaced while it was open; nothing was written: open the loop again"
            raise Moved(f"{self.path}: {told}")

    def append(self, events: Iterable[Event]) -> None:
        """Add events; inside `writing`."""
        rows = [(*event, checksum(event)) for event in events]
        self.unmoved += COMMITTED + sum([1000 + len(row[7]) + len(row[8] or b"") for row in rows])
        # Many rows a statement: between statements other threads get hold of the interpreter, and this one waits.
        at = 0
        for size in (256, 64, 16, 4, 1):
            while len(rows) - at >= size:
                self._writer.execute(_insert(size), [value for row in rows[at : at + size] for value in row])
                at += size

    def head(self) -> int:
        """The sequence number of the last event, 0 where there is none; inside `writing`: whoever else appended."""
        [seq] = self._writer.execute("SELECT coalesce(max(seq), 0) FROM event").fetchone()
        return int(seq)

    def known(self, kind: str, ids: Sequence[str]) -> dict[str, Event]:
        """The events of that kind that have one of these ids, by id; inside `writing`."""
        query = f"SELECT {_COLUMNS} FROM event WHERE kind = ? AND id IN (SELECT value FROM json_each(?))"
        rows = self._writer.execute(query, (kind, json.dumps(ids))).fetchall()
        return {event.id: event for event in map(self._event, rows)}

    def look_for_forgotten(self) -> None:
        """Look whether anybody was forgotten: only then are digests compared."""
        self._any_forgotten = self._one("SELECT EXISTS (SELECT 1 FROM forgotten)")[0] == 1

    def is_forgotten(self, kind: str, id: str) -> bool:
        """Whether an event of that kind and id was here and was forgotten."""
        if not self._any_forgotten:
            return False
        return self._one("SELECT 1 FROM forgotten WHERE digest = ?", [self.digest(kind, id)]) is not None

    def is_gone(self, seq: int) -> bool:
        """Whether the event of that sequence number was forgotten."""
        return self._any_forgotten and self.at(seq) is None

    def digest(self, kind: str, value: str) -> str:
        """What stays of something forgotten: enough to know it again when somebody brings it, not to read it."""
        return hmac.new(self._secret, f"{kind}\0{value}".encode(), hashlib.sha256).hexdigest()

    # ------------------------------------------------------------------------ the write-ahead file

    def leave_write_ahead(self) -> None:
        """Let commits no longer move what stands in the write-ahead file: `move_write_ahead` does, in a thread beside
        them. (They still do where that falls far behind.)"""
        with self._lock, self._errors():
            self._writer.execute("PRAGMA wal_autocheckpoint = 65536")  # 256 MB

    def move_write_ahead(self) -> None:
        """Move what stands in the write-ahead file to its place, while others read and write."""
        with self._scanner() as connection, self._errors():
            self.unmoved = 0
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def begin_write_ahead_anew(self) -> None:
        """Move the little that came since, between two commits: only then can the next begin the file anew."""
        if self._lock.acquire(blocking=False):
            try:
                with self._errors():
                    self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)")
            finally:
                self._lock.release()

    # ------------------------------------------------------------------------ reading

    def _one(self, query: str, parameters: Sequence[Any] = ()) -> Any:
        with self._reading, self._errors():
            return self._reader.execute(query, parameters).fetchone()

    def _event(self, row: tuple[Any, ...]) -> Event:
        """A row as an event. ValueError where it is not as it was written."""
        event = Event._make(row[:-1])
        if checksum(event) != row[-1]:
            told = "its content was changed since it was written: the log is damaged, restore a back-up"
            raise Damaged(f"{self.path}: event {event.seq}: {told}")
        return event

    def find(self, kind: str, id: str) -> Event | None:
        """The event of that kind and id."""
        row = self._one(f"SELECT {_COLUMNS} FROM event WHERE kind = ? AND id = ?", (kind, id))
        return self._event(row) if row else None

    def at(self, seq: int) -> Event | None:
        """The event with that sequence number."""
        row = self._one(f"SELECT {_COLUMNS} FROM event WHERE seq = ?", (seq,))
        return self._event(row) if row else None

    def many(self, seqs: Sequence[int]) -> list[Event]:
        """The events with these sequence numbers, as far as they are there."""
        found: list[Event] = []
        for start in range(0, len(seqs), 500):
            part = seqs[start : start + 500]
            query = f"SELECT {_COLUMNS} FROM event WHERE seq IN ({', '.join('?' * len(part))})"
            with self._reading, self._errors():
                rows = self._reader.execute(query, part).fetchall()
            found += map(self._event, rows)
        return found

    def newest(self, kind: str, subject: str) -> int:
        """The sequence number of the last event of that kind about that subject, 0 where there is none."""
        query = "SELECT coalesce(max(seq), 0) FROM event WHERE kind = ? AND subject = ?"
        return int(self._one(query, (kind, subject))[0])

    def last(self, items: bool = False) -> tuple[int, int]:
        """The sequence numbers of the last event and of the last the model is made of; 0 where there is none. `items`
        says whether it is made of those, too."""
        # The plus keeps SQLite on the table: from its end, the first that is met.
        kinds = "'feedback', 'undo', 'forget'" + (", 'item'" if items else "")
        made_of = f"SELECT seq FROM event WHERE +kind IN ({kinds}) ORDER BY seq DESC LIMIT 1"
        [head, version] = self._one(f"SELECT coalesce(max(seq), 0), coalesce(({made_of}), 0) FROM event")
        return head, version

    def is_undone_before(self, position: int) -> bool:
        """Whether, since `position`, something up to there was undone or somebody was forgotten."""
        query = (
            "SELECT EXISTS (SELECT 1 FROM event WHERE kind = 'undo' AND seq > ? AND target <= ?) "
            "OR EXISTS (SELECT 1 FROM event WHERE kind = 'forget' AND seq > ?)"
        )
        return bool(self._one(query, (position, position, position))[0])

    def targets(self, kind: str, up_to: int | None = None) -> list[int]:
        """What the events of that kind are about; of those up to sequence number `up_to`, or of all."""
        query = "SELECT target FROM event WHERE kind = ? AND seq <= ? AND target IS NOT NULL"
        return [row[0] for row in self._scan(query, (kind, 2**62 if up_to is None else up_to))]

    def events(self, after: int = 0, kinds: Sequence[str] = (), page: int = 5000) -> Iterator[Event]:
        """The events after sequence number `after`, in order; of these kinds, or of all; read `page` at a time."""
        chosen = f"AND kind IN ({', '.join('?' * len(kinds))})" if kinds else ""
        # The plus keeps SQLite on the table, which is in order, and off the index, which would have to be sorted.
        chosen = chosen.replace("kind", "+kind")
        query = f"SELECT {_COLUMNS} FROM event WHERE seq > ? {chosen} ORDER BY seq LIMIT {page}"
        return map(self._event, self._pages(query, list(kinds), after, page))

    def newest_first(self, before: int, kind: str | None = None) -> Iterator[Event]:
        """The events before a sequence number, of that kind or of all, the newest first, read as they are asked for."""
        if kind is not None:
            with self._reading, self._errors():
                few = self._reader.execute("SELECT seq FROM event WHERE kind = ? LIMIT ?", (kind, FEW + 1)).fetchall()
            if len(few) <= FEW:  # the index has them: whatever else there is need not be read
                left = sorted(seq for [seq] in few if seq < before)
                while left:
                    left, page = left[:-PAGE], left[-PAGE:]
                    yield from sorted(self.many(page), key=lambda event: -event.seq)
                return
        chosen = "" if kind is None else "AND +kind = ?"
        query = f"SELECT {_COLUMNS} FROM event WHERE seq < ? {chosen} ORDER BY seq DESC LIMIT {PAGE}"
        while True:
            with self._reading, self._errors():
                rows = self._reader.execute(query, [before] if kind is None else [before, kind]).fetchall()
            yield from map(self._event, rows)
            if len(rows) < PAGE:
                return
            before = rows[-1][0]

    def lessons(self, after: int = 0) -> Iterator[tuple[Event, Event]]:
        """(feedback, the decision it answers) after sequence number `after`, in order; undone ones too."""
        one, two = (", ".join(f"{table}.{column}" for column in _COLUMNS.split(", ")) for table in "fd")
        query = (
            f"SELECT {one}, {two} FROM event f JOIN event d ON d.seq = f.target "
            "WHERE f.seq > ? AND +f.kind = 'feedback' ORDER BY f.seq LIMIT 5000"
        )
        for row in self._pages(query, [], after):
            yield self._event(row[:_WIDTH]), self._event(row[_WIDTH:])

    def _pages(self, query: str, parameters: list[Any], after: int, page: int = 5000) -> Iterator[Any]:
        """The rows of a query that begins after a sequence number, its first column, `page` at a time, as it says."""
        with self._scanner() as scanner:
            while True:
                with self._scanning, self._errors():
                    rows = scanner.execute(query, [after, *parameters]).fetchall()
                yield from rows
                if len(rows) < page:
                    return
                after = rows[-1][0]

    @contextmanager
    def _scanner(self) -> Iterator[Connection]:
        """A connection for reading much: what is short, and waited for, is read beside it."""
        with self._reading, self._errors():
            self._reader.execute("SELECT 1")  # a log that was closed stays closed
        scanner = self._connect()
        try:
            yield scanner
        finally:
            scanner.close()

    def _scan(self, query: str, parameters: Sequence[Any] = ()) -> list[Any]:
        with self._scanner() as scanner, self._scanning, self._errors():
            return scanner.execute(query, parameters).fetchall()

    def subjects(self, kind: str) -> list[tuple[int, str, bool]]:
        """(sequence number, subject, whether it has arrays) of the events of that kind, in order."""
        chosen = "WHERE kind = ? AND subject IS NOT NULL ORDER BY +seq"
        query = f"SELECT seq, subject, arrays IS NOT NULL FROM event {chosen}"
        return [(seq, subject, bool(there)) for seq, subject, there in self._scan(query, (kind,))]

    def counts(self) -> dict[str, int]:
        """How many events of each kind there are."""
        return dict(self._scan("SELECT kind, count(*) FROM event GROUP BY kind ORDER BY kind"))

    def problems(self) -> list[str]:
        """What is wrong with the file, in words; empty where nothing is. Reads all of it."""
        found = [row[0] for row in self._scan("PRAGMA integrity_check") if row[0] != "ok"]
        there = dict(self._scan("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"))
        missing = sorted(name for name, sql in _TRIGGERS if there.get(name) != sql)
        if missing:
            found.append(f"the database no longer refuses changes: {', '.join(missing)} missing or changed")
        [[mode]] = self._scan("PRAGMA journal_mode")
        if mode != "wal":
            found.append(f"journal mode: wanted wal, got {mode}")
        for row in self._pages(f"SELECT {_COLUMNS} FROM event WHERE seq > ? ORDER BY seq LIMIT 5000", [], -(2**63)):
            try:
                self._event(row)
            except ValueError as error:
                found.append(str(error))
        lost = self._scan(
            "SELECT count(*) FROM event e WHERE target IS NOT NULL "
            "AND NOT EXISTS (SELECT 1 FROM event t WHERE t.seq = e.target)"
        )
        if lost[0][0]:
            found.append(f"{lost[0][0]} events are about an event that is not there")
        return found

    # ------------------------------------------------------------------------ forgetting

    def erase(self, subject: str, event: Callable[[int], Event]) -> int:
        """Take out every decision shown to `subject`, all that is about those, and all that is about that.

        In one transaction the rows go, their digests stay (`is_forgotten`), and `event(count)` is appended as the
        record that it was done. Returns how many events went. Their bytes go with `finish_erasing`, which the next
        opening does where the process died in between (`unfinished`).
        """
        with self.writing() as db:
            rows = db.execute(
                """WITH RECURSIVE gone (seq) AS (
                    SELECT seq FROM event WHERE kind = 'decision' AND subject = ?
                    UNION SELECT e.seq FROM event e JOIN gone ON e.target = gone.seq
                ) SELECT e.seq, e.kind, e.id FROM event e JOIN gone ON e.seq = gone.seq""",
                [subject],
            ).fetchall()
            if rows:
                for name, _ in _TRIGGERS:
                    db.execute(f"DROP TRIGGER {name}")
                seq = self.head() + 1
                digests = [(self.digest(kind, id), seq) for _, kind, id in rows]
                db.executemany("INSERT OR REPLACE INTO forgotten VALUES (?, ?)", digests)
                db.executemany("DELETE FROM event WHERE seq = ?", [(row[0],) for row in rows])
                self._database.create_triggers(db)
                self.append([event(len(rows))._replace(seq=seq)])
        if rows:
            self._any_forgotten = True
        return len(rows)

    def unfinished(self) -> bool:
        """Whether a person was forgotten whose traces were not all removed yet."""
        [last, done] = self._one(
            "SELECT coalesce(max(CASE kind WHEN 'forget' THEN seq END), 0), "
            "coalesce(max(CASE kind WHEN 'erased' THEN target END), 0) FROM event WHERE kind IN ('forget', 'erased')"
        )
        return bool(last > done)

    def finish_erasing(self) -> None:
        """Remove the bytes of forgotten events: the file is written anew, the write-ahead file emptied.

        TimeoutError where another process is reading, and then the next opening does it.
        """
        # Who reads here meanwhile is not kept waiting: SQLite waits for the end of what each is reading. For another
        # process that is moving the write-ahead file at this moment it does not wait.
        until, busy = time.monotonic() + self._database.wait, True
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
        with self.writing():
            last = self._writer.execute("SELECT max(seq) FROM event WHERE kind = 'forget'").fetchone()[0]
            seq = self.head() + 1
            if not self.known("erased", [f"erased-{last}"]):  # another process may have been faster
                self.append([Event(seq, "erased", f"erased-{last}", now(), None, last, seq, "{}")])

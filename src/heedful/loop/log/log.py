"""The log: appending events, and forgetting a person."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import time
from collections.abc import Callable, Iterable, Sequence

from heedful.loop.log.event import COLUMNS, WIDTH, Event, checksum, now
from heedful.loop.log.reader import LogReader
from heedful.loop.log.schema import TRIGGERS
from heedful.storage import WAIT

COMMITTED = 16_000
"""About how many bytes a commit writes in addition to its events: pages of the table and its indices."""
_ROW = f"({', '.join('?' * WIDTH)})"


class Log(LogReader):
    """A log in one file, open for reading and appending.

    Each process appends in a transaction (`writing`), in which it first looks at what other processes appended
    (`head`).
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool = False, wait: float = WAIT) -> None:
        """Open the log in the file `path`, or create it if `create` is True; a writer waits up to `wait` seconds for
        others.

        Raise FileExistsError or FileNotFoundError if the file is there, or is not, and ValueError if it is no log, is
        damaged, or was written by a newer heedful."""
        super().__init__(path, create=create, wait=wait)
        self.look_for_forgotten()

    # ------------------------------------------------------------------------ appending

    def append(self, events: Iterable[Event]) -> None:
        """Append `events`, whose sequence numbers have to follow on from `head`. To be called in a transaction
        (`writing`)."""
        rows = [(*event, checksum(event)) for event in events]
        self.unmoved += COMMITTED + sum([1000 + len(row[7]) + len(row[8] or b"") for row in rows])
        # Many rows in a statement: between statements other threads take the interpreter, and this one waits.
        at = 0
        for size in (256, 64, 16, 4, 1):
            while len(rows) - at >= size:
                self._writer.execute(_insert(size), [value for row in rows[at : at + size] for value in row])
                at += size

    def head(self) -> int:
        """Return the sequence number of the last event that any process appended; 0 if there is none.

        To be called in a transaction (`writing`)."""
        [seq] = self._writer.execute("SELECT coalesce(max(seq), 0) FROM event").fetchone()
        return int(seq)

    def known(self, kind: str, ids: Sequence[str]) -> dict[str, Event]:
        """Return the events of `kind` that have one of these `ids`, by id. To be called in a transaction
        (`writing`)."""
        query = f"SELECT {COLUMNS} FROM event WHERE kind = ? AND id IN (SELECT value FROM json_each(?))"
        rows = self._writer.execute(query, (kind, json.dumps(ids))).fetchall()
        return {event.id: event for event in map(self._event, rows)}

    # ------------------------------------------------------------------------ forgetting

    def erase(self, subject: str, event: Callable[[int], Event]) -> int:
        """Delete every decision for the person `subject`, all feedback on those, and what is about that; return how
        many events.

        One transaction deletes the rows, keeps digests of their ids (`is_forgotten`), and appends the event that
        `event(count)` makes, as the record that `count` events were deleted. If there is nothing to delete, nothing is
        written. The bytes are removed by `finish_erasing`; if the process dies in between, the next opening of the loop
        calls it (`unfinished`).
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
                for name, _ in TRIGGERS:
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
        """Return whether events of a person were deleted whose bytes are still in the file (`finish_erasing` removes
        them)."""
        [last, done] = self._one(
            "SELECT coalesce(max(CASE kind WHEN 'forget' THEN seq END), 0), "
            "coalesce(max(CASE kind WHEN 'erased' THEN target END), 0) FROM event WHERE kind IN ('forget', 'erased')"
        )
        return bool(last > done)

    def finish_erasing(self) -> None:
        """Remove the bytes of deleted events from the disk: rewrite the file and empty the write-ahead file.

        It then appends an event of kind "erased". Raise TimeoutError if another process is reading all the time; the
        next opening of the loop tries again.
        """
        # Readers go on meanwhile: SQLite waits until each has finished. It does not wait for another process that is
        # running a checkpoint at this moment, so this loop does.
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

    def look_for_forgotten(self) -> None:
        """Read from the database whether any event was ever erased; if none was, `is_forgotten` need not look for its
        digest."""
        self._any_forgotten = self._one("SELECT EXISTS (SELECT 1 FROM forgotten)")[0] == 1

    def is_forgotten(self, kind: str, id: str) -> bool:
        """Return whether there was an event of this `kind` and `id` in the log that was deleted to forget a person."""
        if not self._any_forgotten:
            return False
        return self._one("SELECT 1 FROM forgotten WHERE digest = ?", [self.digest(kind, id)]) is not None

    def is_gone(self, seq: int) -> bool:
        """Return whether the event with the sequence number `seq` was deleted to forget a person."""
        return self._any_forgotten and self.at(seq) is None

    def digest(self, kind: str, value: str) -> str:
        """Return the keyed digest (HMAC-SHA256, hexadecimal) by which the log recognises `value`, an id, when it comes
        again.

        The id cannot be read from it. `kind` is the kind of event that the id belongs to."""
        return hmac.new(self._secret, f"{kind}\0{value}".encode(), hashlib.sha256).hexdigest()


def _insert(rows: int) -> str:
    return f"INSERT INTO event ({COLUMNS}) VALUES {', '.join([_ROW] * rows)}"

"""The log: appending events, and forgetting a person."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager

from heedful.loop.log.event import COLUMNS, Event, checksum, now
from heedful.loop.log.file import LogFile
from heedful.loop.log.reader import AT_ONCE, LogReader, of_people
from heedful.loop.log.store import Store
from heedful.storage import Address
from heedful.storage.sqlite import WAIT


class Log(LogReader):
    """A log, open for reading and appending.

    Each process appends in a transaction (`writing`), in which it first looks at what other processes appended
    (`head`).
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | Address,
        *,
        create: bool = False,
        wait: float = WAIT,
        read_only: bool = False,
    ) -> None:
        """Open the log in the file or at the address `path`; with `create` True, make the file instead.

        A writer waits up to `wait` seconds for others. With `read_only`, and for a file that cannot be written, nothing
        is changed and `writing` raises PermissionError. Raise FileExistsError if it is to be made and there is one,
        FileNotFoundError if it is to be opened and there is none, and ValueError if it is no log, is damaged, or was
        written by a newer heedful."""
        super().__init__(_store(path, create, wait, read_only))
        try:
            self.look_for_forgotten()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close all connections; the log cannot be used afterwards."""
        self.store.close()

    # ------------------------------------------------------------------------ transactions

    def writing(self, patient: bool = True, durable: bool = True) -> AbstractContextManager[None]:
        """Begin a transaction, which is committed and on the disk when the `with` block ends, or rolled back if it
        raises.

        - `patient`: whether to wait for another thread or process that is writing; if not, raise Busy
        - `durable`: whether the commit waits for the disk; if not, every process sees it when the block ends, and it
          survives if this process is killed, but a power cut may take it until the next durable transaction or `sync`

        Raise TimeoutError if another process keeps writing, and Moved if the log was removed or replaced."""
        return self.store.writing(patient, durable)

    def sync(self) -> None:
        """Wait until all that was committed is on the disk. Raise Moved if the log was removed or replaced."""
        self.store.sync()

    # ------------------------------------------------------------------------ appending

    def append(self, events: Iterable[Event]) -> None:
        """Append `events`, whose sequence numbers have to follow on from `head`. To be called in a transaction
        (`writing`)."""
        self.store.append([(*event, checksum(event)) for event in events])

    def head(self) -> int:
        """Return the sequence number of the last event that any process appended; 0 if there is none.

        To be called in a transaction (`writing`)."""
        return self.store.head()

    def known(self, kind: str, ids: Sequence[str]) -> dict[str, Event]:
        """Return the events of the kind `kind` that have one of the ids `ids`, by id. To be called in a transaction
        (`writing`)."""
        return {event.id: event for event in map(self._event, self.store.known(COLUMNS, kind, ids))}

    # ------------------------------------------------------------------------ forgetting

    def erase(self, people: Sequence[str], event: Callable[[str, int], Event]) -> dict[str, int]:
        """Delete every decision for `people`, what was said by hand about their style, all feedback on the decisions,
        and events about any of it; return how many events of each person, without those of whom there was nothing.

        One transaction deletes the rows, keeps digests of their ids (`is_forgotten`), and appends for each person the
        event that `event(person, count)` returns, which records that `count` events were deleted. If there is nothing
        to delete, nothing is written.

        The bytes are removed by `finish_erasing`. If the process dies before that, `unfinished` is True, and the next
        opening of the loop calls it."""
        found: dict[str, list[tuple[int, str]]] = {}
        with self.writing():
            for start in range(0, len(people), AT_ONCE):
                for seq, kind, id, person in self.store.execute(*of_people(people[start : start + AT_ONCE])):
                    found.setdefault(person, []).append((seq, self.digest(kind, id)))
            for person, rows in found.items():
                seq = self.head() + 1
                self.store.remove([seq for seq, _ in rows], [digest for _, digest in rows], seq)
                self.append([event(person, len(rows))._replace(seq=seq)])
        if found:
            self._any_forgotten = True
        return {person: len(rows) for person, rows in found.items()}

    def unfinished(self) -> bool:
        """Return True if events of a person were deleted from the table, but their bytes may still be in the file.

        `finish_erasing` removes these bytes."""
        [last, done] = self._one(
            "SELECT coalesce(max(CASE kind WHEN 'forget' THEN seq END), 0), "
            "coalesce(max(CASE kind WHEN 'erased' THEN target END), 0) FROM event WHERE kind IN ('forget', 'erased')"
        )
        return bool(last > done)

    def finish_erasing(self) -> None:
        """Remove the bytes of deleted events from the disk, where the database keeps them.

        It then appends an event of kind "erased". Raise TimeoutError if another process is reading all the time; the
        next opening of the loop tries again.
        """
        self.store.rewrite()
        with self.writing():
            [[last]] = self.store.execute("SELECT max(seq) FROM event WHERE kind = 'forget'")
            seq = self.head() + 1
            if not self.known("erased", [f"erased-{last}"]):  # another process may have been faster
                self.append([Event(seq, "erased", f"erased-{last}", now(), None, last, seq, "{}")])

    def look_for_forgotten(self) -> None:
        """Read from the database whether any event was ever deleted; if none was, `is_forgotten` is False without a
        query."""
        self._any_forgotten = self._one("SELECT EXISTS (SELECT 1 FROM forgotten)")[0] == 1

    def is_forgotten(self, kind: str, id: str) -> bool:
        """Return whether an event of this `kind` with this `id` was in the log and was deleted to forget a person."""
        if not self._any_forgotten:
            return False
        return self._one("SELECT 1 FROM forgotten WHERE digest = ?", [self.digest(kind, id)]) is not None

    def is_gone(self, seq: int) -> bool:
        """Return whether the event with the sequence number `seq` was deleted to forget a person."""
        return self._any_forgotten and self.at(seq) is None

    def digest(self, kind: str, value: str) -> str:
        """Return the keyed digest (HMAC-SHA256, hexadecimal) of `value`, the id of an event of the kind `kind`.

        With it the log recognises the id of a deleted event if it is used again, without keeping the id."""
        return hmac.new(self.store.secret, f"{kind}\0{value}".encode(), hashlib.sha256).hexdigest()


def _store(path: str | os.PathLike[str] | Address, create: bool, wait: float, read_only: bool) -> Store:
    if not isinstance(path, Address):
        return LogFile(path, create=create, wait=wait, read_only=read_only)
    from heedful.loop.log.table import LogTable

    return LogTable(path, wait=wait, read_only=read_only)

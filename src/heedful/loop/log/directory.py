"""The loops of a PostgreSQL database: which there are, who owns them, and the servers that share them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from heedful.core.wording import count
from heedful.loop.log.table import LogTable
from heedful.storage import Address
from heedful.storage.pool import MOST
from heedful.storage.postgres import Reader, Server

OTHERS = 4
"""Connections that the two processes of a server have in which logs are analysed."""
_HELD = "unnest(?::bigint[], ?::bigint[], ?::text[], ?::float8[]) AS held(loop, epoch, owner, hold)"


class Directory:
    """The list of the loops in a PostgreSQL database, and the leases of those that this process owns."""

    def __init__(self, address: Address) -> None:
        """Prepare to list the loops in the database of `address`; nothing is opened yet."""
        self._server = Server(Address(address.url))
        self._reader, self._serving = Reader(self._server), Reader(self._server, use="serve")
        self._announced = False

    def names(self) -> list[str]:
        """Return the names of all loops, NAME or TENANT/NAME, sorted; [] if there are no tables."""
        return [name for [name] in self._read("SELECT name FROM heedful.loop ORDER BY name")]

    def lacks(self, servers: int = 0) -> list[str]:
        """Return, a sentence each, what the database and its role do not allow: to remove the bytes of forgotten
        people, and the connections of so many `servers`; [] if there is nothing, or no tables yet."""
        lacking = [
            f"the role {role} may not write {count} tables of heedful anew, so forget does not remove what it deletes "
            f'from the disk: GRANT "{owner}" TO "{role}"'
            for role, owner, count in self._read(
                "SELECT current_user, min(tableowner), count(*) FROM pg_tables WHERE schemaname = 'heedful' "
                "AND NOT pg_has_role(current_user, tableowner, 'USAGE') HAVING count(*) > 0"
            )
        ]
        needed = servers * (sum(MOST.values()) + OTHERS)
        left = "current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int"
        for [most] in self._read(f"SELECT {left}"):
            if needed > most:
                need = f"{count(servers, 'server')} may need {needed:,} connections"
                lacking.append(f"{need}, and max_connections leaves {most:,}: with no pooler in front, raise it")
        return lacking

    def last_of_owned(self) -> dict[str, tuple[int, str]]:
        """Return {name: (sequence number of its last event, 0 if there is none; address of its owner)} of the loops
        that a process, this one or another, owns now."""
        last = "(SELECT coalesce(max(seq), 0) FROM heedful.event WHERE event.loop = loop.number)"
        leases = "heedful.lease ON lease.loop = loop.number WHERE lease.expires > clock_timestamp()"
        rows = self._read(f"SELECT name, {last}, address FROM heedful.loop JOIN {leases}")
        return {name: (last, address) for name, last, address in rows}

    def announce(self, address: str, seconds: float, ready: Sequence[int]) -> dict[str, frozenset[int]]:
        """Say that the server at `address` is there for so many more `seconds`, and `ready` to own the loops of these
        numbers; return {address: the loops that it is ready to own} of the other servers. {} if there are no tables."""
        if not self._announced:
            [[self._announced]] = self._serving.rows("SELECT to_regclass('heedful.server') IS NOT NULL")
            if not self._announced:
                return {}
        announce = (
            "WITH mine AS (INSERT INTO heedful.server VALUES (?, clock_timestamp() + make_interval(secs => ?), "
            "?::bigint[]) ON CONFLICT (address) DO UPDATE SET expires = excluded.expires, ready = excluded.ready), "
            "gone AS (DELETE FROM heedful.server WHERE expires < clock_timestamp() - interval '1 day') "
        )
        others = "SELECT address, ready FROM heedful.server WHERE expires > clock_timestamp() AND address <> ?"
        rows = self._serving.rows(f"{announce}{others}", [address, seconds, list(ready), address])
        return {other: frozenset(numbers) for other, numbers in rows}

    def leave(self, address: str) -> None:
        """Say that the server at `address` ends."""
        if self._announced:
            self._serving.rows("DELETE FROM heedful.server WHERE address = ? RETURNING 1", [address])

    def take(self, tables: Sequence[LogTable]) -> None:
        """Let this process own those loops of `tables` that nobody owns, in one statement. What others have written is
        learned with the next commit, as always."""
        if not tables:
            return
        taken = self._serving.rows(
            "UPDATE heedful.lease SET owner = free.by, address = free.at, epoch = lease.epoch + 1, "
            "expires = clock_timestamp() + make_interval(secs => free.hold) FROM (SELECT loop, by, at, hold "
            "FROM heedful.lease "
            "JOIN unnest(?::bigint[], ?::text[], ?::text[], ?::float8[]) AS mine(loop, by, at, hold) "
            "USING (loop) WHERE expires <= clock_timestamp() FOR UPDATE OF lease SKIP LOCKED) AS free "
            "WHERE lease.loop = free.loop RETURNING lease.loop, lease.epoch",
            [list(column) for column in zip(*((t.number, t._owner, t.address, t.hold) for t in tables))],
        )
        epochs = dict(taken)
        for table in tables:
            with table._leasing:
                if epochs.get(table.number, -1) > table._epoch and not table._left:
                    table._epoch = epochs[table.number]

    def give_back(self, tables: Sequence[LogTable]) -> None:
        """Let others own the loops of `tables` at once, in one statement, except for those in which a transaction holds
        the lease, and those that this process does not own."""
        with self._held(tables) as held:
            if held:
                for number in self._update("clock_timestamp()", held):
                    held[number]._epoch = -1

    def renew(self, tables: Sequence[LogTable]) -> list[LogTable]:
        """Let this process stay the owner of the loops of `tables` for `hold` more seconds, all of them in one
        statement; return those that it does not own any more.

        A loop in which a transaction holds the lease is left out, so that it holds up no other: if it is a commit of
        this process, that renews the lease itself. Tables that this process does not own are left out, too."""
        with self._held(tables) as held:
            if not held:
                return []
            now = time.monotonic()
            kept = self._update("clock_timestamp() + make_interval(secs => mine.hold)", held)
            for number in kept:
                held[number]._renewed = now
            if len(kept) == len(held):
                return []
            columns = _columns(held.values())
            rows = self._serving.rows(
                f"SELECT loop FROM {_HELD} WHERE NOT EXISTS (SELECT FROM heedful.lease WHERE lease.loop = held.loop "
                "AND lease.epoch = held.epoch AND lease.owner = held.owner)",
                columns,
            )
            lost = [held[number] for [number] in rows]
            epochs = dict(zip(columns[0], columns[1]))
            for table in lost:
                if table._epoch == epochs[table.number]:
                    table._epoch = -1
            return lost

    @contextmanager
    def _held(self, tables: Sequence[LogTable]) -> Iterator[dict[int, LogTable]]:
        """Yield, by number, those of `tables` that this process owns, as far as it knows. Nobody gives a lease back
        meanwhile, so that none is renewed after that."""
        with ExitStack() as stack:
            for table in tables:
                stack.enter_context(table._leasing)
            yield {table.number: table for table in tables if table.hold and table._epoch >= 0 and not table._left}

    def _update(self, expires: str, held: Mapping[int, LogTable]) -> list[int]:
        """Set the end of the leases of `held` to the SQL expression `expires`; return the numbers of the loops for
        which that was done: those that this process owns, and in which no transaction holds the lease."""
        rows = self._serving.rows(
            f"UPDATE heedful.lease SET expires = {expires} FROM (SELECT loop, hold FROM heedful.lease JOIN {_HELD} "
            "USING (loop, epoch, owner) FOR UPDATE OF lease SKIP LOCKED) AS mine "
            "WHERE lease.loop = mine.loop RETURNING mine.loop",
            _columns(held.values()),
        )
        return [number for [number] in rows]

    def _read(self, query: str) -> list[Any]:
        [[there]] = self._reader.rows("SELECT to_regclass('heedful.lease') IS NOT NULL")
        return self._reader.rows(query) if there else []

    def close(self) -> None:
        self._server.close()


def _columns(tables: Iterable[LogTable]) -> list[list[Any]]:
    """Return what `_HELD` takes, of `tables`."""
    rows = [(table.number, table._epoch, table._owner, table.hold) for table in tables]
    return [list(column) for column in zip(*rows)]

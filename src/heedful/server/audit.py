"""The audit log: what was done with which key, when and on which loop. It is kept next to the keys, apart from all that
is about people, and names none."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from heedful.results.audit import Act
from heedful.server.database import open_database
from heedful.storage import Place


class Actor(NamedTuple):
    """Who does something: a key, in a request."""

    key: str = ""
    """the prefix of the key; "" for a command on the machine of the server"""
    request: str = ""
    """the id of the request; "" for a command"""


COMMAND = Actor()
"""A command on the machine of the server."""


def write(connection: Any, actor: Actor, tenant: str, action: str, loop: str = "", about: str = "") -> None:
    """Add an act, done just now, to the audit log, in the transaction of `connection`; the arguments are the fields of
    `Act`."""
    insertion = "INSERT INTO audit (time, prefix, tenant, action, loop, about, request) VALUES (?, ?, ?, ?, ?, ?, ?)"
    row = time.time_ns() // 1000, actor.key, tenant, action, loop, about, actor.request
    connection.execute(insertion, row)


class Audit:
    """The audit log of a folder of loops, in the file `server.db`, or of a database."""

    def __init__(self, home: Place) -> None:
        """Open the audit log for the loops in `home`, a folder or a database.

        Raise Damaged, a ValueError, if `server.db` is something else, is damaged, or was written by a newer heedful."""
        self._database = open_database(home)

    def add(self, actor: Actor, tenant: str, action: str, loop: str) -> None:
        """Add an act, done just now."""
        with self._database.writing() as connection:
            write(connection, actor, tenant, action, loop)

    def newest(self, tenant: str | None, before: int, limit: int) -> list[Act]:
        """Return the newest acts of a `tenant` (None: of all) with ids below `before`, at most `limit`, the newest
        first."""
        query = "SELECT id, time, prefix, tenant, action, loop, about, request FROM audit WHERE id < ?"
        query, given = (query, [before]) if tenant is None else (f"{query} AND tenant = ?", [before, tenant])
        with self._database.reading() as connection:
            if connection is None:
                return []
            return [Act(*row) for row in connection.execute(f"{query} ORDER BY id DESC LIMIT ?", [*given, limit])]

"""A served folder or database is backed up and restored as a whole: all loops, keys, sessions, links and the audit
log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Literal, NamedTuple

from heedful.loop.copying import copy_loop, loops_in
from heedful.server.database import open_database
from heedful.storage import Place
from heedful.storage.address import SUFFIX

KEYS = "keys"
"""What the copy of the keys, sessions, links and the audit log is called."""
TABLES = "keys", "sessions", "links", "audit"


class Part(NamedTuple):
    """What became of one part of a back-up."""

    name: str
    """the loop, NAME or TENANT/NAME; "keys" for the keys, sessions, links and audit log of the server"""
    status: Literal["copied", "unchanged", "failed"]
    """"unchanged" if a copy of it as it is now was there"""
    rows: int = 0
    """how many events of a loop, or how many keys, sessions, links and acts, the copy has"""
    problem: str = ""
    """why it failed"""


def back_up(source: Place, target: Path) -> Iterator[Part]:
    """Copy the loops and keys of `source`, a folder that is served or a database, to the folder `target`, while a
    server goes on with them; yield what became of each.

    What is in `target` and has not changed since is not copied again; if one fails, an earlier copy of it stays, and
    the others are copied. Loops that are not in `source` any more stay in `target`. Raise ValueError if one of the
    folders is within the other."""
    if isinstance(source, Path):
        one, other = source.resolve(), target.resolve()
        if one.is_relative_to(other) or other.is_relative_to(one):
            raise ValueError(f"TO: expected two folders, none within the other, got {source} and {target}")
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    return _copy_all(source, target, renew=True)


def restore(source: Path, target: Place) -> Iterator[Part]:
    """Copy the loops and keys of the back-up `source` to `target`, a folder or a database; yield what became of each.

    Raise FileExistsError, and change nothing, if in `target` there are keys or loops, but for unchanged copies of those
    in `source`, as an interrupted `restore` left them."""
    others = sorted({*loops_in(target)} - {*loops_in(source)})
    if others:
        raise FileExistsError(17, f"expected nothing to restore over, got {others[0]}", str(target))
    if (there := _rows(target)) and there != _rows(source):
        raise FileExistsError(17, "expected nothing to restore over, got other keys", str(target))
    if isinstance(target, Path):
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
    return _copy_all(source, target, renew=False)


def parts_of(home: Place) -> list[str]:
    """Return the names of the parts of `home` that `back_up` copies: its loops, then "keys" if there are any."""
    return [*loops_in(home), *([KEYS] if _rows(home) else [])]


def _copy_all(source: Place, target: Place, renew: bool) -> Iterator[Part]:
    for name in parts_of(source):
        try:
            if name == KEYS:
                yield _copy_keys(source, target)
                continue
            place = target / f"{name}{SUFFIX}"
            if isinstance(place, Path):
                place.parent.mkdir(mode=0o700, exist_ok=True)
            copied = copy_loop(source / f"{name}{SUFFIX}", place, renew=renew)
            yield Part(name, "copied" if copied.new else "unchanged", copied.events)
        except OSError as error:
            problem = f"{error.filename}: {error.strerror}" if error.strerror else str(error)
            yield Part(name, "failed", problem=problem)
        except ValueError as error:
            yield Part(name, "failed", problem=str(error))


def _rows(home: Place) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of the server's `TABLES` in `home`, by table, in order; {} if there are none.

    Their numbers are left out: a table gives its own."""
    tables: dict[str, list[dict[str, Any]]] = {}
    with closing(open_database(home)) as database, database.reading() as connection:
        if connection is not None:
            for table in TABLES:
                cursor = connection.execute(f"SELECT * FROM {table}")
                columns = [column[0] for column in cursor.description]
                for values in sorted(cursor.fetchall()):  # by number, and sessions by digest
                    row = dict(zip(columns, values))
                    row.pop("id", None)
                    if "shows" in row:
                        row["shows"] = bool(row["shows"])  # a number in SQLite
                    tables.setdefault(table, []).append(row)
    return tables


def _copy_keys(source: Place, target: Place) -> Part:
    """Write the rows of the `TABLES` of `source` to `target` in one transaction, in place of earlier ones."""
    tables, copies = _rows(source), _rows(target)
    part = Part(KEYS, "copied", sum(map(len, tables.values())))
    if tables == copies:
        return part._replace(status="unchanged")
    revoked = {key["digest"]: key["revoked"] for key in tables.get("keys", ())}
    for key in copies.get("keys", ()):
        if key["digest"] not in revoked or key["revoked"] not in (None, revoked[key["digest"]]):
            problem = f"got {key['prefix']}, which is another key, or was revoked since"
            raise FileExistsError(17, f"expected earlier keys of {source}, {problem}", str(target))
    acts = copies.get("audit", [])
    if tables.get("audit", [])[: len(acts)] != acts:
        problem = f"expected an earlier audit log of {source}, got one with acts that it does not have"
        raise FileExistsError(17, problem, str(target))
    with closing(open_database(target)) as database, database.writing(create=True) as connection:
        for table in TABLES:
            connection.execute(f"DELETE FROM {table}")
            for row in tables.get(table, ()):
                names, marks = ", ".join(row), ", ".join("?" * len(row))
                connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(row.values()))
    return part

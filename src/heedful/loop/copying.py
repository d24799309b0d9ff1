"""Loops are copied, log and all, between folders and databases in both directions, while others write to them."""

from __future__ import annotations

import errno
import filecmp
import shutil
from collections.abc import Iterator
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from heedful.core.paths import folder_aside, path_kind, remove_unfinished
from heedful.loop.log import Event, Log
from heedful.loop.log.event import COLUMNS, to_event
from heedful.loop.log.file import LogFile
from heedful.loop.log.store import Rows, Run
from heedful.storage import Address, Damaged, Place
from heedful.storage.address import LOG, NAME, SUFFIX

PAGE = 5000
"""How many events are copied at a time."""


class Copied(NamedTuple):
    """The result of `copy_loop`."""

    events: int
    """how many events the copy has"""
    new: bool
    """whether it was written; False if it was there, unchanged"""


def loops_in(home: Place) -> list[str]:
    """Return the names of all loops in `home`, a folder that is served or a database: NAME, or TENANT/NAME, sorted.

    A loop is at `home` / "NAME.heedful". Those of a tenant are in `home` / "TENANT"."""
    if isinstance(home, Address):
        from heedful.loop.log.directory import Directory

        with closing(Directory(home)) as directory:
            under = f"{home.key}/" if home.key else ""
            keys = [key.removeprefix(under) for key in directory.names() if key.startswith(under)]
    else:
        logs = [*home.glob(f"*{SUFFIX}/{LOG}"), *home.glob(f"*/*{SUFFIX}/{LOG}")]
        keys = [log.parent.relative_to(home).as_posix().removesuffix(SUFFIX) for log in logs]
    return sorted(key for key in keys if all(NAME.fullmatch(part) for part in key.split("/")))


def copy_loop(source: Place, target: Place, *, renew: bool = False) -> Copied:
    """Copy the loop at `source`, a folder or an address in a database, to `target`, another one.

    The copy has the same events under the same sequence numbers, the same digests of what was forgotten, and so the
    same model bit for bit. It is the loop as it was at one moment, whoever writes meanwhile; it is checked, and is
    there as a whole or not at all. The files of a study come with it, snapshots do not: the first opening makes the
    model from the log. A copy that is at `target` already is left if nothing has happened in the loop since; an earlier
    one is brought up to date if `renew` is true.

    Raise FileExistsError if anything else is at `target`, Damaged if the log is damaged, and ValueError if a database
    cannot hold the files of the loop."""
    files = _files(source)
    if files and isinstance(target, Address):
        told = f"expected a loop without files to copy into a database, got one with {', '.join(sorted(files))}"
        raise ValueError(f"{source}: {told}: copy it to a folder")
    with closing(_open(source)) as log:
        if _is_there(target):
            with closing(_open(target)) as copy:
                newest = copy.at(copy.last()[0])
                unchanged = copy.store.secret == log.store.secret and newest == log.at(log.last()[0])
                if unchanged and _are_same(files, _files(target)):
                    if isinstance(target, Path):
                        remove_unfinished(target)
                    return Copied(_length(copy), False)
                if not renew:
                    told = "expected no loop, or an unchanged copy of the same one, got another"
                    raise FileExistsError(errno.EEXIST, told, str(target))
                _check_earlier(log, copy, newest, source)
        if isinstance(target, Address):
            from heedful.loop.log.table import write_loop

            with log.store.frozen() as run:
                write_loop(target, log.store.secret, _pages(run, log), _forgotten(run))
            with closing(_open(target)) as copy:
                return Copied(_length(copy), True)
        with folder_aside(target) as part:
            _write(log, part / LOG)
            with closing(Log(part / LOG, read_only=True)) as copy:
                for problem in copy.problems():
                    raise Damaged(problem.replace(str(part), str(source)))
                length = _length(copy)
            for name, file in files.items():
                (part / name).parent.mkdir(mode=0o700, exist_ok=True)
                (part / name).touch(0o600)
                shutil.copyfile(file, part / name)
            _put_in_place(part, target)
        return Copied(length, True)


def _open(place: Place) -> Log:
    return Log(place if isinstance(place, Address) else place / LOG, read_only=True)


def _is_there(place: Place) -> bool:
    """Return whether there is a loop at `place`, and raise FileExistsError if there is something else."""
    if isinstance(place, Address):
        return place.key in loops_in(Address(place.url))
    if path_kind(place) and path_kind(place / LOG) != "file":
        raise FileExistsError(errno.EEXIST, "expected a loop or nothing, got something else", str(place))
    return path_kind(place) == "folder"


def _length(log: Log) -> int:
    return sum(log.counts().values())


# ---------------------------------------------------------------------------- what is there already


def _are_same(files: dict[str, Path], others: dict[str, Path]) -> bool:
    """Return whether files, by name, have the same contents as `others`."""
    return files.keys() == others.keys() and all(filecmp.cmp(files[name], others[name], False) for name in files)


def _check_earlier(log: Log, copy: Log, newest: Event | None, source: Place) -> None:
    """Raise FileExistsError unless `copy`, whose last event is `newest`, is a beginning of `log`, that of the loop at
    `source`: otherwise its events would be lost."""
    told = ""
    if copy.store.secret != log.store.secret:
        told = "another loop"
    elif newest is not None and (newest.seq > log.last()[0] or log.at(newest.seq) not in (newest, None)):
        told = "one with events that it does not have"  # it was restored, or these are the wrong way round
    if told:
        told = f"expected an earlier copy of {source}, got {told}: move it away, or copy to elsewhere"
        raise FileExistsError(errno.EEXIST, told, str(copy.path))


# ---------------------------------------------------------------------------- what is written


def _write(log: Log, path: Path) -> None:
    """Write what is in `log` now to the new file `path`."""
    if isinstance(log.store, LogFile):
        log.store.copy_to(path)
        return
    made = LogFile(path, create=True, secret=log.store.secret)
    with closing(made), log.store.frozen() as run, made.writing():
        for rows in _pages(run, log):
            made.append(rows)
        for seq, digests in _forgotten(run):
            made.remove([], digests, seq)


def _pages(run: Run, log: Log) -> Iterator[Rows]:
    """Yield the rows of all events, many at a time, after checking each."""
    after = 0
    while rows := run(f"SELECT {COLUMNS} FROM event WHERE seq > ? ORDER BY seq LIMIT {PAGE}", [after]):
        for row in rows:
            to_event(row, log.path)
        yield rows
        after = rows[-1][0]


def _forgotten(run: Run) -> Iterator[tuple[int, list[str]]]:
    """Yield (sequence number of the event that records it, digests of what was deleted) of each deletion."""
    rows = run("SELECT seq, digest FROM forgotten ORDER BY seq")
    for seq, group in groupby(rows, lambda row: row[0]):
        yield seq, [digest for _, digest in group]


def _files(place: Place) -> dict[str, Path]:
    """Return the files of a loop besides its log and its snapshots, such as those of a study, by their path in its
    folder: plain files, no links, none of SQLite's, of Litestream's, or half-written."""
    if isinstance(place, Address):
        return {}
    folders = [place, *(path for path in place.iterdir() if path.is_dir() and not path.is_symlink())]
    found = [path for folder in folders for path in folder.iterdir() if path.is_file() and not path.is_symlink()]
    names = {path.relative_to(place).as_posix(): path for path in found}
    return {
        name: path
        for name, path in names.items()
        if not name.startswith((LOG, "snapshot-", ".")) and not name.endswith(".tmp")
    }


def _put_in_place(part: Path, target: Path) -> None:
    """Move the complete copy in the folder `part` to `target`, where an earlier one may be."""
    if not target.exists():
        part.rename(target)
        return
    made = _files(part)
    for path in [path for path in target.iterdir() if path.is_file() and path.name not in (LOG, *made)]:
        path.unlink()  # first of all SQLite's, which belong to the old log
    for name, file in made.items():
        (target / name).parent.mkdir(mode=0o700, exist_ok=True)
        file.replace(target / name)
    (part / LOG).replace(target / LOG)

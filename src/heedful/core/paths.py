"""What is at a path. Where the system does not tell, that is an error: `Path.is_file` and its like say no then, from
Python 3.14 on, so that a file would be called missing that may not be read."""

from __future__ import annotations

import errno
import glob
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Literal

PathKind = Literal["file", "folder", "other", ""]


def path_kind(path: str | os.PathLike[str]) -> PathKind:
    """Return what is at `path`, or where it points: a plain "file", a "folder" or something "other", such as a pipe; ""
    if nothing is there.

    Raise OSError if the system does not tell: PermissionError in a folder that this user may not enter."""
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):  # a path with a zero byte leads nowhere
        return ""
    return "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "other"


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file, readable by its owner only, that replaces `path` when the block ends without an error.

    It is flushed to disk before. A process that is killed leaves it, named PATH, eight letters and .tmp."""
    handle, aside = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise


@contextmanager
def folder_aside(path: Path) -> Iterator[Path]:
    """Yield a new folder next to `path`, for its owner alone, for what the block then moves to `path`. What it does not
    move is removed.

    A process that is killed leaves it, named .NAME, eight letters and .part; the next one whose block ends without an
    error removes it. Raise FileNotFoundError if there is no folder to put `path` in."""
    try:
        folder = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
    except FileNotFoundError:
        told = "expected a folder that is there to put the loop in"
        raise FileNotFoundError(errno.ENOENT, told, str(path.parent)) from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    remove_unfinished(path)
    with suppress(OSError):  # not all systems can
        names = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(names)  # what is acknowledged in it from now on is found after a power cut
        finally:
            os.close(names)


def remove_unfinished(path: Path) -> None:
    """Remove the folders that `folder_aside` left next to `path`, which is there, in processes that were killed.

    One that is still at work finds something at `path`, and fails."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.{'[a-z0-9_]' * 8}.part"):
        shutil.rmtree(left, ignore_errors=True)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield where the block makes a folder, which becomes `path` when the block ends without an error.

    Raise FileExistsError if something is at `path`, and FileNotFoundError if there is no folder to put it in."""
    told = "expected a new folder for the loop, got one that is there already"
    there = FileExistsError(errno.EEXIST, told, str(path))
    if os.path.lexists(path):
        raise there
    with folder_aside(path) as aside:
        yield aside / path.name
        try:
            (aside / path.name).rename(path)
        except OSError:
            if os.path.lexists(path):  # another process was faster
                raise there from None
            raise

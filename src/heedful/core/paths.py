"""What is at a path. Where the system does not tell, that is an error: `Path.is_file` and its like say no then, from
Python 3.14 on, so that a file would be called missing that may not be read."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
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

"""What is at a path. Where the system does not tell, that is an error: `Path.is_file` and its like say no then, from
Python 3.14 on, so that a file would be called missing that may not be read."""

from __future__ import annotations

import os
import stat
from typing import Literal

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

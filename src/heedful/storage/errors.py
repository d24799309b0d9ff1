"""Errors about a database for which Python has no class of its own, as it has OSError and TimeoutError."""

from __future__ import annotations


class Busy(Exception):
    """Another process is writing to the file, and the caller asked not to wait for it."""


class Damaged(ValueError):
    """The file is not what heedful wrote: it is broken, a file of another kind, or written by a newer heedful."""


class Moved(Damaged):
    """The path now holds another file than the one that was opened, or none: it was replaced, moved or deleted
    meanwhile."""


class Closed(ValueError):
    """The connection to the database file was closed before this call."""


class Newer(Damaged):
    """A newer heedful wrote it: nothing is wrong but the version of this one."""


class Unreachable(TimeoutError):
    """The database server cannot be reached, or the connection to it was lost.

    Nothing was changed, unless the message says that it is not known."""


class OutOfConnections(Unreachable):
    """The database server takes no more connections; nothing was changed."""


class Owned(TimeoutError):
    """Another process owns the loop and writes to it; nothing was changed.

    The attribute `owner` is the URL of that process, "" if it has none."""

    def __init__(self, told: str, owner: str = "") -> None:
        super().__init__(told)
        self.owner = owner

"""What can be wrong with a database file, besides what the operating system says (OSError, TimeoutError)."""

from __future__ import annotations


class Busy(Exception):
    """Another process is writing, and this caller does not wait."""


class Damaged(ValueError):
    """The file is not what heedful wrote: broken, of another kind, or written by a newer heedful."""


class Moved(Damaged):
    """The file is not the one that was opened."""


class Closed(ValueError):
    """The database was closed."""
